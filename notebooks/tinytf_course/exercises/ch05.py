"""Chapter 05: attention weights, masks, and attention as a soft lookup."""

import math

import torch

from tinytf_course.expect import (
    agrees,
    expect,
    gradients,
    numbers,
    record,
    same,
    short,
    tensor,
    travels,
)
from tinytf_course.grading import Exercise

# 05.3 a check for attention weights


def my_check(weights_of):
    """Whether weights_of gives right attention weights with a mask: True or False.

    It is called as weights_of(q, k, mask). q is (..., T, D), k is (..., S, D), and the boolean
    mask (True = may attend) broadcasts to (..., T, S).
    """
    raise NotImplementedError


def _seen(q, k, mask):
    """The mask, or one that shows everything."""
    return torch.ones(1, 1, dtype=torch.bool) if mask is None else mask


def _plain(q, k, mask=None):
    """Pair by pair: exp of each score over the sum of those that are seen; 0 where none is."""
    scores = (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) / q.size(-1) ** 0.5
    scores, seen = torch.broadcast_tensors(scores, _seen(q, k, mask))
    top = scores.detach().masked_fill(~seen, -math.inf).amax(-1, keepdim=True)
    share = torch.where(seen, torch.where(seen, scores - top, 0).exp(), 0)
    total = share.sum(-1, keepdim=True)
    return share / torch.where(total == 0, 1, total)


def _scores(q, k, scale=math.sqrt):
    return q @ k.transpose(-2, -1) / scale(q.size(-1))


def _filled(fill=None, scale=math.sqrt, axis=-1, opposite=False, zeros=True):
    """Weights whose hidden scores are filled with this number, or the lowest there is."""

    def weights(q, k, mask=None):
        hidden = _seen(q, k, mask) if opposite else ~_seen(q, k, mask)
        scores = _scores(q, k, scale)
        number = torch.finfo(scores.dtype).min if fill is None else fill
        soft = scores.masked_fill(hidden, number).softmax(axis)
        return soft.masked_fill(hidden, 0.0) if zeros else soft

    return weights


def _through_minus_infinity(q, k, mask=None):
    """Weights by -inf, but for a row with nothing to see: its scores stay until the end."""
    seen = _seen(q, k, mask)
    hidden = ~seen & seen.any(-1, keepdim=True)
    return _scores(q, k).masked_fill(hidden, -math.inf).softmax(-1).masked_fill(~seen, 0.0)


def _in_float64(q, k, mask=None):
    return _plain(q.double(), k.double(), mask).to(q.dtype)


def _after(q, k, mask=None):
    return _scores(q, k).softmax(-1).masked_fill(~_seen(q, k, mask), 0.0)


def _divided(q, k, mask=None):
    share = _after(q, k, mask)
    nothing = ~_seen(q, k, mask).any(-1, keepdim=True)
    return share / torch.where(nothing, 1, share.sum(-1, keepdim=True))


def _nan_repaired(q, k, mask=None):
    added = torch.zeros(1, 1).masked_fill(~_seen(q, k, mask), -math.inf)
    return (_scores(q, k) + added).softmax(-1).nan_to_num(0.0)


def _barely(fill):
    """Weights whose hidden scores are this number, and zeros where nothing is seen."""

    def weights(q, k, mask=None):
        some = _seen(q, k, mask).any(-1, keepdim=True)
        return torch.where(some, _filled(fill, zeros=False)(q, k, mask), 0.0)

    return weights


_RIGHT = {
    "fills with the lowest number, and sets the hidden weights to 0": _filled(),
    "goes pair by pair": _plain,
    "computes in float64 and rounds": _in_float64,
    "fills with -∞ where something is seen": _through_minus_infinity,
}


def _refused(answer, **faulty):
    """Expect False for each of these, whose keyword says what it does."""
    for says, weights_of in faulty.items():
        _verdict(answer, weights_of, False, says.replace("_", " "))


def _verdict(answer, weights_of, right, says):
    got = answer(weights_of)
    where = f"for weights that are {'right' if right else 'wrong'} (the function {says})"
    if isinstance(got, torch.Tensor) and got.numel() == 1:
        got = got.item()
    expect(isinstance(got, bool), f"{where}, you return {short(got)}, expected True or False")
    record(got)
    expect(got == right, f"{where}, you return {got}, expected {right}")


def _right_pass(answer):
    """right weights pass, however they are computed and rounded"""
    for says, weights_of in _RIGHT.items():
        _verdict(answer, weights_of, True, says)


def _averaged(q, k, mask=None):
    return _plain(0 * q, k, mask)


def _scale_refused(answer):
    """scores that do not count, or are not divided by the root of D, are refused"""
    _refused(answer, averages_what_may_be_seen=_averaged)
    _refused(answer, does_not_divide=_filled(scale=lambda size: 1))
    _refused(answer, divides_by_D=_filled(scale=lambda size: size))


def _opposite_refused(answer):
    """a mask that is not used, or read the other way, is refused"""
    _refused(answer, ignores_the_mask=lambda q, k, mask=None: _plain(q, k))
    _refused(answer, hides_what_may_be_seen=_filled(opposite=True))


def _late_refused(answer):
    """hidden weights set to 0 after the softmax are refused, even if the row is divided again"""
    _refused(answer, hides_after_the_softmax=_after)
    _refused(answer, hides_after_the_softmax_and_divides_by_what_is_left=_divided)


def _lonely_refused(answer):
    """an average, or NaN, for a query without a visible key is refused"""
    nan, mean = _filled(-math.inf, zeros=False), _filled(zeros=False)
    _refused(answer, averages_where_nothing_is_seen=mean)
    _refused(answer, gives_NaN_where_nothing_is_seen=nan)


def _axis_refused(answer):
    """a softmax over the queries is refused"""
    _refused(answer, takes_the_softmax_over_the_queries=_filled(axis=-2))


def _soft_refused(answer):
    """hidden scores that are 0 or only low are refused"""
    _refused(answer, fills_hidden_scores_with_0=_barely(0.0))
    _refused(answer, fills_hidden_scores_with_minus_20=_barely(-20.0))


def _gradient_refused(answer):
    """a gradient that is NaN is refused, even if the weights are right"""
    _refused(answer, repairs_NaN_weights_later=_nan_repaired)


CHECK = Exercise(
    id="05.3",
    title="a check for attention weights",
    difficulty=3,
    minutes=15,
    statement=(
        "Design a check before the function itself is written. `my_check(weights_of)` calls the "
        "function it is given as `weights_of(q, k, mask)`, with a `q`, `k` and `mask` of your "
        "choice, and returns True if the attention weights are right and their gradients finite, "
        "and False otherwise. Choose numbers whose weights you know without a computer.\n\n"
        "<details><summary>What has to be rejected</summary>\n\n"
        "Right functions may round differently, and all of them must be accepted. Reject a "
        "function that\n\n"
        "* averages what may be attended to, whatever the scores;\n"
        "* does not divide the scores by $\\sqrt{d_k}$, or divides them by $d_k$;\n"
        "* takes the softmax over the queries;\n"
        "* ignores the mask, or hides what may be attended to;\n"
        "* gives hidden scores the value 0, or -20;\n"
        "* sets the hidden weights to 0 after the softmax, with or without dividing by what is "
        "left;\n"
        "* gives an average, or NaN, to a row without a visible key;\n"
        "* repairs this NaN only at the end, so that the weights are right and the gradient is NaN."
        "\n\n</details>"
    ),
    hint=(
        "Two queries and three keys are enough: let one query attend to two of the keys and the "
        "other to none. If two scores differ by ln 3, their weights are 1/4 and 3/4. Take D = 4, "
        "because with D = 1 the scale makes no difference.",
        "Let the mask hide the highest score, and make it 200 higher than the others, so that "
        "nothing is left of them unless it is hidden well. For the gradient, give `q` "
        "`requires_grad=True` and call `torch.autograd.grad(weights.sum(), q)`.",
    ),
    function=my_check,
    tests=(
        _right_pass,
        _scale_refused,
        _opposite_refused,
        _late_refused,
        _lonely_refused,
        _axis_refused,
        _soft_refused,
        _gradient_refused,
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
    """no position attends to a later one"""
    _cells(answer, lambda b, t, s: False if s > t else None, "a later key is hidden, so False")


def _sees_itself(answer):
    """a real position attends to itself"""
    real = (IDS != 0).tolist()
    note = "a position may attend to itself, so True"
    _cells(answer, lambda b, t, s: True if s == t and real[b][t] else None, note)


def _sees_past(answer):
    """a position attends to the real positions before it"""
    real = (IDS != 0).tolist()
    note = "an earlier word may be attended to, so True"
    _cells(answer, lambda b, t, s: True if s < t and real[b][s] else None, note)


def _no_padding(answer):
    """no position attends to padding"""
    real = (IDS != 0).tolist()
    note = "padding is never attended to, so False"
    _cells(answer, lambda b, t, s: None if real[b][s] else False, note)


def _other_pad(answer):
    """the padding id is the argument"""
    got = tensor(answer(torch.tensor([[0, 9]]), 9), "for ids=[[0, 9]], pad_id=9")
    where, note = "for ids=[[0, 9]], pad_id=9, the four cells", "Here 9 is padding and 0 is a word."
    same(got.reshape(-1), [True, False, True, False], where, note=note)


def _any_length(answer):
    """any number of sentences of any length, down to a single word"""
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
        "Write `my_decoder_mask(ids, pad_id=0)`, which returns the mask of a decoder's "
        "self-attention for a batch of token ids of shape `(B, T)`. The mask is boolean, of shape "
        "`(B, 1, T, T)`, and `True` where the key is neither later than the query nor padding."
    ),
    hint="Combine two masks that broadcast against each other: one has an axis of size 1 for the "
    "sentences, the other for the queries. Both have to be on the device of `ids`.",
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
    """at low temperatures, keys that are close to the best one still count"""
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
        "Write `my_lookup(query, keys, values, temperature)`, a soft version of a dictionary "
        "lookup. It divides the scores `keys @ query` by the temperature and returns the average "
        "of all values, weighted by the softmax of the result."
    ),
    hint="There are three steps: a score for each key, a softmax over the scores, and a weighted "
    "sum of the values.",
    function=my_lookup,
    tests=(_average, _cold, _near, _hot, _any_book, _large_matches, _gradients_of_lookup),
)


EXERCISES = (LOOKUP, MASK, CHECK)
