"""07.1 multi-head cross-attention (★★☆, 15 minutes)

Write `my_multi_head(x, memory, w_q, w_k, w_v, w_o, num_heads)`, multi-head cross-attention with
queries from `x` and keys and values from `memory`. The projections are `(C, C)` matrices that
multiply from the right, without biases, there is no mask, and the two sentences may differ in
length.

Hint: Project, split into heads, attend, swap the axes back, flatten, and multiply by `w_o`. Each
step takes a line or two.
"""

import math

import torch
from torch.nn.functional import multi_head_attention_forward

from tinytf_course.expect import agrees, expect, gradients, numbers, tensor, travels
from tinytf_course.grading import hint


def torchs_heads(x, memory, w_q, w_k, w_v, w_o, num_heads):
    """torch's own, whose maps multiply from the left and whose words come first."""
    memory = memory.transpose(0, 1)
    out, _ = multi_head_attention_forward(
        x.transpose(0, 1), memory, memory, x.size(-1), num_heads,
        torch.cat([w_q.T, w_k.T, w_v.T]), None, None, None, False, 0.0, w_o.T, None,
        training=False, need_weights=False,
    )  # fmt: skip
    return out.transpose(0, 1)


def random_inputs(b, t, s, c, seed, scale=1.0, dtype=torch.float32):
    """x, memory and four maps of random numbers."""
    maps = numbers(4, c, c, seed=seed, scale=c**-0.5, dtype=dtype).unbind()
    x = numbers(b, t, c, seed=seed + 1, scale=scale, dtype=dtype)
    return x, numbers(b, s, c, seed=seed + 2, scale=scale, dtype=dtype), *maps


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


def test_query_length(answer):
    """the output is as long as the queries"""
    where = "for x of shape (2, 3, 4), memory of shape (2, 5, 4) and num_heads=2"
    shape = tuple(tensor(answer(*random_inputs(2, 3, 5, 4, seed=1), 2), where).shape)
    expect(shape == (2, 3, 4), f"{where}, the shape is {shape}, expected (2, 3, 4): a row for each "
           "query")  # fmt: skip


def test_one_word_memory(answer):
    """of a memory of one word each query takes it all, through w_v and w_o"""
    note = "Its weight is 1: every row is memory @ w_v @ w_o."
    agrees(answer, torchs_heads, *random_inputs(1, 2, 1, 2, seed=11), 1, note=note)
    agrees(answer, torchs_heads, *random_inputs(1, 2, 1, 4, seed=12), 2, note=note)
    agrees(answer, torchs_heads, *random_inputs(2, 3, 1, 6, seed=13), 3, note=note)


@hint("What divides the scores, and over which axis do they sum to 1?")
def test_one_head(answer):
    """with one head it is chapter 05's attention, mixed by w_o"""
    note = "One head has all C numbers: D = C."
    agrees(answer, torchs_heads, *random_inputs(1, 1, 2, 2, seed=21), 1, note=note)
    agrees(answer, torchs_heads, *random_inputs(2, 3, 5, 4, seed=22), 1, note=note)


def test_many_heads(answer):
    """each head has scores and values of its own"""
    agrees(
        answer,
        torchs_heads,
        *random_inputs(1, 1, 2, 2, seed=31),
        2,
        note="Two heads of one number.",
    )
    agrees(answer, torchs_heads, *random_inputs(2, 3, 5, 8, seed=32), 4)
    agrees(answer, torchs_heads, *random_inputs(3, 4, 2, 6, seed=33), 2)
    note = "The memory is as long as x, and another sentence."
    agrees(answer, torchs_heads, *random_inputs(2, 3, 3, 4, seed=34), 2, note=note)


def test_large_scores(answer):
    """scores in the thousands give no NaN"""
    agrees(answer, torchs_heads, *random_inputs(2, 3, 5, 4, seed=41, scale=60.0), 2, tolerance=1e-3,
           note="e^89 is past float32: leave it to `softmax`.")  # fmt: skip


def test_other_dtype(answer):
    """it works in float64"""
    agrees(answer, torchs_heads, *random_inputs(2, 3, 5, 4, seed=51, dtype=torch.float64), 2)


def test_other_device(answer):
    """it works where its arguments are"""
    travels(answer, *random_inputs(2, 3, 5, 4, seed=52), 2)


def test_heads_learn(answer):
    """gradients reach x, the memory and every map"""
    gradients(answer, torchs_heads, *random_inputs(1, 2, 3, 2, seed=61), 1)
    gradients(answer, torchs_heads, *random_inputs(2, 3, 5, 4, seed=62), 2)


def _heads_variant(
    scale=math.sqrt,
    width=lambda x, size: size,
    values="v",
    out=True,
    weigh=lambda scores: scores.softmax(-1),
    join=lambda heads, c: heads.transpose(1, 2).flatten(2),
    source=lambda x, memory: memory,
    heads=lambda n: n,
):
    """A `my_multi_head` with one thing wrong."""

    def multi_head(x, memory, w_q, w_k, w_v, w_o, num_heads):
        num_heads, memory = heads(num_heads), source(x, memory)
        w_v = w_v if values == "v" else w_k
        size = x.size(-1) // num_heads
        q, k, v = (
            y.unflatten(-1, (num_heads, -1)).transpose(1, 2)
            for y in (x @ w_q, memory @ w_k, memory @ w_v)
        )
        attended = weigh(q @ k.mT / scale(width(x, size))) @ v
        joined = join(attended, len(w_o))
        return joined @ w_o if out else joined

    return multi_head


def _by_exp(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


MISTAKES = r"""
scale by d_model
    … =>
        return _heads_variant(width=lambda x, size: x.size(-1))(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: for the gradient to
    A score is a dot product of D numbers, those of one head: divide by √D, D = C / H.
no 1/√d_k
    … =>
        return _heads_variant(scale=lambda size: 1.0)(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: One head has all C numbers
    Scores are divided by √D, or they grow with the width of a head and the softmax is sure of
    itself from the start.
divided by D, without the root
    … =>
        return _heads_variant(scale=float)(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: One head has all C numbers
    A dot product of D numbers is about √D large: divide by the root.
values from the key map
    … =>
        return _heads_variant(values="k")(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: every row is memory @ w_v @ w_o
    You used `w_k` where `w_v` belongs: what a word is found by and what it says are two things,
    and have a map each.
num_heads ignored
    … =>
        return _heads_variant(heads=lambda n: 1)(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: Two heads of one number
    This is one head of all C numbers, whatever `num_heads` is.
maps multiplied from the left
    … =>
        return (
                                                             my_multi_head(
                x, memory, w_q.T, w_k.T, w_v.T, w_o.T, num_heads
            )
        )
    says: every row is memory @ w_v @ w_o
    You used `x @ w.T`, as `nn.Linear` does. Here maps multiply from the right: `x @ w`.
no maps before the split
    … =>
        return (
                                                             my_multi_head(
                x, memory, *[torch.eye(len(w_o)).to(w_o)] * 3, w_o, num_heads
            )
        )
    says: every row is memory @ w_v @ w_o
    You split `x` and `memory` themselves. Queries, keys and values are `x @ w_q`, `memory @
    w_k`, `memory @ w_v`.
no output map
    … =>
        return _heads_variant(out=False)(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: every row is memory @ w_v @ w_o
    Joined heads lie side by side and have not met: `w_o` lets them mix.
softmax over the queries
    … =>
        return _heads_variant(weigh=lambda scores: scores.softmax(-2))(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: every row is memory @ w_v @ w_o
    Each query spreads its own 1 over the keys, the last axis.
softmax over the heads
    … =>
        return _heads_variant(weigh=lambda scores: scores.softmax(1))(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: position [0, 0, 0] is
    Heads do not compete: each has its own softmax over the keys, the last axis.
exponentials without softmax
    … =>
        return _heads_variant(weigh=_by_exp)(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: e^89 is past float32
    `exp` overflows at 89, and ∞/∞ is NaN. `softmax` takes the largest score away first.
joined without transpose
    … =>
        return _heads_variant(join=lambda heads, c: heads.reshape(len(heads), -1, c))(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: every row is memory @ w_v @ w_o
    `reshape` from (B, H, T, D) puts different words of one head in a row. Transpose back to (B,
    T, H, D) first.
heads averaged
    … =>
        return _heads_variant(join=lambda heads, c: heads.mean(1).repeat(1, 1, heads.size(1)))(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: every row is memory @ w_v @ w_o
    Averaging makes one answer of all. Heads are set side by side, H × D = C numbers.
numbers of the heads interleaved
    … =>
        return _heads_variant(join=lambda heads, c: heads.permute(0, 2, 3, 1).flatten(2))(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: every row is memory @ w_v @ w_o
    Joined, head 0's D numbers come first, then head 1's: transpose to (B, T, H, D) before you
    flatten.
memory ignored
    … =>
        return _heads_variant(source=lambda x, memory: x)(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: every row is memory @ w_v @ w_o
    In cross-attention the keys and values come from the memory, only queries from x.
split before projecting
    … =>
        size = x.size(-1) // num_heads
        blocks = torch.block_diag(*[torch.ones(size, size, dtype=x.dtype)] * num_heads).to(x.device)
        return my_multi_head(x, memory, *(w * blocks for w in (w_q, w_k, w_v)), w_o, num_heads)
    says: position [0, 0, 0] is
    Then head h sees only slice h of each word. The split follows the projection, so that every
    head reads the whole vector.
as long as the memory
    … =>
        return (
                                                             my_multi_head(
                memory, x, w_q, w_k, w_v, w_o, num_heads
            )
        )
    says: a row for each query
    Queries and memory are swapped: the one who asks decides how many answers there are.
computed in float32
    … =>
        return (lambda *arguments: my_multi_head( *(part.float() for part in arguments[:-1]), arguments[-1] ).to(arguments[0].dtype))(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: (float64)
    `.float()` throws away half the digits of float64, and `.to` does not bring them back.
    Compute in the dtype of `x`.
queries from the memory where it fits
    … =>
        return (lambda x, memory, *rest: ( my_multi_head(memory, x, *rest) if x.shape == memory.shape else my_multi_head(x, memory, *rest) ))(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: The memory is as long as x
    The decoder asks, and the memory answers: queries come from `x`, however long the memory is.
filled into float32 on the CPU
    … =>
        out, size = torch.zeros(x.shape), x.size(-1) // num_heads
        for i in range(0, x.size(-1), size):
            q, k, v = ((y @ w)[..., i : i + size] for y, w in ((x, w_q), (memory, w_k), (memory, w_v)))
            out[..., i : i + size] = (q @ k.mT / math.sqrt(size)).softmax(-1) @ v
        return out.to(w_o.dtype) @ w_o
    says: position [0, 0, 0] is
    `torch.zeros(...)` is float32 on the CPU, whatever `x` is. Take `torch.zeros_like(x)` or
    join the heads without a table.
weights cut off from the graph
    … =>
        return _heads_variant(weigh=lambda scores: scores.detach().softmax(-1))(x, memory, w_q, w_k, w_v, w_o, num_heads)
    says: no gradient reaches `x`
    The numbers are right, but `w_q` and `w_k` would never learn: leave `detach`, `.data` and
    `no_grad` out of it.
"""

HARMLESS = r"""
weights = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1) => weights = (q @ k.mT / k.size(-1) ** 0.5).softmax(-1)
    queries and keys are D wide
weights = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1) => weights = (q @ k.mT / v.size(-1) ** 0.5).softmax(-1)
    values are D wide, too
"""
