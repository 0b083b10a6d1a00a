"""05.1 a dictionary that looks up softly (★☆☆, 8 minutes)

Write `my_lookup(query, keys, values, temperature)`, a soft version of a dictionary lookup. It
divides the scores `keys @ query` by the temperature and returns the average of all values, weighted
by the softmax of the result.

Hint: There are three steps: a score for each key, a softmax over the scores, and a weighted sum of
the values.
"""

import math

import torch

from tinytf_course.expect import agrees, gradients, numbers, same, short, travels


def my_lookup(query, keys, values, temperature):
    """The values, averaged by how well their keys match the query.

    query is (D,), keys (S, D), values (S, C), the result (C,). As temperature goes to 0 the
    result goes to the value of the best key.
    """
    weights = (keys @ query / temperature).softmax(0)  # (S,)
    return weights @ values


QUERY = torch.tensor([1.0, 0.0])
KEYS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
VALUES = torch.tensor([[10.0, 0.0], [20.0, 1.0], [30.0, 5.0]])
_BOOK = f"for query={short(QUERY)}, keys={short(KEYS)}, values={short(VALUES)}"


def test_average(answer):
    """at temperature 1 it is the softmax average of the values"""
    e, root = math.e, math.sqrt(math.e)
    total = e + 1 + root
    expected = [(10 * e + 20 + 30 * root) / total, (1 + 5 * root) / total]
    same(answer(QUERY, KEYS, VALUES, 1.0), expected, f"{_BOOK}, temperature=1")


def test_cold(answer):
    """near temperature 0 it returns the value of the best key"""
    where = f"{_BOOK}, temperature=0.001"
    same(answer(QUERY, KEYS, VALUES, 0.001), [10.0, 0.0], where, note="Key 0 matches best.")


def test_near(answer):
    """at low temperatures, keys that are close to the best one still count"""
    for temperature, share in ((0.001, 0.952574), (0.09, 0.508333), (1.0, 0.50075)):
        note = f"The scores differ by 0.003 / {temperature} = {0.003 / temperature:.3g}."
        agrees(answer, [share], torch.ones(1), torch.tensor([[0.0], [0.003]]),
               torch.tensor([[0.0], [1.0]]), temperature, note=note)  # fmt: skip
    keys, values = torch.tensor([[0.0], [2e-5]]), torch.tensor([[0.0], [1.0]])
    note = "The scores differ by 0.00002 / 0.00001 = 2."
    agrees(answer, [0.880797], torch.ones(1), keys, values, 1e-5, note=note)


def test_hot(answer):
    """at a high temperature it returns the mean of the values"""
    got = answer(QUERY, KEYS, VALUES, 1e6)
    same(got, [20.0, 2.0], f"{_BOOK}, temperature=1000000", note="All keys count alike.")


def _looked_up(query, keys, values, temperature):
    """The same, one key after the other."""
    shares = [((key * query).sum() / temperature).exp() for key in keys]
    return sum(share * value for share, value in zip(shares, values, strict=True)) / sum(shares)


def test_any_book(answer):
    """keys and values of other widths, at other temperatures"""
    for temperature in (0.5, 2.0, 3.0):
        book = numbers(2, seed=1), numbers(3, 2, seed=2), numbers(3, 1, seed=3)
        agrees(answer, _looked_up, *book, temperature)
    wide = numbers(5, seed=1), numbers(4, 5, seed=2), numbers(4, 3, seed=3)
    agrees(answer, _looked_up, *wide, 0.7)
    agrees(answer, _looked_up, *(part.double() for part in wide), 0.7)
    agrees(answer, _looked_up, wide[0], wide[1][:1], wide[2][:1], 1.0)
    square = numbers(2, seed=4), numbers(3, 2, seed=5), numbers(3, 3, seed=6)
    agrees(answer, _looked_up, *square, 1.0, note="There are as many values as numbers in one.")


def test_large_matches(answer):
    """a match of 200 does no harm"""
    same(answer(QUERY * 200, KEYS, VALUES, 1.0), [10.0, 0.0], "for a query of 200, temperature=1")


def test_gradients_of_lookup(answer):
    """gradients reach the query, the keys and the values"""
    wide = numbers(5, seed=1), numbers(4, 5, seed=2), numbers(4, 3, seed=3)
    gradients(answer, _looked_up, *wide, 0.7)
    travels(answer, QUERY, KEYS, VALUES, 0.7)


MISTAKES = r"""
temperature multiplies
    / temperature => * temperature
    says: Key 0 matches best
    A low temperature has to sharpen: divide by it, so that differences grow.
temperature ignored
     / temperature =>
    says: Key 0 matches best
    The answer is the same at every temperature: divide the scores by it.
softmax of the values
    .softmax(0) =>
    @ values => @ values.softmax(0)
    says: temperature=1, you get
    The softmax turns scores into weights; the values are what gets averaged.
cosines for dot products
    keys @ query => torch.cosine_similarity(keys, query[None])
    says: temperature=1, you get
    The score is the dot product `keys @ query`: a longer key, or query, makes it larger.
returns the weights
     @ values =>
    says: the shape is (3,), expected (2,)
    These weights say how much of each value to take; the last step is `weights @ values`.
hard lookup
    weights @ values => values[weights.argmax()]
    says: All keys count alike
    That is the limit at temperature 0. It has no gradient, so nothing could be learned.
exponentials overflow
    softmax(0) => exp()
    weights @ values => weights / weights.sum() @ values
    says: you get [nan, nan]
    exp(1000) is infinite, and inf/inf is NaN. `softmax` subtracts the largest score first,
    which changes nothing but the range.
the temperature squared
    / temperature => / temperature**2
    says: temperature=0.5
    Scores are divided by the temperature itself. At 1, and near 0 or far above 1, its square
    does almost the same; in between it does not.
a floor under the temperature
    / temperature => / max(temperature, 0.01)
    says: 0.003 / 0.001
    A floor saves a division by 0 that nobody asked for, and below it the answer is that of
    another temperature.
the best key alone when it is cold
    return weights => return values[weights.argmax()] if temperature < 0.1 else weights
    says: 0.003 / 0.001
    The best key alone is what the result goes to, not what it is: keys whose scores differ by no
    more than the temperature still share.
"""

HARMLESS = r"""
… => weights = (keys @ query / temperature).softmax(-1)
    the scores have one axis
"""
