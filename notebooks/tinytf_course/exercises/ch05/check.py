r"""05.3 a check for attention weights (★★★, 15 minutes)

Design a check before the function itself is written. `my_check(weights_of)` calls the function it
is given as `weights_of(q, k, mask)`, with a `q`, `k` and `mask` of your choice, and returns True if
the attention weights are right and their gradients finite, and False otherwise. Choose numbers
whose weights you know without a computer.

<details><summary>What has to be rejected</summary>

Right functions may round differently, and all of them must be accepted. Reject a function that

* averages what may be attended to, whatever the scores;
* does not divide the scores by $\sqrt{d_k}$, or divides them by $d_k$;
* takes the softmax over the queries;
* ignores the mask, or hides what may be attended to;
* gives hidden scores the value 0, or -20;
* sets the hidden weights to 0 after the softmax, with or without dividing by what is left;
* gives an average, or NaN, to a row without a visible key;
* repairs this NaN only at the end, so that the weights are right and the gradient is NaN.

</details>

Hint: Two queries and three keys are enough: let one query attend to two of the keys and the other
to none. If two scores differ by ln 3, their weights are 1/4 and 3/4. Take D = 4, because with D = 1
the scale makes no difference.

Hint: Let the mask hide the highest score, and make it 200 higher than the others, so that nothing
is left of them unless it is hidden well. For the gradient, give `q` `requires_grad=True` and call
`torch.autograd.grad(weights.sum(), q)`.
"""

import math

import torch

from tinytf_course.expect import expect, record, short


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


def test_right_pass(answer):
    """right weights pass, however they are computed and rounded"""
    for says, weights_of in _RIGHT.items():
        _verdict(answer, weights_of, True, says)


def _averaged(q, k, mask=None):
    return _plain(0 * q, k, mask)


def test_scale_refused(answer):
    """scores that do not count, or are not divided by the root of D, are refused"""
    _refused(answer, averages_what_may_be_seen=_averaged)
    _refused(answer, does_not_divide=_filled(scale=lambda size: 1))
    _refused(answer, divides_by_D=_filled(scale=lambda size: size))


def test_opposite_refused(answer):
    """a mask that is not used, or read the other way, is refused"""
    _refused(answer, ignores_the_mask=lambda q, k, mask=None: _plain(q, k))
    _refused(answer, hides_what_may_be_seen=_filled(opposite=True))


def test_late_refused(answer):
    """hidden weights set to 0 after the softmax are refused, even if the row is divided again"""
    _refused(answer, hides_after_the_softmax=_after)
    _refused(answer, hides_after_the_softmax_and_divides_by_what_is_left=_divided)


def test_lonely_refused(answer):
    """an average, or NaN, for a query without a visible key is refused"""
    nan, mean = _filled(-math.inf, zeros=False), _filled(zeros=False)
    _refused(answer, averages_where_nothing_is_seen=mean)
    _refused(answer, gives_NaN_where_nothing_is_seen=nan)


def test_axis_refused(answer):
    """a softmax over the queries is refused"""
    _refused(answer, takes_the_softmax_over_the_queries=_filled(axis=-2))


def test_soft_refused(answer):
    """hidden scores that are 0 or only low are refused"""
    _refused(answer, fills_hidden_scores_with_0=_barely(0.0))
    _refused(answer, fills_hidden_scores_with_minus_20=_barely(-20.0))


def test_gradient_refused(answer):
    """a gradient that is NaN is refused, even if the weights are right"""
    _refused(answer, repairs_NaN_weights_later=_nan_repaired)


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


MISTAKES = r"""
everything passes
    … =>
        return True
    says: fills hidden scores with 0
    A check that can't fail says nothing.
right weights refused
    … =>
        return _checks(equal=torch.equal)(weights_of)
    says: for weights that are right
    Two right ways round differently: compare with a tolerance, as `torch.allclose` does. And
    are your own numbers right? Work them out once more with a pencil.
NaN passes
    … =>
        return _checks(equal=lambda w, e: not ((w - e).abs() > 1e-3).any(), finite=False)(weights_of)
    says: gives NaN where nothing is seen
    Whatever is compared with NaN gives False, so `not difference > bound` holds for it. Ask
    whether the difference is *below* the bound, or use `torch.allclose`.
nobody who sees nothing
    … =>
        return _checks(q=_Q[:1], mask=_MASK[:1], by_hand=_BY_HAND[:1])(weights_of)
    says: averages where nothing is seen
    Put in a query whose row of the mask is all False: three of the faults show only there.
no scale shows
    … =>
        return _checks(q=torch.ones(2, 1))(weights_of)
    says: does not divide
    With D = 1 no scale can be wrong: the root of 1 is 1. Nor does one show where weights are 0
    and 1 whatever divides the scores, or under a wide tolerance. Take D = 4, and scores a
    little apart, such as ln 3.
all scores equal
    … =>
        return _checks(q=0 * _Q, by_hand=torch.tensor([[0.5, 0.5, 0], [0, 0, 0]]))(weights_of)
    says: averages what may be seen
    Equal scores stay equal whatever they are divided by. The scores that are seen have to
    differ, by a number whose weights you know: ln 3 gives 1/4 and 3/4.
the hidden score is not high enough
    … =>
        return _checks( scores=(0.0, math.log(3), 50.0), equal=lambda w, e: torch.allclose(w, e, atol=1e-3) and not w[~_MASK].any(), )(weights_of)
    says: divides by what is left
    A number as small as e^-50 can still be divided by. Only where nothing is left of the
    others, below e^-104 in float32, does this way fail: 200 is enough.
hidden weights that are only small
    … =>
        return _checks(scores=(0.0, math.log(3), 50.0))(weights_of)
    says: fills hidden scores with minus 20
    Under a tolerance e^-20 is 0. Ask of hidden weights whether they *are* 0, or let the scores
    that are seen be lower still. (And 50 is not high enough for a hidden score: what is left of
    the others can still be divided by.)
the hidden key is quiet
    … =>
        return _checks(scores=(100.0, math.log(3) + 100, 0.0))(weights_of)
    says: hides after the softmax
    A hidden key that would get no weight anyway does not show whether it is hidden. Give it the
    highest score of all.
the weights alone
    … =>
        return _checks(finite=False)(weights_of)
    says: repairs NaN weights later
    The weights can be right and the way back NaN. Ask for the gradient of `q`.
sums and zeros
    … =>
        q = _Q.clone().requires_grad_()
        weights = weights_of(q, torch.tensor(_SCORES)[:, None].expand(3, 4), _MASK)
        (slope,) = torch.autograd.grad(weights.sum(), q)
        sums = torch.allclose(weights.sum(-1), _MASK.any(-1).float(), atol=1e-3)
        return sums and not weights[~_MASK].any() and bool(slope.isfinite().all())
    says: averages what may be seen
    Rows that sum to 1 and hidden zeros are needed, but not enough: any distribution over what
    is seen has both. Compare with weights that you know.
a loose bound
    … =>
        return _checks( scores=(-30.0, math.log(3) - 30, 0.0), equal=lambda w, e: torch.allclose(w, e, atol=0.5), )(weights_of)
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
    who comes first is nothing here
… => return torch.allclose(weights, by_hand) and …
    rounding stays below 0.00001 here
… => …atol=0.0…
    another bound between rounding and the faults
… => … and slope.isfinite().all()
    a tensor of one True is true
"""
