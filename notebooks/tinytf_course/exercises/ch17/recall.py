"""17.3 what was left out (★☆☆, 6 minutes)

Write `my_recall(translation, references, n)`: the share of a reference's n-grams that occur in the
translation, from 0 to 1, each counted at most as often as it occurs there. If there are several
references, take the one with the highest share; a reference without n-grams gives 0.
`clipped_matches` does the counting if you call it in the right way.

Hint: Precision counts the translation's n-grams in the reference. Exchange the two.
"""

from tinytf.metrics.bleu import clipped_matches, ngrams  # noqa: F401 - for a mistake
from tinytf_course.expect import agrees, numbers, same


def my_recall(translation, references, n):
    """How much of a reference the translation contains: a share of its n-grams, from 0 to 1.

    Each n-gram of a reference counts at most as often as it occurs in the translation. Of several
    references the one with the highest share counts; one without n-grams gives 0.
    """
    shares = [0.0]
    for reference in references:
        found, wanted = clipped_matches(reference, [translation], n)  # the roles exchanged
        if wanted:
            shares.append(found / wanted)
    return max(shares)


SAT = ["the", "cat", "sat", "on", "the", "mat"]
CATS = [["the", "cat", "is", "on", "the", "mat"], ["there", "is", "a", "cat", "on", "the", "mat"]]
LIKE_CATS = ["there", "is", "a", "cat", "on", "mat"]
_SAT = "for `the cat` against `the cat sat on the mat`"
_CATS = "against `the cat is on the mat` and `there is a cat on the mat`"


def _one_by_one(translation, references, n):
    """Each run of n words of a reference is struck out of the translation's, with no Counter."""

    def runs(words):
        return [words[i : i + n] for i in range(len(words)) if i + n <= len(words)]

    shares = [0.0]
    for reference in references:
        left, found = runs(translation), 0
        for run in runs(reference):
            if run in left:
                left.remove(run)
                found += 1
        shares.append(found / max(len(runs(reference)), 1))
    return max(shares)


def test_of_the_reference(answer):
    """a share of the reference's n-grams, each found at most as often as it occurs"""
    note = "Two of six words are found: `cat`, and one `the` of two."
    same(answer(["the", "cat"], [SAT], 1), 2 / 6, f"{_SAT}, n = 1", note=note)


def test_pairs(answer):
    """of pairs as of words"""
    same(answer(["the", "cat"], [SAT], 2), 1 / 5, f"{_SAT}, n = 2", note="It has five pairs.")


def test_twice(answer):
    """what occurs twice in both counts twice"""
    where = "for `the mat the` against `the cat sat on the mat`, n = 1"
    same(answer(["the", "mat", "the"], [SAT], 1), 3 / 6, where, note="Both `the` are found.")


def test_too_much(answer):
    """words too many do no harm"""
    where = "for `the the the the` against `the cat`, n = 1"
    same(answer(["the"] * 4, [["the", "cat"]], 1), 1 / 2, where, note="One of two is found.")
    where, long = "for `well the cat sat` against `the cat`, n = 2", ["well", "the", "cat", "sat"]
    same(answer(long, [["the", "cat"]], 2), 1.0, where, note="All of it is found.")


def test_best_of_two(answer):
    """of several references the one of which most is found, by itself"""
    note = "Of the second six words of seven are found, of the first four of six."
    same(
        answer(LIKE_CATS, CATS, 1), 6 / 7, f"for `there is a cat on mat` {_CATS}, n = 1", note=note
    )


def test_whichever_is_first(answer):
    """the order of the references does not matter"""
    where = "for the same translation, and the same two references exchanged"
    same(answer(LIKE_CATS, CATS[::-1], 1), 6 / 7, where, note="It is the first now.")


def test_nothing_there(answer):
    """where there is no n-gram, nothing is found"""
    where = "for `cat` against `cat`, n = 2"
    same(answer(["cat"], [["cat"]], 2), 0.0, where, note="The reference has no pair.")
    where = "for `the cat` against `cat` and `the cat sat`, n = 2"
    two = [["cat"], ["the", "cat", "sat"]]
    same(answer(["the", "cat"], two, 2), 1 / 2, where, note="Half of the second is found.")
    same(answer([], [SAT], 1), 0.0, "for a translation without words, n = 1")


def test_long_texts(answer):
    """in longer texts, for every n from 1 to 4 and 1 to 3 references"""
    chosen = numbers(4, 60, seed=3).abs().mul(2).long().clamp(max=3).tolist()
    texts = [["".join("abcd"[i]) for i in row] for row in chosen]
    for many in (1, 3):
        for n in (1, 2, 3, 4):
            references = [text[: 55 - 5 * i] for i, text in enumerate(texts[1 : 1 + many])]
            where = f"for 60 words of 4 kinds against {many} such texts, n = {n}"
            agrees(answer, _one_by_one, texts[0], references, n, where=where)


MISTAKES = r"""
precision
    clipped_matches(reference, [translation], n) => clipped_matches(translation, [reference], n)
    says: you get 1, expected 0.3333
    That is the share of the translation. Here the reference's n-grams are counted, and the
    translation limits how often each may count.
not clipped
    found, wanted = clipped_matches(reference, [translation], n) =>
        theirs, ours = ngrams(reference, n), ngrams(translation, n)
        found, wanted = sum(theirs[gram] for gram in theirs if gram in ours), theirs.total()
    says: you get 0.5, expected 0.3333
    The translation has one `the`: it is found for one of the reference's two, not for both.
each n-gram once
    found, wanted = clipped_matches(reference, [translation], n) =>
        theirs, ours = set(ngrams(reference, n)), set(ngrams(translation, n))
        found, wanted = len(theirs & ours), len(theirs)
    says: you get 0.4, expected 0.3333
    The reference has six words, though only five different ones: compare counts, not sets.
what was said counted
    found, wanted = clipped_matches(reference, [translation], n) =>
        theirs, ours = ngrams(reference, n), ngrams(translation, n)
        found, wanted = sum(ours[gram] for gram in ours if gram in theirs), theirs.total()
    says: you get 2, expected 0.5
    A word that occurs four times in the translation and once in the reference is found once.
a share of the words
    found / wanted => found / len(reference)
    says: It has five pairs
    Divide by the number of n-grams, which is n - 1 fewer than the words.
only the first reference
    in references: => in references[:1]:
    says: Of the second six words of seven are found
    The best of the references may be any of them.
the mean of the references
    max(shares) => sum(shares) / len(references)
    says: Of the second six words of seven are found
    A translation need not contain what every reference has: one of them is enough.
the worst of the references
    max(shares) => min(shares[1:], default=0.0)
    says: It is the first now
    The references are alternatives: take the largest share.
references together
    … =>
        counts = [clipped_matches(reference, [translation], n) for reference in references]
        found, wanted = map(sum, zip(*counts, strict=True))
        return found / wanted if wanted else 0.0
    says: Of the second six words of seven are found
    Added up, each reference needs its own words, and no translation has all of them.
words of any reference
    clipped_matches(reference, [translation], n) =>
        (clipped_matches(translation, references, n)[0], ngrams(reference, n).total())
    says: Of the second six words of seven are found
    What is in one reference is no part of the other: each has a share of its own.
nothing asked, all said
    if wanted: => if True:
    found / wanted => found / wanted if wanted else 1.0
    says: The reference has no pair
    A reference without n-grams would make everything perfect; it is to give 0.
in percent
    found / wanted => 100 * found / wanted
    says: you get 33.33, expected 0.3333
    A share is a number from 0 to 1.
"""

HARMLESS = r"""
… => if found:
    where nothing is found the share is 0, as it is at first
"""
