"""20.4 the temperature for a wished entropy (★★☆, 12 minutes)

Write `my_temperature(logits, wished)`, which returns the temperature T, between 0.01 and 100, at
which `softmax(logits / T)` has an entropy of `wished` nats. The entropy must be right to 0.001
nats.

Hint: The entropy only rises with T. Try the middle of the interval, measure the entropy there, and
keep the half in which the answer must lie. Fifty rounds are plenty.
"""

import math

import torch

from tinytf_course.expect import expect, numbers, tensor
from tinytf_course.grading import hint
from tinytf_course.words import short


def my_temperature(logits, wished):
    """Find the temperature at which softmax(logits / T) has an entropy of `wished` nats.

    logits is (V,); the temperature sought lies between 0.01 and 100. Returns a number.
    """
    low, high = 0.01, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        log_p = (logits.double() / middle).log_softmax(-1)
        if -(log_p.exp() * log_p).sum() < wished:
            low = middle  # too sure of itself: warmer
        else:
            high = middle
    return middle


def _nats(z, t):
    log_p = (z.double() / t).log_softmax(-1)
    return float(-(log_p.exp() * log_p).sum())


Z = torch.tensor([2.0, 1.0, 0.0, -3.0])
FIVE = torch.tensor([6.0, 4.5, 4.0, -1.0, -2.0])


def _finds(answer, logits, wished, note=""):
    few = logits.numel() <= 12
    words = f"logits={short(logits, 6)}" if few else f"logits of shape {tuple(logits.shape)}"
    where = f"for {words}, wished={wished:.4g}"
    got = tensor(answer(logits, wished), where)
    expect(got.numel() == 1, f"{where}, the shape is {tuple(got.shape)}, expected one number")
    t = float(got)
    expect(math.isfinite(t) and t > 0, f"{where}, you get T={short(got)}, which is no temperature")
    found = _nats(logits, t)
    message = f"{where}, you get T={t:.4g}, at which the entropy is {found:.4f} nats"
    expect(abs(found - wished) < 1.001e-3, f"{message}, expected {wished:.4f}.{note}")


def _finds_again(answer, logits, t, note=""):
    """The temperature at which we measured the entropy."""
    _finds(answer, logits, _nats(logits, t), f" It is T={t:g} at which it is that.{note}")


def test_cooler(answer):
    """it finds a temperature below 1"""
    _finds(answer, Z, 0.5)


def test_warmer(answer):
    """it finds one above 1"""
    _finds(answer, Z, 1.3, " Above 1 the entropy changes slowly, and the search has far to go.")


def test_other_logits(answer):
    """for other logits it finds another"""
    _finds(answer, FIVE, 1.0)


@hint("The statement names the interval: search all of it, from 0.01 to 100.")
def test_to_the_ends(answer):
    """the temperature may lie anywhere between 0.01 and 100"""
    small = torch.tensor([0.02, 0.0])
    _finds_again(answer, small, 0.5)
    _finds_again(answer, small, 0.05)
    _finds_again(answer, small, 0.012)
    large = torch.tensor([300.0, 0.0])
    _finds_again(answer, large, 70.0)
    _finds_again(answer, large, 99.5)


def test_to_a_thousandth(answer):
    """the entropy is right to 0.001 nats, also where it rises steeply"""
    steep = torch.tensor([0.1, 0.096, 0.0, -0.1])
    for t in (0.011, 0.02, 0.037, 1.0):
        _finds_again(answer, steep, t)
    for t in (0.3, 3.0, 31.0, 95.0):
        _finds_again(answer, numbers(50, seed=1, scale=2 + 6 * t), t)
    _finds_again(answer, numbers(2000, seed=2), 1.5)


@hint("`log_softmax` neither overflows nor takes the logarithm of 0.")
def test_extreme(answer):
    """large logits, unlikely tokens, and ties are no trouble"""
    note = " `exp` of such logits is infinite: subtract the largest first, as `softmax` does."
    _finds_again(answer, torch.tensor([10002.0, 10001.0, 10000.0]), 2.0, note)
    note = " The last token's probability rounds to 0, and 0 · log 0 is NaN."
    _finds_again(answer, torch.tensor([2.0, 1.0, 0.0, -150.0]), 0.8, note)
    _finds_again(answer, torch.tensor([1.0, 3.0, 3.0, 0.0]), 0.7, " Two tokens tie.")
    _finds_again(answer, torch.tensor([-5.0, -3.0, -4.0], dtype=torch.float64), 1.7)


MISTAKES = r"""
entropy in bits
    .sum() < wished => .sum() / math.log(2) < wished
    says: at which the entropy is 0.3
    `log2` counts bits; a nat is 1.44 of them. Use the natural logarithm.
multiplies by T
    / middle => * middle
    < wished => > wished
    says: at which the entropy is 1.1167
    The logits were multiplied by T: this finds 1 / T. Divide them.
the wrong half
    < wished => > wished
    says: you get T=100, at which
    Too little entropy asks for a higher temperature: keep the upper half then.
too few rounds
    range(60) => range(10)
    says: you get T=0.4982
    Ten halvings of 100 leave 0.1 of uncertainty in T. Go on.
returns the entropy
    return middle => return -(log_p.exp() * log_p).sum().item()
    says: you get T=0.5, at which
    You return the entropy that was reached; asked is the temperature that reaches it.
in proportion
    … =>
        log_p = logits.double().log_softmax(-1)
        return wished / -(log_p.exp() * log_p).sum().item()
    says: at which the entropy is 0.
    Entropy does not grow in proportion to T: its slope, Var(z) / T³, changes. Search.
never above 1
    0.01, 100.0 => 0.01, 1.0
    says: Above 1 the entropy changes slowly
    The search ended at 1. The temperature may lie anywhere up to 100.
never below 0.1
    0.01, 100.0 => 0.1, 100.0
    says: you get T=0.1
    The temperature may lie anywhere from 0.01 on.
never above 10
    0.01, 100.0 => 0.01, 10.0
    says: you get T=10
    The temperature may lie anywhere up to 100.
a few rounds too few
    range(60) => range(16)
    says: It is T=0.0
    Where logits lie close together, T is small and has to be known more exactly. Every round
    halves the interval: take more.
the exponentials overflow
    log_p = (logits.double() / middle).log_softmax(-1) =>
        e = (logits / middle).exp()
        log_p = (e / e.sum()).log()
    says: subtract the largest first
    exp(89) is too large for float32. `softmax` and `log_softmax` subtract the largest logit
    first.
0 times log 0
    logits.double() / middle).log_softmax(-1) => logits / middle).softmax(-1).log()
    says: and 0 · log 0 is NaN
    A token whose probability rounds to 0 adds nothing to the entropy, but `p * p.log()` makes
    it 0 · -inf. Take `log_softmax`, or leave such tokens out.
"""

HARMLESS = r"""
for _ in range(60): => for _ in range(…):
    the interval is below 0.001 in T long before
return middle => return low
    the interval is below 0.001 in T long before
return middle => return high
    the interval is below 0.001 in T long before
low, high = (0.01, 100.0) => low, high = (0.0, 100.0)
    a wider interval takes a round more, and there are plenty
low, high = (0.01, 100.0) => low, high = (-0.01, 100.0)
    a wider interval takes a round more, and there are plenty
low, high = (0.01, 100.0) => low, high = (0.01, 200.0)
    a wider interval takes a round more, and there are plenty
low, high = (0.01, 100.0) => low, high = (0.01, 101.0)
    a wider interval takes a round more, and there are plenty
… => if -(log_p.exp() * log_p).sum() <= wished:
    one round of sixty goes the other way
… => …log_softmax(-0)
    logits have one axis
… => log_p = (logits / middle).log_softmax(-1)
    right to 0.001 nats in float32, too
"""
