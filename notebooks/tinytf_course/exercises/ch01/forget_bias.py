r"""01.2 how far open must the forget gate be? (★☆☆, 6 minutes)

Write `my_forget_bias(steps, share)`, which returns the bias that leaves the given `share` of $c$
after `steps` steps, if the forget gate is $\sigma(b)$ at every step and nothing is written. Which
bias leaves a half after 80 words? (In a whole LSTM more arrives than through $c$ alone, because
there is a second path through $h$.)

Hint: Find the gate first: which number, multiplied by itself `steps` times, gives `share`? Then
find the number whose sigmoid is that gate.
"""

import math

from tinytf_course.expect import expect, same, tensor


def my_forget_bias(steps, share):
    """The bias b with which `share` of c is left after `steps` steps, by the forget gate alone.

    The gate is sigmoid(b) at every step and multiplies c; nothing is written. steps is a whole
    number of at least 1, share lies between 0 and 1. Returns a number.
    """
    gate = share ** (1 / steps)
    return math.log(gate / (1 - gate))


def _halved(steps, share):
    """The bias found by halving an interval: what is left rises with it."""
    low, high = -60.0, 60.0
    for _ in range(200):
        middle = (low + high) / 2
        kept = -steps * math.log1p(math.exp(-middle))  # log(sigmoid ** steps)
        low, high = (middle, high) if kept < math.log(share) else (low, middle)
    return round(low, 9) + 0.0


def _left(answer, steps, share, note="", tolerance=1e-6):
    """Compare the answer with the bias that is right."""
    where = f"for steps={steps}, share={share}"
    got = tensor(answer(steps, share), where, "a number")
    expect(got.numel() == 1, f"{where}, the shape is {tuple(got.shape)}, expected one number")
    same(got.reshape(()), _halved(steps, share), where, tolerance, note)


def test_bias_one_step(answer):
    """for one step the gate itself is the share"""
    _left(answer, 1, 0.5, "sigmoid(0) is a half.")
    _left(answer, 1, 0.9, "sigmoid(2.197) is 0.9.")
    _left(answer, 1, 0.2, "A gate less than half open needs a bias below 0.")


def test_bias_more_steps(answer):
    """each step multiplies: what is left after two is the square"""
    _left(answer, 2, 0.25, "A half of a half is a quarter, and sigmoid(0) is a half.")
    _left(answer, 3, 0.5)


def test_bias_far(answer):
    """it holds over many steps, and for little and nearly all"""
    for steps, share in ((20, 0.5), (80, 0.9), (80, 0.001), (1000, 0.99), (5000, 0.5)):
        _left(answer, steps, share, tolerance=1e-3)
    note = "The gate is below 1 by less than a millionth: float32 rounds that away."
    for steps in (10**6, 10**8):
        _left(answer, steps, 0.5, note, tolerance=1e-3)


MISTAKES = r"""
the gate, not its bias
    math.log(gate / (1 - gate)) => gate
    says: sigmoid(0) is a half
    That is how far open the gate has to be. The bias is the number whose sigmoid it is.
one step too few
    / steps => / max(steps - 1, 1)
    says: A half of a half
    The gate closes at every step, the first too: `steps` factors, not steps - 1.
no root
     ** (1 / steps) =>
    says: A half of a half
    That holds for one step. Each further step multiplies by the gate again.
share divided among the steps
    ** (1 / steps) => / steps
    says: A half of a half
    Steps multiply what is left; they take no equal parts of it.
loss divided among the steps
    share ** (1 / steps) => 1 - (1 - share) / steps
    says: A half of a half
    A step takes a share of what is still there, not of what there was at first.
a power, not a root
    (1 / steps) => steps
    says: A half of a half
    That is what is left after `steps` such shares; the share of one step is the root.
sign
    return math => return -math
    says: sigmoid(2.197) is 0.9
    A gate that is more than half open has a bias above 0.
inverse of tanh
    math.log(gate / (1 - gate)) => math.atanh(gate)
    says: sigmoid(0) is a half
    A gate is a sigmoid. Its inverse is log(f / (1 - f)).
a logarithm alone
    gate / (1 - gate) => gate
    says: sigmoid(0) is a half
    That is the logarithm of the gate; the sigmoid's inverse is log(f / (1 - f)).
the gate kept away from 1
    share ** (1 / steps) => min(share ** (1 / steps), 1 - 1e-6)
    says: less than a millionth
    A clamp, as `torch.logit(…, eps=1e-6)` has it, forgets what lies beyond it. Over a million
    steps the gate has to be closer to 1 than that.
"""
