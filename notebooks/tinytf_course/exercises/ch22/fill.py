"""22.3 both sides of a blank, from a model that sees one (★★★, 15 minutes)

Write `my_fill(log_probs, ids, at)`, which returns the probability of every word at position `at`,
given all other words of the row, from a decoder-only model. `log_probs(ids)` has shape (T, V), and
its row t holds the log-probability of each word after `ids[: t + 1]`. Return a tensor (V,) that
sums to 1.

Hint: By Bayes' rule, P(word | left, right) is proportional to P(word | left) · P(right | left,
word), which is the model's probability of the whole row with that word in it, up to a factor that
all words share. Score V rows. The log-probability of `row[t]` is in row `t - 1` of
`log_probs(row)`; at which t does the sum begin?
"""

import torch

from tinytf_course.expect import expect, numbers, same
from tinytf_course.grading import hint
from tinytf_course.words import short


def my_fill(log_probs, ids, at):
    """Return the probability of each word at position `at` of ids (T,), given all other words.

    log_probs(ids) of a decoder-only model has shape (T, V): row t is the log-probability of each
    word after ids[: t + 1]. The id at `at` (1 or more) is to be ignored. Returns (V,).
    """
    scores = []
    for word in range(log_probs(ids).size(-1)):
        row = ids.clone()
        row[at] = word
        log_p = log_probs(row)
        scores.append(sum(log_p[t - 1, row[t]] for t in range(at, len(row))))
    return torch.stack(scores).softmax(-1)


class Language:
    """A little language: what comes next depends on all words before it, the last one most."""

    def __init__(self, words, seed, dtype=torch.float32, strength=2.0):
        self.words, self.__name__ = words, f"a model of {words} words"
        self.tables = numbers(2, words, words, seed=seed, scale=strength, dtype=dtype)

    def __call__(self, ids):
        """The log-probability of each word after each part of the row: (T,) -> (T, V)."""
        expect(isinstance(ids, torch.Tensor) and not ids.is_floating_point() and ids.dim() > 0,
               f"log_probs gets {short(ids)}, expected a row of ids, a tensor (T,)")  # fmt: skip
        last, earlier = self.tables
        said = last[ids] + earlier[ids].cumsum(-2).sin()
        return said.log_softmax(-1)


def _by_bayes(log_probs, ids, at):
    """The share of each row among all rows with another word at `at`, in float64."""
    wholes = []
    for word in range(log_probs.words):
        row = torch.cat([ids[:at], torch.tensor([word]), ids[at + 1 :]])
        said = log_probs(row).double()
        wholes.append(said[:-1].gather(1, row[1:, None]).sum())  # the first word is in every row
    wholes = torch.stack(wholes)
    return (wholes - wholes.logsumexp(0)).exp()


_TWO, _FIVE = Language(2, seed=1), Language(5, seed=2)
ROW = torch.tensor([0, 3, 1, 4, 2, 2, 1])


def _fills(answer, model, ids, at, note="", where=None):
    ids = torch.as_tensor(ids)
    where = where or f"for {model.__name__}, ids={short(ids)}, at={at}"
    got = answer(model, ids, at)
    tolerance = 1e-3 if len(ids) > 100 else 1e-5
    same(got, _by_bayes(model, ids, at).float(), where, tolerance, note)


def test_last(answer):
    """at the end of the row there is only the left side"""
    _fills(answer, _TWO, [0, 1], 1, "Nothing follows, so this is the model's prediction after [0].")
    _fills(answer, _FIVE, ROW, 6)


_SUM = "Sum log P(word | words before it) over the blank and all that follows; then normalise."


def test_in_the_middle(answer):
    """in the middle both sides count"""
    _fills(answer, _TWO, [0, 1, 0], 1, _SUM)
    _fills(answer, _FIVE, ROW, 5, _SUM)


def test_early(answer):
    """everything that follows counts, not only the next word"""
    _fills(answer, _TWO, [0, 1, 0, 0], 1, _SUM)
    _fills(answer, _FIVE, ROW, 1, _SUM)


def test_unseen(answer):
    """the id at the blank does not matter"""
    for word in (1, 0, 4):
        row = torch.tensor([0, 3, word, 4, 2, 2, 1])
        note = f"The {word} at the blank is to be predicted, so it must not be used."
        _fills(answer, _FIVE, row, 2, note)


def test_any_sizes(answer):
    """for a vocabulary larger than the row, for a vocabulary of one word, and in float64"""
    _fills(answer, Language(11, seed=3), [7, 3, 2], 1)
    _fills(answer, Language(1, seed=4), [0, 0, 0], 1, "The only word has probability 1.")
    _fills(answer, Language(6, seed=5, dtype=torch.float64), [5, 1, 0, 3], 2)


@hint("How large is a product of 400 probabilities?")
def test_long_row(answer):
    """a long row loses no precision"""
    for length in (60, 400):
        row = (numbers(length, seed=6).abs() * 2.5).long().clamp_max(4)
        words = "The whole row's probability is below the smallest float32."
        note = f"{words} Add logarithms until the softmax."
        where = f"for {_SURE.__name__} and a row of {length} tokens, at=3"
        _fills(answer, _SURE, row, 3, note, where)


_SURE = Language(5, seed=7, strength=6.0)  # and often surprised: some words cost it 20 nats


MISTAKES = r"""
the left side alone
    range(at, len(row)) => range(at, at + 1)
    says: ids=[0, 1, 0], at=1, you get
    That is the model's prediction at the blank. The words to the right were not scored, or were
    scored only once, after the same word for every candidate.
the right side alone
    sum(log_p => torch.zeros(()) + sum(log_p
    range(at, len(row)) => range(at + 1, len(row))
    says: ids=[0, 1], at=1, you get [0.5, 0.5]
    The word's own probability, given the left side, is part of the product.
the next word alone
    range(at, len(row)) => range(at, min(at + 2, len(row)))
    says: ids=[0, 1, 0, 0], at=1, you get
    The sum stops before the end of the row: words further right depend on the blank too.
one position off
    t - 1 => t
    says: ids=[0, 1], at=1, you get
    Row t is about the word *after* position t: the word at t is scored by row t - 1.
the mean instead of the sum
    sum(log_p => 1 / (len(row) - at) * sum(log_p
    says: ids=[0, 1, 0], at=1, you get
    A mean of logarithms is a root of the product: it flattens the odds. Bayes' rule has the
    product.
logarithms returned
    softmax => log_softmax
    says: ids=[0, 1], at=1, you get [-
    Return probabilities: softmax, not log_softmax.
not normalised
    softmax(-1) => exp()
    says: ids=[0, 1, 0], at=1, you get
    These are probabilities of whole rows. Divided by their sum, they become probabilities of
    words.
the word's own row read
    … =>
        return log_probs(ids)[at].exp()
    says: ids=[0, 1], at=1, you get
    Row `at` already depends on the id at the blank, which is to be predicted.
probabilities multiplied
    torch.stack(scores).softmax(-1) =>
        torch.stack(scores).exp() / torch.stack(scores).exp().sum()
    says: a row of 60 tokens, at=3
    A product of many probabilities is smaller than the smallest float, and 0/0 is NaN. Add
    logarithms, and let softmax subtract the largest.
words up to the largest in the row
    log_probs(ids).size(-1) => int(ids.max()) + 1
    says: the shape is (8,), expected (11,)
    The missing word may not be among those in the row: score all V.
the row overwritten
    ids.clone() => ids
    says: your code changes the caller's `ids`
    `ids[at] = word` writes into the caller's row. Take a copy, `ids.clone()`.
"""

HARMLESS = r"""
… => …log_probs(ids).size(1)):
    (T, V) has two axes, and the last is 1
… => return torch.stack(scores).softmax(-0)
    (V,) has one axis, first and last
… => …for t in range(at, len(log_p)))))
    the model returns a row for each id
"""
