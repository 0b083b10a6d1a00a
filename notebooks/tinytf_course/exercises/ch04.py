"""Chapter 04: a lookup's gradient, and nearest words."""

import torch
import torch.nn.functional as F

from tinytf_course.expect import (
    agrees,
    expect,
    given,
    gradients,
    numbers,
    short,
    travels,
)
from tinytf_course.grading import Exercise, hint


def ids_of(got, where):
    """Return the answer as a list of ints; expect it to be one."""
    got = got.tolist() if isinstance(got, torch.Tensor) else got
    expect(isinstance(got, list | tuple), f"{where}, you return {got!r}, expected a list of ids")
    got = [one.tolist() if isinstance(one, torch.Tensor) else one for one in got]
    whole = all(type(one) is int for one in got)
    expect(whole, f"{where}, you return {short(got)}, expected whole numbers: ids")
    return got


def gives_ids(answer, arguments, expected, note=""):
    """Expect these ids for these arguments."""
    where = given(answer, arguments)
    got = ids_of(answer(*arguments), where)
    note = f" {note}" if note else ""
    expect(got == expected, f"{where}, you get {short(got)}, expected {short(expected)}.{note}")


# 04.1 the gradient of a lookup


def my_lookup_gradient(ids, grad, vocab_size):
    """Return the gradient of the loss with respect to the embedding table (V, C).

    ids is (B, T), and grad (B, T, C) is the gradient with respect to the vectors looked up. The
    result has the dtype and the device of grad.
    """
    raise NotImplementedError


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


def _first_row(answer):
    """a token's gradient goes to its row of the table (V, C), the other rows get 0"""
    agrees(answer, _autograd, torch.tensor([[1]]), torch.tensor([[[2.0, 3.0]]]), 3)
    agrees(answer, _autograd, torch.tensor([[2, 0]]), numbers(1, 2, 3, seed=1), 5)


@hint("What happens to `table[ids] += grad` where an id comes twice?")
def _twice(answer):
    """where an id comes twice, the two gradients add up"""
    note = "Row 1 was used twice."
    ids, grad = torch.tensor([[1, 1]]), torch.tensor([[[1.0, 2.0], [10.0, 20.0]]])
    agrees(answer, _autograd, ids, grad, 2, note=note)
    agrees(answer, _autograd, torch.tensor([[1, 0, 1, 1]]), numbers(1, 4, 2, seed=2), 3, note=note)


def _batch(answer):
    """all sentences of a batch count"""
    agrees(answer, _autograd, torch.tensor([[0], [1]]), numbers(2, 1, 3, seed=3), 4)
    ids = torch.tensor([[4, 0, 4, 2], [2, 2, 0, 5], [1, 4, 5, 5]])
    agrees(answer, _autograd, ids, numbers(3, 4, 2, seed=4), 7)


def _turned(answer):
    """grad may have any memory layout"""
    ids = torch.tensor([[4, 0, 4, 2], [2, 2, 0, 5], [1, 4, 5, 5]])
    agrees(answer, _autograd, ids, numbers(4, 3, 2, seed=8).transpose(0, 1), 7)
    agrees(answer, _autograd, ids.T, numbers(3, 4, 2, seed=9).transpose(0, 1), 7)


def _in_its_dtype(answer):
    """the result has the dtype of grad"""
    ids = torch.tensor([[3, 0, 3], [1, 0, 0]])
    agrees(answer, _autograd, ids, numbers(2, 3, 4, seed=6, dtype=torch.float64), 5)
    agrees(answer, _autograd, ids, numbers(2, 3, 4, seed=6).half(), 5, tolerance=4e-3)


def _by_itself(answer):
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


def _linear(answer):
    """a gradient passes on to grad"""
    gradients(answer, _added, torch.tensor([[1, 0, 1], [2, 2, 1]]), numbers(2, 3, 2, seed=7), 4)


def _where_grad_is(answer):
    """the result is on the device of its arguments"""
    travels(answer, torch.tensor([[1, 0, 1], [2, 2, 1]]), numbers(2, 3, 2, seed=10), 4)


GRADIENT = Exercise(
    id="04.1",
    title="the gradient of a lookup",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_lookup_gradient(ids, grad, vocab_size)`, which computes the gradient of the "
        "loss with respect to the embedding table without autograd. `ids` is (B, T), and `grad` "
        "(B, T, C) is the gradient with respect to the vectors that were looked up. The result is "
        "(V, C): a row that was not used gets 0, and a row that was used several times gets the "
        "sum."
    ),
    hint="The lookup is a matrix product, one-hot × table. The gradient of `A @ W` with respect to "
    "`W` is `A.T @ grad`. (PyTorch's `index_add` is another way.)",
    function=my_lookup_gradient,
    tests=(_first_row, _twice, _batch, _turned, _in_its_dtype, _by_itself, _linear, _where_grad_is),
)


# 04.2 nearest words


def my_nearest(vectors, query, k):
    """Return the ids of the k rows most similar to row `query` by cosine, best first.

    vectors is (V, C) and query an int. The result has k ids; the query itself is left out.
    """
    raise NotImplementedError


WORDS = torch.tensor([[1.0, 0.0], [9.0, 4.0], [0.2, 0.02], [0.0, 1.0], [-1.0, 0.1], [1.0, 1.0]])


def _by_angle(vectors, query, k):
    """One cosine after the other in float64, sorted."""
    rows = vectors.double().tolist()

    def cosine(i):
        dot = sum(a * b for a, b in zip(rows[i], rows[query], strict=True))
        squares = sum(a * a for a in rows[i]) * sum(b * b for b in rows[query])
        return dot / squares**0.5 if squares else 0.0

    others = [i for i in range(len(rows)) if i != query]
    return sorted(others, key=cosine, reverse=True)[:k]


def _is_nearest(answer, vectors, query, k, note=""):
    gives_ids(answer, (vectors, query, k), _by_angle(vectors, query, k), note)


def _nearest_two(answer):
    """small angles win, whatever the lengths"""
    _is_nearest(answer, WORDS, 0, 2, "Row 1 is long, row 2 short; the angle counts.")


def _not_itself(answer):
    """a word is not its own neighbour"""
    where = given(answer, (WORDS, 3, 1))
    got = ids_of(answer(WORDS, 3, 1), where)
    expect(got != [3], f"{where}, you get {got}: that is the query itself")
    _is_nearest(answer, WORDS, 3, 1)


def _all_in_order(answer):
    """the best comes first, of as many as there are"""
    _is_nearest(answer, WORDS, 0, 5, "Row 4 is opposite.")


def _lengths(answer):
    """neither the length of a row nor that of a column counts"""
    vectors = torch.tensor([[1.0, 1.0], [10.0, 0.0], [1.0, 3.0]])
    _is_nearest(answer, vectors, 0, 2, "The cosines are 0.71 and 0.89.")


def _same_direction(answer):
    """a vector with the same direction is a neighbour, whichever row it is"""
    vectors = torch.tensor([[2.0, 0.0], [0.0, 3.0], [4.0, 0.0], [1.0, 1.0]])
    note = "Rows 0 and 2 point the same way."
    gives_ids(answer, (vectors, 0, 2), [2, 3], note)
    gives_ids(answer, (vectors, 2, 2), [0, 3], note)


def _opposite(answer):
    """a vector with the opposite direction is still a candidate"""
    vectors = torch.tensor([[2.0, 0.0], [-1.0, 0.0]])
    note = "Row 1 points the other way."
    gives_ids(answer, (vectors, 0, 1), [1], note)
    gives_ids(answer, (vectors, 1, 1), [0])


def _close(answer):
    """words that are almost equally near are told apart, as far as the dtype can"""
    for dtype, near, nearer in ((torch.float32, 0.012, 0.01), (torch.float64, 2e-5, 1e-5)):
        for angles in ((0.0, near, nearer), (0.0, nearer, near)):
            turn = torch.tensor(angles, dtype=dtype)
            lengths = torch.tensor([[1.0], [3.1], [0.7]], dtype=dtype)
            vectors = torch.stack([turn.cos(), turn.sin()], dim=1) * lengths
            note = f"Rows 1 and 2 are turned by {angles[1]:g} and {angles[2]:g}: almost as near."
            _is_nearest(answer, vectors, 0, 2, note)


def _zeros(answer):
    """a row of zeros points nowhere: its cosine is 0"""
    vectors = torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [-1.0, 0.5]])
    note = "Row 1 is zeros, as padding is: beside row 0, and behind row 2."
    _is_nearest(answer, vectors, 0, 3, note)


def _in_a_crowd(answer):
    """of 40 words in 7 dimensions, whatever the size of the numbers, in float64 too"""
    vectors = numbers(40, 7, seed=1, shift=0.3)
    for query, k in ((0, 5), (17, 39), (39, 1)):
        _is_nearest(answer, vectors, query, k)
    for scale in (1e-4, 1e4):
        _is_nearest(answer, numbers(30, 5, seed=2, scale=scale), 11, 4)
    _is_nearest(answer, numbers(6, 9, seed=3, dtype=torch.float64), 2, 5)


NEAREST = Exercise(
    id="04.2",
    title="nearest words",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_nearest(vectors, query, k)`, which returns the ids of the `k` rows of `vectors` "
        "with the largest cosine similarity to row number `query`, best first and without that row "
        "itself. A row of zeros, as padding may have, has a cosine similarity of 0 with every "
        "other row."
    ),
    hint="The cosine similarity of two vectors of length 1 is their dot product. `topk` sorts. "
    "Which value keeps the query itself out of the result?",
    function=my_nearest,
    tests=(
        _nearest_two,
        _not_itself,
        _all_in_order,
        _lengths,
        _same_direction,
        _opposite,
        _close,
        _zeros,
        _in_a_crowd,
    ),
)


EXERCISES = (GRADIENT, NEAREST)
