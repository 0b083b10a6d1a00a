"""26.2 a big batch in small pieces (★★☆, 12 minutes)

Write `my_accumulated_gradient(w, micro)`, which returns the gradient of the mean squared error of
the predictions `x @ w` over *all* rows of all micro-batches, computed one micro-batch at a time, so
that only one of them takes up memory at any moment. `micro` is a list of pairs `(x, y)`, with `x`
of shape `(n, D)` and `y` of shape `(n,)`; n differs from pair to pair.

Hint: Sum the errors of each micro-batch, and divide by the number of rows in all of them, which you
count first.
"""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

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


class _Held(TorchDispatchMode):
    """A block that counts the numbers that stand in memory for what is computed in it.

    `peak` is the most at one time; what was there before is not counted.
    """

    def __init__(self):
        super().__init__()
        self.now = self.peak = 0
        self._given, self._made = {}, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Compute, and count what is new."""
        for storage in _storages((args, kwargs)):
            if storage._cdata not in self._made:
                self._given[storage._cdata] = storage
        result = function(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            for storage in _storages(x):
                self._count(storage, storage.nbytes() // x.element_size())
        return result

    def _count(self, storage, size):
        key = storage._cdata
        if key not in self._given and key not in self._made:
            self._made[key] = size
            self.now += size
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._drop, key)

    def _drop(self, key):
        self.now -= self._made.pop(key)


def _storages(value):
    return [x.untyped_storage() for x in tree_leaves(value) if isinstance(x, torch.Tensor)]


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
    with _Held() as held:
        answer(w, micro)
    most = held.peak - before  # the answer gets copies
    kept = "as many numbers as all rows have" if most > before else "something of every micro-batch"
    expect(most <= 250, f"{where}, you hold {kept} at one time: let go of each micro-batch before "
           "the next, by one `backward` each or a sum of gradients")  # fmt: skip


def _accumulated(weigh=None, last=False):
    def gradient(w, micro):
        rows, parts = sum(len(y) for _, y in micro), []
        for x, y in micro:
            parts.append(2 * x.T @ (x @ w - y) * weigh(len(y), rows, len(micro)))
        return parts[-1] if last else sum(parts)

    return gradient


MISTAKES = r"""
mean of means
    … =>
        return _accumulated(lambda n, rows, count: 1 / n / count)(w, micro)
    says: is not the mean of the two means
    loss.mean() / len(micro) is right for equal micro-batches only. Text batches hold unequal
    numbers of tokens: Hugging Face's Trainer had this bug until 2024.
means added up
    … =>
        return _accumulated(lambda n, rows, count: 1 / n)(w, micro)
    says: in two micro-batches of one
    Adding the means makes the step as many times too large as there are micro-batches.
sums, not divided
    … =>
        return _accumulated(lambda n, rows, count: 1.0)(w, micro)
    says: the mean is -1
    This is the gradient of the summed error: divide by the number of rows.
only the last one
    … =>
        return _accumulated(lambda n, rows, count: 1 / rows, last=True)(w, micro)
    says: in two micro-batches of one
    Clearing the gradient inside the loop throws away what the others added.
the last one's mean
    … =>
        return _accumulated(lambda n, rows, count: 1 / n, last=True)(w, micro)
    says: in two micro-batches of one
    Each micro-batch has a share in it: add up what all of them find.
divided by the rows so far
    … =>
        total, rows = torch.zeros_like(w), 0
        for x, y in micro:
            rows += len(y)
            total += 2 * x.T @ (x @ w - y) / rows
        return total
    says: in two micro-batches of one
    Each micro-batch then divides by another number: count the rows of all of them first.
divided by the numbers in x
    … =>
        return sum(2 * x.T @ (x @ w - y) for x, y in micro) / sum(x.numel() for x, _ in micro)
    says: The error is 3 - 2 - 2 = -1
    A row has one error, however many numbers it holds: len(y), not x.numel().
divided by the number of micro-batches
    … =>
        return _accumulated(lambda n, rows, count: 1 / count)(w, micro)
    says: the mean is -1
    Divide by the rows, not by the micro-batches.
divided as if all were as long as the first
    … =>
        rows = len(micro) * len(micro[0][1])
        return sum(2 * x.T @ (x @ w - y) for x, y in micro) / rows
    says: is not the mean of the two means
    Micro-batches differ: count the rows of each.
the way up
    … =>
        return _accumulated(lambda n, rows, count: -1 / rows)(w, micro)
    says: The error is 3 - 2 - 2 = -1
    The sign is wrong: return the gradient itself. The optimiser does the subtracting.
half of it
    … =>
        return _accumulated(lambda n, rows, count: 0.5 / rows)(w, micro)
    says: The error is 3 - 2 - 2 = -1
    The derivative of a square is twice the error. (Books that leave the 2 out start from half
    the square.)
one backward for all
    … =>
        w = w.detach().requires_grad_()
        rows = sum(len(y) for _, y in micro)
        sum((x @ w - y).square().sum() / rows for x, y in micro).backward()
        return w.grad
    says: you hold something of every micro-batch at one time
    The result is right, but the sum keeps the graph of every micro-batch until the one
    `backward`: call it for each, which adds to `w.grad` and lets go.
the big batch put together
    … =>
        x, y = (torch.cat(parts) for parts in zip(*micro, strict=True))
        return 2 * x.T @ (x @ w - y) / len(y)
    says: you hold as many numbers as all rows have at one time
    The result is right, but all rows stand in memory at once: that is the big batch which did
    not fit.
summed on the CPU
    … =>
        total = torch.zeros(len(w), dtype=w.dtype)
        for x, y in micro:
            total += 2 * x.T @ (x @ w - y)
        return total / sum(len(y) for _, y in micro)
    says: the result stays on the CPU
    `torch.zeros(...)` is on the CPU, wherever `w` is: `torch.zeros_like(w)`.
the caller's w asked for a gradient
    … =>
        w.requires_grad_()
        rows = sum(len(y) for _, y in micro)
        for x, y in micro:
            ((x @ w - y).square().sum() / rows).backward()
        return w.grad
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
