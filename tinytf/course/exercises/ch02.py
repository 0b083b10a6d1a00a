"""Chapter 02: merging a pair, encoding by rank, a scaled embedding, and nearest words."""

import torch

from tinytf.course.expect import expect, same, short
from tinytf.course.grading import Exercise


def _ids(got, where):
    """What the answer returned as a list of ints; expect it to be one."""
    got = got.tolist() if isinstance(got, torch.Tensor) else got
    expect(isinstance(got, list | tuple), f"{where}, you return {got!r}, expected a list of ids")
    return list(got)


def _equal(got, expected, where, note=""):
    got = _ids(got, where)
    note = f" {note}" if note else ""
    expect(got == expected, f"{where}, you get {got}, expected {expected}.{note}")


# 02.1 merge a pair


def my_merge_pair(ids, pair, new_id):
    """The ids with new_id wherever the pair stands, from left to right.

    ids is a list of ints, pair a tuple of two; the result is a new list.
    """
    raise NotImplementedError


def _one(answer):
    """a pair becomes one id"""
    _equal(answer([5, 1, 2], (1, 2), 9), [5, 9], "for ids=[5, 1, 2], pair=(1, 2), new_id=9")


def _every(answer):
    """every one of them does"""
    where = "for ids=[1, 2, 5, 1, 2], pair=(1, 2), new_id=9"
    _equal(answer([1, 2, 5, 1, 2], (1, 2), 9), [9, 5, 9], where, "The pair stands there twice.")


def _run(answer):
    """three in a row make one pair, and the left one is taken"""
    where = "for ids=[1, 1, 1], pair=(1, 1), new_id=9"
    _equal(answer([1, 1, 1], (1, 1), 9), [9, 1], where, "An id is used up by the merge it is in.")


def _keeps_the_rest(answer):
    """what is no such pair stays, the last id too"""
    where = "for ids=[2, 1, 3], pair=(1, 2), new_id=9"
    _equal(answer([2, 1, 3], (1, 2), 9), [2, 1, 3], where, "Order matters: 2, 1 is another pair.")


def _whole_ids(answer):
    """an id of two digits is one id"""
    where = "for ids=[11, 2, 1, 2], pair=(1, 2), new_id=9"
    _equal(answer([11, 2, 1, 2], (1, 2), 9), [11, 2, 9], where, "11 is not 1.")


MERGE = Exercise(
    id="02.1",
    title="merge a pair",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `my_merge_pair(ids, pair, new_id)`: a new list in which `new_id` stands wherever "
        "the two ids of `pair` stood next to each other, taken from left to right."
    ),
    hint="A `for` loop can't skip the second id of a pair. Which loop lets you move the index?",
    function=my_merge_pair,
    tests=(_one, _every, _run, _keeps_the_rest, _whole_ids),
)


# 02.2 encode by rank


def my_encode(ids, merges):
    """The ids after all merges, in the order in which they were learned.

    ids is a list of ints; merges is a dict from pair to new id, and the new ids rise in the order
    of learning.
    """
    raise NotImplementedError


LADDER = {(1, 2): 10, (10, 3): 11}
RANKED = {(2, 3): 10, (1, 2): 11}
SHUFFLED = {(1, 2): 11, (2, 3): 10}
DEEP = {(2, 3): 10, (1, 2): 11, (11, 4): 12, (10, 4): 13}


def _ladder(answer):
    """a merge can use what an earlier one made"""
    where = "for ids=[1, 2, 3], merges={(1, 2): 10, (10, 3): 11}"
    _equal(answer([1, 2, 3], LADDER), [11], where, "10 is what (1, 2) became.")


def _ranked(answer):
    """the merge learned first goes first, wherever it stands"""
    where = "for ids=[1, 2, 3], merges={(2, 3): 10, (1, 2): 11}"
    _equal(answer([1, 2, 3], RANKED), [1, 10], where, "10 was learned before 11.")


def _shuffled(answer):
    """whatever the order of the dict"""
    where = "for ids=[1, 2, 3], merges={(1, 2): 11, (2, 3): 10}"
    _equal(answer([1, 2, 3], SHUFFLED), [1, 10], where, "The ids tell the order, not the dict.")


def _deep(answer):
    """a longer token that training would not have made here is not made"""
    where = "for ids=[1, 2, 3, 4] and four merges"
    note = "(2, 3) came first, so (1, 2) never meets."
    _equal(answer([1, 2, 3, 4], DEEP), [1, 13], where, note)


def _first_learned(answer):
    """also where the later merge stands further left"""
    where = "for ids=[1, 2, 3], merges={(1, 2): 10, (2, 3): 11}"
    _equal(answer([1, 2, 3], {(1, 2): 10, (2, 3): 11}), [10, 3], where, "10 was learned first.")


def _too_late(answer):
    """a pair that comes up after its turn stays"""
    where = "for ids=[1, 2, 3], merges={(2, 3): 10, (1, 10): 11, (1, 2): 12}"
    merges = {(2, 3): 10, (1, 10): 11, (1, 2): 12}
    _equal(answer([1, 2, 3], merges), [11], where, "(2, 3), then (1, 10).")


def _leftmost(answer):
    """pairs are taken by rank, not by the order of their ids"""
    where = "for ids=[3, 1, 2], merges={(3, 1): 10, (1, 2): 11}"
    _equal(answer([3, 1, 2], {(3, 1): 10, (1, 2): 11}), [10, 2], where, "10 was learned first.")


ENCODE = Exercise(
    id="02.2",
    title="encode by rank",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_encode(ids, merges)`: apply the merges to a list of ids as training did. "
        "`merges` maps a pair to its new id; a smaller new id was learned earlier. You may call "
        "your `my_merge_pair`."
    ),
    hint="In which order were the merges learned, and what tells you? Do one after the other.",
    function=my_encode,
    tests=(_ladder, _ranked, _shuffled, _deep, _first_learned, _too_late, _leftmost),
)


# 02.3 a scaled embedding


def my_scaled_embedding(ids, noise):
    """The table, and the vectors of ids, scaled as in the paper.

    ids is (T,), noise (V, C) with numbers of variance 1. The table (V, C) is noise with standard
    deviation C^-0.5; the vectors (T, C) are its rows times √C.
    """
    raise NotImplementedError


NOISE = torch.tensor([[1.0, -1.0, 2.0, 0.5], [0.0, 3.0, -1.0, 1.0], [0.5, 0.5, -2.0, 1.5]])
WIDE = torch.arange(32.0).reshape(2, 16).sin() * 1.4


def _both(got, where):
    """The table and the vectors; expect both to be there."""
    two = isinstance(got, tuple | list) and len(got) == 2
    two = two and all(isinstance(part, torch.Tensor) for part in got)
    expect(two, f"{where}, you return {type(got).__name__}, expected a table and vectors")
    return got


def _table(answer):
    """the table's numbers have standard deviation C^-0.5"""
    where = "for a noise of shape (2, 16)"
    table, _ = _both(answer(torch.tensor([0, 1]), WIDE), where)
    same(table, WIDE / 4, f"{where}, in the table", note="√16 is 4.")


def _rows(answer):
    """each id gets its row, in order, as often as it comes"""
    where = "for ids=[2, 0, 2] and a noise of shape (3, 4)"
    _, vectors = _both(answer(torch.tensor([2, 0, 2]), NOISE), where)
    shape = tuple(vectors.shape)
    expect(shape == (3, 4), f"{where}, the vectors have shape {shape}, expected (3, 4)")


def _unit(answer):
    """table and factor together leave the size of the noise, at any width"""
    for ids, noise in (([1], NOISE), ([0, 1], WIDE)):
        where = f"for ids={ids} and a noise of width {noise.size(-1)}, in the vectors"
        _, vectors = _both(answer(torch.tensor(ids), noise), where)
        same(vectors, noise[ids], where, note="C^-0.5 times √C is 1.")


def _gradient(answer):
    """the gradient reaches the rows that were looked up, and no other"""
    noise = NOISE.clone().requires_grad_()
    where = "for ids=[1, 1], the gradient of the sum in noise"
    _, vectors = _both(answer(torch.tensor([1, 1]), noise), where)
    expect(vectors.requires_grad, "the vectors carry no gradient")
    (grad,) = torch.autograd.grad(vectors.sum(), noise)
    expected = torch.tensor([[0.0] * 4, [2.0] * 4, [0.0] * 4])
    same(grad, expected, where, note="Row 1 is used twice.")


EMBEDDING = Exercise(
    id="02.3",
    title="a scaled embedding",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_scaled_embedding(ids, noise)`: make the table from `noise`, whose numbers have "
        "variance 1, so that its standard deviation is $d_{model}^{-1/2}$; look the ids up; "
        "multiply by $\\sqrt{d_{model}}$. Return the table and the vectors. The width is "
        "`noise.size(-1)`."
    ),
    hint="Which number, multiplied by numbers of variance 1, gives standard deviation C^-0.5?",
    function=my_scaled_embedding,
    tests=(_table, _rows, _unit, _gradient),
)


# 02.4 nearest words


def my_nearest(vectors, query, k):
    """The ids of the k rows with the largest cosine to row `query`, best first, without itself.

    vectors is (V, C), query an int, the result k ids.
    """
    raise NotImplementedError


WORDS = torch.tensor([[1.0, 0.0], [9.0, 4.0], [0.2, 0.02], [0.0, 1.0], [-1.0, 0.1], [1.0, 1.0]])
_VECTORS = f"for vectors={short(WORDS)}"


def _nearest_two(answer):
    """small angles win, whatever the lengths"""
    where = f"{_VECTORS}, query=0, k=2"
    _equal(answer(WORDS, 0, 2), [2, 1], where, "Row 1 is long, row 2 short; the angle counts.")


def _not_itself(answer):
    """a word is not its own neighbour"""
    got = _ids(answer(WORDS, 3, 1), f"{_VECTORS}, query=3, k=1")
    message = f"{_VECTORS}, query=3, k=1, you get {got}: that is the query itself"
    expect(got != [3], message)
    _equal(got, [5], f"{_VECTORS}, query=3, k=1")


def _all_in_order(answer):
    """the best comes first"""
    _equal(answer(WORDS, 0, 5), [2, 1, 5, 3, 4], f"{_VECTORS}, query=0, k=5", "Row 4 is opposite.")


def _lengths(answer):
    """neither the length of a row nor that of a column counts"""
    vectors = torch.tensor([[1.0, 1.0], [10.0, 0.0], [1.0, 3.0]])
    where = f"for vectors={short(vectors)}, query=0, k=2"
    _equal(answer(vectors, 0, 2), [2, 1], where, "The cosines are 0.71 and 0.89.")


NEAREST = Exercise(
    id="02.4",
    title="nearest words",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `my_nearest(vectors, query, k)`: the ids of the `k` rows of `vectors` with the "
        "largest cosine to the row number `query`, best first, that row left out."
    ),
    hint="A cosine is the dot product of two vectors of length 1. `topk` sorts; which value keeps "
    "the query out?",
    function=my_nearest,
    tests=(_nearest_two, _not_itself, _all_in_order, _lengths),
)


EXERCISES = (MERGE, ENCODE, EMBEDDING, NEAREST)
