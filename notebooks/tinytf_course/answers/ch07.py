"""Answers to chapter 07: references and mistakes."""

import math

import torch

from tinytf_course.grading import Answers, WrongAnswer

# 07.1 multi-head cross-attention


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


def _sliced_maps(x, memory, w_q, w_k, w_v, w_o, num_heads):
    """Each head projects its own slice of the input only."""
    size = x.size(-1) // num_heads
    blocks = torch.block_diag(*[torch.ones(size, size, dtype=x.dtype)] * num_heads).to(x.device)
    return my_multi_head(x, memory, *(w * blocks for w in (w_q, w_k, w_v)), w_o, num_heads)


def _filled(x, memory, w_q, w_k, w_v, w_o, num_heads):
    """Head by head, into a float32 table on the CPU."""
    out, size = torch.zeros(x.shape), x.size(-1) // num_heads
    for i in range(0, x.size(-1), size):
        q, k, v = ((y @ w)[..., i : i + size] for y, w in ((x, w_q), (memory, w_k), (memory, w_v)))
        out[..., i : i + size] = (q @ k.mT / math.sqrt(size)).softmax(-1) @ v
    return out.to(w_o.dtype) @ w_o


def _by_exp(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


_WEIGHTS = "weights = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1)"

MULTI = Answers(
    reference=my_multi_head,
    wrong=(
        WrongAnswer(
            "scale by d_model",
            _heads_variant(width=lambda x, size: x.size(-1)),
            "for the gradient to",
            "A score is a dot product of D numbers, those of one head: divide by √D, D = C / H.",
        ),
        WrongAnswer(
            "no 1/√d_k",
            _heads_variant(scale=lambda size: 1.0),
            "One head has all C numbers",
            "Scores are divided by √D, or they grow with the width of a head and the softmax "
            "is sure of itself from the start.",
        ),
        WrongAnswer(
            "divided by D, without the root",
            _heads_variant(scale=float),
            "One head has all C numbers",
            "A dot product of D numbers is about √D large: divide by the root.",
        ),
        WrongAnswer(
            "values from the key map",
            _heads_variant(values="k"),
            "every row is memory @ w_v @ w_o",
            "You used `w_k` where `w_v` belongs: what a word is found by and what it says are two "
            "things, and have a map each.",
        ),
        WrongAnswer(
            "num_heads ignored",
            _heads_variant(heads=lambda n: 1),
            "Two heads of one number",
            "This is one head of all C numbers, whatever `num_heads` is.",
        ),
        WrongAnswer(
            "maps multiplied from the left",
            lambda x, memory, w_q, w_k, w_v, w_o, num_heads: my_multi_head(
                x, memory, w_q.T, w_k.T, w_v.T, w_o.T, num_heads
            ),
            "every row is memory @ w_v @ w_o",
            "You used `x @ w.T`, as `nn.Linear` does. Here maps multiply from the right: `x @ w`.",
        ),
        WrongAnswer(
            "no maps before the split",
            lambda x, memory, w_q, w_k, w_v, w_o, num_heads: my_multi_head(
                x, memory, *[torch.eye(len(w_o)).to(w_o)] * 3, w_o, num_heads
            ),
            "every row is memory @ w_v @ w_o",
            "You split `x` and `memory` themselves. Queries, keys and values are `x @ w_q`, "
            "`memory @ w_k`, `memory @ w_v`.",
        ),
        WrongAnswer(
            "no output map",
            _heads_variant(out=False),
            "every row is memory @ w_v @ w_o",
            "Joined heads lie side by side and have not met: `w_o` lets them mix.",
        ),
        WrongAnswer(
            "softmax over the queries",
            _heads_variant(weigh=lambda scores: scores.softmax(-2)),
            "every row is memory @ w_v @ w_o",
            "Each query spreads its own 1 over the keys, the last axis.",
        ),
        WrongAnswer(
            "softmax over the heads",
            _heads_variant(weigh=lambda scores: scores.softmax(1)),
            "position [0, 0, 0] is",
            "Heads do not compete: each has its own softmax over the keys, the last axis.",
        ),
        WrongAnswer(
            "exponentials without softmax",
            _heads_variant(weigh=_by_exp),
            "e^89 is past float32",
            "`exp` overflows at 89, and ∞/∞ is NaN. `softmax` takes the largest score away first.",
        ),
        WrongAnswer(
            "joined without transpose",
            _heads_variant(join=lambda heads, c: heads.reshape(len(heads), -1, c)),
            "every row is memory @ w_v @ w_o",
            "`reshape` from (B, H, T, D) puts different words of one head in a row. Transpose back "
            "to (B, T, H, D) first.",
        ),
        WrongAnswer(
            "heads averaged",
            _heads_variant(join=lambda heads, c: heads.mean(1).repeat(1, 1, heads.size(1))),
            "every row is memory @ w_v @ w_o",
            "Averaging makes one answer of all. Heads are set side by side, H × D = C numbers.",
        ),
        WrongAnswer(
            "numbers of the heads interleaved",
            _heads_variant(join=lambda heads, c: heads.permute(0, 2, 3, 1).flatten(2)),
            "every row is memory @ w_v @ w_o",
            "Joined, head 0's D numbers come first, then head 1's: transpose to (B, T, H, D) "
            "before you flatten.",
        ),
        WrongAnswer(
            "memory ignored",
            _heads_variant(source=lambda x, memory: x),
            "every row is memory @ w_v @ w_o",
            "In cross-attention the keys and values come from the memory, only queries from x.",
        ),
        WrongAnswer(
            "split before projecting",
            _sliced_maps,
            "position [0, 0, 0] is",
            "Then head h sees only slice h of each word. The split follows the projection, so "
            "that every head reads the whole vector.",
        ),
        WrongAnswer(
            "as long as the memory",
            lambda x, memory, w_q, w_k, w_v, w_o, num_heads: my_multi_head(
                memory, x, w_q, w_k, w_v, w_o, num_heads
            ),
            "a row for each query",
            "Queries and memory are swapped: the one who asks decides how many answers there are.",
        ),
        WrongAnswer(
            "computed in float32",
            lambda *arguments: my_multi_head(
                *(part.float() for part in arguments[:-1]), arguments[-1]
            ).to(arguments[0].dtype),
            "(float64)",
            "`.float()` throws away half the digits of float64, and `.to` does not bring them "
            "back. Compute in the dtype of `x`.",
        ),
        WrongAnswer(
            "queries from the memory where it fits",
            lambda x, memory, *rest: (
                my_multi_head(memory, x, *rest)
                if x.shape == memory.shape
                else my_multi_head(x, memory, *rest)
            ),
            "The memory is as long as x",
            "The decoder asks, and the memory answers: queries come from `x`, however long the "
            "memory is.",
        ),
        WrongAnswer(
            "filled into float32 on the CPU",
            _filled,
            "position [0, 0, 0] is",
            "`torch.zeros(...)` is float32 on the CPU, whatever `x` is. Take `torch.zeros_like(x)` "
            "or join the heads without a table.",
        ),
        WrongAnswer(
            "weights cut off from the graph",
            _heads_variant(weigh=lambda scores: scores.detach().softmax(-1)),
            "no gradient reaches `x`",
            "The numbers are right, but `w_q` and `w_k` would never learn: leave `detach`, "
            "`.data` and `no_grad` out of it.",
        ),
    ),
    equivalent={
        f"{_WEIGHTS} => {_WEIGHTS.replace('q.size', 'k.size')}": "queries and keys are D wide",
        f"{_WEIGHTS} => {_WEIGHTS.replace('q.size', 'v.size')}": "values are D wide, too",
    },
)


# 07.2 the mask of cross-attention


def my_cross_mask(src_ids, tgt_ids, pad_id=0):
    """What target tokens may attend to in the source, True = may: (B, 1, T, S), or T of size 1.

    src_ids is (B, S), tgt_ids (B, T). Hides the source's padding, and nothing else.
    """
    return (src_ids != pad_id)[:, None, None, :]


def _triangle(src_ids, tgt_ids):
    return torch.ones(tgt_ids.size(1), src_ids.size(1), dtype=torch.bool).tril()


_MASK = "return (src_ids != pad_id)[:, None, None, :]"

CROSS = Answers(
    reference=my_cross_mask,
    wrong=(
        WrongAnswer(
            "the target's padding",
            lambda src_ids, tgt_ids, pad_id=0: (tgt_ids != pad_id)[:, None, None, :],
            "the shape is (2, 1, 1, 2)",
            "The keys of cross-attention come from the source: it is the source's padding that "
            "must be hidden. With sentences of equal lengths this mistake is silent.",
        ),
        WrongAnswer(
            "causal too",
            lambda src_ids, tgt_ids, pad_id=0: (
                (src_ids != pad_id)[:, None, None, :] & _triangle(src_ids, tgt_ids)
            ),
            "the whole source is known before",
            "The causal mask is for the target's own words. The source is there from the start, "
            "and translation reorders.",
        ),
        WrongAnswer(
            "no mask",
            lambda src_ids, tgt_ids, pad_id=0: torch.ones(
                len(src_ids), 1, 1, src_ids.size(1), dtype=torch.bool
            ),
            "a pad is never seen",
            "The decoder then reads padding, and a translation depends on what else is in the "
            "batch. Nothing shows while all sentences are equally long.",
        ),
        WrongAnswer(
            "True means hide",
            lambda src_ids, tgt_ids, pad_id=0: (src_ids == pad_id)[:, None, None, :],
            "a pad is never seen",
            "That is `key_padding_mask` of `nn.MultiheadAttention`. Here True means “may attend”.",
        ),
        WrongAnswer(
            "counted from the left",
            lambda src_ids, tgt_ids, pad_id=0: (
                torch.arange(src_ids.size(1)) < (src_ids != pad_id).sum(1, keepdim=True)
            )[:, None, None, :],
            "wherever it stands",
            "You count the real words and show the first so many. That holds only while padding "
            "comes last: compare the ids themselves.",
        ),
        WrongAnswer(
            "everything after the first padding",
            lambda src_ids, tgt_ids, pad_id=0: ((src_ids == pad_id).cumsum(-1) == 0)[
                :, None, None, :
            ],
            "wherever it stands",
            "Padding may stand in front, and then the words come after it. Each id says for "
            "itself what it is.",
        ),
        WrongAnswer(
            "two axes",
            lambda src_ids, tgt_ids, pad_id=0: src_ids != pad_id,
            "the shape is (2, 3)",
            "Against scores (B, H, T, S), a (B, S) mask lines its sentences up with the target "
            "words, and a (B, 1, S) one with the heads.",
        ),
        WrongAnswer(
            "target padding hidden as well",
            lambda src_ids, tgt_ids, pad_id=0: (
                (src_ids != pad_id)[:, None, None, :] & (tgt_ids != pad_id)[:, None, :, None]
            ),
            "the whole source is known before",
            "A padded query's result is never read. Hiding everything from it only makes a row "
            "with nothing to see.",
        ),
        WrongAnswer(
            "pad_id ignored",
            lambda src_ids, tgt_ids, pad_id=0: (src_ids != 0)[:, None, None, :],
            "`pad_id` is 9",
            "`pad_id` is an argument: vocabularies differ in it, and 0 may be a word.",
        ),
        WrongAnswer(
            "ids above pad_id",
            lambda src_ids, tgt_ids, pad_id=0: (src_ids > pad_id)[:, None, None, :],
            "`pad_id` is 9",
            "`>` holds only while padding has the smallest id: compare with `!=`.",
        ),
    ),
    equivalent={
        f"{_MASK} => {_MASK}.detach()": "ids and booleans have no gradient to lose",
        f"{_MASK} => return (src_ids.detach() != pad_id)[:, None, None, :]": (
            "ids have no gradient to lose"
        ),
        f"{_MASK} => return (src_ids.float() != pad_id)[:, None, None, :]": (
            "ids up to 16,777,216 are exact in float32"
        ),
    },
)


ANSWERS = {
    "07.1": MULTI,
    "07.2": CROSS,
}
