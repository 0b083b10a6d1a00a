"""00.1 where each word looks (★☆☆, 5 minutes)

Write `most_attended(weights)`: for each target word (a row), the index of the source word (a
column) that it looks at most. It should work for one map, `(T, S)`, and for the maps of several
heads at once, `(H, T, S)`.

Hint: `argmax` along the last axis, whichever axes stand in front of it.
"""

import torch

from tinytf_course.expect import agrees, expect, numbers, same, short, tensor


def most_attended(weights):
    """For each target word, the index of the source word with the largest weight.

    weights is (..., T, S): a row per target word, a column per source word. Returns (..., T).
    """
    return weights.argmax(dim=-1)


MAP = torch.tensor([[0.1, 0.6, 0.3], [0.0, 0.2, 0.8]])
HEADS = torch.stack([MAP, MAP.flip(-1)])
EDGE = torch.tensor([[0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.1, 0.6]])
_map = f"for weights={short(MAP)}"


def test_one_each(answer):
    """there is one index for each target word"""
    got = tensor(answer(MAP), _map)
    message = f"{_map}, the answer has shape {tuple(got.shape)}, expected (2,): one per row"
    expect(got.shape == (2,), message)


def test_are_indexes(answer):
    """the answer says where the largest weight is, not how large"""
    got = tensor(answer(MAP), _map)
    message = f"{_map}, you get {short(got)}; indexes are whole numbers"
    expect(not got.is_floating_point() and got.dtype != torch.bool, message)


def test_largest(answer):
    """it is the largest weight of the row"""
    same(answer(MAP), [1, 2], _map)


def test_ends(answer):
    """first and last source word count, `<eos>` too"""
    same(answer(EDGE), [0, 3], f"for weights={short(EDGE)}")


def test_each_head(answer):
    """each head gets an answer of its own"""
    same(answer(HEADS), [[1, 2], [1, 0]], "for the weights of two heads, (H=2, T=2, S=3)")


def test_any_map(answer):
    """one word, one source word, flat rows and rows that differ by a hair"""
    agrees(answer, torch.tensor([0]), torch.tensor([[1.0]]))
    agrees(answer, torch.tensor([2]), torch.tensor([[0.3, 0.3, 0.4]]))
    hair = torch.tensor([[0.5 - 1e-12, 0.5 + 1e-12]], dtype=torch.float64)
    agrees(answer, torch.tensor([1]), hair, where="for a row that differs by 2e-12, in float64")
    many = numbers(2, 3, 4, 5, seed=1).softmax(-1)
    expected = [
        [[max(range(5), key=row.__getitem__) for row in one] for one in heads]
        for heads in many.tolist()
    ]
    agrees(answer, torch.tensor(expected), many)


MISTAKES = r"""
argmax over the target words
    dim=-1 => dim=-2
    says: the answer has shape (3,), expected (2,)
    Down a column one finds the target word that looks here most. A row is one word's attention,
    and only rows sum to 1.
the weight instead of the word
    argmax(dim=-1) => max(dim=-1).values
    says: indexes are whole numbers
    `max` gives the largest weight; `argmax` gives its place.
one answer for the whole map
    dim=-1 =>
    says: the answer has shape (), expected (2,)
    Without `dim`, `argmax` searches the flattened map and gives one number.
the last column left out
    weights.argmax => weights[..., :-1].argmax
    says: you get [0, 1], expected [0, 3]
    The column of `<eos>` is a choice like any other. Leaving it out makes a head that rests on
    `<eos>` look as if it pointed at a word.
axes counted from the front
    dim=-1 => dim=1
    says: for the weights of two heads
    `dim=1` is the source axis of one map only. With a head axis in front it is the target axis;
    `dim=-1` is right for both.
the first weight above a half
    weights.argmax => (weights > 0.5).long().argmax
    says: weights=[[0.3, 0.3, 0.4]]
    A row's largest weight may be far below a half. It is the largest, not a large one.
"""
