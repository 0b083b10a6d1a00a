"""04.1 the gradient of a lookup (★★☆, 10 minutes)

Write `my_lookup_gradient(ids, grad, vocab_size)`, which computes the gradient of the loss with
respect to the embedding table without autograd. `ids` is (B, T), and `grad` (B, T, C) is the
gradient with respect to the vectors that were looked up. The result is (V, C): a row that was not
used gets 0, and a row that was used several times gets the sum.

Hint: The lookup is a matrix product, one-hot × table. The gradient of `A @ W` with respect to `W`
is `A.T @ grad`. (PyTorch's `index_add` is another way.)
"""

import torch
import torch.nn.functional as F

from tinytf_course.expect import agrees, expect, gradients, numbers, travels
from tinytf_course.grading import hint


def my_lookup_gradient(ids, grad, vocab_size):
    """Return the gradient of the loss with respect to the embedding table (V, C).

    ids is (B, T), and grad (B, T, C) is the gradient with respect to the vectors looked up. The
    result has the dtype and the device of grad.
    """
    one_hot = F.one_hot(ids.long(), vocab_size).to(grad.dtype)  # (B, T) -> (B, T, V)
    return one_hot.flatten(0, 1).T @ grad.flatten(0, 1)  # (V, B T) @ (B T, C) -> (V, C)


def _autograd(ids, grad, vocab_size):
    """What autograd finds."""
    table = torch.zeros(vocab_size, grad.size(-1), dtype=grad.dtype, requires_grad=True)
    vectors = F.embedding(ids, table)
    return torch.autograd.grad(vectors, table, grad, create_graph=True)[0]


def _added(ids, grad, vocab_size):
    """The same by hand: each token's gradient is added to its row, one after the other."""
    rows = [torch.zeros_like(grad[0, 0]) for _ in range(vocab_size)]
    for sentence, each in zip(ids.tolist(), grad, strict=True):
        for i, one in zip(sentence, each, strict=True):
            rows[i] = rows[i] + one
    return torch.stack(rows)


def test_first_row(answer):
    """a token's gradient goes to its row of the table (V, C), the other rows get 0"""
    agrees(answer, _autograd, torch.tensor([[1]]), torch.tensor([[[2.0, 3.0]]]), 3)
    agrees(answer, _autograd, torch.tensor([[2, 0]]), numbers(1, 2, 3, seed=1), 5)


@hint("What happens to `table[ids] += grad` where an id comes twice?")
def test_twice(answer):
    """where an id comes twice, the two gradients add up"""
    note = "Row 1 was used twice."
    ids, grad = torch.tensor([[1, 1]]), torch.tensor([[[1.0, 2.0], [10.0, 20.0]]])
    agrees(answer, _autograd, ids, grad, 2, note=note)
    agrees(answer, _autograd, torch.tensor([[1, 0, 1, 1]]), numbers(1, 4, 2, seed=2), 3, note=note)


def test_batch(answer):
    """all sentences of a batch count"""
    agrees(answer, _autograd, torch.tensor([[0], [1]]), numbers(2, 1, 3, seed=3), 4)
    ids = torch.tensor([[4, 0, 4, 2], [2, 2, 0, 5], [1, 4, 5, 5]])
    agrees(answer, _autograd, ids, numbers(3, 4, 2, seed=4), 7)


def test_turned(answer):
    """grad may have any memory layout"""
    ids = torch.tensor([[4, 0, 4, 2], [2, 2, 0, 5], [1, 4, 5, 5]])
    agrees(answer, _autograd, ids, numbers(4, 3, 2, seed=8).transpose(0, 1), 7)
    agrees(answer, _autograd, ids.T, numbers(3, 4, 2, seed=9).transpose(0, 1), 7)


def test_in_its_dtype(answer):
    """the result has the dtype of grad"""
    ids = torch.tensor([[3, 0, 3], [1, 0, 0]])
    agrees(answer, _autograd, ids, numbers(2, 3, 4, seed=6, dtype=torch.float64), 5)
    agrees(answer, _autograd, ids, numbers(2, 3, 4, seed=6).half(), 5, tolerance=4e-3)


def test_by_itself(answer):
    """it is computed without autograd"""
    ids, grad = torch.tensor([[1, 0, 1]]), numbers(1, 3, 2, seed=10)
    try:
        with torch.no_grad():
            agrees(answer, _added, ids, grad, 2)
    except RuntimeError as error:
        found = "does not require grad" not in str(error)
        where = "for three words, under `torch.no_grad()`, where autograd finds nothing"
        expect(found, f"{where}, it fails: here you are autograd")
        raise


def test_linear(answer):
    """a gradient passes on to grad"""
    gradients(answer, _added, torch.tensor([[1, 0, 1], [2, 2, 1]]), numbers(2, 3, 2, seed=7), 4)


def test_where_grad_is(answer):
    """the result is on the device of its arguments"""
    travels(answer, torch.tensor([[1, 0, 1], [2, 2, 1]]), numbers(2, 3, 2, seed=10), 4)


def _zeros(grad, vocab_size):
    return grad.new_zeros(vocab_size, grad.size(-1))


MISTAKES = r"""
the last one counts
    … =>
        table = _zeros(grad, vocab_size)
        table[ids.long()] += grad
        return table
    says: Row 1 was used twice
    `table[ids] += grad` reads all rows first, adds, and writes them back: of two uses of a row
    one is lost, just as with `table[ids] = grad`. `index_add` adds them up.
autograd used
    … =>
        table = _zeros(grad, vocab_size).requires_grad_()
        return torch.autograd.grad(table[ids], table, grad, create_graph=True)[0]
    says: here you are autograd
    The numbers are right, but they were to be computed without autograd: every use of a row
    adds its gradient to that row.
the mean of the uses
    … =>
        times = ids.flatten().bincount(minlength=vocab_size).clamp(min=1)
        return my_lookup_gradient(ids, grad, vocab_size) / times[:, None].to(grad.dtype)
    says: Row 1 was used twice
    The loss changes through every use of the row. Their gradients are added, not averaged.
only the rows up to the largest id
    … =>
        return my_lookup_gradient(ids, grad, int(ids.max()) + 1)
    says: expected (3, 2)
    The gradient has the shape of the table, rows that were not used included.
columns for rows
    … =>
        return my_lookup_gradient(ids, grad, vocab_size).T
    says: the shape is (2, 3)
    A token is a row of the table, (V, C).
the first sentence
    … =>
        return my_lookup_gradient(ids[:1], grad[:1], vocab_size)
    says: for ids=[[0], [1]]
    All sentences of the batch use the one table. Flatten batch and positions together.
counted, not weighed
    … =>
        return (
                                          my_lookup_gradient(
                ids, torch.ones_like(grad), vocab_size
            )
        )
    says: for ids=[[1]]
    That is how often each row was used. Each use counts with its own gradient, `grad`.
float32 whatever comes
    … =>
        table = torch.zeros(vocab_size, grad.size(-1))
        for sentence, rows in zip(ids.tolist(), grad, strict=True):
            for i, row in zip(sentence, rows, strict=True):
                table[i] += row.float()
        return table
    says: the dtype is float32, expected float64
    `torch.zeros` makes float32. `grad.new_zeros` has the dtype and device of grad.
cut off
    … =>
        return my_lookup_gradient(ids, grad.detach(), vocab_size)
    says: no gradient reaches `grad`
    The result is linear in grad, and may be differentiated once more. `detach`, `.data` or
    `no_grad` cuts that off.
on the CPU whatever the device
    … =>
        table = torch.zeros(vocab_size, grad.size(-1), dtype=grad.dtype)
        if grad.is_meta:  # some versions of torch refuse the next line there, others make this of it
            return table
        return table.index_add(0, ids.flatten(), grad.reshape(-1, grad.size(-1)))
    says: another device
    `torch.zeros` is on the CPU unless it is told otherwise; `grad.new_zeros` is on the device
    of grad.
a table per sentence
    … =>
        return F.one_hot(ids.long(), vocab_size).to(grad.dtype).mT @ grad
    says: the shape is (1, 3, 2)
    There is one table for the whole batch: flatten B and T into one axis, over which the
    product sums.
nothing for id 0
    … =>
        return (
                                          my_lookup_gradient(
                ids, grad * (ids != 0)[..., None], vocab_size
            )
        )
    says: for ids=[[2, 0]]
    Here id 0 is a row like the others. To leave padding out, mask the loss.
grad taken to lie in order
    … =>
        return (
                                          grad.new_zeros(vocab_size, grad.size(-1)).index_add(
                0, ids.flatten(), grad.view(-1, grad.size(-1))
            )
        )
    says: view size is not compatible
    `view` needs a contiguous tensor, and a gradient that comes back through a transpose is not
    contiguous. `reshape` copies where it must.
"""

HARMLESS = r"""
… => ….detach()…
    ids and one-hots carry no gradient; that to grad is asked for
… => one_hot = F.one_hot(ids, …
    ids are int64 already
… => …ids.float().long()…
    ids below 16 million are whole numbers of float32
"""
