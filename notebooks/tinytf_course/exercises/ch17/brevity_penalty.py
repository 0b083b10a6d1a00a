"""17.4 the brevity penalty (★☆☆, 6 minutes)

Write `my_brevity_penalty(lengths, reference_lengths)`, BLEU's brevity penalty of a corpus. The
arguments are two lists of word counts with one entry per sentence. With c words in all translations
and r in all references, the result is $e^{1 - r/c}$ if c < r, and otherwise 1.

Hint: Sum first, divide once.
"""

import math

from tinytf_course.expect import same


def my_brevity_penalty(lengths, reference_lengths):
    """BLEU's brevity penalty of a corpus: e^(1 - r/c) if c < r, else 1.

    lengths holds the number of words of each translation, reference_lengths those of the
    references; c and r are their sums.
    """
    c, r = sum(lengths), sum(reference_lengths)
    return math.exp(min(0, 1 - r / c))


_SHORT = "for lengths=[4, 6] and reference_lengths=[8, 8]"
_EVEN = "for lengths=[4, 12] and reference_lengths=[8, 8]"
_LONG = "for lengths=[9, 11] and reference_lengths=[8, 8]"


def test_too_brief(answer):
    """a corpus that is too short is punished"""
    note = "10 words for 16: e^(1 - 1.6)."
    same(answer([4, 6], [8, 8]), math.exp(-0.6), _SHORT, note=note)


def test_not_rewarded(answer):
    """words too many earn nothing"""
    same(answer([9, 11], [8, 8]), 1.0, _LONG, note="Precision has punished them already.")


def test_of_the_corpus(answer):
    """only the corpus as a whole has to be long enough"""
    same(answer([4, 12], [8, 8]), 1.0, _EVEN, note="16 words for 16.")


def test_any_corpus(answer):
    """of one sentence or of many, a word short or far too short"""
    for lengths, reference_lengths, expected in (
        ([1], [6], math.exp(-5)),
        ([9], [10], math.exp(-1 / 9)),
        ([3, 1, 5], [4, 2, 4], math.exp(-1 / 9)),
        ([999_999], [1_000_000], math.exp(-1 / 999_999)),
        ([0, 7, 0], [1, 5, 1], 1.0),
    ):
        where = f"for lengths={lengths} and reference_lengths={reference_lengths}"
        same(answer(lengths, reference_lengths), expected, where, tolerance=1e-7)


MISTAKES = r"""
the mean of the sentences' penalties
    … =>
        pairs = zip(lengths, reference_lengths, strict=True)
        return sum(math.exp(min(0, 1 - r / c)) for c, r in pairs) / len(lengths)
    says: 16 words for 16
    A sentence may be short if another makes up for it: BLEU sums lengths over the corpus, and
    divides once.
a reward for length
    min(0, 1 - r / c) => 1 - r / c
    says: Precision has punished them already
    Above c = r the exponent is positive, and the longest translation would win. Cap the factor
    at 1.
c and r swapped
    r / c => c / r
    says: 10 words for 16
    This punishes words too many and forgives words too few.
divided in whole numbers
    r / c => r // c
    says: 10 words for 16
    `//` rounds the ratio down to 1, and e^0 is no penalty: divide by `/`.
the plain ratio
    math.exp(min(0, 1 - r / c)) => min(1, c / r)
    says: 10 words for 16
    BLEU takes e^(1 - r/c), which falls faster than c / r where c is small.
rounded
    math.exp(min(0, 1 - r / c)) => round(math.exp(min(0, 1 - r / c)), 3)
    says: you get 0.549
    Scores are rounded where they are printed. BLEU multiplies this factor further.
"""
