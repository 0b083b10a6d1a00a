"""29.4 repair a probe that has seen the test (★★★, 12 minutes)

The accuracy of this linear probe is too good to be true. It is fitted by least squares to one-hot
classes, with a ridge.

```python
def my_probe(x, y, test_x, ridge):
    mean = torch.cat([x, test_x]).mean(dim=0)
    x = x - mean
    wanted = torch.nn.functional.one_hot(y).to(x)
    weights = torch.linalg.solve(x.T @ x, x.T @ wanted)
    return x @ weights
```

Repair it: `my_probe(x, y, test_x, ridge)` is fitted to states `x` (N, C) of classes `y` (N,) and to
nothing else, and returns the scores (M, classes) of the states `test_x` (M, C). It minimises the
sum of the squared errors plus `ridge` times the sum of the squared weights, and each class has an
offset, to which the ridge does not apply.

<details><summary>The rule in detail</summary>

Classes are numbered from 0 to the largest in `y`, and `ridge` is above 0. The scores are in x's
dtype, and gradients reach `x` and `test_x`.

</details>

Hint: There are four faults: the states that it scores, the states over which it takes the mean, a
forgotten `ridge`, and a missing offset.

Hint: If the mean is subtracted from the states, the best offset is the mean of the one-hot classes,
that is, the classes' shares. The weights solve (xᵀx + ridge · 1) W = xᵀ wanted. Subtract the same
mean from test_x.
"""

import torch

from tinytf_course.expect import agrees, expect, gradients, numbers, same, tensor
from tinytf_course.words import short


def my_probe(x, y, test_x, ridge):
    """Fit a linear probe to states x (N, C) of classes y (N,); score the states test_x (M, C).

    Returns (M, classes).
    """
    wanted = torch.nn.functional.one_hot(y).to(x)
    mean, shares = x.mean(dim=0), wanted.mean(dim=0)
    x = x - mean
    held = ridge * torch.eye(x.size(1)).to(x)
    weights = torch.linalg.solve(x.T @ x + held, x.T @ wanted)
    return (test_x - mean) @ weights + shares


STATES = torch.tensor([[0.0], [2.0], [4.0]])
CLASSES = torch.tensor([0, 0, 1])
_LINE = f"for x={short(STATES)}, y={short(CLASSES)}"


def _least_squares(x, y, test_x, ridge):
    """With a column of ones that is not held down, as one system of equations."""
    wide = x.dtype if x.dtype == torch.float64 else torch.float32
    ones = torch.cat([x, torch.ones_like(x[:, :1])], dim=1).to(wide)
    wanted = torch.stack([(y == k).to(wide) for k in range(int(y.max()) + 1)], dim=1)
    held = torch.diag(torch.tensor([ridge] * x.size(1) + [0.0], dtype=wide))
    weights = torch.linalg.inv(ones.T @ ones + held) @ (ones.T @ wanted)
    asked = torch.cat([test_x, torch.ones_like(test_x[:, :1])], dim=1).to(wide)
    return (asked @ weights).to(x.dtype)


def _fitted_to(y):
    return lambda x, _, test_x, ridge: _least_squares(x, y, test_x, ridge)


def test_p_test_states(answer):
    """it scores the test states"""
    test = torch.tensor([[2.0]])
    where = f"{_LINE}, test_x={short(test)}, ridge=2"
    got = tensor(answer(STATES, CLASSES, test, 2.0), where)
    note = "There is one test state, and there are two classes."
    words = f"the shape is {tuple(got.shape)}, expected (1, 2)"
    expect(got.shape == (1, 2), f"{where}, {words}. {note}")


def test_p_mean(answer):
    """at the mean of the training states, the scores are the classes' shares"""
    test = torch.tensor([[2.0]])
    where = f"{_LINE}, test_x={short(test)}, ridge=2"
    note = "2 is the mean of x. No ridge applies to the offset, so the scores are the shares."
    same(answer(STATES, CLASSES, test, 2.0), [[2 / 3, 1 / 3]], where, 1e-4, note)


def test_p_slope(answer):
    """elsewhere it follows a slope, which the ridge keeps small"""
    test = torch.tensor([[7.0], [2.0]])
    for ridge, score in ((2.0, 1 / 3 + 1.0), (32.0, 1 / 3 + 0.25)):
        where = f"{_LINE}, test_x={short(test)}, ridge={ridge:g}"
        got = tensor(answer(STATES, CLASSES, test, ridge), where)
        note = f"The slope is Σ(x − 2)(y − 1/3) / (Σ(x − 2)² + ridge) = 2 / (8 + {ridge:g})."
        expect(got.dim() == 2 and len(got) == 2, f"{where}, the shape is {tuple(got.shape)}")
        same(got[0, 1], score, f"{where}, for the first state's score of class 1", 1e-4, note)


def test_p_blind(answer):
    """a state's score does not depend on the other test states"""
    test = torch.tensor([[7.0], [2.0]])
    where = f"{_LINE}, ridge=2, for the state 7"
    alone = tensor(answer(STATES, CLASSES, test[:1], 2.0), where)
    beside = tensor(answer(STATES, CLASSES, torch.tensor([[7.0], [900.0]]), 2.0), where)
    expect(alone.shape == (1, 2) and beside.shape == (2, 2), f"{where}, the shapes are wrong")
    note = "The test states must not be used in the fit or in the mean."
    same(beside[0], alone[0], f"{where} beside the state 900", 1e-4, note)


def test_p_many(answer):
    """for many features and classes, for few states and many"""
    cases = [(30, 4, 3, 0.5), (6, 9, 2, 1.0), (12, 3, 5, 20.0), (40, 7, 4, 0.1), (5, 2, 1, 1.0)]
    for seed, (n, c, classes, ridge) in enumerate(cases):
        x = numbers(n, c, seed=seed, shift=0.5, dtype=torch.float64)
        y = torch.arange(n).mul(7).add(seed) % classes
        test = numbers(4, c, seed=seed + 20, dtype=torch.float64)
        agrees(answer, _least_squares, x, y, test, ridge, tolerance=1e-11)
    missing = torch.tensor([0, 3, 3, 0, 1])  # no state has class 2
    x = numbers(5, 2, seed=3, dtype=torch.float64)
    agrees(answer, _least_squares, x, missing, x[:2] + 1, 0.3, tolerance=1e-11)


def test_p_kinds(answer):
    """in float32 too, and exactly in float64"""
    far = numbers(7, 2, seed=8, scale=1e-6, dtype=torch.float64)
    agrees(answer, _least_squares, far, torch.arange(7) % 2, far[:3] * 5, 1e-12, tolerance=1e-7)
    y = torch.arange(8) % 3
    gradients(answer, _fitted_to(y), numbers(8, 2, seed=4), y, numbers(3, 2, seed=5), 0.5)
    x, test = numbers(20, 3, seed=1), numbers(6, 3, seed=2)
    agrees(answer, _least_squares, x, torch.arange(20) % 3, test, 0.7, tolerance=1e-4)


MISTAKES = r"""
scored on its training states
    (test_x - mean) => x
    says: There is one test state
    It scores x, the states to which it was fitted. Score test_x.
the mean has seen the test states
    x.mean(dim=0), => torch.cat([x, test_x]).mean(dim=0),
    says: must not be used
    Take the mean of x alone.
no ridge
    x.T @ x + held => x.T @ x
    says: The slope is
    Add `ridge` to the diagonal of xᵀx.
no offset
    @ weights + shares => @ weights
    says: the scores are the shares
    At the mean state the best guess is the classes' shares, not 0.
the offset is held down
    … =>
        x, test_x = (torch.cat([s, torch.ones_like(s[:, :1])], dim=1) for s in (x, test_x))
        wanted = torch.nn.functional.one_hot(y).to(x)
        held = ridge * torch.eye(x.size(1)).to(x)
        return test_x @ torch.linalg.solve(x.T @ x + held, x.T @ wanted)
    says: the scores are the shares
    A column of ones can serve as the offset, but the ridge must not apply to its weight.
"""

HARMLESS = r"""
… => …(x.detach())
    only the dtype is taken of it
wanted = … => …(test_x)
    both kinds of states have one dtype
held = … => …torch.eye(test_x.size(1))…
    both kinds of states have one width
held = … => …(test_x)
    both kinds of states have one dtype
"""
