"""Answers to chapter 05: references and mistakes."""

import math

import torch

from tinytf_course.grading import Answers, WrongAnswer

# 05.3 a check for attention weights


def my_check(weights_of):
    """Whether weights_of gives right attention weights with a mask: True or False.

    It is called as weights_of(q, k, mask). q is (..., T, D), k is (..., S, D), and the boolean
    mask (True = may attend) broadcasts to (..., T, S).
    """
    q = torch.full((2, 4), 0.5, requires_grad=True)  # times a key of c's: 2c, and over √4: c
    scores = torch.tensor([-200.0, math.log(3) - 200, 0.0])  # the highest one is to be hidden
    k = scores[:, None].expand(3, 4)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    by_hand = torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0]])
    weights = weights_of(q, k, mask)
    (slope,) = torch.autograd.grad(weights.sum(), q)
    return torch.allclose(weights, by_hand, atol=1e-3) and bool(slope.isfinite().all())


_Q, _MASK = torch.full((2, 4), 0.5), torch.tensor([[True, True, False], [False] * 3])
_SCORES = -200.0, math.log(3) - 200, 0.0
_BY_HAND = torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0]])


def _checks(q=_Q, scores=_SCORES, mask=_MASK, by_hand=_BY_HAND,
            equal=lambda w, e: torch.allclose(w, e, atol=1e-3), finite=True):  # fmt: skip
    """A `my_check` with one thing wrong."""

    def check(weights_of):
        asked = q.clone().requires_grad_()
        k = torch.tensor(scores)[:, None].expand(len(scores), q.size(-1))
        weights = weights_of(asked, k, mask)
        (slope,) = torch.autograd.grad(weights.sum(), asked)
        same = weights.shape == by_hand.shape and bool(equal(weights, by_hand))
        return same and bool(slope.isfinite().all() or not finite)

    return check


def _by_sums(weights_of):
    """Rows sum to 1 or 0, hidden weights are 0: and nothing more."""
    q = _Q.clone().requires_grad_()
    weights = weights_of(q, torch.tensor(_SCORES)[:, None].expand(3, 4), _MASK)
    (slope,) = torch.autograd.grad(weights.sum(), q)
    sums = torch.allclose(weights.sum(-1), _MASK.any(-1).float(), atol=1e-3)
    return sums and not weights[~_MASK].any() and bool(slope.isfinite().all())


CHECK = Answers(
    reference=my_check,
    wrong=(
        WrongAnswer(
            "everything passes",
            lambda weights_of: True,
            "fills hidden scores with 0",
            "A check that can't fail says nothing.",
        ),
        WrongAnswer(
            "right weights refused",
            _checks(equal=torch.equal),
            "for weights that are right",
            "Two right ways round differently: compare with a tolerance, as `torch.allclose` does. "
            "And are your own numbers right? Work them out once more with a pencil.",
        ),
        WrongAnswer(
            "NaN passes",
            _checks(equal=lambda w, e: not ((w - e).abs() > 1e-3).any(), finite=False),
            "gives NaN where nothing is seen",
            "Whatever is compared with NaN gives False, so `not difference > bound` holds for it. "
            "Ask whether the difference is *below* the bound, or use `torch.allclose`.",
        ),
        WrongAnswer(
            "nobody who sees nothing",
            _checks(q=_Q[:1], mask=_MASK[:1], by_hand=_BY_HAND[:1]),
            "averages where nothing is seen",
            "Put in a query whose row of the mask is all False: three of the faults show only "
            "there.",
        ),
        WrongAnswer(
            "no scale shows",
            _checks(q=torch.ones(2, 1)),
            "does not divide",
            "With D = 1 no scale can be wrong: the root of 1 is 1. Nor does one show where weights "
            "are 0 and 1 whatever divides the scores, or under a wide tolerance. Take D = 4, and "
            "scores a little apart, such as ln 3.",
        ),
        WrongAnswer(
            "all scores equal",
            _checks(q=0 * _Q, by_hand=torch.tensor([[0.5, 0.5, 0], [0, 0, 0]])),
            "averages what may be seen",
            "Equal scores stay equal whatever they are divided by. The scores that are seen have "
            "to differ, by a number whose weights you know: ln 3 gives 1/4 and 3/4.",
        ),
        WrongAnswer(
            "the hidden score is not high enough",
            _checks(
                scores=(0.0, math.log(3), 50.0),
                equal=lambda w, e: torch.allclose(w, e, atol=1e-3) and not w[~_MASK].any(),
            ),
            "divides by what is left",
            "A number as small as e^-50 can still be divided by. Only where nothing is left of the "
            "others, below e^-104 in float32, does this way fail: 200 is enough.",
        ),
        WrongAnswer(
            "hidden weights that are only small",
            _checks(scores=(0.0, math.log(3), 50.0)),
            "fills hidden scores with minus 20",
            "Under a tolerance e^-20 is 0. Ask of hidden weights whether they *are* 0, or let the "
            "scores that are seen be lower still. (And 50 is not high enough for a hidden score: "
            "what is left of the others can still be divided by.)",
        ),
        WrongAnswer(
            "the hidden key is quiet",
            _checks(scores=(100.0, math.log(3) + 100, 0.0)),
            "hides after the softmax",
            "A hidden key that would get no weight anyway does not show whether it is hidden. Give "
            "it the highest score of all.",
        ),
        WrongAnswer(
            "the weights alone",
            _checks(finite=False),
            "repairs NaN weights later",
            "The weights can be right and the way back NaN. Ask for the gradient of `q`.",
        ),
        WrongAnswer(
            "sums and zeros",
            _by_sums,
            "averages what may be seen",
            "Rows that sum to 1 and hidden zeros are needed, but not enough: any distribution over "
            "what is seen has both. Compare with weights that you know.",
        ),
        WrongAnswer(
            "a loose bound",
            _checks(
                scores=(-30.0, math.log(3) - 30, 0.0),
                equal=lambda w, e: torch.allclose(w, e, atol=0.5),
            ),
            "averages what may be seen",
            "Weights lie between 0 and 1: a bound of 0.5 lets nearly all pass. Rounding is about "
            "0.00001.",
        ),
    ),
    equivalent={
        "… => ….float()…": "all numbers are in float32 already",
        "… => ….detach()…": "nothing but q is asked for its gradient",
        "… => …1.0])": "the hidden score is still the highest",
        "… => q = torch.full((1, 4), …)": "one query under two masks is two",
        "… => … = torch.autograd.grad(weights.mean(), q)": "a sixth of NaN is NaN",
        "… => return torch.allclose(by_hand, weights, …": "who comes first is nothing here",
        "… => return torch.allclose(weights, by_hand) and …": "rounding stays below 0.00001 here",
        "… => …atol=0.0…": "another bound between rounding and the faults",
        "… => … and slope.isfinite().all()": "a tensor of one True is true",
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


_BOOLEAN = "whole numbers and booleans carry no gradient"
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
    "05.3": CHECK,
}
