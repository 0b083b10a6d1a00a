r"""05.3 a check for attention weights (★★★, 15 minutes)

Design a check before the function itself is written. `my_check(weights_of)` calls the function it
is given as `weights_of(q, k, mask)`, with a `q`, `k` and `mask` of your choice, and returns True if
the attention weights are right and their gradients finite, and False otherwise. Choose numbers
whose weights you know without a computer. `weights_of` never raises an error.

<details><summary>What has to be rejected</summary>

Right functions may round differently, and all of them must be accepted. Reject a function that

* averages what may be attended to, or takes the first of it, whatever the scores;
* does not divide the scores by $\sqrt{d_k}$, or divides them by $d_k$ or by $\sqrt{d_k - 1}$;
* takes the softmax over the queries;
* gives weights of a wrong sum, though their ratios are right;
* ignores the mask, or hides what may be attended to;
* gives hidden scores the value 0, or -20;
* sets the hidden weights to 0 after the softmax, with or without dividing by what is left;
* gives an average, or NaN, to a row without a visible key;
* repairs this NaN only at the end, so that the weights are right and the gradient is NaN.

</details>

Hint: Two queries and three keys are enough: let one query attend to two of the keys and the other
to none. If two scores differ by ln 3, their weights are 1/4 and 3/4. Take D = 4, because with D = 1
the scale makes no difference.

Hint: Let the mask hide the highest score, and make it 200 higher than the others, in float32, so
that nothing is left of them unless it is hidden well. Check that hidden weights are
exactly 0. For the gradient, give `q` `requires_grad=True` and call
`torch.autograd.grad(weights.sum(), q)`.
"""

import functools
import math

import torch

from tinytf_course.expect import YES_OR_NO, expect, number
from tinytf_course.grading import hint


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


def _attention(weigh, scale=math.sqrt):
    """A function for attention weights: `weigh` makes them of the scores and of what is seen."""

    def weights_of(q, k, mask=None):
        seen = torch.ones(1, 1, dtype=torch.bool) if mask is None else mask
        return weigh(q @ k.mT / scale(q.size(-1)), seen)

    return weights_of


def _filled(scores, seen, fill=None, axis=-1):
    fill = torch.finfo(scores.dtype).min if fill is None else fill
    return scores.masked_fill(~seen, fill).softmax(axis)


def _exact(scores, seen, axis=-1):
    return _filled(scores, seen, axis=axis).masked_fill(~seen, 0.0)


def _first(scores, seen):
    return _exact(scores, seen & (seen.cumsum(-1) == 1))


def _barely(scores, seen, fill):
    """Low scores for what is hidden, and zeros where nothing is seen."""
    return torch.where(seen.any(-1, keepdim=True), _filled(scores, seen, fill), 0.0)


def _through_minus_infinity(scores, seen):
    """By -inf, but for a row with nothing to see: its scores stay until the end."""
    seen_or_lonely = seen | ~seen.any(-1, keepdim=True)
    return _filled(scores, seen_or_lonely, -math.inf).masked_fill(~seen, 0.0)


def _pair_by_pair(scores, seen):
    """exp of each score over the sum of those that are seen; 0 where none is."""
    scores, seen = torch.broadcast_tensors(scores, seen)
    top = scores.detach().masked_fill(~seen, -math.inf).amax(-1, keepdim=True)
    share = torch.where(seen, torch.where(seen, scores - top, 0).exp(), 0)
    total = share.sum(-1, keepdim=True)
    return share / torch.where(total == 0, 1, total)


def _divided(scores, seen):
    share = scores.softmax(-1).masked_fill(~seen, 0.0)
    nothing = ~seen.any(-1, keepdim=True)
    return share / torch.where(nothing, 1, share.sum(-1, keepdim=True))


def _nan_repaired(scores, seen):
    added = torch.zeros(1, 1).masked_fill(~seen, -math.inf)
    return (scores + added).softmax(-1).nan_to_num(0.0)


def _refused(answer, scale=math.sqrt, **faulty):
    """Expect False for each of these, whose keyword says what it does."""
    for says, weigh in faulty.items():
        _verdict(answer, _attention(weigh, scale), False, says.replace("_", " "))


def _verdict(answer, weights_of, right, says):
    got = answer(weights_of)
    where = f"for weights that are {'right' if right else 'wrong'} (the function {says})"
    said = number(got, where, YES_OR_NO)
    expect(said == right, f"{where}, you return {said}, expected {right}")


def test_right_pass(answer):
    """right weights pass, however they are computed and rounded"""
    _verdict(answer, _attention(_exact), True, "fills with the lowest number, and hides again")
    _verdict(answer, _attention(_pair_by_pair), True, "goes pair by pair")
    in_float64 = _attention(lambda scores, seen: _exact(scores.double(), seen).to(scores.dtype))
    _verdict(answer, in_float64, True, "computes in float64 and rounds")
    _verdict(answer, _attention(_through_minus_infinity), True, "fills with -∞")


def test_scale_refused(answer):
    """scores that do not count, or are not divided by the root of D, are refused"""
    _refused(answer, averages_what_may_be_seen=_exact, scale=lambda size: math.inf)
    _refused(answer, takes_the_first_that_may_be_seen=_first)
    _refused(answer, does_not_divide=_exact, scale=lambda size: 1)
    _refused(answer, divides_by_D=_exact, scale=lambda size: size)


@hint("By how much does the wrong scale move your weights? Let the tolerance be far smaller.")
def test_near_refused(answer):
    """scores that are divided by the root of D - 1 are refused"""
    _refused(answer, divides_by_the_root_of_D_minus_1=_exact, scale=lambda size: (size - 1) ** 0.5)


def test_sum_refused(answer):
    """weights of the right ratio and the wrong sum are refused"""
    _refused(answer, doubles_the_weights=lambda scores, seen: 2 * _exact(scores, seen))


def test_opposite_refused(answer):
    """a mask that is not used, or read the other way, is refused"""
    _refused(answer, ignores_the_mask=lambda scores, seen: scores.softmax(-1))
    _refused(answer, hides_what_may_be_seen=lambda scores, seen: _exact(scores, ~seen))


@hint("In float32 e^-200 is 0. Let the highest score be the hidden one, 200 above the others.")
def test_late_refused(answer):
    """hidden weights set to 0 after the softmax are refused, even if the row is divided again"""
    _refused(answer, hides_after_the_softmax=lambda scores, seen: scores.softmax(-1) * seen)
    _refused(answer, hides_after_the_softmax_and_divides_by_what_is_left=_divided)


def test_lonely_refused(answer):
    """an average, or NaN, for a query without a visible key is refused"""
    nan = functools.partial(_filled, fill=-math.inf)
    _refused(answer, averages_where_nothing_is_seen=_filled, gives_NaN_where_nothing_is_seen=nan)


def test_axis_refused(answer):
    """a softmax over the queries is refused"""
    _refused(answer, takes_the_softmax_over_the_queries=functools.partial(_exact, axis=-2))


def test_soft_refused(answer):
    """hidden scores that are 0 are refused"""
    _refused(answer, fills_hidden_scores_with_0=functools.partial(_barely, fill=0.0))


@hint("e^-20 is not 0. Check that hidden weights are exactly 0, without a tolerance.")
def test_low_refused(answer):
    """hidden scores that are only low are refused"""
    _refused(answer, fills_hidden_scores_with_minus_20=functools.partial(_barely, fill=-20.0))


def test_gradient_refused(answer):
    """a gradient that is NaN is refused, even if the weights are right"""
    _refused(answer, repairs_NaN_weights_later=_nan_repaired)


MISTAKES = r"""
right weights refused
    [[0.25, 0.75, 0.0] => [[*scores[:2].softmax(0).tolist(), 0.0]
    torch.allclose(weights, by_hand, atol=1e-3) => torch.equal(weights, by_hand)
    says: for weights that are right
    Two right ways round differently: compare with a tolerance, as `torch.allclose` does. And
    are your own numbers right? Work them out once more with a pencil.
NaN passes
    torch.allclose(weights, by_hand, atol=1e-3) => not ((weights - by_hand).abs() > 1e-3).any()
     and bool(slope.isfinite().all()) =>
    says: gives NaN where nothing is seen
    Whatever is compared with NaN gives False, so `not difference > bound` holds for it. Ask
    whether the difference is *below* the bound, or use `torch.allclose`.
no query without a visible key
    (2, 4) => (1, 4)
    , [False, False, False] =>
    , [0.0, 0.0, 0.0] =>
    says: averages where nothing is seen
    Put in a query whose row of the mask is all False: three of the faults show only there.
no scale shows
    torch.full((2, 4), 0.5 => torch.full((2, 1), 1.0
    expand(3, 4) => expand(3, 1)
    says: does not divide
    With D = 1 no scale can be wrong: the root of 1 is 1. Nor does one show where weights are 0
    and 1 whatever divides the scores, or under a wide tolerance. Take D = 4, and scores a
    little apart, such as ln 3.
all scores equal
    (2, 4), 0.5 => (2, 4), 0.0
    [0.25, 0.75, 0.0] => [0.5, 0.5, 0.0]
    says: averages what may be seen
    Equal scores stay equal whatever they are divided by. The scores that are seen have to
    differ, by a number whose weights you know: ln 3 gives 1/4 and 3/4.
the hidden score is not high enough
    [-200.0, math.log(3) - 200, 0.0] => [0.0, math.log(3), 50.0]
    return torch => return not weights[~mask].any() and torch
    says: divides by what is left
    A number as small as e^-50 can still be divided by. Only where nothing is left of the
    others, below e^-104 in float32, does this way fail: 200 is enough.
hidden weights that are only small
    [-200.0, math.log(3) - 200, 0.0] => [0.0, math.log(3), 200.0]
    says: fills hidden scores with minus 20
    Under a tolerance e^-20 is 0. Check that hidden weights *are* 0, or let the scores
    that are seen be lower still, -200 for example.
the hidden key is quiet
    [-200.0, math.log(3) - 200, 0.0] => [100.0, math.log(3) + 100, 0.0]
    says: hides after the softmax
    A hidden key that would get no weight anyway does not show whether it is hidden. Give it the
    highest score of all.
the weights alone
     and bool(slope.isfinite().all()) =>
    says: repairs NaN weights later
    The weights can be right and the way back NaN. Ask for the gradient of `q`.
sums and zeros
    (weights, by_hand => (weights.sum(-1), by_hand.sum(-1)
    return torch => return not weights[~mask].any() and torch
    says: averages what may be seen
    Rows that sum to 1 and hidden zeros are needed, but not enough: any distribution over what
    is seen has both. Compare with weights that you know.
zeros alone
    torch.allclose(weights, by_hand, atol=1e-3) => not weights[~mask].any()
    says: takes the softmax over the queries
    A hidden weight of 0 tells nothing of those that are seen. Compare all with weights that you
    know.
nothing to hide
    [True, True, False], [False, False, False] => [True, True, True], [True, True, True]
    0.0]) => -400.0])
    [0.0, 0.0, 0.0] => [0.25, 0.75, 0.0]
    says: ignores the mask
    Where everything is seen, no mask can be wrong. Hide a key, and from one query all of them.
a bound that lets a near scale pass
    atol=1e-3 => atol=0.1
    says: divides by the root of D minus 1
    Divided by √3 in place of √4, a weight of 0.25 becomes 0.22. Rounding is about 0.00001: a
    tolerance of 0.001 is wide enough.
the ratio alone
    (weights, by_hand => (weights / weights[0, 0] / 4, by_hand
    says: doubles the weights
    Weights of 1/2 and 3/2 have the right ratio as well. Compare each with its number.
a loose bound
    atol=1e-3 => atol=0.5
    says: averages what may be seen
    Weights lie between 0 and 1: a bound of 0.5 lets nearly all pass. Rounding is about 0.00001.
"""

HARMLESS = r"""
… => ….float()…
    all numbers are in float32 already
… => ….detach()…
    nothing but q is asked for its gradient
… => …1.0])
    the hidden score is still the highest
… => q = torch.full((1, 4), …)
    one query under two masks is two
… => … = torch.autograd.grad(weights.mean(), q)
    a sixth of NaN is NaN
… => return torch.allclose(by_hand, weights, …
    the order of the two makes no difference here
… => return torch.allclose(weights, by_hand) and …
    rounding stays below 0.00001 here
… => …atol=0.0…
    another bound between rounding and the faults
… => … and slope.isfinite().all()
    a tensor of one True is true
"""
