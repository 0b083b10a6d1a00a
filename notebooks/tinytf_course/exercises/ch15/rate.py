"""15.1 a schedule that waits (★☆☆, 10 minutes)

The cosine schedule has to know from the first step when training will end; the schedule called
*warmup-stable-decay* decides late. Write `my_rate(step, lr, warmup, steps, fall)`, its learning
rate at `step`: it rises linearly to `lr` over `warmup` steps, stays there for as long as you like,
and falls linearly to 0 over the last `fall` of the `steps`.

<details><summary>The rule in detail</summary>

Steps are counted from 1: `lr` is reached at step `warmup`, and 0 at step `steps`. Afterwards the
rate is 0. `warmup` and `fall` are at least 1, and together at most `steps`.

</details>

Hint: Three straight lines: the learning rate is the smallest of them, and never below 0.
"""

from tinytf_course.expect import same


def my_rate(step, lr, warmup, steps, fall):
    """The learning rate at `step`, counted from 1: rise, stay, fall, each in a straight line.

    It rises for `warmup` steps to reach lr at step `warmup`, stays there, and falls over the last
    `fall` steps to reach 0 at step `steps`. Afterwards it is 0.
    """
    rise, left = step / warmup, (steps - step) / fall
    return lr * max(0.0, min(1.0, rise, left))


def _rate_is(answer, expected, note, step, lr=0.5, warmup=10, steps=100, fall=20):
    where = f"for step={step}, lr={lr}, warmup={warmup}, steps={steps}, fall={fall}"
    same(answer(step, lr, warmup, steps, fall), expected, where, note=note, tolerance=1e-7)


def test_rises(answer):
    """it rises in a straight line, and reaches lr at the end of the warm-up"""
    _rate_is(answer, 0.05, "The first of ten steps: a tenth of the way.", 1)
    _rate_is(answer, 0.2, "Four tenths of the way.", 4)
    _rate_is(answer, 0.5, "The warm-up ends here.", 10)


def test_stays(answer):
    """it stays at lr until the fall begins"""
    for step in (11, 50, 80):
        _rate_is(answer, 0.5, "The fall begins after step 80.", step)


def test_falls(answer):
    """it falls in a straight line to 0 at the last step"""
    _rate_is(answer, 0.25, "Half of the way down.", 90)
    _rate_is(answer, 0.475, "One of twenty steps down.", 81)
    _rate_is(answer, 0.025, "One step before the last.", 99)
    _rate_is(answer, 0.0, "The last step.", 100)


def test_over(answer):
    """after the last step it is 0, and never negative"""
    for step in (101, 150):
        _rate_is(answer, 0.0, "Training is over.", step)


def test_other_settings(answer):
    """any settings: one step of warm-up, a fall of one step, no plateau between"""
    _rate_is(answer, 0.3, "A warm-up of one step is none.", 1, 0.3, 1, 8, 2)
    _rate_is(answer, 0.3, "A fall of one step.", 7, 0.3, 2, 8, 1)
    _rate_is(answer, 0.0, "A fall of one step.", 8, 0.3, 2, 8, 1)
    for step in range(1, 16):  # rises for 5 steps, stays for none, falls for 7, and it is over
        wanted = 1e-4 * (step / 5 if step <= 5 else max(0, 12 - step) / 7)
        _rate_is(answer, wanted, "There is no plateau here.", step, 1e-4, 5, 12, 7)


MISTAKES = r"""
starts at 0
    step / warmup => (step - 1) / warmup
    says: The first of ten steps
    Steps count from 1. A first step of rate 0 does nothing, and lr comes a step late.
divided in whole numbers
    step / warmup, (steps - step) / fall => step // warmup, (steps - step) // fall
    says: Half of the way down
    `//` rounds down: until the end of the warm-up the rate is 0, and in the fall it is 0 again.
    `/` gives the share of the way.
arrives a step late
    step / warmup => step / (warmup + 1)
    says: The first of ten steps
    Divided by warmup + 1, the rise ends just below lr.
never reaches 0
    (steps - step) / fall => (steps - step + 1) / fall
    says: Half of the way down
    The fall begins a step late, and at the last step something is left of the rate.
negative after the end
    max(0.0, min(1.0, rise, left)) => min(1.0, rise, left)
    says: Training is over
    The falling line goes on below 0, and a negative rate climbs. Keep it at 0.
lr again after the end
    return lr * max(0.0, min(1.0, rise, left)) =>
        return lr * max(0.0, min(1.0, rise, left)) if step <= steps else lr
    says: Training is over
    After the last step the rate springs back to lr.
no plateau
    / fall => / (steps - warmup)
    says: The fall begins after step 80
    It falls from the end of the warm-up on, but the fall takes only the last `fall` steps.
it never falls
    min(1.0, rise, left) => min(1.0, rise)
    says: Half of the way down
    After the warm-up it stays at lr for ever. Over the last `fall` steps it falls to 0.
the fall takes `steps`
    (steps - step) / fall => (steps + fall - step) / fall
    says: Half of the way down
    The fall is part of the `steps`, the last of them: it begins after `steps - fall`.
"""

HARMLESS = r"""
… => rise, left = ((steps - step) / fall, step / warmup)
    the least has no order
"""
