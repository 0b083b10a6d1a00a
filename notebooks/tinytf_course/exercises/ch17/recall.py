"""17.3 what was left out (★☆☆, 6 minutes)

Write `my_recall(translation, references, n)`: the share of a reference's n-grams that occur in the
translation, from 0 to 1, each counted at most as often as it occurs there. If there are several
references, take the one with the highest share; a reference without n-grams gives 0.
`clipped_matches` does the counting if you call it in the right way.

Hint: Precision counts the translation's n-grams in the reference. Exchange the two.
"""

from tinytf.metrics.bleu import clipped_matches, ngrams
from tinytf_course.expect import numbers, same


def my_recall(translation, references, n):
    """How much of a reference the translation says: a share of its n-grams, from 0 to 1.

    Each n-gram of a reference counts at most as often as the translation says it. Of several
    references the one counts of which most is said; one without n-grams gives 0.
    """
    shares = [0.0]
    for reference in references:
        said, wanted = clipped_matches(reference, [translation], n)  # the roles exchanged
        if wanted:
            shares.append(said / wanted)
    return max(shares)


SAT = ["the", "cat", "sat", "on", "the", "mat"]
CATS = [["the", "cat", "is", "on", "the", "mat"], ["there", "is", "a", "cat", "on", "the", "mat"]]
_SAT = "for `the cat` against `the cat sat on the mat`"
_CATS = "against `the cat is on the mat` and `there is a cat on the mat`"


def _share(answer, arguments, expected, where, note=""):
    same(answer(*arguments), expected, where, note=note)


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
    """a share of the reference's n-grams, each found at most as often as it was said"""
    note = "Of six words two are said: `cat`, and one `the` for one of two."
    _share(answer, (["the", "cat"], [SAT], 1), 2 / 6, f"{_SAT}, n = 1", note)


def test_pairs(answer):
    """of pairs as of words"""
    _share(answer, (["the", "cat"], [SAT], 2), 1 / 5, f"{_SAT}, n = 2", "It has five pairs.")


def test_said_twice(answer):
    """what is said twice and stands there twice counts twice"""
    where = "for `the mat the` against `the cat sat on the mat`, n = 1"
    _share(answer, (["the", "mat", "the"], [SAT], 1), 3 / 6, where, "It says both `the`.")


def test_too_much(answer):
    """words too many do no harm"""
    where = "for `the the the the` against `the cat`, n = 1"
    _share(answer, (["the"] * 4, [["the", "cat"]], 1), 1 / 2, where, "One of two words is said.")
    where = "for `well the cat sat down` against `the cat`, n = 2"
    said = ["well", "the", "cat", "sat", "down"]
    _share(answer, (said, [["the", "cat"]], 2), 1.0, where, "All of it is said.")


def test_best_of_two(answer):
    """of several references the one of which most is said, by itself"""
    note = "Of the second six words of seven are said, of the first four of six."
    said = ["there", "is", "a", "cat", "on", "mat"]
    _share(answer, (said, CATS, 1), 6 / 7, f"for `there is a cat on mat` {_CATS}, n = 1", note)


def test_whichever_is_first(answer):
    """the order of the references does not matter"""
    said = ["there", "is", "a", "cat", "on", "mat"]
    where = "for the same translation, and the same two references exchanged"
    _share(answer, (said, CATS[::-1], 1), 6 / 7, where, "It is the first now.")


def test_nothing_there(answer):
    """where there is no n-gram, nothing is said"""
    where = "for `cat` against `cat`, n = 2"
    _share(answer, (["cat"], [["cat"]], 2), 0.0, where, "The reference has no pair.")
    where = "for `the cat` against `cat` and `the cat sat`, n = 2"
    two = [["cat"], ["the", "cat", "sat"]]
    _share(answer, (["the", "cat"], two, 2), 1 / 2, where, "Half of the second is said.")
    _share(answer, ([], [SAT], 1), 0.0, "for a translation without words, n = 1")


def test_long_texts(answer):
    """in longer texts, for every n from 1 to 4 and 1 to 3 references"""
    chosen = numbers(4, 60, seed=3).abs().mul(2).long().clamp(max=3).tolist()
    texts = [["".join("abcd"[i]) for i in row] for row in chosen]
    for many in (1, 3):
        for n in (1, 2, 3, 4):
            references = [text[: 55 - 5 * i] for i, text in enumerate(texts[1 : 1 + many])]
            where = f"for 60 words of 4 kinds against {many} such texts, n = {n}"
            _share(answer, (texts[0], references, n), _one_by_one(texts[0], references, n), where)


def _share_too(said, wanted, without=0.0):
    return said / wanted if wanted else without


def _each(share, choose=max):
    """A `my_recall` of a share for one reference, with one thing wrong."""

    def recall(translation, references, n):
        return choose([share(translation, reference, n) for reference in references])

    return recall


def _right(translation, reference, n):
    return _share_too(*clipped_matches(reference, [translation], n))


def _unclipped(translation, reference, n):
    said, wanted = ngrams(translation, n), ngrams(reference, n)
    return _share_too(sum(wanted[gram] for gram in wanted if gram in said), wanted.total())


def _once(translation, reference, n):
    said, wanted = set(ngrams(translation, n)), set(ngrams(reference, n))
    return _share_too(len(said & wanted), len(wanted))


def _repeated(translation, reference, n):
    said, wanted = ngrams(translation, n), ngrams(reference, n)
    return _share_too(sum(said[gram] for gram in said if gram in wanted), wanted.total())


def _by_words(translation, reference, n):
    return _share_too(clipped_matches(reference, [translation], n)[0], len(reference))


MISTAKES = r"""
precision
    … =>
        return _share_too(*clipped_matches(translation, references, n))
    says: you get 1, expected 0.3333
    That is the share of what was said. Here the reference's n-grams are counted, and the
    translation says how often each may count.
not clipped
    … =>
        return _each(_unclipped)(translation, references, n)
    says: you get 0.5, expected 0.3333
    One `the` was said: it is found for one of the reference's two, not for both.
each n-gram once
    … =>
        return _each(_once)(translation, references, n)
    says: you get 0.4, expected 0.3333
    The reference has six words, though only five different ones: compare counts, not sets.
what was said counted
    … =>
        return _each(_repeated)(translation, references, n)
    says: you get 2, expected 0.5
    Who says a word four times says it once to a reference that has it once.
a share of the words
    … =>
        return _each(_by_words)(translation, references, n)
    says: It has five pairs
    Divide by the number of n-grams, which is n - 1 fewer than the words.
only the first reference
    … =>
        return _right(translation, references[0], n)
    says: Of the second six words of seven are said
    The reference that comes off best may be any of them.
the mean of the references
    … =>
        return _each(_right, lambda shares: sum(shares) / len(shares))(translation, references, n)
    says: Of the second six words of seven are said
    A translation need not say what every reference says, only what one does.
the worst of the references
    … =>
        return _each(_right, min)(translation, references, n)
    says: It is the first now
    Which of the references is meant is the translation's choice: take the largest.
references together
    … =>
        counts = [clipped_matches(reference, [translation], n) for reference in references]
        return _share_too(sum(said for said, _ in counts), sum(wanted for _, wanted in counts))
    says: Of the second six words of seven are said
    Added up, each reference asks for its own words, and nobody can say all of them.
words of any reference
    … =>
        said, _ = clipped_matches(translation, references, n)
        return max(_share_too(said, ngrams(reference, n).total()) for reference in references)
    says: Of the second six words of seven are said
    What stands in one reference is no part of the other: each has a share of its own.
nothing asked, all said
    … =>
        return _each( lambda translation, reference, n: _share_too( *clipped_matches(reference, [translation], n), without=1.0 ) )(translation, references, n)
    says: The reference has no pair
    A reference without n-grams would make everything perfect; it is to give 0.
in percent
    … =>
        return _each(lambda *text: 100 * _right(*text))(translation, references, n)
    says: you get 33.33, expected 0.3333
    A share is a number from 0 to 1.
"""

HARMLESS = r"""
… => if said:
    where nothing is said the share is 0, as it is at first
"""
