"""Chapter 07: multi-head cross-attention, and its mask."""

import itertools

import torch

from tinytf_course.exercises.ch06 import random_inputs, torchs_heads
from tinytf_course.expect import (
    agrees,
    expect,
    given,
    gradients,
    short,
    tensor,
    travels,
)
from tinytf_course.grading import Exercise, hint

# 07.1 multi-head cross-attention


def my_multi_head(x, memory, w_q, w_k, w_v, w_o, num_heads):
    """Attend from x (B, T, C) to memory (B, S, C) with `num_heads` heads; returns (B, T, C).

    Each w is (C, C) and multiplies from the right: q = x @ w_q. No biases, no mask.
    """
    raise NotImplementedError


def _query_length(answer):
    """the output is as long as the queries"""
    where = "for x of shape (2, 3, 4), memory of shape (2, 5, 4) and num_heads=2"
    shape = tuple(tensor(answer(*random_inputs(2, 3, 5, 4, seed=1), 2), where).shape)
    expect(shape == (2, 3, 4), f"{where}, the shape is {shape}, expected (2, 3, 4): a row for each "
           "query")  # fmt: skip


def _one_word_memory(answer):
    """of a memory of one word each query takes it all, through w_v and w_o"""
    note = "Its weight is 1: every row is memory @ w_v @ w_o."
    agrees(answer, torchs_heads, *random_inputs(1, 2, 1, 2, seed=11), 1, note=note)
    agrees(answer, torchs_heads, *random_inputs(1, 2, 1, 4, seed=12), 2, note=note)
    agrees(answer, torchs_heads, *random_inputs(2, 3, 1, 6, seed=13), 3, note=note)


@hint("What divides the scores, and over which axis do they sum to 1?")
def _one_head(answer):
    """with one head it is chapter 05's attention, mixed by w_o"""
    note = "One head has all C numbers: D = C."
    agrees(answer, torchs_heads, *random_inputs(1, 1, 2, 2, seed=21), 1, note=note)
    agrees(answer, torchs_heads, *random_inputs(2, 3, 5, 4, seed=22), 1, note=note)


def _many_heads(answer):
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


def _large_scores(answer):
    """scores in the thousands give no NaN"""
    agrees(answer, torchs_heads, *random_inputs(2, 3, 5, 4, seed=41, scale=60.0), 2, tolerance=1e-3,
           note="e^89 is past float32: leave it to `softmax`.")  # fmt: skip


def _other_dtype(answer):
    """it works in float64"""
    agrees(answer, torchs_heads, *random_inputs(2, 3, 5, 4, seed=51, dtype=torch.float64), 2)


def _other_device(answer):
    """it works where its arguments are"""
    travels(answer, *random_inputs(2, 3, 5, 4, seed=52), 2)


def _heads_learn(answer):
    """gradients reach x, the memory and every map"""
    gradients(answer, torchs_heads, *random_inputs(1, 2, 3, 2, seed=61), 1)
    gradients(answer, torchs_heads, *random_inputs(2, 3, 5, 4, seed=62), 2)


MULTI = Exercise(
    id="07.1",
    title="multi-head cross-attention",
    difficulty=2,
    minutes=15,
    statement=(
        "Write `my_multi_head(x, memory, w_q, w_k, w_v, w_o, num_heads)`, multi-head "
        "cross-attention with queries from `x` and keys and values from `memory`. The "
        "projections are `(C, C)` matrices that multiply from the right, without biases, there "
        "is no mask, and the two sentences may differ in length."
    ),
    hint=(
        "Project, split into heads, attend, swap the axes back, flatten, and multiply by "
        "`w_o`. Each step takes a line or two."
    ),
    function=my_multi_head,
    tests=(
        _query_length,
        _one_word_memory,
        _one_head,
        _many_heads,
        _large_scores,
        _other_dtype,
        _other_device,
        _heads_learn,
    ),
)


# 07.2 the mask of cross-attention


def my_cross_mask(src_ids, tgt_ids, pad_id=0):
    """What target tokens may attend to in the source, True = may: (B, 1, T, S), or T of size 1.

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
    id="07.2",
    title="the mask of cross-attention",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_cross_mask(src_ids, tgt_ids, pad_id=0)`, the boolean mask of "
        "cross-attention from the target tokens `(B, T)` to the source tokens `(B, S)`, where "
        "`True` means that a token may be attended to. It has four axes, `(B, 1, T, S)`; a "
        "size of 1 in place of T is accepted, because the mask is the same for all target tokens."
    ),
    hint="Which of the two sentences do the keys come from?",
    function=my_cross_mask,
    tests=(_cross_fits, _cross_hides, _cross_shows, _cross_sizes, _cross_anywhere, _cross_pad_id),
)


EXERCISES = (MULTI, CROSS)
