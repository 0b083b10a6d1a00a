"""Chapter 05: attention weights, masks, and attention as a soft lookup."""

import math

import torch
from torch.nn.functional import scaled_dot_product_attention

from tinytf.course.expect import (
    agrees,
    expect,
    gradients,
    numbers,
    precise,
    same,
    short,
    tensor,
    travels,
)
from tinytf.course.grading import Exercise, hint

# 05.3 attention weights with a mask


def my_attention_weights(q, k, mask=None):
    """How much each query attends to each key.

    q is (..., T, D), k is (..., S, D), and mask (True = may attend) broadcasts to (..., T, S).
    A query that may attend to nothing gets a row of zeros.
    """
    raise NotImplementedError


Q = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
K = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
CAUSAL = torch.tensor([[True, False, False], [True, True, False], [True, True, True]])
WIDE = torch.arange(32.0).reshape(1, 2, 4, 4).sin() * 2  # B=1, H=2, T=4, D=4
LONELY = torch.tensor([[True, True, False], [False, False, False], [True, False, True]])
_worked = f"for q={short(Q)}, k={short(K)}"
_SHORT_K = "for q of shape (3, 2) and k of shape (2, 2)"


def _shape(answer):
    """there is a row per query and a column per key"""
    got = tensor(answer(Q, K[:2]), _SHORT_K)
    expect(
        got.shape == (3, 2),
        f"{_SHORT_K}, the weights have shape {tuple(got.shape)}, expected (3, 2)",
    )


def _rows_sum_to_one(answer):
    """each row sums to 1"""
    sums = tensor(answer(Q, K), _worked).sum(-1)
    for row, total in enumerate(sums.tolist()):
        message = f"{_worked}, row {row} sums to {total:.4g}; a distribution sums to 1"
        expect(abs(total - 1) < 1e-5, message)


def _by_hand(answer):
    """the worked example comes out as it does by hand"""
    e = math.exp(1 / math.sqrt(2))
    one, two = [1 / (1 + 2 * e), e / (1 + 2 * e)], [e / (2 * e + e * e), e * e / (2 * e + e * e)]
    expected = [[one[0], one[1], one[1]], [one[1], one[0], one[1]], [two[0], two[0], two[1]]]
    same(answer(Q, K), expected, _worked, note="The scores are divided by the root of D=2.")


def _own_width(answer):
    """the scale is the width of one head"""
    expected = scaled_dot_product_attention(WIDE, WIDE, torch.eye(4).expand(1, 2, 4, 4))
    where = "for q=k of shape (B=1, H=2, T=4, D=4)"
    same(answer(WIDE, WIDE), expected, where, note="The scores are divided by the root of D=4.")


def _mask_hides(answer):
    """what the mask hides gets no weight, and the rest of the row still sums to 1"""
    where = f"{_worked} and a causal mask"
    got = tensor(answer(Q, K, CAUSAL), where)
    expect(got.shape == (3, 3), f"{where}, the shape is {tuple(got.shape)}, expected (3, 3)")
    for row in range(3):
        leak = got[row][~CAUSAL[row]].abs().sum().item()
        message = f"{where}, row {row} gives {leak:.4g} to hidden keys; True means “may attend”"
        expect(leak < 1e-6, message)
        total = got[row].sum().item()
        message = f"{where}, row {row} sums to {total:.4g}; a distribution sums to 1"
        expect(abs(total - 1) < 1e-5, message)


def _nothing_to_see(answer):
    """a query that may attend to nothing gets zeros"""
    where = "for a mask whose row 1 is all False"
    got = tensor(answer(Q, K, LONELY), where)
    same(got[1], [0.0, 0.0, 0.0], f"{where}, in row 1")


def _gradient_survives(answer):
    """and its gradient is finite"""
    q = Q.clone().requires_grad_()
    weights = answer(q, K, LONELY)
    expect(isinstance(weights, torch.Tensor) and weights.requires_grad, "the weights carry no grad")
    (grad,) = torch.autograd.grad((weights * K.sum(-1)).sum(), q)
    where = "for a mask whose row 1 is all False"
    message = f"{where}, the gradient of q is {short(grad)}; NaN spreads to every parameter"
    expect(grad.isfinite().all(), message)


def _plain(q, k, mask=None):
    """Pair by pair: exp of each score over the sum of those that are seen; 0 where none is."""
    scores = (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) / q.size(-1) ** 0.5
    seen = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    scores = torch.where(seen, scores, 0)
    share = torch.where(seen, (scores - scores.detach().amax(-1, keepdim=True)).exp(), 0)
    total = share.sum(-1, keepdim=True)
    return share / torch.where(total == 0, 1, total)


_DEEP = numbers(2, 3, 4, 5, seed=1), numbers(2, 3, 6, 5, seed=2)  # B, H, T or S, D
_PADDED = torch.tensor([[True] * 6, [True, True, False, False, False, False]])[:, None, None]


def _each_by_itself(answer):
    """sentences and heads are attended each by itself, with more keys than queries"""
    agrees(answer, _plain, numbers(2, 1, 3, seed=1), numbers(2, 2, 3, seed=2))
    agrees(answer, _plain, *_DEEP)


@hint("`masked_fill` spreads a smaller mask over the scores; indexing with it does not.")
def _mask_broadcasts(answer):
    """a mask of fewer numbers serves all sentences, heads or queries"""
    agrees(answer, _plain, numbers(2, 2, 3, seed=1), numbers(2, 3, 3, seed=2), CAUSAL[1:])
    agrees(answer, _plain, *_DEEP, _PADDED)
    agrees(answer, _plain, *_DEEP, torch.ones(4, 6, dtype=torch.bool).tril()[None, None])


def _large_scores(answer):
    """scores in the hundreds do no harm"""
    q, k = torch.tensor([[200.0], [-200.0]]), torch.tensor([[1.0], [2.0], [-1.0]])
    agrees(answer, _plain, q, k)
    agrees(answer, _plain, q, k, LONELY[:2])
    one, second = torch.ones(1, 1), torch.tensor([[False, True]])
    note = "Key 0 is hidden, and all weight is on key 1."
    agrees(answer, [[0.0, 1.0]], one, torch.tensor([[200.0], [0.0]]), second, note=note)


@hint("Which number is below every score there may be?")
def _low_scores(answer):
    """scores that are seen may be far below 0"""
    one, second = torch.ones(1, 1), torch.tensor([[False, True]])
    fills = (-2e4, "-10,000"), (-2e10, "-1,000,000,000"), (-2e12, "10,000 below the least score")
    for low, fill in fills:
        note = f"Key 0 is hidden, and all weight is on key 1: {fill} is not low enough to hide."
        agrees(answer, [[0.0, 1.0]], one, torch.tensor([[0.0], [low]]), second, note=note)


def _half_precision(answer):
    """numbers in half precision stay in it, hidden or not"""
    q, k = numbers(3, 4, seed=1), numbers(3, 4, seed=2)
    precise(answer, _plain, q, k, dtype=torch.float16)
    precise(answer, _plain, q, k, LONELY, dtype=torch.float16)
    precise(
        answer, _plain, 8 * q.abs(), -8 * k.abs(), LONELY, dtype=torch.float16
    )  # all far below 0
    precise(answer, _plain, q, k, LONELY, dtype=torch.float64)


def _gradients_right(answer):
    """gradients reach queries and keys, with a mask and without"""
    gradients(answer, _plain, numbers(2, 3, seed=1), numbers(4, 3, seed=2))
    gradients(answer, _plain, numbers(3, 2, seed=1), numbers(3, 2, seed=2), LONELY)


def _elsewhere(answer):
    """it computes where its inputs are"""
    travels(answer, Q, K)
    travels(answer, Q, K, CAUSAL)


WEIGHTS = Exercise(
    id="05.3",
    title="attention weights with a mask",
    difficulty=2,
    minutes=15,
    statement=(
        "Write `my_attention_weights(q, k, mask=None)`: the softmax over keys of the scaled dot "
        "products. `mask` is boolean and `True` means *may attend*; it broadcasts against the "
        "scores. A query whose mask row is all `False` gets a row of zeros, with a finite "
        "gradient. The weights keep the dtype of `q` and `k`, half precision too."
    ),
    hint=(
        "Hide a score before the softmax by giving it a very negative, finite value such as "
        "`torch.finfo(scores.dtype).min`; set the hidden weights to 0 after it."
    ),
    function=my_attention_weights,
    tests=(
        _shape,
        _rows_sum_to_one,
        _by_hand,
        _own_width,
        _mask_hides,
        _nothing_to_see,
        _gradient_survives,
        _each_by_itself,
        _mask_broadcasts,
        _large_scores,
        _low_scores,
        _half_precision,
        _gradients_right,
        _elsewhere,
    ),
)


# 05.2 causal and padding mask together


def my_decoder_mask(ids, pad_id=0):
    """Which positions each position of a batch may attend to, (B, T) -> (B, 1, T, T).

    True where the key is not padding and not later than the query.
    """
    raise NotImplementedError


IDS = torch.tensor([[5, 6, 7, 0], [0, 0, 8, 9]])
_IDS = f"for ids={short(IDS)}"


def _mask_shape(answer):
    """the mask is boolean, with an axis for the heads"""
    got = tensor(answer(IDS), _IDS)
    expect(got.dtype == torch.bool, f"{_IDS}, the dtype is {got.dtype}, expected torch.bool")
    why = "a row for each query and a column for each key"
    if got.dim() == 3:
        why = (
            "the scores are (B, H, T, T), and a three-axis mask lines its batch up with their heads"
        )
    message = f"{_IDS}, the shape is {tuple(got.shape)}, expected (2, 1, 4, 4): {why}"
    expect(got.shape == (2, 1, 4, 4), message)


def _cells(answer, wanted, note):
    got = tensor(answer(IDS), _IDS).expand(2, 1, 4, 4)[:, 0]
    for b in range(2):
        for t in range(4):
            for s in range(4):
                if wanted(b, t, s) is not None:
                    message = f"{_IDS}, sentence {b}, query {t} and key {s}: {bool(got[b, t, s])}; "
                    expect(bool(got[b, t, s]) == wanted(b, t, s), message + note)


def _no_future(answer):
    """nothing sees the future"""
    _cells(answer, lambda b, t, s: False if s > t else None, "a later key is hidden, so False")


def _sees_itself(answer):
    """a real position sees itself"""
    real = (IDS != 0).tolist()
    note = "a position may attend to itself, so True"
    _cells(answer, lambda b, t, s: True if s == t and real[b][t] else None, note)


def _sees_past(answer):
    """a position sees the real positions before it"""
    real = (IDS != 0).tolist()
    note = "an earlier word may be attended to, so True"
    _cells(answer, lambda b, t, s: True if s < t and real[b][s] else None, note)


def _no_padding(answer):
    """nothing sees padding"""
    real = (IDS != 0).tolist()
    note = "padding is never attended to, so False"
    _cells(answer, lambda b, t, s: None if real[b][s] else False, note)


def _other_pad(answer):
    """the padding id is the argument"""
    got = tensor(answer(torch.tensor([[0, 9]]), 9), "for ids=[[0, 9]], pad_id=9")
    where, note = "for ids=[[0, 9]], pad_id=9, the four cells", "Here 9 is padding and 0 is a word."
    same(got.reshape(-1), [True, False, True, False], where, note=note)


def _any_length(answer):
    """any number of sentences of any length, one word too"""
    for ids in (torch.tensor([[4]]), torch.tensor([[3, 0], [0, 3], [3, 4]]), IDS[:, :3]):
        wanted = [
            [[[s <= t and row[s] != 0 for s in range(len(row))] for t in range(len(row))]]
            for row in ids.tolist()
        ]
        agrees(answer, torch.tensor(wanted), ids)


def _mask_elsewhere(answer):
    """the mask is made where the ids are"""
    travels(answer, IDS)


MASK = Exercise(
    id="05.2",
    title="causal and padding mask together",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_decoder_mask(ids, pad_id=0)`: for a batch of token ids of shape `(B, T)`, the "
        "boolean mask `(B, 1, T, T)` that is `True` where a query may attend to a key: the key is "
        "not later than the query, and it is not padding."
    ),
    hint="Two masks that broadcast against each other: one has an axis of 1 for the sentences, the "
    "other for the queries. Both have to be where `ids` is.",
    function=my_decoder_mask,
    tests=(
        _mask_shape,
        _no_future,
        _sees_itself,
        _sees_past,
        _no_padding,
        _other_pad,
        _any_length,
        _mask_elsewhere,
    ),
)


# 05.1 a dictionary that looks up softly


def my_lookup(query, keys, values, temperature):
    """The values, averaged by how well their keys match the query.

    query is (D,), keys (S, D), values (S, C), the result (C,). As temperature goes to 0 the
    result goes to the value of the best key.
    """
    raise NotImplementedError


QUERY = torch.tensor([1.0, 0.0])
KEYS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
VALUES = torch.tensor([[10.0, 0.0], [20.0, 1.0], [30.0, 5.0]])
_BOOK = f"for query={short(QUERY)}, keys={short(KEYS)}, values={short(VALUES)}"


def _average(answer):
    """at temperature 1 it is the softmax average of the values"""
    e, root = math.e, math.sqrt(math.e)
    total = e + 1 + root
    expected = [(10 * e + 20 + 30 * root) / total, (1 + 5 * root) / total]
    same(answer(QUERY, KEYS, VALUES, 1.0), expected, f"{_BOOK}, temperature=1")


def _cold(answer):
    """near temperature 0 it returns the value of the best key"""
    where = f"{_BOOK}, temperature=0.001"
    same(answer(QUERY, KEYS, VALUES, 0.001), [10.0, 0.0], where, note="Key 0 matches best.")


def _near(answer):
    """at low temperatures keys that are close to the best count still"""
    for temperature, share, note in ((0.001, 0.952574, "3"), (0.09, 0.508333, "0.0333")):
        note = f"The scores differ by 0.003 / {temperature} = {note}."
        agrees(answer, [share], torch.ones(1), torch.tensor([[0.0], [0.003]]),
               torch.tensor([[0.0], [1.0]]), temperature, note=note)  # fmt: skip
    keys, values = torch.tensor([[0.0], [2e-5]]), torch.tensor([[0.0], [1.0]])
    note = "The scores differ by 0.00002 / 0.00001 = 2."
    agrees(answer, [0.880797], torch.ones(1), keys, values, 1e-5, note=note)


def _hot(answer):
    """at a high temperature it returns the mean of the values"""
    got = answer(QUERY, KEYS, VALUES, 1e6)
    same(got, [20.0, 2.0], f"{_BOOK}, temperature=1000000", note="All keys count alike.")


def _looked_up(query, keys, values, temperature):
    """The same, one key after the other."""
    shares = [((key * query).sum() / temperature).exp() for key in keys]
    return sum(share * value for share, value in zip(shares, values, strict=True)) / sum(shares)


def _any_book(answer):
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


def _large_matches(answer):
    """a match of 200 does no harm"""
    same(answer(QUERY * 200, KEYS, VALUES, 1.0), [10.0, 0.0], "for a query of 200, temperature=1")


def _gradients_of_lookup(answer):
    """gradients reach the query, the keys and the values"""
    wide = numbers(5, seed=1), numbers(4, 5, seed=2), numbers(4, 3, seed=3)
    gradients(answer, _looked_up, *wide, 0.7)
    travels(answer, QUERY, KEYS, VALUES, 0.7)


LOOKUP = Exercise(
    id="05.1",
    title="a dictionary that looks up softly",
    difficulty=1,
    minutes=8,
    statement=(
        "A Python dictionary returns the value of the key that equals the query. Write "
        "`my_lookup(query, keys, values, temperature)`, which returns the average of all values, "
        "weighted by the softmax of `keys @ query` divided by the temperature."
    ),
    hint="Three steps: a score per key, a softmax over the scores, a weighted sum of the values.",
    function=my_lookup,
    tests=(_average, _cold, _near, _hot, _any_book, _large_matches, _gradients_of_lookup),
)


EXERCISES = (LOOKUP, MASK, WEIGHTS)
