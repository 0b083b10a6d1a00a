"""07.1 multi-head cross-attention (★★☆, 15 minutes)

Write `my_multi_head(x, memory, w_q, w_k, w_v, w_o, num_heads)`, multi-head cross-attention with
queries from `x` and keys and values from `memory`. The projections are `(C, C)` matrices that
multiply from the right, without biases, there is no mask, and the two sentences may differ in
length.

Hint: Project, split into heads, attend, swap the axes back, flatten, and multiply by `w_o`. Each
step takes a line or two.
"""

import torch
from torch.nn.functional import multi_head_attention_forward

from tinytf_course.expect import agrees, expect, gradients, numbers, tensor, travels
from tinytf_course.grading import hint


def my_multi_head(x, memory, w_q, w_k, w_v, w_o, num_heads):
    """Attend from x (B, T, C) to memory (B, S, C) with `num_heads` heads; returns (B, T, C).

    Each w is (C, C) and multiplies from the right: q = x @ w_q. No biases, no mask.
    """
    q, k, v = (
        y.unflatten(-1, (num_heads, -1)).transpose(1, 2)  # (B, T, C) -> (B, H, T, D)
        for y in (x @ w_q, memory @ w_k, memory @ w_v)
    )
    weights = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1)  # (B, H, T, S)
    return (weights @ v).transpose(1, 2).flatten(2) @ w_o  # (B, H, T, D) -> (B, T, C)


def _torchs_heads(x, memory, w_q, w_k, w_v, w_o, num_heads):
    """torch's own, whose maps multiply from the left and whose words come first."""
    memory = memory.transpose(0, 1)
    out, _ = multi_head_attention_forward(
        x.transpose(0, 1), memory, memory, x.size(-1), num_heads,
        torch.cat([w_q.T, w_k.T, w_v.T]), None, None, None, False, 0.0, w_o.T, None,
        training=False, need_weights=False,
    )  # fmt: skip
    return out.transpose(0, 1)


def _random_inputs(b, t, s, c, seed, scale=1.0, dtype=torch.float32):
    """x, memory and four maps of random numbers."""
    maps = numbers(4, c, c, seed=seed, scale=c**-0.5, dtype=dtype).unbind()
    x = numbers(b, t, c, seed=seed + 1, scale=scale, dtype=dtype)
    return x, numbers(b, s, c, seed=seed + 2, scale=scale, dtype=dtype), *maps


def test_query_length(answer):
    """the output is as long as the queries"""
    where = "for x of shape (2, 3, 4), memory of shape (2, 5, 4) and num_heads=2"
    shape = tuple(tensor(answer(*_random_inputs(2, 3, 5, 4, seed=1), 2), where).shape)
    expect(shape == (2, 3, 4), f"{where}, the shape is {shape}, expected (2, 3, 4): a row for each "
           "query")  # fmt: skip


def test_one_word_memory(answer):
    """of a memory of one word each query takes it all, through w_v and w_o"""
    note = "Its weight is 1: every row is memory @ w_v @ w_o."
    agrees(answer, _torchs_heads, *_random_inputs(1, 2, 1, 2, seed=11), 1, note=note)
    agrees(answer, _torchs_heads, *_random_inputs(1, 2, 1, 4, seed=12), 2, note=note)
    agrees(answer, _torchs_heads, *_random_inputs(2, 3, 1, 6, seed=13), 3, note=note)


@hint("What divides the scores, and over which axis do they sum to 1?")
def test_one_head(answer):
    """with one head it is chapter 05's attention, mixed by w_o"""
    note = "One head has all C numbers: D = C."
    agrees(answer, _torchs_heads, *_random_inputs(1, 1, 2, 2, seed=21), 1, note=note)
    agrees(answer, _torchs_heads, *_random_inputs(2, 3, 5, 4, seed=22), 1, note=note)


def test_many_heads(answer):
    """each head has scores and values of its own"""
    note = "Two heads of one number."
    agrees(answer, _torchs_heads, *_random_inputs(1, 1, 2, 2, seed=31), 2, note=note)
    agrees(answer, _torchs_heads, *_random_inputs(2, 3, 5, 8, seed=32), 4)
    agrees(answer, _torchs_heads, *_random_inputs(3, 4, 2, 6, seed=33), 2)
    note = "The memory is as long as x, and another sentence."
    agrees(answer, _torchs_heads, *_random_inputs(2, 3, 3, 4, seed=34), 2, note=note)


def test_large_scores(answer):
    """scores in the thousands give no NaN"""
    large, note = (
        _random_inputs(2, 3, 5, 4, 41, 60.0),
        "e^89 is past float32: leave it to `softmax`.",
    )
    agrees(answer, _torchs_heads, *large, 2, tolerance=1e-3, note=note)


def test_other_dtype(answer):
    """it works in float64"""
    agrees(answer, _torchs_heads, *_random_inputs(2, 3, 5, 4, seed=51, dtype=torch.float64), 2)


def test_other_device(answer):
    """it works where its arguments are"""
    travels(answer, *_random_inputs(2, 3, 5, 4, seed=52), 2)


def test_heads_learn(answer):
    """gradients reach x, the memory and every map"""
    gradients(answer, _torchs_heads, *_random_inputs(1, 2, 3, 2, seed=61), 1)
    gradients(answer, _torchs_heads, *_random_inputs(2, 3, 5, 4, seed=62), 2)


MISTAKES = r"""
scale by d_model
    q.size(-1) ** 0.5 => x.size(-1) ** 0.5
    says: for the gradient to
    A score is a dot product of D numbers, those of one head: divide by √D, D = C / H.
no 1/√d_k
     / q.size(-1) ** 0.5 =>
    says: One head has all C numbers
    Scores are divided by √D, or they grow with the width of a head and the softmax is sure of
    itself from the start.
divided by D, without the root
     ** 0.5 =>
    says: One head has all C numbers
    A dot product of D numbers is about √D large: divide by the root.
values from the key map
    memory @ w_v => memory @ w_k
    says: every row is memory @ w_v @ w_o
    You used `w_k` where `w_v` belongs: what a word is found by and what it passes on are two
    things, and have a map each.
num_heads ignored
    (num_heads, -1) => (1, -1)
    says: Two heads of one number
    This is one head of all C numbers, whatever `num_heads` is.
maps multiplied from the left
    x @ w_q, memory @ w_k, memory @ w_v => x @ w_q.T, memory @ w_k.T, memory @ w_v.T
    @ w_o => @ w_o.T
    says: every row is memory @ w_v @ w_o
    You used `x @ w.T`, as `nn.Linear` does. Here maps multiply from the right: `x @ w`.
no maps before the split
    x @ w_q, memory @ w_k, memory @ w_v => x, memory, memory
    says: every row is memory @ w_v @ w_o
    You split `x` and `memory` themselves. Queries, keys and values are `x @ w_q`, `memory @
    w_k`, `memory @ w_v`.
no output map
     @ w_o =>
    says: every row is memory @ w_v @ w_o
    Joined heads lie side by side and have not met: `w_o` lets them mix.
softmax over the queries
    softmax(-1) => softmax(-2)
    says: every row is memory @ w_v @ w_o
    Each query spreads its own 1 over the keys, the last axis.
softmax over the heads
    softmax(-1) => softmax(1)
    says: position [0, 0, 0] is
    Heads do not compete: each has its own softmax over the keys, the last axis.
exponentials without softmax
    softmax(-1) => exp()
    (weights @ v) => (weights / weights.sum(-1, keepdim=True) @ v)
    says: e^89 is past float32
    `exp` overflows at 89, and ∞/∞ is NaN. `softmax` takes the largest score away first.
joined without transpose
    .transpose(1, 2).flatten(2) => .reshape(x.shape)
    says: every row is memory @ w_v @ w_o
    `reshape` from (B, H, T, D) puts different words of one head in a row. Transpose back to (B,
    T, H, D) first.
heads averaged
    .transpose(1, 2).flatten(2) => .mean(1).repeat(1, 1, num_heads)
    says: every row is memory @ w_v @ w_o
    Averaging makes one answer of all. Heads are set side by side, H × D = C numbers.
numbers of the heads interleaved
    .transpose(1, 2).flatten(2) => .permute(0, 2, 3, 1).flatten(2)
    says: every row is memory @ w_v @ w_o
    Joined, head 0's D numbers come first, then head 1's: transpose to (B, T, H, D) before you
    flatten.
memory ignored
    memory @ w_k, memory @ w_v => x @ w_k, x @ w_v
    says: every row is memory @ w_v @ w_o
    In cross-attention the keys and values come from the memory, only queries from x.
split before projecting
    q, k, v = ( =>
        size = x.size(-1) // num_heads
        blocks = torch.block_diag(*[x.new_ones(size, size)] * num_heads)
        w_q, w_k, w_v = (w * blocks for w in (w_q, w_k, w_v))
        q, k, v = (
    says: position [0, 0, 0] is
    Then head h sees only slice h of each word. The split follows the projection, so that every
    head reads the whole vector.
as long as the memory
    x @ w_q, memory @ w_k, memory @ w_v => memory @ w_q, x @ w_k, x @ w_v
    says: a row for each query
    Queries and memory are swapped: there is an answer for each query, and queries come from `x`.
computed in float32
    y.unflatten => y.float().unflatten
    .flatten(2) => .flatten(2).to(x.dtype)
    says: (float64)
    `.float()` throws away half the digits of float64, and `.to` does not bring them back.
    Compute in the dtype of `x`.
queries from the memory where it fits
    q, k, v = ( =>
        if x.shape == memory.shape:
            x, memory = memory, x
        q, k, v = (
    says: The memory is as long as x
    Queries come from `x`, keys and values from the memory, also where both are equally long.
filled into float32 on the CPU
    return (weights @ v).transpose(1, 2).flatten(2) @ w_o =>
        joined = torch.zeros(x.shape)
        joined[:] = (weights @ v).transpose(1, 2).flatten(2)
        return joined.to(w_o.dtype) @ w_o
    says: position [0, 0, 0] is
    `torch.zeros(...)` is float32 on the CPU, whatever `x` is. Take `torch.zeros_like(x)` or
    join the heads without a table.
weights cut off from the graph
    .softmax(-1) => .detach().softmax(-1)
    says: no gradient reaches `x`
    The numbers are right, but `w_q` and `w_k` would never learn: leave `detach`, `.data` and
    `no_grad` out of it.
"""

HARMLESS = r"""
… => …k.size(-1) ** 0.5…
    queries and keys are D wide
… => …v.size(-1) ** 0.5…
    values are D wide, too
"""
