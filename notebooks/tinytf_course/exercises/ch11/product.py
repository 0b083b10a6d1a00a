"""11.3 two units that multiply (★★☆, 7 minutes)

Write `my_product(d_model, i, j, k)`, which returns weights `(w_1, w_3, w_2)` for `SwiGLU(d_model,
2)`, a network with two units. Feature k of its output has to be feature i of the input times
feature j, and every other feature 0.

<details><summary>The rule in detail</summary>

The shapes are those of `nn.Linear`, (out, in): `w_1` and `w_3` are `(2, d_model)`, and `w_2` is
`(d_model, 2)`. The indices i, j and k may be equal. Any weights that do this are right.

</details>

Hint: Let feature i be the gate of one unit and its negative the gate of the other. What should both
units let pass, and how must `w_2` combine them?
"""

import torch
from torch.nn import functional as F

from tinytf_course.evidence import record
from tinytf_course.exercises.ch11._shared import shaped, weights_of
from tinytf_course.expect import numbers, same, short


def my_product(d_model, i, j, k):
    """Return weights (w_1, w_3, w_2) with which SwiGLU(d_model, 2) multiplies two features.

    Feature k of the output is feature i of the input times its feature j; all others are 0. The
    weights are (2, d_model), (2, d_model) and (d_model, 2), as `nn.Linear` stores them.
    """
    w_1, w_3, w_2 = torch.zeros(2, d_model), torch.zeros(2, d_model), torch.zeros(d_model, 2)
    w_1[0, i], w_1[1, i] = 1.0, -1.0  # the gates: feature i and its negative
    w_3[:, j] = 1.0  # what may pass: feature j, in both units
    w_2[k, 0], w_2[k, 1] = 1.0, -1.0  # the difference of the units
    return w_1, w_3, w_2


_NAMES = ("w_1", "w_3", "w_2")


def _run(answer, x, *places):
    """What the network makes of x with the answer's weights, in float64."""
    c = x.size(1)
    where = f"for d_model={c}, i={places[0]}, j={places[1]}, k={places[2]}"
    weights = weights_of(answer(c, *places), _NAMES, where)
    shaped(weights, _NAMES, ((2, c), (2, c), (c, 2)), where, ": (out, in)")
    w_1, w_3, w_2 = weights
    out = F.linear(F.silu(F.linear(x, w_1)) * F.linear(x, w_3), w_2)
    record(out)
    return out, where


def _multiplies(answer, x, i, j, k, note=""):
    """Expect the product of features i and j of each row of x in place k, and zeros elsewhere."""
    x = torch.as_tensor(x, dtype=torch.float64)
    right = torch.zeros_like(x)
    right[:, k] = x[:, i] * x[:, j]
    out, where = _run(answer, x, i, j, k)
    same(out, right, f"{where} and x={short(x.float())}", 1e-5, note)


def test_squares(answer):
    """a word of one feature is squared"""
    _multiplies(answer, [[3.0]], 0, 0, 0, "3 times 3.")
    _multiplies(answer, [[-3.0]], 0, 0, 0, "-3 times -3.")


def test_pair(answer):
    """two features are multiplied, whatever their signs"""
    for a, b in ((2.0, 3.0), (-2.0, 3.0), (2.0, -3.0), (-2.0, -3.0), (0.0, 3.0)):
        _multiplies(answer, [[a, b]], 0, 1, 0, f"Feature 0 is {a:g}, feature 1 {b:g}.")


def test_places(answer):
    """the product comes to its place, and nothing to the others"""
    _multiplies(answer, [[2.0, 3.0, 5.0]], 0, 1, 2)
    for seed, (i, j, k) in enumerate(((2, 0, 3), (3, 1, 1), (1, 3, 1), (2, 2, 0), (0, 0, 0))):
        _multiplies(answer, numbers(3, 4, seed=seed, dtype=torch.float64), i, j, k)


def test_far_and_near(answer):
    """numbers may be tiny, or far from 0"""
    for size in (0.01, 50.0, 1000.0):
        x = size * numbers(2, 3, seed=7, dtype=torch.float64)
        i, j = 1, 2
        out, where = _run(answer, x, i, j, 0)
        note = "silu(z) - silu(-z) is z, for any z."
        where = f"{where} and numbers around {size:g}, as a share of x_i · x_j"
        same(out[:, 0] / (x[:, i] * x[:, j]), [1.0, 1.0], where, 1e-5, note)


MISTAKES = r"""
one unit
    w_1[0, i], w_1[1, i] = 1.0, -1.0 => w_1[0, i] = 1.0
    says: you get [[8.573]]
    silu(3) is 2.86, a little less than 3. The second unit, whose gate is −x_i, has what is
    missing.
the units added
    w_2[k, 1] = 1.0, -1.0 => w_2[k, 1] = 1.0, 1.0
    says: you get [[8.146]]
    silu(z) + silu(−z) is close to |z|, so the sign is lost. It takes the difference, which is
    z.
neither gate turned round
    w_1[1, i] = 1.0, -1.0 => w_1[1, i] = 1.0, 1.0
    says: you get [[0]], expected [[9]]
    Two units that do the same cancel if one is subtracted from the other: one gate must be
    −x_i.
half of each
    w_2[k, 1] = 1.0, -1.0 => w_2[k, 1] = 0.5, -0.5
    says: you get [[4.5]]
    silu(z) − silu(−z) is z already; no mean is taken.
the gate's feature passes
    w_3[:, j] => w_3[:, i]
    says: Feature 0 is 2, feature 1 3
    That is the square of feature i. Feature j is what the gate has to let through.
written where it was read
    w_2[k, 0], w_2[k, 1] => w_2[i, 0], w_2[i, 1]
    says: for d_model=3, i=0, j=1, k=2
    Row k of w_2 writes feature k.
written everywhere
    w_2[k, 0], w_2[k, 1] => w_2[:, 0], w_2[:, 1]
    says: you get [[6, 6]]
    Every row of w_2 writes a feature, and all but row k must write 0.
transposed
    return w_1, w_3, w_2 => return w_1.T, w_3.T, w_2.T
    says: (out, in)
    `nn.Linear` stores its matrix as (out, in): a unit is a row of w_1 and w_3, and a column of
    w_2.
in the order of their numbers
    return w_1, w_3, w_2 => return w_1, w_2, w_3
    says: `w_3` has shape (1, 2), expected (2, 1)
    The order is (w_1, w_3, w_2): the two ways in, then the way back.
small gates, as if silu were straight
    w_1[0, i], w_1[1, i] = 1.0, -1.0 => w_1[0, i] = 0.001
    w_2[k, 0], w_2[k, 1] = 1.0, -1.0 => w_2[k, 0] = 2000.0
    says: you get [[9.014]]
    Near 0, silu(z) is about z / 2, but only near 0.
"""
