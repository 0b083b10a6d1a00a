"""04.1 the gradient of a lookup (★★☆, 10 minutes)

Write `my_lookup_gradient(ids, grad, vocab_size)`, which computes the gradient of the loss with
respect to the embedding table, (V, C), without autograd. `ids` is (B, T), and `grad` (B, T, C) is
the gradient with respect to the vectors that were looked up.

<details><summary>The rule in detail</summary>

A row of the table that was not used gets 0, and a row that was used several times gets the sum.

</details>

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
    with torch.enable_grad():
        table = grad.new_zeros(vocab_size, grad.size(-1)).requires_grad_()
        vectors = F.embedding(ids, table)
        return torch.autograd.grad(vectors, table, grad, create_graph=True)[0]


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
            agrees(answer, _autograd, ids, grad, 2)
    except RuntimeError as error:
        found = "does not require grad" not in str(error)
        where = "for three words, under `torch.no_grad()`, where autograd finds nothing"
        expect(found, f"{where}, it fails: here you are autograd")
        raise


def test_linear(answer):
    """a gradient passes on to grad"""
    gradients(answer, _autograd, torch.tensor([[1, 0, 1], [2, 2, 1]]), numbers(2, 3, 2, seed=7), 4)


def test_where_grad_is(answer):
    """the result is on the device of its arguments"""
    travels(answer, torch.tensor([[1, 0, 1], [2, 2, 1]]), numbers(2, 3, 2, seed=10), 4)


MISTAKES = r"""
the last one counts
    … =>
        table = grad.new_zeros(vocab_size, grad.size(-1))
        table[ids] += grad
        return table
    says: Row 1 was used twice
    `table[ids] += grad` reads all rows first, adds, and writes them back: of two uses of a row
    one is lost, just as with `table[ids] = grad`. `index_add` adds them up.
autograd used
    … =>
        table = grad.new_zeros(vocab_size, grad.size(-1)).requires_grad_()
        return torch.autograd.grad(table[ids], table, grad, create_graph=True)[0]
    says: here you are autograd
    The numbers are right, but they were to be computed without autograd: every use of a row
    adds its gradient to that row.
the mean of the uses
    grad.flatten(0, 1) => grad.flatten(0, 1) / one_hot.sum((0, 1)).clamp(min=1)[:, None]
    says: Row 1 was used twice
    The loss changes through every use of the row. Their gradients are added, not averaged.
only the rows up to the largest id
    ids.long(), vocab_size => ids.long()
    says: expected (3, 2)
    The gradient has the shape of the table, rows that were not used included.
columns for rows
    one_hot.flatten(0, 1).T @ grad.flatten(0, 1) => grad.flatten(0, 1).T @ one_hot.flatten(0, 1)
    says: the shape is (2, 3)
    A token is a row of the table, (V, C).
the first sentence
    one_hot.flatten(0, 1) => one_hot[0]
    grad.flatten(0, 1) => grad[0]
    says: for ids=[[0], [1]]
    All sentences of the batch use the one table. Flatten batch and positions together.
counted, not weighed
    grad.flatten => torch.ones_like(grad).flatten
    says: for ids=[[1]]
    That is how often each row was used. Each use counts with its own gradient, `grad`.
float32 whatever comes
    .to(grad.dtype) => .float()
    grad.flatten => grad.float().flatten
    says: the dtype is float32, expected float64
    The result has the dtype of grad: `.to(grad.dtype)`, or a table made by `grad.new_zeros`.
cut off
    grad.flatten => grad.detach().flatten
    says: no gradient reaches `grad`
    The result is linear in grad, and may be differentiated once more. `detach`, `.data` or
    `no_grad` cuts that off.
on the CPU whatever the device
    F.one_hot(ids.long(), vocab_size).to => torch.eye(vocab_size)[ids.to("cpu")].to
    says: another device
    `torch.eye` and `torch.zeros` are on the CPU unless they are told otherwise; `grad.new_zeros`
    is on the device of grad.
a table per sentence
    one_hot.flatten(0, 1).T => one_hot.mT
    grad.flatten(0, 1) => grad
    says: the shape is (1, 3, 2)
    There is one table for the whole batch: flatten B and T into one axis, over which the
    product sums.
nothing for id 0
    grad.flatten => (grad * (ids != 0)[..., None]).flatten
    says: for ids=[[2, 0]]
    Here id 0 is a row like the others. To leave padding out, mask the loss.
grad taken to lie in order
    grad.flatten(0, 1) => grad.view(-1, grad.size(-1))
    says: view size is not compatible
    `view` needs a contiguous tensor, and a gradient that comes back through a transpose is not
    contiguous. `reshape` copies where it must.
"""

HARMLESS = r"""
… => one_hot = F.one_hot(ids, …
    ids are int64 already
"""
