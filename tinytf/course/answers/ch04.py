"""Answers to chapter 04: references and mistakes."""

import math

import torch

from tinytf.course.grading import Answers, WrongAnswer

# 04.1 split into heads


def my_split_heads(x, num_heads):
    """Give each head its own slice of every vector: (B, T, C) -> (B, H, T, D), D = C / H.

    Head h gets the numbers h * D to (h + 1) * D - 1. Raises ValueError if H does not divide C.
    """
    if x.size(-1) % num_heads != 0:
        raise ValueError(f"d_model={x.size(-1)} is not divisible by num_heads={num_heads}")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def _checked(split):
    """A wrong `my_split_heads` that does refuse heads that do not divide."""

    def checked(x, num_heads):
        if x.size(-1) % num_heads != 0:
            raise ValueError("not divisible")
        return split(x, num_heads)

    return checked


def _drops_the_rest(x, num_heads):
    width = x.size(-1) // num_heads
    return x[..., : num_heads * width].unflatten(-1, (num_heads, width)).transpose(1, 2)


SPLIT = Answers(
    reference=my_split_heads,
    wrong=(
        WrongAnswer(
            "view without transpose",
            _checked(lambda x, n: x.view(x.size(0), n, x.size(1), -1)),
            "you get [[[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]]]",
            "`view` only recounts the numbers in memory: with (B, H, T, D), head 0 gets the first "
            "words whole, and later words go to other heads. Split the last axis, then transpose.",
        ),
        WrongAnswer(
            "heads after the words",
            _checked(lambda x, n: x.unflatten(-1, (n, -1))),
            "the shape is (1, 3, 2, 2), expected (1, 2, 3, 2)",
            "With (B, T, H, D), `q @ k.mT` compares the heads of one word with each other, and no "
            "word sees another. Transpose the words and the heads.",
        ),
        WrongAnswer(
            "interleaved",
            _checked(lambda x, n: x.unflatten(-1, (-1, n)).permute(0, 3, 1, 2)),
            "you get [[[[0, 2], [4, 6], [8, 10]]",
            "Head h took every H-th number. A model trained so would work, but weights from "
            "anywhere else would not fit: heads are slices.",
        ),
        WrongAnswer(
            "words and widths swapped",
            _checked(lambda x, n: x.unflatten(-1, (n, -1)).permute(0, 2, 3, 1)),
            "the shape is (1, 2, 2, 3), expected (1, 2, 3, 2)",
            "The last axis has to be the width D, the one that the dot product sums over.",
        ),
        WrongAnswer(
            "sentences and heads mixed",
            _checked(lambda x, n: torch.stack(x.chunk(n, -1)).view(len(x), n, x.size(1), -1)),
            "Sentence 0 is [0, 1]",
            "`torch.stack` puts the heads in front of the sentences, and `view` only recounts: "
            "sentence 0 gets head 0 of every sentence. Stack along axis 1.",
        ),
        WrongAnswer(
            "heads in the batch axis",
            _checked(lambda x, n: x.unflatten(-1, (n, -1)).transpose(1, 2).flatten(0, 1)),
            "the shape is (2, 3, 2), expected (1, 2, 3, 2)",
            "Folding heads into the batch, (B * H, T, D), computes the same attention, but a mask "
            "of (B, 1, T, S) no longer fits. Keep an axis of their own.",
        ),
        WrongAnswer(
            "cut off from the graph",
            _checked(lambda x, n: x.detach().unflatten(-1, (n, -1)).transpose(1, 2)),
            "no gradient reaches `x`",
            "The numbers are right, but nothing below would learn: leave `detach`, `.data`, "
            "`no_grad` and NumPy out of it.",
        ),
        WrongAnswer(
            "drops what does not divide",
            _drops_the_rest,
            "expected a ValueError",
            "`C // num_heads` rounds down: with C=10 and 3 heads, one number of every word is "
            "silently lost. Refuse it.",
        ),
    ),
    equivalent={},
)


# 04.2 repair a causal attention


def my_causal_heads(x, w_q, w_k, w_v, w_o, num_heads):
    """Causal self-attention with `num_heads` heads: x (B, T, C) -> (B, T, C).

    Each w is (C, C) and multiplies from the right: q = x @ w_q. Word t sees the words 0 to t.
    """
    q, k, v = ((x @ w).unflatten(-1, (num_heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    scores = q @ k.mT / math.sqrt(q.size(-1))  # (B, H, T, T)
    later = torch.ones_like(scores, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(later, -math.inf).softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ w_o  # (B, H, T, D) -> (B, T, C)


def _hidden(scores, later):
    return scores.masked_fill(later, -math.inf).softmax(dim=-1)


def _zeroed(scores, later):
    return scores.softmax(dim=-1).masked_fill(later, 0.0)


def _renormalised(scores, later):
    weights = _zeroed(scores, later)
    return weights / weights.sum(dim=-1, keepdim=True)


def _causal_variant(
    cut=lambda y, n: y.unflatten(-1, (n, -1)).transpose(1, 2),
    width=lambda x, q: q.size(-1),
    hide=_hidden,
    join=lambda heads, x: heads.transpose(1, 2).flatten(2),
    triangle=lambda scores: torch.ones_like(scores, dtype=torch.bool).triu(1),
    out=True,
):
    """A `my_causal_heads` with something wrong."""

    def causal_heads(x, w_q, w_k, w_v, w_o, num_heads):
        q, k, v = (cut(x @ w, num_heads) for w in (w_q, w_k, w_v))
        scores = q @ k.mT / math.sqrt(width(x, q))
        joined = join(hide(scores, triangle(scores)) @ v, x)
        return joined @ w_o if out else joined

    return causal_heads


def _by_reshape(y, n):
    return y.reshape(len(y), n, y.size(1), -1)


def _side_by_side(heads, x):
    return heads.reshape(x.shape)


_LATER = "later = torch.ones_like(scores, dtype=torch.bool).triu(1)"
_SCORES = "scores = q @ k.mT / math.sqrt(q.size(-1))"

REPAIR = Answers(
    reference=my_causal_heads,
    wrong=(
        WrongAnswer(
            "as it stood",
            _causal_variant(
                cut=_by_reshape, width=lambda x, q: x.size(-1), hide=_zeroed, join=_side_by_side
            ),
            "Row 0 is x[0] @ w_v @ w_o",
            "Nothing is repaired yet. Begin with the mask, which one head alone can test.",
        ),
        WrongAnswer(
            "split by reshape",
            _causal_variant(cut=_by_reshape),
            "words before it move by",
            "`reshape` to (B, H, T, D) only recounts: head 0 gets the first words in pieces. Name "
            "the axes (B, T, H, D), then transpose.",
        ),
        WrongAnswer(
            "scaled by the whole width",
            _causal_variant(width=lambda x, q: x.size(-1)),
            "position [0, 1,",
            "A score is a dot product of D numbers, those of one head: divide by √D, not √C.",
        ),
        WrongAnswer(
            "masked after the softmax",
            _causal_variant(hide=_zeroed),
            "Row 0 is x[0] @ w_v @ w_o",
            "The later words' weights are gone, but they had their share of the 1: a row sums to "
            "less, and by how much tells what comes later. Hide scores, with -∞, before it.",
        ),
        WrongAnswer(
            "joined by reshape",
            _causal_variant(join=_side_by_side),
            "words before it move by",
            "`reshape` from (B, H, T, D) puts different words of one head in a row. Transpose back "
            "to (B, T, H, D) first.",
        ),
        WrongAnswer(
            "no mask",
            _causal_variant(hide=lambda scores, later: scores.softmax(dim=-1)),
            "Row 0 is x[0] @ w_v @ w_o",
            "Every word sees the later ones.",
        ),
        WrongAnswer(
            "the triangle the wrong way round",
            _causal_variant(
                triangle=lambda scores: torch.ones_like(scores, dtype=torch.bool).tril(-1)
            ),
            "Row 0 is x[0] @ w_v @ w_o",
            "You hide what came before. Above the diagonal the key is later than the query.",
        ),
        WrongAnswer(
            "a word does not see itself",
            _causal_variant(
                triangle=lambda scores: torch.ones_like(scores, dtype=torch.bool).triu()
            ),
            "every row is x @ w_v @ w_o",
            "`triu()` has the diagonal too, so word 0 sees nothing at all: `triu(1)`.",
        ),
        WrongAnswer(
            "one word too far",
            _causal_variant(
                triangle=lambda scores: torch.ones_like(scores, dtype=torch.bool).triu(2)
            ),
            "Row 0 is x[0] @ w_v @ w_o",
            "`triu(2)` leaves the next word to be seen, the very one to be predicted: `triu(1)`.",
        ),
        WrongAnswer(
            "hidden with -10,000",
            _causal_variant(
                hide=lambda scores, later: scores.masked_fill(later, -1e4).softmax(dim=-1)
            ),
            "can have a weight of 0 before",
            "A score of its own can be lower still. Hide with -∞, or the least number there is.",
        ),
        WrongAnswer(
            "hidden scores set to 0",
            _causal_variant(
                hide=lambda scores, later: scores.masked_fill(later, 0.0).softmax(dim=-1)
            ),
            "Row 0 is x[0] @ w_v @ w_o",
            "A score of 0 is a score like any other, and e^0 is 1. Hide with -∞.",
        ),
        WrongAnswer(
            "zeroed, and divided by what is left",
            _causal_variant(hide=_renormalised),
            "can have a weight of 0 before",
            "That is right until a later word takes all the weight: then 0 is divided by 0. Hide "
            "the scores before the softmax.",
        ),
        WrongAnswer(
            "no output map",
            _causal_variant(out=False),
            "every row is x @ w_v @ w_o",
            "Joined heads lie side by side and have not met: `w_o` lets them mix.",
        ),
        WrongAnswer(
            "a mask on the CPU",
            _causal_variant(
                triangle=lambda scores: torch.ones(scores.shape, dtype=torch.bool).triu(1)
            ),
            "device",
            "`torch.ones(...)` is on the CPU, wherever `x` is: say `device=x.device`.",
        ),
        WrongAnswer(
            "weights cut off from the graph",
            _causal_variant(hide=lambda scores, later: _hidden(scores.detach(), later)),
            "for the gradient to",
            "The numbers are right, but `w_q` and `w_k` would never learn: leave `detach`, "
            "`.data` and `no_grad` out of it.",
        ),
    ),
    equivalent={
        f"{_LATER} => {_LATER}.detach()": "booleans have no gradient to lose",
        f"{_LATER} => later = torch.ones_like(scores.detach(), dtype=torch.bool).triu(1)": (
            "only the shape and the device of the scores are taken"
        ),
        f"{_LATER} => later = torch.ones_like(scores.float(), dtype=torch.bool).triu(1)": (
            "only the shape and the device of the scores are taken"
        ),
        "… => ….masked_fill(later.detach(), -math.inf).…": "booleans have no gradient to lose",
        f"{_SCORES} => {_SCORES.replace('q.size', 'k.size')}": "queries and keys are D wide",
        f"{_SCORES} => {_SCORES.replace('q.size', 'v.size')}": "values are D wide, too",
    },
)


# 04.3 multi-head cross-attention


def my_multi_head(x, memory, w_q, w_k, w_v, w_o, num_heads):
    """Attend from x (B, T, C) to memory (B, S, C) with `num_heads` heads; returns (B, T, C).

    Each w is (C, C) and multiplies from the right: q = x @ w_q. No biases, no mask.
    """
    q, k, v = (
        y.unflatten(-1, (num_heads, -1)).transpose(1, 2)  # (B, T, C) -> (B, H, T, D)
        for y in (x @ w_q, memory @ w_k, memory @ w_v)
    )
    weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)  # (B, H, T, S)
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


_WEIGHTS = "weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)"

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


# 04.4 the mask of cross-attention


def my_cross_mask(src_ids, tgt_ids, pad_id=0):
    """What target words may look at in the source, True = may: (B, 1, T, S), or T of size 1.

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

ANSWERS = {"04.1": SPLIT, "04.2": REPAIR, "04.3": MULTI, "04.4": CROSS}
