"""Answers to chapter 05: references and mistakes."""

import math

import torch

from tinytf.course.grading import Answers, WrongAnswer

HIDDEN = float("-inf")


# 05.3 attention weights with a mask


def my_attention_weights(q, k, mask=None):
    """How much each query attends to each key.

    q is (..., T, D), k is (..., S, D), and mask (True = may attend) broadcasts to (..., T, S).
    A query that may attend to nothing gets a row of zeros.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))  # (..., T, S)
    if mask is None:
        return scores.softmax(-1)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1).masked_fill(~mask, 0.0)


def _variant(divide=True, mask_at=HIDDEN, axis=-1, inverted=False, after=False, width=None):
    """A `my_attention_weights` with one thing wrong."""

    def weights(q, k, mask=None):
        size = width(q) if width else q.size(-1)
        scores = q @ k.transpose(-2, -1) / (math.sqrt(size) if divide else 1)
        if mask is None:
            return scores.softmax(axis)
        hidden = mask if inverted else ~mask
        if after:
            return scores.softmax(axis).masked_fill(hidden, 0.0)
        return scores.masked_fill(hidden, mask_at).softmax(axis)

    return weights


def _swapped(q, k, mask=None):
    scores = k @ q.transpose(-2, -1) / math.sqrt(q.size(-1))
    return (scores if mask is None else scores.masked_fill(~mask, HIDDEN)).softmax(-1)


def _repaired_late(q, k, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores + torch.zeros(mask.shape).masked_fill(~mask, HIDDEN)
    return scores.softmax(-1).nan_to_num(0.0)


def _below_the_least(q, k, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is None:
        return scores.softmax(-1)
    return scores.masked_fill(~mask, scores.min() - 1e4).softmax(-1).masked_fill(~mask, 0.0)


def _raw_exp(q, k, mask=None):
    share = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).exp()
    share = share if mask is None else share * mask
    total = share.sum(-1, keepdim=True)
    return share / total.masked_fill(total == 0, 1)


_BOOLEAN = "whole numbers and booleans carry no gradient"
_SCORES = "scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))"
_HIDE = "scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)"
_END = "return scores.softmax(-1).masked_fill(~mask, 0.0)"


def _hidden_largest(q, k, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    share = (scores - scores.amax(-1, keepdim=True)).exp()
    share = share if mask is None else share * mask
    return share / share.sum(-1, keepdim=True).clamp(torch.finfo(share.dtype).tiny)


WEIGHTS = Answers(
    reference=my_attention_weights,
    wrong=(
        WrongAnswer(
            "no scale",
            _variant(divide=False),
            "divided by the root of D=2",
            "Without 1/√D the scores spread as D grows, and the softmax saturates.",
        ),
        WrongAnswer(
            "scale by the whole model width",
            _variant(width=lambda q: q.size(-1) * (q.size(-3) if q.dim() > 2 else 1)),
            "divided by the root of D=4",
            "A score is a dot product of D numbers, those of one head: its spread is √D, not "
            "√d_model. With 8 heads the scores become 2.8 times too small.",
        ),
        WrongAnswer(
            "mask after the softmax",
            _variant(after=True),
            "sums to 0.1978",
            "The hidden keys have already taken their share of the softmax, so what is left does "
            "not sum to 1. Hide the scores before it.",
        ),
        WrongAnswer(
            "mask inverted",
            _variant(inverted=True),
            "to hidden keys; True means “may attend”",
            "Here True means “may attend”. `nn.MultiheadAttention` and many tutorials mean the "
            "opposite: hide where `~mask`.",
        ),
        WrongAnswer(
            "mask ignored",
            lambda q, k, mask=None: _variant()(q, k),
            "row 0 gives 0.8022 to hidden keys",
            "The mask came in and was not used: hide the scores where it is False.",
        ),
        WrongAnswer(
            "softmax over the queries",
            _variant(axis=-2),
            "row 0 sums to",
            "The softmax has to run over the keys, the last axis: each query spreads its own 1.",
        ),
        WrongAnswer(
            "queries and keys swapped",
            _swapped,
            "the weights have shape (2, 3), expected (3, 2)",
            "`k @ q.T` asks each key which query it likes. A row belongs to a query: `q @ k.T`.",
        ),
        WrongAnswer(
            "NaN where everything is hidden",
            _variant(),
            "you get [nan, nan, nan], expected [0, 0, 0]",
            "The softmax of a row of -inf is 0/0. One fully padded sentence then turns the loss, "
            "and every parameter, into NaN.",
        ),
        WrongAnswer(
            "uniform where everything is hidden",
            _variant(mask_at=-1e9),
            "you get [0.3333, 0.3333, 0.3333], expected [0, 0, 0]",
            "A row of equal scores, however negative, has a uniform softmax: the query silently "
            "averages exactly what it may not see.",
        ),
        WrongAnswer(
            "-inf added, NaN repaired later",
            _repaired_late,
            "NaN spreads to every parameter",
            "The values look right, but the backward pass of the softmax multiplies by the NaN it "
            "computed, and adding -inf lets that through. Keep the scores finite, or hide them "
            "with `masked_fill`, which sends no gradient to what it fills.",
        ),
        WrongAnswer(
            "exp of the raw scores",
            _raw_exp,
            "for q=[[200], [-200]]",
            "exp(200) is past the largest float32, and inf / inf is NaN. `softmax` subtracts each "
            "row's maximum first, which changes nothing else.",
        ),
        WrongAnswer(
            "the largest of all scores, hidden ones too",
            _hidden_largest,
            "k=[[200], [0]]",
            "If the largest score is hidden and far above the others, their exp is 0 and the row "
            "is lost. Hide the scores first, and subtract the largest of what is left.",
        ),
        WrongAnswer(
            "hidden scores at -10,000",
            lambda q, k, mask=None: (
                _variant()(q, k)
                if mask is None
                else _variant(mask_at=-1e4)(q, k, mask).masked_fill(~mask, 0.0)
            ),
            "-10,000 is not low enough",
            "A score that is seen may be lower still, and then the hidden one wins the softmax. "
            "`torch.finfo(scores.dtype).min` is below all of them.",
        ),
        WrongAnswer(
            "hidden scores a little below the least",
            _below_the_least,
            "10,000 below the least score",
            "Floats lie far apart where they are large: -2e12 less 10,000 is -2e12 again in "
            "float32, and in float16 there may be nothing below the least score but -∞. "
            "`torch.finfo(scores.dtype).min` needs no distance.",
        ),
    ),
    equivalent={
        f"{_HIDE} => {_HIDE.replace('~mask', '~mask.detach()')}": _BOOLEAN,
        f"{_END} => {_END.replace('~mask', '~mask.detach()')}": _BOOLEAN,
        f"{_SCORES} => {_SCORES.replace('q.size', 'k.size')}": "q and k have one width",
        f"{_HIDE} => {_HIDE.replace('scores.dtype', 'k.dtype')}": "all have one dtype",
    },
)


# 05.2 causal and padding mask together


def my_decoder_mask(ids, pad_id=0):
    """Which positions each position of a batch may attend to, (B, T) -> (B, 1, T, T).

    True where the key is not padding and not later than the query.
    """
    T = ids.size(1)
    causal = torch.ones(T, T, dtype=torch.bool, device=ids.device).tril()
    return causal & (ids != pad_id)[:, None, None, :]


def _triangle(ids, diagonal=0):
    return torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).tril(diagonal)


def _real_keys(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]


_CAUSAL = "causal = torch.ones(T, T, dtype=torch.bool, device=ids.device).tril()"
_BOTH = "return causal & (ids != pad_id)[:, None, None, :]"

MASK = Answers(
    reference=my_decoder_mask,
    wrong=(
        WrongAnswer(
            "look-ahead inverted",
            lambda ids, pad_id=0: ~_triangle(ids) & _real_keys(ids, pad_id),
            "a later key is hidden",
            "`triu(1)` marks the future; here it came in as what may be attended to. Such a model "
            "sees only the future: training looks perfect, generation gets nothing right.",
        ),
        WrongAnswer(
            "padding forgotten",
            lambda ids, pad_id=0: _triangle(ids).expand(ids.size(0), 1, -1, -1),
            "padding is never attended to",
            "Padding on the right lies in the future of every word, so the causal mask happens to "
            "hide it. Padding on the left, or in the middle, is attended to.",
        ),
        WrongAnswer(
            "diagonal excluded",
            lambda ids, pad_id=0: _triangle(ids, -1) & _real_keys(ids, pad_id),
            "a position may attend to itself",
            "`tril(-1)` hides the diagonal too. The input is already shifted by one, so a position "
            "may see itself; otherwise the first one has nothing to see.",
        ),
        WrongAnswer(
            "no axis for the heads",
            lambda ids, pad_id=0: _triangle(ids) & (ids != pad_id)[:, None, :],
            "lines its batch up with their heads",
            "Broadcasting aligns shapes from the right, so (B, T, T) meets (B, H, T, T) as "
            "(1, B, T, T). It crashes, unless B equals H: then head h silently gets the mask of "
            "sentence h.",
        ),
        WrongAnswer(
            "True means hide",
            lambda ids, pad_id=0: ~(_triangle(ids) & _real_keys(ids, pad_id)),
            "a later key is hidden",
            "This is the opposite convention, that of `nn.MultiheadAttention`. In this course "
            "True means “may attend”.",
        ),
        WrongAnswer(
            "the future in place of the past",
            lambda ids, pad_id=0: (
                torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu()
                & _real_keys(ids, pad_id)
            ),
            "a later key is hidden",
            "`triu` keeps what is above the diagonal, where the key is later than the query. What "
            "may be seen lies below: `tril`.",
        ),
        WrongAnswer(
            "padding hides queries, not keys",
            lambda ids, pad_id=0: _triangle(ids) & (ids != pad_id)[:, None, :, None],
            "padding is never attended to",
            "Padding has to be hidden as a key, along the last axis, where the softmax runs.",
        ),
        WrongAnswer(
            "padding hides queries too",
            lambda ids, pad_id=0: (
                _triangle(ids) & _real_keys(ids, pad_id) & (ids != pad_id)[:, None, :, None]
            ),
            "an earlier word may be attended to",
            "Hiding padding as a key is enough. What a padded query finds is never read, and an "
            "empty row is a chance for NaN.",
        ),
    ),
    equivalent={
        f"{_CAUSAL} => {_CAUSAL}.detach()": _BOOLEAN,
        f"{_BOTH} => return (causal & (ids != pad_id)[:, None, None, :]).detach()": _BOOLEAN,
        f"{_BOTH} => return causal.detach() & (ids != pad_id)[:, None, None, :]": _BOOLEAN,
        f"{_BOTH} => return causal & (ids.detach() != pad_id)[:, None, None, :]": _BOOLEAN,
        f"{_BOTH} => {_BOTH.replace('(ids', '(ids.float()')}": "a vocabulary is below 2^24",
    },
)


# 05.1 a dictionary that looks up softly


def my_lookup(query, keys, values, temperature):
    """The values, averaged by how well their keys match the query.

    query is (D,), keys (S, D), values (S, C), the result (C,). As temperature goes to 0 the
    result goes to the value of the best key.
    """
    weights = (keys @ query / temperature).softmax(0)  # (S,)
    return weights @ values


def _overflowing(query, keys, values, temperature):
    weights = (keys @ query / temperature).exp()
    return weights / weights.sum() @ values


LOOKUP = Answers(
    reference=my_lookup,
    wrong=(
        WrongAnswer(
            "temperature multiplies",
            lambda query, keys, values, temperature: (
                (keys @ query * temperature).softmax(0) @ values
            ),
            "Key 0 matches best",
            "A low temperature has to sharpen: divide by it, so that differences grow.",
        ),
        WrongAnswer(
            "temperature ignored",
            lambda query, keys, values, temperature: (keys @ query).softmax(0) @ values,
            "Key 0 matches best",
            "The answer is the same at every temperature: divide the scores by it.",
        ),
        WrongAnswer(
            "softmax of the values",
            lambda query, keys, values, temperature: (
                (keys @ query / temperature) @ values.softmax(0)
            ),
            "temperature=1, you get",
            "The softmax turns scores into weights; the values are what gets averaged.",
        ),
        WrongAnswer(
            "cosines for dot products",
            lambda query, keys, values, temperature: (
                (torch.cosine_similarity(keys, query[None]) / temperature).softmax(0) @ values
            ),
            "temperature=1, you get",
            "The score is the dot product `keys @ query`: a longer key, or query, makes it larger.",
        ),
        WrongAnswer(
            "returns the weights",
            lambda query, keys, values, temperature: (keys @ query / temperature).softmax(0),
            "the shape is (3,), expected (2,)",
            "These weights say how much of each value to take; the last step is "
            "`weights @ values`.",
        ),
        WrongAnswer(
            "hard lookup",
            lambda query, keys, values, temperature: values[(keys @ query).argmax()],
            "All keys count alike",
            "That is the limit at temperature 0. It has no gradient, so nothing could be learned.",
        ),
        WrongAnswer(
            "exponentials overflow",
            _overflowing,
            "you get [nan, nan]",
            "exp(1000) is infinite, and inf/inf is NaN. `softmax` subtracts the largest score "
            "first, which changes nothing but the range.",
        ),
        WrongAnswer(
            "the temperature squared",
            lambda query, keys, values, temperature: (
                (keys @ query / temperature**2).softmax(0) @ values
            ),
            "temperature=0.5",
            "Scores are divided by the temperature itself. At 1, and near 0 or far above 1, its "
            "square does almost the same; in between it does not.",
        ),
        WrongAnswer(
            "a floor under the temperature",
            lambda query, keys, values, temperature: (
                (keys @ query / max(temperature, 0.01)).softmax(0) @ values
            ),
            "0.003 / 0.001",
            "A floor saves a division by 0 that nobody asked for, and below it the answer is that "
            "of another temperature.",
        ),
        WrongAnswer(
            "the best key alone when it is cold",
            lambda query, keys, values, temperature: (
                values[(keys @ query).argmax()]
                if temperature < 0.1
                else (keys @ query / temperature).softmax(0) @ values
            ),
            "0.003 / 0.001",
            "The best key alone is what the result goes to, not what it is: keys that are as close "
            "as the temperature still share.",
        ),
    ),
    equivalent={
        "weights = (keys @ query / temperature).softmax(0) => "
        "weights = (keys @ query / temperature).softmax(-1)": "the scores have one axis",
    },
)

ANSWERS = {
    "05.1": LOOKUP,
    "05.2": MASK,
    "05.3": WEIGHTS,
}
