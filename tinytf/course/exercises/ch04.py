"""Chapter 04: splitting into heads, multi-head attention, a head's score, a cross mask."""

import itertools

import torch
from torch.nn.functional import multi_head_attention_forward

from tinytf.course.expect import (
    agrees,
    expect,
    given,
    gradients,
    numbers,
    refuses,
    same,
    short,
    tensor,
    travels,
)
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


def _multi_head(x, memory, w_q, w_k, w_v, w_o, num_heads):
    """torch's own, whose maps multiply from the left and whose words come first."""
    memory = memory.transpose(0, 1)
    out, _ = multi_head_attention_forward(
        x.transpose(0, 1), memory, memory, x.size(-1), num_heads,
        torch.cat([w_q.T, w_k.T, w_v.T]), None, None, None, False, 0.0, w_o.T, None,
        training=False, need_weights=False,
    )  # fmt: skip
    return out.transpose(0, 1)


def _inputs(b, t, s, c, seed, scale=1.0, dtype=torch.float32):
    """x, memory and four maps of random numbers."""
    maps = numbers(4, c, c, seed=seed, scale=c**-0.5, dtype=dtype).unbind()
    x = numbers(b, t, c, seed=seed + 1, scale=scale, dtype=dtype)
    return x, numbers(b, s, c, seed=seed + 2, scale=scale, dtype=dtype), *maps


def _query_length(answer):
    """the output is as long as the queries"""
    where = "for x of shape (2, 3, 4), memory of shape (2, 5, 4) and num_heads=2"
    shape = tuple(tensor(answer(*_inputs(2, 3, 5, 4, seed=1), 2), where).shape)
    expect(shape == (2, 3, 4), f"{where}, the shape is {shape}, expected (2, 3, 4): a row for each "
           "query")  # fmt: skip


def _one_word_memory(answer):
    """of a memory of one word each query takes it all, through w_v and w_o"""
    note = "Its weight is 1: every row is memory @ w_v @ w_o."
    agrees(answer, _multi_head, *_inputs(1, 2, 1, 2, seed=11), 1, note=note)
    agrees(answer, _multi_head, *_inputs(1, 2, 1, 4, seed=12), 2, note=note)
    agrees(answer, _multi_head, *_inputs(2, 3, 1, 6, seed=13), 3, note=note)


@hint("What divides the scores, and over which axis do they sum to 1?")
def _one_head(answer):
    """with one head it is chapter 03's attention, mixed by w_o"""
    note = "One head has all C numbers: D = C."
    agrees(answer, _multi_head, *_inputs(1, 1, 2, 2, seed=21), 1, note=note)
    agrees(answer, _multi_head, *_inputs(2, 3, 5, 4, seed=22), 1, note=note)


def _many_heads(answer):
    """each head has scores and values of its own"""
    agrees(answer, _multi_head, *_inputs(1, 1, 2, 2, seed=31), 2, note="Two heads of one number.")
    agrees(answer, _multi_head, *_inputs(2, 3, 5, 8, seed=32), 4)
    agrees(answer, _multi_head, *_inputs(3, 4, 2, 6, seed=33), 2)


def _large_scores(answer):
    """scores in the thousands give no NaN"""
    agrees(answer, _multi_head, *_inputs(2, 3, 5, 4, seed=41, scale=60.0), 2, tolerance=1e-3,
           note="e^89 is past float32: leave it to `softmax`.")  # fmt: skip


def _other_dtype(answer):
    """it works in float64, and where its arguments are"""
    agrees(answer, _multi_head, *_inputs(2, 3, 5, 4, seed=51, dtype=torch.float64), 2)
    travels(answer, *_inputs(2, 3, 5, 4, seed=52), 2)


def _heads_learn(answer):
    """gradients reach x, the memory and every map"""
    gradients(answer, _multi_head, *_inputs(1, 2, 3, 2, seed=61), 1)
    gradients(answer, _multi_head, *_inputs(2, 3, 5, 4, seed=62), 2)


MULTI = Exercise(
    id="04.2",
    title="multi-head attention",
    difficulty=2,
    minutes=20,
    statement=(
        "Write `my_multi_head(x, memory, w_q, w_k, w_v, w_o, num_heads)`: queries from `x`, keys "
        "and values from `memory`, each map `(C, C)` multiplied from the right, split into heads, "
        "attended, joined and mixed by `w_o`. No biases, no mask. In the dtype and on the device "
        "of `x`."
    ),
    hint="Project, split, attend, transpose back, flatten, multiply by `w_o`: a line or two each.",
    function=my_multi_head,
    tests=(
        _query_length,
        _one_word_memory,
        _one_head,
        _many_heads,
        _large_scores,
        _other_dtype,
        _heads_learn,
    ),
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


def _previous_score(weights):
    """Word by word."""
    T = weights.size(-1)
    return torch.stack([sum(head[t, t - 1] for t in range(1, T)) / (T - 1) for head in weights])


def _per_head(answer):
    """there is one score per head"""
    where = "for weights of shape (H=1, T=4, T=4)"
    shape = tuple(tensor(answer(torch.full((1, 4, 4), 0.25)), where).shape)
    expect(shape == (1,), f"{where}, the shape is {shape}, expected (1,): one number per head")


def _two_words(answer):
    """of two words, only the second has one before it"""
    weights = torch.tensor([[[0.6, 0.4], [0.3, 0.7]]])
    agrees(answer, _previous_score, weights, note="The second word gives the first 0.3.")


def _previous(answer):
    """it is the mean weight on the word before"""
    note = "The weights on the word before are 0.8, 0.6 for head 0 and 0.3, 0.1 for head 1."
    where = f"for weights={short(MAPS_OF_HEADS)}"
    agrees(answer, _previous_score, MAPS_OF_HEADS, note=note, where=where)
    agrees(answer, _previous_score, numbers(3, 5, 5, seed=1).softmax(-1))
    agrees(answer, _previous_score, numbers(5, 4, 4, seed=2, dtype=torch.float64).softmax(-1))


def _even(answer):
    """a head that spreads evenly over T words scores 1 / T"""
    same(answer(torch.full((1, 4, 4), 0.25)), [0.25], "for T=4 and all weights 0.25")


def _score_gradient(answer):
    """the score has a gradient"""
    gradients(answer, _previous_score, numbers(1, 2, 2, seed=3).softmax(-1))
    gradients(answer, _previous_score, numbers(2, 4, 4, seed=4).softmax(-1))


SCORE = Exercise(
    id="04.3",
    title="the previous-word score",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_previous_score(weights)`: from the maps of H heads, `(H, T, T)`, how much each "
        "head looks at the word before. The mean over words 1 to T - 1 of the weight on their "
        "predecessor, as a tensor that has a gradient, so that one could train on it."
    ),
    hint="`weights[h, t, t - 1]` lies on a diagonal: see `torch.diagonal` and its `offset`.",
    function=my_previous_score,
    tests=(_per_head, _two_words, _previous, _even, _score_gradient),
)


# 04.4 the mask of cross-attention


def my_cross_mask(src_ids, tgt_ids, pad_id=0):
    """What target words may look at in the source, True = may: (B, 1, T, S), or T of size 1.

    src_ids is (B, S), tgt_ids (B, T). Hides the source's padding, and nothing else.
    """
    raise NotImplementedError


def _ids(*rows):
    return torch.tensor(rows)


SRC, TGT = _ids([5, 6, 7], [8, 9, 0]), _ids([3, 4], [3, 0])
_CROSS = f"for src_ids={short(SRC)}, tgt_ids={short(TGT)}"


def _cross_fits(answer):
    """it is boolean and fits scores of shape (B, H, T, S)"""
    got = tensor(answer(SRC, TGT), _CROSS)
    expect(got.dtype == torch.bool, f"{_CROSS}, the dtype is {got.dtype}, expected torch.bool")
    shape = tuple(got.shape)
    message = f"{_CROSS}, the shape is {shape}, expected (2, 1, 2, 3), or (2, 1, 1, 3)"
    expect(shape in ((2, 1, 2, 3), (2, 1, 1, 3)), message)


def _cross_cells(answer, wanted, why, src=SRC, tgt=TGT, *pad_id):
    """Cell by cell: what it should be is `wanted`, a function of the source's id, or None."""
    where = given(answer, (src, tgt, *pad_id))
    got = tensor(answer(src, tgt, *pad_id), where)
    B, T, S = len(src), tgt.size(1), src.size(1)
    try:
        got = got.expand(B, 1, T, S)
    except RuntimeError:
        expect(False, f"{where}, the shape is {tuple(got.shape)}, expected {(B, 1, T, S)}")
    for b, t, s in itertools.product(range(B), range(T), range(S)):
        value, right = bool(got[b, 0, t, s]), wanted(src[b, s].item())
        message = f"{where}, sentence {b}, target {t}, source {s}: {value}; {why}"
        expect(right is None or value == right, message)


def _cross_hides(answer):
    """the source's padding is hidden"""
    _cross_cells(answer, lambda id: False if id == 0 else None, "a pad is never seen")


def _cross_shows(answer):
    """every real source word may be seen, also a later one"""
    why = "the whole source is known before the first target word is written"
    _cross_cells(answer, lambda id: True if id != 0 else None, why)


def _cross_sizes(answer):
    """also where source and target are of one length, or of one word"""
    why = "the source's padding is hidden, and nothing else"
    _cross_cells(answer, lambda id: id != 0, why, _ids([7], [0], [5]), _ids([3], [4], [0]))
    square = _ids([5, 0, 0], [1, 7, 0], [8, -1, 4]), _ids([3, 4, 0], [3, 0, 0], [3, 5, 0])
    _cross_cells(answer, lambda id: id != 0, why, *square)


def _cross_anywhere(answer):
    """also padding that stands in front, or between"""
    why = "a source word is real where its id is not `pad_id`, wherever it stands"
    _cross_cells(answer, lambda id: id != 0, why, _ids([0, 0, 7, 8]), _ids([3]))
    _cross_cells(answer, lambda id: id != 0, why, _ids([6, 0, 7], [0, 8, 8]), _ids([3, 4], [3, 0]))


def _cross_pad_id(answer):
    """the padding id is the argument"""
    _cross_cells(answer, lambda id: id != 9, "`pad_id` is 9", _ids([0, 9]), _ids([9]), 9)
    _cross_cells(answer, lambda id: id != -1, "`pad_id` is -1", _ids([0, -1, 5]), _ids([2]), -1)


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
    tests=(_cross_fits, _cross_hides, _cross_shows, _cross_sizes, _cross_anywhere, _cross_pad_id),
)


EXERCISES = (SPLIT, MULTI, SCORE, CROSS)
