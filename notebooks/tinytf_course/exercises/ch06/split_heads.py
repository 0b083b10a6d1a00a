"""06.1 split into heads (★☆☆, 8 minutes)

Write `my_split_heads(x, num_heads)`, which turns `(B, T, C)` into `(B, H, T, D)` so that head h
gets slice h of every token's features. Raise `ValueError` if `num_heads` does not divide C.

Hint: First split the last axis into two, with `unflatten(-1, (num_heads, -1))`. Then swap two axes.
"""

import torch

from tinytf_course.expect import agrees, gradients, numbers, refuses
from tinytf_course.grading import hint


def my_split_heads(x, num_heads):
    """Give each head its own slice of every vector: (B, T, C) -> (B, H, T, D), D = C / H.

    Head h gets the features h * D to (h + 1) * D - 1. Raises ValueError if H does not divide C.
    """
    if x.size(-1) % num_heads != 0:
        raise ValueError(f"d_model={x.size(-1)} is not divisible by num_heads={num_heads}")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def _one_by_one(x, num_heads):
    """Number by number: entry d of head h of word t is x[b, t, h * D + d]."""
    width = x.size(-1) // num_heads
    heads = [x[..., head * width : (head + 1) * width] for head in range(num_heads)]
    return torch.stack(heads, dim=1)


def _counted(*shape):
    """The numbers 0, 1, 2, ... in this shape: each shows where it came from."""
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape)


def test_split_content(answer):
    """head h holds slice h of every word, (B, H, T, D)"""
    note = "A row for each word, its own numbers."
    agrees(answer, _one_by_one, _counted(1, 3, 4), 2, note=note)


def test_split_lined_up(answer):
    """also where there are as many heads as words"""
    agrees(answer, _one_by_one, _counted(1, 2, 8), 2)


def test_split_edges(answer):
    """also with one head, one number a head, or one word"""
    agrees(answer, _one_by_one, _counted(1, 2, 3), 1)
    agrees(answer, _one_by_one, _counted(1, 2, 3), 3)
    agrees(answer, _one_by_one, _counted(2, 1, 4), 2)


@hint("Name the axes (B, T, H, D) first, and only then put them in another order.")
def test_split_batch(answer):
    """every sentence of a batch is split by itself, of a part of a larger tensor too"""
    agrees(answer, _one_by_one, _counted(2, 1, 2), 2, note="Sentence 0 is [0, 1].")
    agrees(answer, _one_by_one, _counted(2, 3, 8), 4)
    agrees(answer, _one_by_one, _counted(3, 5, 2).transpose(0, 1)[1:], 2)


def test_split_dtype(answer):
    """the numbers keep their dtype, and gradients pass"""
    for dtype in (torch.float64, torch.float16):
        agrees(answer, _one_by_one, numbers(2, 3, 4, seed=1, dtype=dtype), 2)
    gradients(answer, _one_by_one, numbers(2, 3, 4, seed=2), 2)


def test_split_refuses(answer):
    """heads that do not divide the width are refused"""
    refuses(answer, _counted(1, 2, 10), 3, note="10 is not 3 × D.")
    refuses(answer, _counted(1, 6, 4), 6, note="4 is not 6 × D.")


MISTAKES = r"""
view without transpose
    unflatten(-1, (num_heads, -1)).transpose(1, 2) => view(len(x), num_heads, x.size(1), -1)
    says: you get [[[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]]]
    `view` only recounts the numbers in memory: with (B, H, T, D), head 0 gets the first words
    whole, and later words go to other heads. Split the last axis, then transpose.
heads after the words
    .transpose(1, 2) =>
    says: the shape is (1, 3, 2, 2), expected (1, 2, 3, 2)
    With (B, T, H, D), `q @ k.mT` compares the heads of one word with each other, and no word
    sees another. Transpose the words and the heads.
interleaved
    (num_heads, -1)).transpose(1, 2) => (-1, num_heads)).permute(0, 3, 1, 2)
    says: you get [[[[0, 2], [4, 6], [8, 10]]
    Head h took every H-th number. A model trained so would work, but weights from anywhere else
    would not fit: heads are slices.
words and widths swapped
    transpose(1, 2) => permute(0, 2, 3, 1)
    says: the shape is (1, 2, 2, 3), expected (1, 2, 3, 2)
    The last axis has to be the width D, the one that the dot product sums over.
sentences and heads mixed
    x.unflatten(-1, (num_heads, -1)) => torch.stack(x.chunk(num_heads, -1))
    transpose(1, 2) => view(len(x), num_heads, x.size(1), -1)
    says: Sentence 0 is [0, 1]
    `torch.stack` puts the heads in front of the sentences, and `view` only recounts: sentence 0
    gets head 0 of every sentence. Stack along axis 1.
heads in the batch axis
    transpose(1, 2) => transpose(1, 2).flatten(0, 1)
    says: the shape is (2, 3, 2), expected (1, 2, 3, 2)
    Folding heads into the batch, (B * H, T, D), computes the same attention, but a mask of (B,
    1, T, S) no longer fits. Give the heads an axis of their own.
cut off from the graph
    x.unflatten => x.detach().unflatten
    says: no gradient reaches `x`
    The numbers are right, but nothing below would learn: leave `detach`, `.data`, `no_grad` and
    NumPy out of it.
drops what does not divide
    if x.size(-1) % num_heads != 0 => if False
    return x => return x[..., : x.size(-1) // num_heads * num_heads]
    says: expected a ValueError
    `C // num_heads` rounds down: with C=10 and 3 heads, one number of every word is silently
    lost. Refuse it.
"""
