"""Chapter 04: splitting into heads, multi-head attention, a head's score, a cross mask."""

import torch
from torch.nn.functional import multi_head_attention_forward

from tinytf.course.expect import agrees, expect, gradients, numbers, refuses, same, short, tensor
from tinytf.course.grading import Exercise, hint

# 04.1 split into heads


def my_split_heads(x, num_heads):
    """Give each head its own slice of every vector: (B, T, C) -> (B, H, T, D), D = C / H.

    Head h gets the numbers h * D to (h + 1) * D - 1. Raises ValueError if H does not divide C.
    """
    raise NotImplementedError


def _one_by_one(x, num_heads):
    """Number by number: entry d of head h of word t is x[b, t, h * D + d]."""
    width = x.size(-1) // num_heads
    heads = [x[..., head * width : (head + 1) * width] for head in range(num_heads)]
    return torch.stack(heads, dim=1)


def _counted(*shape):
    """The numbers 0, 1, 2, ... in this shape: every one says where it came from."""
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape)


def _split_content(answer):
    """head h holds slice h of every word, (B, H, T, D)"""
    note = "A row for each word, its own numbers."
    agrees(answer, _one_by_one, _counted(1, 3, 4), 2, note=note)


def _split_lined_up(answer):
    """also where there are as many heads as words"""
    agrees(answer, _one_by_one, _counted(1, 2, 8), 2)


def _split_edges(answer):
    """also with one head, one number a head, or one word"""
    agrees(answer, _one_by_one, _counted(1, 2, 3), 1)
    agrees(answer, _one_by_one, _counted(1, 2, 3), 3)
    agrees(answer, _one_by_one, _counted(2, 1, 4), 2)


@hint("Name the axes (B, T, H, D) first, and only then put them in another order.")
def _split_batch(answer):
    """every sentence of a batch is split by itself, of a part of a larger tensor too"""
    agrees(answer, _one_by_one, _counted(2, 1, 2), 2, note="Sentence 0 is [0, 1].")
    agrees(answer, _one_by_one, _counted(2, 3, 8), 4)
    agrees(answer, _one_by_one, _counted(3, 5, 2).transpose(0, 1)[1:], 2)


def _split_dtype(answer):
    """the numbers keep their dtype, and gradients pass"""
    for dtype in (torch.float64, torch.float16):
        agrees(answer, _one_by_one, numbers(2, 3, 4, seed=1, dtype=dtype), 2)
    gradients(answer, _one_by_one, numbers(2, 3, 4, seed=2), 2)


def _split_refuses(answer):
    """heads that do not divide the width are refused"""
    refuses(answer, _counted(1, 2, 10), 3, note="10 is not 3 × D.")
    refuses(answer, _counted(1, 6, 4), 6, note="4 is not 6 × D.")


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
    function=my_split_heads,
    tests=(
        _split_content,
        _split_lined_up,
        _split_edges,
        _split_batch,
        _split_dtype,
        _split_refuses,
    ),
)


# 04.2 multi-head attention


def my_multi_head(x, memory, w_q, w_k, w_v, w_o, num_heads):
    """Attend from x (B, T, C) to memory (B, S, C) with `num_heads` heads; returns (B, T, C).

    Each w is (C, C) and multiplies from the right: q = x @ w_q. No biases, no mask.
    """
    raise NotImplementedError


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
    function=my_multi_head,
    tests=(_query_length, _equals_torch, _one_head, _all_of_memory),
)


# 04.3 the previous-word score


def my_previous_score(weights):
    """How much each head looks at the word before: weights (H, T, T) -> (H,), each in 0..1.

    The mean weight that words give to the word just before them; word 0 has none and is left out.
    """
    raise NotImplementedError


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
    function=my_previous_score,
    tests=(_per_head, _previous, _even),
)


# 04.4 the mask of cross-attention


def my_cross_mask(src_ids, tgt_ids, pad_id=0):
    """What target words may look at in the source, True = may: (B, 1, T, S), or T of size 1.

    src_ids is (B, S), tgt_ids (B, T). Hides the source's padding, and nothing else.
    """
    raise NotImplementedError


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
    function=my_cross_mask,
    tests=(_cross_fits, _cross_hides, _cross_shows, _cross_anywhere, _cross_pad_id),
)


EXERCISES = (SPLIT, MULTI, SCORE, CROSS)
