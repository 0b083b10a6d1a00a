"""26.2 a big batch in small pieces (★★☆, 12 minutes)

Write `my_accumulated_gradient(w, micro)`, which returns the gradient of the mean squared error of
the predictions `x @ w` over *all* rows of all micro-batches, computed one micro-batch at a time, so
that only one of them takes up memory at any moment. `micro` is a list of pairs `(x, y)`, with `x`
of shape `(n, D)` and `y` of shape `(n,)`; n differs from pair to pair.

Hint: Sum the errors of each micro-batch, and divide by the number of rows in all of them, which you
count first.
"""

import torch

from tinytf_course.exercises.ch26._shared import Held
from tinytf_course.expect import agrees, expect, numbers, travels


def my_accumulated_gradient(w, micro):
    """Return the gradient of the mean squared error over all rows, one micro-batch at a time.

    w is (D,); micro is a list of (x, y) with x (n, D) and y (n,), of different n. The error of a
    row is (x · w - y)². Returns (D,), the gradient of one big batch.
    """
    w = w.detach().requires_grad_()
    rows = sum(len(y) for _, y in micro)
    for x, y in micro:
        loss = (x @ w - y).square().sum() / rows
        loss.backward()  # adds to w.grad, and lets go of what it kept
    return w.grad


def _micro(*sizes, width=3, dtype=torch.float32):
    """A weight, and micro-batches of so many rows each."""
    drawn = [numbers(n, width + 1, seed=i, dtype=dtype) for i, n in enumerate(sizes)]
    return numbers(width, seed=99, dtype=dtype), [(rows[:, 1:], rows[:, 0]) for rows in drawn]


def _row_by_row(w, micro):
    """The formula, 2 · error · x, for each row in float64, and the mean over all rows."""
    rows = [(x.double(), y.double()) for xs, ys in micro for x, y in zip(xs, ys, strict=True)]
    found = [2 * ((x * w.double()).sum() - y) * x for x, y in rows]
    return (sum(found) / len(rows)).to(w.dtype)


def test_one_row(answer):
    """for one row it is 2 · error · x"""
    w, x, y = torch.tensor([1.0, -2.0]), torch.tensor([[3.0, 1.0]]), torch.tensor([2.0])
    note = "The error is 3 - 2 - 2 = -1."
    agrees(answer, _row_by_row, w, [(x, y)], note=note)


def test_big(answer):
    """one micro-batch is the big batch"""
    x, y = torch.tensor([[3.0], [1.0]]), torch.tensor([2.0, 5.0])
    note = "The errors are 1 and -4, so the rows' gradients are 6 and -8: the mean is -1."
    agrees(answer, _row_by_row, torch.tensor([1.0]), [(x, y)], note=note)
    agrees(answer, _row_by_row, *_micro(6))


def test_even(answer):
    """equal micro-batches add up to it"""
    parts = [
        (torch.tensor([[3.0]]), torch.tensor([2.0])),
        (torch.tensor([[1.0]]), torch.tensor([5.0])),
    ]
    note = "The rows' gradients are 6 and -8, in two micro-batches of one: the mean is -1."
    agrees(answer, _row_by_row, torch.tensor([1.0]), parts, note=note)
    where = "for 3 micro-batches of 2 rows"
    agrees(answer, _row_by_row, *_micro(2, 2, 2), where=where, note="Each row counts 1/6.")


def test_uneven(answer):
    """unequal micro-batches do too"""
    note = "The mean over 6 rows is not the mean of the two means over 5 and 1."
    where = "for micro-batches of 5 rows and 1"
    agrees(answer, _row_by_row, *_micro(5, 1), where=where, note=note)
    where = "for micro-batches of 1, 4, 2 and 9 rows"
    agrees(answer, _row_by_row, *_micro(1, 4, 2, 9, width=5), where=where)


def test_other_kinds(answer):
    """it has the dtype of w, and is where w is"""
    w, micro = _micro(3, 1, dtype=torch.float64)
    agrees(answer, _row_by_row, w, micro, where="for micro-batches of 3 rows and 1 (float64)")
    travels(answer, *_micro(3, 1), where="for micro-batches of 3 rows and 1")


_MANY = (30, 12, 25, 7, 30, 20, 28, 30, 9, 24, 30, 16)


def test_one_at_a_time(answer):
    """only one micro-batch at a time needs memory"""
    w, micro = _micro(*_MANY, width=2)
    before = w.numel() + sum(x.numel() + y.numel() for x, y in micro)
    where = f"for 12 micro-batches of at most 30 rows of 2 numbers, {sum(_MANY)} rows in all"
    with Held() as held:
        answer(w, micro)
    most = held.peak - before  # the answer gets copies
    kept = "as many numbers as all rows have" if most > before else "something of every micro-batch"
    expect(most <= 250, f"{where}, you hold {kept} at one time: let go of each micro-batch before "
           "the next, by one `backward` each or a sum of gradients")  # fmt: skip


MISTAKES = r"""
mean of means
    .sum() / rows => .mean() / len(micro)
    says: is not the mean of the two means
    loss.mean() / len(micro) is right for equal micro-batches only. Text batches hold unequal
    numbers of tokens: Hugging Face's Trainer had this bug until 2024.
means added up
    .sum() / rows => .mean()
    says: in two micro-batches of one
    Adding the means makes the step as many times too large as there are micro-batches.
sums, not divided
    .sum() / rows => .sum()
    says: the mean is -1
    This is the gradient of the summed error: divide by the number of rows.
only the last one
    loss.backward() =>
        w.grad = None
        loss.backward()
    says: in two micro-batches of one
    Clearing the gradient inside the loop throws away what the others added.
the last one's mean
    .sum() / rows => .mean()
    loss.backward() =>
        w.grad = None
        loss.backward()
    says: in two micro-batches of one
    Each micro-batch has a share in it: add up what all of them find.
divided by the rows so far
    sum(len(y) for _, y in micro) => 0
    loss = =>
        rows += len(y)
        loss =
    says: in two micro-batches of one
    Each micro-batch then divides by another number: count the rows of all of them first.
divided by the numbers in x
    len(y) for _, y => x.numel() for x, _
    says: The error is 3 - 2 - 2 = -1
    A row has one error, however many numbers it holds: len(y), not x.numel().
divided by the number of micro-batches
    sum(len(y) for _, y in micro) => len(micro)
    says: the mean is -1
    Divide by the rows, not by the micro-batches.
divided as if all were as long as the first
    sum(len(y) for _, y in micro) => len(micro) * len(micro[0][1])
    says: is not the mean of the two means
    Micro-batches differ: count the rows of each.
the way up
    return w.grad => return -w.grad
    says: The error is 3 - 2 - 2 = -1
    The sign is wrong: return the gradient itself. The optimiser does the subtracting.
half of it
    return w.grad => return w.grad / 2
    says: The error is 3 - 2 - 2 = -1
    The derivative of a square is twice the error. (Books that leave the 2 out start from half
    the square.)
one backward for all
    for x, y in micro: =>
        total = 0
        for x, y in micro:
    loss.backward() => total = total + loss
    return w.grad =>
        total.backward()
        return w.grad
    says: you hold something of every micro-batch at one time
    The result is right, but the sum keeps the graph of every micro-batch until the one
    `backward`: call it for each, which adds to `w.grad` and lets go.
the big batch put together
    x, y in micro: => x, y in [[torch.cat(parts) for parts in zip(*micro, strict=True)]]:
    says: you hold as many numbers as all rows have at one time
    The result is right, but all rows are in memory at once: that is the big batch which did
    not fit.
summed on the CPU
    w = w.detach().requires_grad_() => total = torch.zeros(len(w), dtype=w.dtype)
    loss = (x @ w - y).square().sum() / rows => total += 2 * x.T @ (x @ w - y) / rows
    loss.backward() =>
    return w.grad => return total
    says: the result stays on the CPU
    `torch.zeros(...)` is on the CPU, wherever `w` is: `torch.zeros_like(w)`.
the caller's w asked for a gradient
    w = w.detach().requires_grad_() => w.requires_grad_()
    says: your code changes the caller's `w`
    `requires_grad_()` and `.grad` stay with the tensor that you were given: the next call would
    add to this one. Work on `w.detach().requires_grad_()`.
"""

HARMLESS = r"""
loss = … => …).float()
    backward begins with a slope of 1, whatever the loss is
loss = … => …).double()
    backward begins with a slope of 1, whatever the loss is
loss = … => …).half()
    backward begins with a slope of 1, whatever the loss is
loss.backward() => loss.float().backward()
    backward begins with a slope of 1, whatever the loss is
rows = … => rows = sum((len(_) for _, y in micro))
    x has as many rows as y
"""
