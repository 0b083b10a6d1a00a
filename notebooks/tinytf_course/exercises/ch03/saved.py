"""03.1 what does a merge save? (★☆☆, 6 minutes)

Write `my_saved(words, pair)`, which returns by how many ids a corpus, a dict like `counted`, gets
shorter when one new id replaces `pair`. For most pairs, that is the count that `count_pairs`
returns; find out for which it is not, and compute the answer for them without merging anything.

<details><summary>The rule in detail</summary>

Pairs are replaced from left to right within a word, and no id can be part of two of them, so
`a a a` becomes `aa a`.

</details>

Hint: In `a a a`, `count_pairs` finds two pairs, because the two ids of the pair are equal. If you
go through a run of equal ids, the second one completes a pair. Which is the next one that does?
"""

from random import Random

from tinytf.text.merges import count_pairs
from tinytf_course.expect import agrees


def my_saved(words, pair):
    """By how many ids a corpus gets shorter when one new id replaces a pair.

    words maps each word, a tuple of ids, to the number of times it occurs; pair is a tuple of two
    ids. Pairs are replaced from left to right within a word, and no id is part of two of them.
    """
    first, second = pair
    if first != second:  # two such pairs share no id
        return count_pairs(words)[pair]
    saved = 0
    for word, times in words.items():
        row = 0  # the length of the run of this id so far
        for one in word:
            row = row + 1 if one == first else 0
            if row > 0 and row % 2 == 0:  # every second one completes a pair
                saved += times
    return saved


def _saves(answer, words, pair, note=""):
    """Expect what `str.count` finds, which counts without overlap: one character an id."""
    sought = "".join(map(chr, pair))
    found = sum("".join(map(chr, word)).count(sought) * times for word, times in words.items())
    agrees(answer, found, words, pair, note=note)


def test_saved_once(answer):
    """a pair saves one id"""
    _saves(answer, {(1, 2): 1}, (1, 2))
    _saves(answer, {(5, 1, 2, 5): 1}, (1, 2))


def test_saved_often(answer):
    """it saves one id wherever it occurs, in every word, as often as the word occurs"""
    _saves(answer, {(1, 2, 5, 1, 2): 1}, (1, 2), "The pair occurs twice in this word.")
    _saves(answer, {(1, 2, 5): 3}, (1, 2), "The word occurs three times.")
    _saves(answer, {(1, 2): 2, (5, 1, 2): 3, (5,): 9}, (1, 2), "Two times, and three times.")


def test_saved_run(answer):
    """in a run of three equal ids, two make a pair and one is left"""
    note = "1, 1, 1 becomes two ids: the one in the middle can't be in two pairs."
    _saves(answer, {(1, 1, 1): 1}, (1, 1), note)
    _saves(answer, {(1, 1, 1, 1): 1}, (1, 1), "1, 1, 1, 1 becomes two ids.")


def test_saved_runs(answer):
    """each run of equal ids is counted separately"""
    note = "There are two runs of three ids, and one id of each is left."
    _saves(answer, {(1, 1, 1, 2, 1, 1, 1): 1}, (1, 1), note)
    note = "There are no pairs across words, and a word of three leaves one id."
    _saves(answer, {(1, 1, 1): 2, (2, 1, 1, 1, 1, 1): 3, (1,): 4}, (1, 1), note)
    note = "The pair is 1, 1; runs of 2 and of 3 save nothing."
    _saves(answer, {(2, 2, 2, 1, 1, 3, 3): 1}, (1, 1), note)


def test_saved_nothing(answer):
    """a pair that does not occur saves nothing"""
    _saves(answer, {(2, 1, 2): 1}, (1, 3), "The pair does not occur.")
    _saves(answer, {(2, 1): 4}, (1, 2), "Order matters: 2, 1 is another pair.")
    _saves(answer, {(1,): 2, (2,): 1}, (1, 1))
    _saves(answer, {}, (1, 2))


def test_saved_ids(answer):
    """an id is a number of any size"""
    _saves(answer, {(11, 2): 1}, (1, 2), "11 is not 1.")
    big = [int(digits) for digits in ("300", "300", "301", "300")]  # each an object of its own
    _saves(answer, {tuple(big): 1}, (int("300"), int("301")), "An id may be larger than 255.")
    _saves(answer, {tuple(big): 1}, (int("300"), int("300")), "An id may be larger than 255.")


def test_saved_drawn(answer):
    """in words drawn at random, for every pair of three ids"""
    draws = Random(1)
    words = {tuple(draws.choices((1, 2, 3), k=4 + 3 * i)): 2 + 3 * i for i in range(8)}
    for pair in ((1, 2), (2, 1), (3, 3), (1, 1)):
        _saves(answer, words, pair)


MISTAKES = r"""
as count_pairs counts
    row % 2 == 0 => row > 1
    says: can't be in two pairs
    `count_pairs` looks at every position, so it finds two pairs in three equal ids. A merge
    uses each id once. (BPE still counts as `count_pairs` does, because the counts only decide
    which pair comes next.)
both ids of a pair saved
    return count_pairs => return 2 * count_pairs
    += times => += 2 * times
    says: for words={(1, 2): 1}
    Two ids go and one comes: a merge saves one.
words counted once
    (words)[pair] => (dict.fromkeys(words, 1))[pair]
    += times => += 1
    says: The word occurs three times
    The dict gives the number of times each word occurs: count its pairs as often.
one pair a word
    count_pairs(words)[pair] =>
        sum(times for word, times in words.items() if pair in count_pairs({word: 1}))
    saved += times =>
        saved += times
        break
    says: The pair occurs twice in this word
    A word may have the pair more than once.
in either order
    count_pairs(words)[pair] => count_pairs(words)[pair] + count_pairs(words)[second, first]
    says: Order matters
    A pair is ordered: `th` is not `ht`.
one pair a row
    row % 2 == 0 => row == 2
    says: 1, 1, 1, 1 becomes two ids
    A row of four has two pairs, which share no id.
half of all such ids
    row > 0 and row % 2 == 0 => one == first
    return saved => return saved // 2
    says: one id of each is left
    What is left over of one row can't make a pair with what is left of another. Round down row
    by row, and then add up.
rows of any id
    row = 0 => row, last = 0, None
    row = row + 1 if one == first else 0 => row, last = row + 1 if one == last else 1, one
    says: runs of 2 and of 3 save nothing
    Only rows of the pair's own id become shorter.
a row rounded up
    row % 2 == 0 => row % 2 == 1
    says: can't be in two pairs
    Of a row of odd length one id is left alone, and saves nothing: `// 2` rounds down.
ids as text
    … =>
        text = {" ".join(map(str, word)): times for word, times in words.items()}
        return sum(word.count(" ".join(map(str, pair))) * times for word, times in text.items())
    says: 11 is not 1
    Written in digits, the end of one id can look like another. Compare numbers.
ids as bytes
    … =>
        return sum(bytes(word).count(bytes(pair)) * times for word, times in words.items())
    says: raises ValueError
    A good idea while all ids are bytes: `bytes.count` counts without overlap. But merges make
    ids of 256 and more.
the corpus as one row
    first, second = pair =>
        first, second = pair
        words = {sum((word * times for word, times in words.items()), ()): 1}
    says: There are no pairs across words
    Words don't touch: the end of one and the beginning of the next don't form a pair.
"""

HARMLESS = r"""
… == second else 0
    the two are equal here
… => if row > 1 and row % 2 == 0:
    a row of one is odd
"""
