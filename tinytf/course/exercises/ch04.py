"""Chapter 04: splitting into heads, multi-head attention, a head's score, a cross mask."""

import math

import torch
from torch.nn.functional import multi_head_attention_forward

from tinytf.course.grading import Exercise, WrongAnswer, calls, expect, same, short, tensor

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


WORDS = torch.arange(12.0).reshape(1, 3, 4)  # B=1, T=3, C=4: word t is [4t, 4t+1, 4t+2, 4t+3]
SQUARE = torch.arange(16.0).reshape(1, 2, 8)  # T=2, so that H=2 lines up with T
_WORDS = f"for x={short(WORDS)}, num_heads=2"


def _split_shape(answer):
    """there is an axis of heads before that of words"""
    got = tensor(answer(WORDS, 2), _WORDS)
    shape = tuple(got.shape)
    expect(shape == (1, 2, 3, 2), f"{_WORDS}, the shape is {shape}, expected (1, 2, 3, 2)")


def _split_content(answer):
    """head h holds slice h of every word"""
    got = tensor(answer(WORDS, 2), _WORDS)
    expected = torch.stack([WORDS[..., :2], WORDS[..., 2:]], dim=1)
    expect(got.numel() == 12, f"{_WORDS}, {got.numel()} numbers came out of 12")
    got = got.reshape(-1, 3, 2)
    for head in range(2):
        message = (
            f"{_WORDS}, head {head} is {short(got[head])}, expected {short(expected[0, head])}: "
            "a row for each word, its own numbers"
        )
        expect(torch.equal(got[head], expected[0, head]), message)


def _split_lined_up(answer):
    """also where there are as many heads as words"""
    where = f"for x={short(SQUARE)}, num_heads=2"
    same(answer(SQUARE, 2), SQUARE.unflatten(-1, (2, 4)).transpose(1, 2), where)


def _split_refuses(answer):
    """heads that do not divide the width are refused"""
    where = "for x of shape (1, 2, 10), num_heads=3"
    try:
        got = answer(torch.arange(20.0).reshape(1, 2, 10), 3)
    except ValueError:
        return
    shape = tuple(tensor(got, where).shape)
    expect(False, f"{where}, you return shape {shape}, expected a ValueError: 10 is not 3 × D")


SPLIT = Exercise(
    id="04.1",
    title="split into heads",
    difficulty=1,
    minutes=10,
    statement=(
        "Write `my_split_heads(x, num_heads)`: from `(B, T, C)` to `(B, H, T, D)`, where head h "
        "gets slice h of every word's vector. Raise `ValueError` if `num_heads` does not divide C."
    ),
    hint="First give the last axis its two parts, `unflatten(-1, (num_heads, -1))`; then swap.",
    reference=my_split_heads,
    wrong=(
        WrongAnswer(
            "view without transpose",
            _checked(lambda x, n: x.view(x.size(0), n, x.size(1), -1)),
            "a row for each word, its own numbers",
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
            "head 0 is [[0, 2], [4, 6], [8, 10]]",
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
            "drops what does not divide",
            _drops_the_rest,
            "expected a ValueError",
            "`C // num_heads` rounds down: with C=10 and 3 heads, one number of every word is "
            "silently lost. Refuse it.",
        ),
    ),
    tests=(_split_shape, _split_content, _split_lined_up, _split_refuses),
    probes=(
        calls(WORDS, 2),
        calls(SQUARE, 2),
        calls(torch.arange(20.0).reshape(1, 2, 10), 3),
    ),
)


# 04.2 multi-head attention


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
    width=None, out=True, axis=-1, merge=True, mixed=True, keys="memory", split_first=False
):
    """A `my_multi_head` with one thing wrong."""

    def multi_head(x, memory, w_q, w_k, w_v, w_o, num_heads):
        source = x if keys == "x" else memory
        size = x.size(-1) // num_heads
        q, k, v = (
            y.unflatten(-1, (num_heads, -1)).transpose(1, 2)
            for y in (x @ w_q, source @ w_k, source @ w_v)
        )
        if split_first:  # each head projects its own slice of the input only
            q, k, v = (
                torch.einsum(
                    "bthd,hde->bhte",
                    y.unflatten(-1, (num_heads, -1)),
                    torch.stack([w[i : i + size, i : i + size] for i in range(0, len(w), size)]),
                )
                for y, w in ((x, w_q), (source, w_k), (source, w_v))
            )
        weights = (q @ k.mT / math.sqrt(width(x) if width else size)).softmax(axis)
        heads = weights @ v
        if not mixed:
            return heads.mean(1).repeat(1, 1, num_heads) @ w_o
        joined = (
            heads.transpose(1, 2).flatten(2) if merge else heads.reshape(q.size(0), -1, len(w_o))
        )
        return joined @ w_o if out else joined

    return multi_head


def _numbers(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


X, MEMORY = _numbers(2, 3, 4, seed=1), _numbers(2, 5, 4, seed=2)
MAPS = tuple(_numbers(4, 4, seed=seed) for seed in (3, 4, 5, 6))
_HEADS = "for x of shape (2, 3, 4), memory of shape (2, 5, 4) and num_heads=2"


def _oracle(x, memory, num_heads, maps=MAPS):
    w_q, w_k, w_v, w_o = (w.T for w in maps)  # torch's multiply from the left
    out, _ = multi_head_attention_forward(
        x.transpose(0, 1), memory.transpose(0, 1), memory.transpose(0, 1), 4, num_heads,
        torch.cat([w_q, w_k, w_v]), None, None, None, False, 0.0, w_o, None, training=False,
        need_weights=False,
    )  # fmt: skip
    return out.transpose(0, 1)


def _query_length(answer):
    """the output is as long as the queries"""
    shape = tuple(tensor(answer(X, MEMORY, *MAPS, 2), _HEADS).shape)
    message = f"{_HEADS}, the shape is {shape}, expected (2, 3, 4): a row for each query"
    expect(shape == (2, 3, 4), message)


def _equals_torch(answer):
    """it equals torch's multi-head attention"""
    same(answer(X, MEMORY, *MAPS, 2), _oracle(X, MEMORY, 2), _HEADS, 1e-4)


def _one_head(answer):
    """with one head it is chapter 03's attention, joined by w_o"""
    same(answer(X, MEMORY, *MAPS, 1), _oracle(X, MEMORY, 1), _HEADS.replace("=2", "=1"), 1e-4)


def _all_of_memory(answer):
    """every word of the memory counts"""
    changed = MEMORY.clone()
    changed[:, 4] += 1
    with torch.no_grad():
        moved = tensor(answer(X, changed, *MAPS, 2), _HEADS) - tensor(
            answer(X, MEMORY, *MAPS, 2), _HEADS
        )
    message = f"{_HEADS}, the last word of memory was changed and the output was not"
    expect(moved.abs().max() > 1e-4, message)


MULTI = Exercise(
    id="04.2",
    title="multi-head attention",
    difficulty=2,
    minutes=20,
    statement=(
        "Write `my_multi_head(x, memory, w_q, w_k, w_v, w_o, num_heads)`: queries from `x`, keys "
        "and values from `memory`, each map `(C, C)` multiplied from the right, split into heads, "
        "attended, joined and mixed by `w_o`. No biases, no mask."
    ),
    hint="Project, split, attend, transpose back, flatten, multiply by `w_o`: a line or two each.",
    reference=my_multi_head,
    wrong=(
        WrongAnswer(
            "scale by d_model",
            _heads_variant(width=lambda x: x.size(-1)),
            "position [0, 0, 0] is",
            "A score is a dot product of D numbers, those of one head: divide by √D.",
        ),
        WrongAnswer(
            "maps multiplied from the left",
            lambda x, memory, w_q, w_k, w_v, w_o, num_heads: my_multi_head(
                x, memory, w_q.T, w_k.T, w_v.T, w_o.T, num_heads
            ),
            "position [0, 0, 0] is",
            "You used `x @ w.T`, as `nn.Linear` does. Here maps multiply from the right: `x @ w`.",
        ),
        WrongAnswer(
            "no maps before the split",
            lambda x, memory, w_q, w_k, w_v, w_o, num_heads: my_multi_head(
                x, memory, *[torch.eye(len(w_o))] * 3, w_o, num_heads
            ),
            "position [0, 0, 0] is",
            "You split `x` and `memory` themselves. Queries, keys and values are `x @ w_q`, "
            "`memory @ w_k`, `memory @ w_v`.",
        ),
        WrongAnswer(
            "no output map",
            _heads_variant(out=False),
            "position [0, 0, 0] is",
            "Joined heads lie side by side and have not met: `w_o` lets them mix.",
        ),
        WrongAnswer(
            "softmax over the queries",
            _heads_variant(axis=-2),
            "position [0, 0, 0] is",
            "Each query spreads its own 1 over the keys, the last axis.",
        ),
        WrongAnswer(
            "softmax over the heads",
            _heads_variant(axis=1),
            "position [0, 0, 0] is",
            "Heads do not compete: each has its own softmax over the keys, the last axis.",
        ),
        WrongAnswer(
            "joined without transpose",
            _heads_variant(merge=False),
            "position [0, 0, 0] is",
            "`reshape` from (B, H, T, D) puts different words of one head in a row. Transpose back "
            "to (B, T, H, D) first.",
        ),
        WrongAnswer(
            "heads averaged",
            _heads_variant(mixed=False),
            "position [0, 0, 0] is",
            "Averaging makes one answer of all. Heads are set side by side, H × D = C numbers.",
        ),
        WrongAnswer(
            "memory ignored",
            _heads_variant(keys="x"),
            "the last word of memory was changed and the output was not",
            "In cross-attention the keys and values come from the memory, only queries from x.",
        ),
        WrongAnswer(
            "split before projecting",
            _heads_variant(split_first=True),
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
    ),
    tests=(_query_length, _equals_torch, _one_head, _all_of_memory),
    probes=(
        calls(X, MEMORY, *MAPS, 2),
        calls(X, MEMORY, *MAPS, 1),
        calls(X, MEMORY, *MAPS, 4),
    ),
)


# 04.3 a head's score


def my_previous_score(weights):
    """How much each head looks at the word before: weights (H, T, T) -> (H,), each in 0..1.

    The mean weight that words give to the word just before them; word 0 has none and is left out.
    """
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(-1)


MAPS_OF_HEADS = torch.tensor(
    [
        [[1.0, 0.0, 0.0], [0.8, 0.2, 0.0], [0.1, 0.6, 0.3]],  # previous: 0.8, 0.6
        [[0.2, 0.5, 0.3], [0.3, 0.3, 0.4], [0.5, 0.1, 0.4]],  # previous: 0.3, 0.1
    ]
)
_MAPS = f"for weights={short(MAPS_OF_HEADS)}"


def _per_head(answer):
    """there is one score per head"""
    where = "for weights of shape (H=1, T=4, T=4)"
    shape = tuple(tensor(answer(torch.full((1, 4, 4), 0.25)), where).shape)
    expect(shape == (1,), f"{where}, the shape is {shape}, expected (1,): one number per head")


def _previous(answer):
    """it is the mean weight on the word before"""
    note = "The weights on the word before are 0.8, 0.6 for head 0 and 0.3, 0.1 for head 1."
    same(answer(MAPS_OF_HEADS), [0.7, 0.2], _MAPS, note=note)


def _even(answer):
    """a head that spreads evenly over T words scores 1 / T"""
    same(answer(torch.full((1, 4, 4), 0.25)), [0.25], "for T=4 and all weights 0.25")


SCORE = Exercise(
    id="04.3",
    title="the previous-word score",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_previous_score(weights)`: from the maps of H heads, `(H, T, T)`, how much each "
        "head looks at the word before. The mean over words 1 to T - 1 of the weight on their "
        "predecessor."
    ),
    hint="`weights[h, t, t - 1]` lies on a diagonal: see `torch.diagonal` and its `offset`.",
    reference=my_previous_score,
    wrong=(
        WrongAnswer(
            "the next word",
            lambda weights: weights.diagonal(offset=1, dim1=-2, dim2=-1).mean(-1),
            "The weights on the word before are",
            "Above the diagonal the key comes after the query. A row is a query: use offset -1.",
        ),
        WrongAnswer(
            "itself",
            lambda weights: weights.diagonal(dim1=-2, dim2=-1).mean(-1),
            "The weights on the word before are",
            "On the diagonal a word looks at itself; its predecessor is one to the left.",
        ),
        WrongAnswer(
            "word 0 counted as a miss",
            lambda weights: (
                weights.diagonal(offset=-1, dim1=-2, dim2=-1).sum(-1) / weights.size(-1)
            ),
            "The weights on the word before are",
            "Word 0 has nothing before it: divide by T - 1, or no head can reach 1.",
        ),
        WrongAnswer(
            "word 0 looks at the last",
            lambda weights: weights.roll(1, -1).diagonal(dim1=-2, dim2=-1).mean(-1),
            "The weights on the word before are",
            "`roll` wraps around, and so does index -1: word 0 was credited with the last word.",
        ),
        WrongAnswer(
            "share of arg-maxes",
            lambda weights: (
                (weights[:, 1:].argmax(-1) == torch.arange(weights.size(-1) - 1)).double().mean(-1)
            ),
            "The weights on the word before are",
            "The arg-max forgets how sure the head is: 0.34 of three keys counts like 1.00.",
        ),
        WrongAnswer(
            "averaged over the heads",
            lambda weights: weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(0),
            "one number per head",
            "The mean has to run over the words. Averaging heads hides what each of them does.",
        ),
    ),
    tests=(_per_head, _previous, _even),
    probes=(calls(MAPS_OF_HEADS), calls(torch.full((1, 4, 4), 0.25))),
)


# 04.4 the mask of cross-attention


def my_cross_mask(src_ids, tgt_ids, pad_id=0):
    """What target words may look at in the source, True = may: (B, 1, T, S), or T of size 1.

    src_ids is (B, S), tgt_ids (B, T). Hides the source's padding, and nothing else.
    """
    return (src_ids != pad_id)[:, None, None, :]


def _triangle(src_ids, tgt_ids):
    return torch.ones(tgt_ids.size(1), src_ids.size(1), dtype=torch.bool).tril()


SRC, TGT = torch.tensor([[5, 6, 7], [8, 9, 0]]), torch.tensor([[3, 4], [3, 0]])
_CROSS = f"for src_ids={short(SRC)}, tgt_ids={short(TGT)}"


def _cross_fits(answer):
    """it is boolean and fits scores of shape (B, H, T, S)"""
    got = tensor(answer(SRC, TGT), _CROSS)
    expect(got.dtype == torch.bool, f"{_CROSS}, the dtype is {got.dtype}, expected torch.bool")
    shape = tuple(got.shape)
    fits = got.dim() == 4 and all(m in (1, s) for m, s in zip(shape, (2, 1, 2, 3), strict=True))
    message = f"{_CROSS}, the shape is {shape}, expected (2, 1, 2, 3), or (2, 1, 1, 3)"
    expect(fits, message)


def _cross_cells(answer, wanted, why):
    got = tensor(answer(SRC, TGT), _CROSS)
    try:
        got = got.expand(2, 1, 2, 3)
    except RuntimeError:
        expect(False, f"{_CROSS}, the shape is {tuple(got.shape)}, expected (2, 1, 2, 3)")
    for b in range(2):
        for t in range(2):
            for s in range(3):
                if wanted(b, s) is not None:
                    value = bool(got[b, 0, t, s])
                    message = f"{_CROSS}, sentence {b}, target {t}, source {s}: {value}; {why}"
                    expect(value == wanted(b, s), message)


def _cross_hides(answer):
    """the source's padding is hidden"""
    _cross_cells(answer, lambda b, s: None if SRC[b, s] != 0 else False, "a pad is never seen")


def _cross_shows(answer):
    """every real source word may be seen, also a later one"""
    why = "the whole source is known before the first target word is written"
    _cross_cells(answer, lambda b, s: True if SRC[b, s] != 0 else None, why)


def _cross_anywhere(answer):
    """also padding that stands in front"""
    src = torch.tensor([[0, 0, 7, 8]])
    where = "for src_ids=[[0, 0, 7, 8]], tgt_ids=[[3]]"
    got = tensor(answer(src, torch.tensor([[3]])), where)
    note = "A source word is real where its id is not `pad_id`, wherever it stands."
    same(got.reshape(-1), [False, False, True, True], where, note=note)


def _cross_pad_id(answer):
    """the padding id is the argument"""
    src = torch.tensor([[0, 9]])
    where = "for src_ids=[[0, 9]], tgt_ids=[[9]], pad_id=9"
    got = tensor(answer(src, torch.tensor([[3]]), 9), where)
    same(got.reshape(-1), [True, False], where)


CROSS = Exercise(
    id="04.4",
    title="the mask of cross-attention",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `my_cross_mask(src_ids, tgt_ids, pad_id=0)`: which source words `(B, S)` each "
        "target word `(B, T)` may look at, boolean, `True` = may, of four axes `(B, 1, T, S)` (T "
        "may be 1, since all target words may see the same)."
    ),
    hint="Which of the two sentences do the keys come from?",
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
    ),
    tests=(_cross_fits, _cross_hides, _cross_shows, _cross_anywhere, _cross_pad_id),
    probes=(
        calls(SRC, TGT),
        calls(torch.tensor([[0, 0, 7, 8]]), torch.tensor([[3]])),
        calls(torch.tensor([[0, 9]]), torch.tensor([[3]]), 9),
    ),
)

EXERCISES = (SPLIT, MULTI, SCORE, CROSS)
