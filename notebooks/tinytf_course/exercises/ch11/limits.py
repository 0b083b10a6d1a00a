"""11.1 keep every feature within limits (★☆☆, 6 minutes)

Design a network by hand: write `my_limits(d_model, low, high)`, which returns weights `(w_1, b_1,
w_2, b_2)` for the equation above. Each feature of the output has to be the same feature of the
token, but no less than `low` and no more than `high`. With the limits 0 and 1, for example, the
token (−3, 0.25, 7) becomes (0, 0.25, 1).

<details><summary>The rule in detail</summary>

Tokens are rows, as in the equation: with d_ff units, `w_1` is `(d_model, d_ff)`, `b_1` `(d_ff,)`,
`w_2` `(d_ff, d_model)` and `b_2` `(d_model,)`. Two units for each feature are enough, but any
number will do, and any weights that keep the limits are right. `low` is less than `high`, and each
may be negative.

</details>

Hint: Draw relu(x − low) over x: it is 0 up to `low`, and then rises. Draw relu(x − high) below it.
What is left if you subtract the second from the first?

Hint: The result is low + relu(x − low) − relu(x − high). The limits belong in the biases. In the
matrices, `torch.eye(d_model)` connects each feature with a unit of its own.
"""

import torch

from tinytf_course.evidence import record
from tinytf_course.exercises.ch11._shared import shaped, weights_of
from tinytf_course.expect import numbers, same, short


def my_limits(d_model, low, high):
    """Return weights (w_1, b_1, w_2, b_2) with which the network keeps features within limits.

    Each feature of the output is that of the token, but at least low and at most high. w_1 is
    (d_model, d_ff), b_1 (d_ff,), w_2 (d_ff, d_model), b_2 (d_model,); d_ff is for you to choose.
    """
    each = torch.eye(d_model)
    w_1 = torch.cat([each, each], dim=1)  # two units read each feature
    b_1 = torch.tensor([-low] * d_model + [-high] * d_model)  # active above low, and above high
    w_2 = torch.cat([each, -each])  # above high, the second takes away what the first adds
    b_2 = torch.full((d_model,), low)
    return w_1, b_1, w_2, b_2


_NAMES = ("w_1", "b_1", "w_2", "b_2")


def _keeps(answer, low, high, *tokens, note=""):
    """Expect the features of each token within the limits."""
    x = torch.as_tensor(tokens, dtype=torch.float64)
    c = x.size(1)
    where = f"for d_model={c}, low={low:g}, high={high:g}"
    weights = weights_of(answer(c, low, high), _NAMES, where)
    units = weights[1].numel()
    shapes = ((c, units), (units,), (units, c), (c,))
    shaped(weights, _NAMES, shapes, f"{where}, where `b_1` is for {units} units")
    w_1, b_1, w_2, b_2 = weights
    out = torch.relu(x @ w_1 + b_1) @ w_2 + b_2
    record(out)
    same(out, x.clamp(low, high), f"{where} and x={short(x.float())}", 1e-4, note)


def test_between(answer):
    """a feature between the limits stays as it is"""
    _keeps(answer, 0.0, 1.0, [0.25])
    _keeps(answer, -2.0, 3.0, [0.5])


def test_below(answer):
    """one below the lower limit becomes the lower limit"""
    _keeps(answer, 0.0, 1.0, [-3.0])
    _keeps(answer, 2.0, 3.0, [-1.0], note="Even where no unit is active, the output is 2.")


def test_above(answer):
    """one above the upper limit becomes the upper limit"""
    _keeps(answer, 0.0, 1.0, [7.0])
    _keeps(answer, -5.0, -1.0, [4.0])


def test_each_feature(answer):
    """each feature is kept within the limits by itself"""
    _keeps(answer, 0.0, 1.0, [-3.0, 0.25, 7.0])
    for c in (2, 5):
        _keeps(answer, -1.5, 0.5, *numbers(4, c, seed=c, scale=3).tolist())


def test_far(answer):
    """numbers may be far from 0"""
    _keeps(answer, -100.0, 250.0, [-1000.0], [-99.9], [249.9], [1000.0])
    _keeps(answer, -100.0, 250.0, [-1e5], [1e5])


MISTAKES = r"""
no upper limit
    -each => 0 * each
    says: x=[[7]], you get [[7]], expected [[1]]
    One unit for each feature gives the lower limit only. A second one has to take away whatever
    is above `high`.
the units added
    -each => each
    says: x=[[7]], you get [[13]]
    Above `high` both units are active, and the sum rises twice as fast. It takes the difference.
the lower limit not added
    torch.full((d_model,), low) => torch.zeros(d_model)
    says: Even where no unit is active
    Where no unit is active the output is b_2, so b_2 has to be `low`.
the limits added instead of subtracted
    [-low] => [low]
    [-high] => [high]
    says: x=[[7]], you get [[-1]], expected [[1]]
    A unit is to be active where x is above the limit. The sum is then x − limit, so the bias is
    −limit.
every unit reads every feature
    each = torch.eye(d_model) => each = torch.ones(d_model, d_model)
    says: x=[[-3, 0.25, 7]]
    A column of ones adds all features up. Each unit has to read one feature and write to the
    same one: the columns of `torch.eye`.
biases in another order than the units
    [-low] * d_model + [-high] * d_model => [-low, -high] * d_model
    says: x=[[-3, 0.25, 7]]
    `b_1` has a number for each column of `w_1`: here all units for `low` come first, and then
    all for `high`.
the distance for the upper limit
    [-high] => [low - high]
    says: low=-5, high=-1 and x=[[4]]
    Each unit looks at the feature itself, and not at what the other unit has left of it: the
    second one becomes active at `high`.
as nn.Linear stores them
    return w_1, b_1, w_2, b_2 => return w_1.T, b_1, w_2.T, b_2
    says: `w_1` has shape (2, 1), expected (1, 2)
    `nn.Linear` stores its matrix as (out, in). In the equation tokens are rows, and the matrices
    are (in, out).
biases last
    return w_1, b_1, w_2, b_2 => return w_1, w_2, b_1, b_2
    says: `b_1` has shape
    The order is (w_1, b_1, w_2, b_2): first everything on the way into the units, and then the
    way back.
"""
