"""11.4 read a key from outside (★★☆, 7 minutes)

Design an experiment. You can't look into a unit, but you can give it any token: `unit(x)` returns
its activity, relu(key · x + threshold), for an `x` of shape `(d_model,)`. Write `my_key(unit,
d_model)`, which finds out the key and the threshold, and returns `(key, threshold)`.

<details><summary>The rule in detail</summary>

The threshold is added, like the bias that it is, so a unit with a threshold of −1000 is hard to
activate. The key has at least one number that is not 0. `unit` computes in float64, it can be
differentiated, and it may be called as often as you like. The numbers that you find have to be
right to 0.0001.

</details>

Hint: While the unit is silent, a small change of the token shows nothing. So look for a token that
activates it first: if one doesn't, try the opposite direction, and then go further out.

Hint: Where a unit is active it is a linear map plus a constant. What is its slope in x? And once
you know the key, which single number is still missing?
"""

from weakref import WeakKeyDictionary

import torch

from tinytf_course.expect import expect, numbers, same, short
from tinytf_course.words import described


def my_key(unit, d_model):
    """Return the key, (d_model,), and the threshold, a number, of a unit that can only be called.

    unit(x) is relu(key · x + threshold) for an x of shape (d_model,).
    """
    x = torch.randn(d_model, dtype=torch.float64)
    while unit(x) == 0:
        x = -2 * x  # twice as far, on the other side
    (key,) = torch.autograd.grad(unit(x.requires_grad_()), x)
    return key, unit(x) - key @ x


_NUMBERS = WeakKeyDictionary()  # the key and the threshold of each unit: none holds its own


class _Unit:
    """A unit that can only be called."""

    def __call__(self, x):
        key, threshold = _NUMBERS[self]
        return torch.relu((x * key).sum(-1) + threshold)


def _finds(answer, key, threshold, note=""):
    key = torch.as_tensor(key, dtype=torch.float64)
    where = f"for a unit with the key {short(key)} and the threshold {threshold:g}"
    unit = _Unit()
    _NUMBERS[unit] = key, threshold
    got = answer(unit, len(key))
    kind = f"{where}, you return {described(got)}, expected (key, threshold)"
    expect(isinstance(got, tuple | list) and len(got) == 2, kind)
    same(got[0], key, f"{where}, as the key", 1e-4, note)
    same(got[1], threshold, f"{where}, as the threshold", 1e-4, note)


def test_one_feature(answer):
    """a unit that reads one feature, and is active at 0"""
    _finds(answer, [2.0], 1.0)
    _finds(answer, [-3.0], 0.5)


def test_silent_at_zero(answer):
    """a unit that is silent at 0"""
    _finds(answer, [2.0], -1.0, "At x=[0] its activity is 0, as that of many other units.")
    _finds(answer, [-2.0], -1.0)
    _finds(answer, [3.0], 0.0)


def test_several_features(answer):
    """a unit that reads several features, some of them not at all"""
    _finds(answer, [1.0, -1.0], 0.5)
    _finds(answer, [0.0, 2.0, 0.0], -0.5)
    for seed in range(4):
        _finds(answer, numbers(6, seed=seed, scale=2), float(seed) - 1.5)


def test_silent_along_a_line(answer):
    """a unit that stays silent along some lines, however far out"""
    note = "There are lines along which it is silent everywhere: try other directions."
    _finds(answer, [1.0, -1.0], -1.0, note)
    _finds(answer, [1.0, -2.0, 1.0], -1.0, note)
    _finds(answer, [1.0, 2.0, 1.0], -1.0)


def test_hard_to_activate(answer):
    """a unit that is silent for most tokens"""
    note = "Only tokens that are far out activate it."
    _finds(answer, [0.5], -1000.0, note)
    _finds(answer, [1.0, -1.0, 0.25], -1000.0, note)
    _finds(answer, [-0.01, 0.02], -50.0, note)


def test_always_on(answer):
    """a unit that is active for most tokens"""
    _finds(answer, [0.5, -1.0], 1000.0)


def test_digits(answer):
    """a threshold of any size, right to 0.0001"""
    note = "If you start very far out: float64 has no digits left for it there."
    for key, threshold in zip(([0.3], [3.0], [0.7, 3.0]), (0.1, -0.37, -0.0123), strict=True):
        _finds(answer, key, threshold, note)
    for i, threshold in enumerate(numbers(4, seed=5).tolist()):
        _finds(answer, numbers(3, seed=20 + i, scale=2), threshold, note)


MISTAKES = r"""
a step along each axis from 0
    … =>
        zero, axes = torch.zeros(d_model, dtype=torch.float64), torch.eye(d_model)
        return torch.stack([unit(axis) - unit(zero) for axis in axes]), unit(zero)
    says: as the key, you get [-0.5], expected [-3]
    A step against the key can make the unit silent, and then the change is cut off at 0. Begin
    where the unit stays active.
measured where it is silent
    while unit(x) == 0: => while False:
    says: Only tokens that are far out activate it
    A silent unit has slope 0 everywhere, whatever its key is. Look for a token that activates
    it first.
one attempt on the other side
    while unit(x) == 0: => if unit(x) == 0:
    says: Only tokens that are far out activate it
    With a threshold of −1000 neither side is active near 0. Go further out until it is.
one line only
    torch.randn(d_model, => torch.ones(d_model,
    says: There are lines along which it is silent
    A unit whose key adds up to 0 is silent all along x=(1, …, 1). A random direction is at a
    right angle to no key.
too far out
    torch.randn(d_model, => 1e15 * torch.randn(d_model,
    says: float64 has no digits left
    float64 has 16 digits. Where key · x is near 1e15, they end before those of the threshold
    begin. Start near 0, and go out only as far as it takes.
the activity at 0 for the threshold
    unit(x) - key @ x => unit(torch.zeros_like(x))
    says: At x=[0] its activity is 0
    At 0 the activity is the threshold only if that is not negative. Take the threshold from a
    token at which the unit is active: activity − key · x.
the activity for the threshold
    unit(x) - key @ x => unit(x)
    says: and the threshold 1, as the threshold
    The activity is key · x + threshold: subtract key · x.
the threshold as a bar
    unit(x) - key @ x => key @ x - unit(x)
    says: as the threshold, you get -1, expected 1
    It is added to key · x, so a unit that is hard to activate has a negative threshold.
the key at length 1
    return key, => return key / key.norm(),
    says: as the key, you get [1], expected [2]
    The direction of a key says which tokens it matches, and its length how strongly the unit
    responds to them. Nothing divides by it.
"""

HARMLESS = r"""
… => x = torch.randn(d_model)
    any token to begin with, from which the unit computes in float64
… => x = -3 * x
    further out, and on the other side
… => ….float()…
    rounded far below what is asked
… => …x.detach()…
    the threshold that is returned needs no gradient
… => …x @ key)
    the product of two vectors
"""
