"""29.2 repair a patch that leaks (★★☆, 8 minutes)

`replace(model, name, change)` calls `change` with what the module computes and goes on with what
`change` returns. We need a change that replaces *one* vector per sentence: in `x` of shape (B, T,
C), sentence b gets `values[b, at[b]]` at position `at[b]`, and everything else stays. With this
first attempt every patch seems to work, as soon as the batch has more than one sentence.

```python
def my_transplant(values, at):
    def change(x):
        x[:, at] = values[:, at]
        return x
    return change
```

Repair it: `my_transplant(values, at)` returns the function `change`, which returns a new tensor.

<details><summary>The rule in detail</summary>

`values` is (B, T, C), `at` is (B,) and holds integers. The result has the dtype of `x`, and
gradients reach `x` and `values`.

</details>

Hint: There are two faults. Which positions does `x[:, at]` pick in row 0? And whose tensor is `x`?

Hint: With a list of rows beside the list of positions, `x[rows, at]` pairs them: row 0 with at[0],
row 1 with at[1]. `torch.arange(len(x))` is the list of rows. And `clone` first.
"""

import math

import torch

from tinytf_course.expect import agrees, expect, gradients, numbers, same, tensor
from tinytf_course.grading import hint
from tinytf_course.words import short


def my_transplant(values, at):
    """Make a function that replaces one position per row of x (B, T, C), at (B,), from `values`."""

    def change(x):
        rows = torch.arange(len(x), device=x.device)
        patched = x.clone()
        patched[rows, at] = values[rows, at].to(x.dtype)
        return patched

    return change


X = torch.zeros(2, 3, 1)
VALUES = torch.tensor([[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]])
AT = torch.tensor([0, 2])
_PATCH = f"for values={short(VALUES[..., 0])} (C = 1), at={short(AT)}, and x all 0"


def _patched(values, at, x):
    """Vector by vector."""
    put = values.to(x.dtype)
    rows = [[put[b, t] if t == at[b] else x[b, t] for t in range(x.size(1))] for b in range(len(x))]
    return torch.stack([torch.stack(row) for row in rows])


def _applied(answer):
    def run(values, at, x):
        return answer(values, at)(x)

    run.parameters = ("values", "at", "x")
    return run


def test_t_own_place(answer):
    """each row gets the vector of its own position"""
    got = tensor(answer(VALUES, AT)(X.clone()), _PATCH)
    expect(got.shape == X.shape, f"{_PATCH}, the shape is {tuple(got.shape)}, expected (2, 3, 1)")
    picked = [got[0, 0, 0].item(), got[1, 2, 0].item()]
    expect(picked == [1, 6], f"{_PATCH}, the two patched numbers are {picked}, expected [1, 6]")


def test_t_nothing_else(answer):
    """nothing else changes, in any row"""
    got = tensor(answer(VALUES, AT)(X.clone()), _PATCH)
    note = "`x[:, at]` picks every position of `at` in every row, so the patch leaks."
    same(got[..., 0], [[1, 0, 0], [0, 0, 6]], _PATCH, note=note)


def test_t_callers_own(answer):
    """the caller's x and values stay as they are"""
    x, values = numbers(2, 3, 2, seed=1), numbers(2, 3, 2, seed=2)
    before, kept = x.clone(), values.clone()
    out = tensor(answer(values, AT)(x), "for random x")
    note = "The caller's tensor may be the record of another run, or be needed for the gradient."
    same(x, before, "after the patch, for the caller's x", note=note)
    same(values, kept, "after the patch, for the caller's values", note=note)
    expect(out.data_ptr() != x.data_ptr(), "the result is the caller's x itself: return a copy")


def test_t_again(answer):
    """one change can be used many times, on other x"""
    values, at = numbers(3, 4, 2, seed=3), torch.tensor([3, 0, 0])
    change = answer(values, at)
    for seed in (4, 5):
        x = numbers(3, 4, 2, seed=seed)
        where = "for a change that is used twice"
        same(change(x), _patched(values, at, x), where)


def test_t_sizes(answer):
    """for other sizes, and for one row, one position"""
    run = _applied(answer)
    for seed, (b, t, c) in enumerate([(3, 5, 2), (5, 2, 4), (1, 4, 3), (4, 1, 2), (4, 4, 1)]):
        at = torch.tensor([(2 * i + seed) % t for i in range(b)])
        agrees(run, _patched, numbers(b, t, c, seed=seed), at, numbers(b, t, c, seed=seed + 9))


def test_t_kinds(answer):
    """the result has x's dtype, and gradients reach x and values"""
    run = _applied(answer)
    at = torch.tensor([1, 0, 3])
    wide, half = numbers(3, 4, 2, seed=1, dtype=torch.float64), torch.float16
    agrees(run, _patched, wide, at, numbers(3, 4, 2, seed=2, dtype=half))
    agrees(run, _patched, wide, at, numbers(3, 4, 2, seed=2, dtype=torch.float64))
    agrees(run, _patched, wide.to(half), at, numbers(3, 4, 2, seed=2))
    gradients(run, _patched, numbers(3, 4, 2, seed=3), at, numbers(3, 4, 2, seed=4))


@hint("Assign the vector, or choose with `where`: 0 times infinity is NaN.")
def test_t_exact(answer):
    """what is kept and what is put in is exact, even beside huge numbers and infinities"""
    x = X.clone()
    x[0, 0], x[1, 2] = 1e9, -1e9
    got = tensor(answer(VALUES, AT)(x), _PATCH)[..., 0]
    same(got, [[1, 0, 0], [0, 0, 6]], f"{_PATCH} except for ±1e9 at the patched positions")
    x, values = X.clone(), VALUES.clone()
    x[0, 0], x[0, 1], values[1, 1] = math.nan, math.inf, math.inf
    got = tensor(answer(values, AT)(x), _PATCH)[..., 0]
    where = "for x with infinity at (0, 1) and NaN at (0, 0), the position patched in row 0"
    same(got, [[1, math.inf, 0], [0, 0, 6]], where)


MISTAKES = r"""
it leaks into the other rows
    patched[rows, at] = values[rows, at] => patched[:, at] = values[:, at]
    says: so the patch leaks
    `[:, at]` patches each row at the positions of all rows. Pair rows and positions: `[rows,
    at]`.
in place
    x.clone() => x
    says: for the caller's x
    Writing into x changes what the caller holds. `clone` first.
values of row 0
    values[rows, at] => values[0, at]
    says: the two patched numbers are
    Every row has its own values: `values[rows, at]`.
from the position on
    patched[rows, at] = values[rows, at].to(x.dtype) =>
        later = torch.arange(x.size(1)) >= at[:, None]
        patched = torch.where(later[..., None], values.to(x.dtype), x)
    says: so the patch leaks
    Only one vector is replaced, not all that follow.
no gradient to the values
    values[rows, at] => values.detach()[rows, at]
    says: no gradient reaches `values`
    Gradients must reach `values`, so don't detach them.
blended by 0 and 1
    patched[rows, at] = values[rows, at].to(x.dtype) =>
        there = (torch.arange(x.size(1)) == at[:, None])[..., None].to(x)
        patched = x * (1 - there) + values.to(x) * there
    says: with infinity at
    0 times infinity is NaN, and so is 0 times NaN. Assign the vector, or choose with
    `torch.where`.
the difference added
    patched[rows, at] = values[rows, at].to(x.dtype) =>
        there = (torch.arange(x.size(1)) == at[:, None])[..., None]
        patched = x + there * (values.to(x) - x)
    says: except for ±1e9
    x + (v - x) is v only on paper: beside a huge x the digits of v are rounded away.
"""

HARMLESS = r"""
rows = … => rows = torch.arange(len(x))
    an index on the CPU serves any device
"""
