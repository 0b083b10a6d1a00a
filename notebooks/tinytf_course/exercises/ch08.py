"""Chapter 08: sinusoids of any position, a test of the table, and positions added."""

import math

import numpy as np
import torch

from tinytf_course.expect import (
    agrees,
    expect,
    gradients,
    numbers,
    refuses,
    tensor,
    travels,
)
from tinytf_course.grading import Exercise, hint

# 08.1 the clock at any position


def my_sinusoids(positions, d_model):
    """The sinusoidal encoding of each of `positions` (…), whole or not: (…, d_model), float32.

    Column 2i holds sin(pos / 10000^(2i / d_model)), column 2i + 1 the cosine of the same angle.
    An odd d_model ends with a sine.
    """
    raise NotImplementedError


def _sinusoids(positions, d_model):
    """Number by number, as the formula says."""
    rows = [
        [p / 10000 ** ((j - j % 2) / d_model) for j in range(d_model)]
        for p in positions.flatten().tolist()
    ]
    values = [[math.cos(a) if j % 2 else math.sin(a) for j, a in enumerate(row)] for row in rows]
    return torch.tensor(values).reshape(*positions.shape, d_model)


def _values(max_len, d_model):
    """The paper's table."""
    return _sinusoids(torch.arange(max_len), d_model)


def _row_each(answer):
    """each position gets a row, whatever the shape of `positions`"""
    for shape in ((3,), (2, 3), (2, 1, 3)):
        got = tensor(answer(torch.ones(shape), 4), f"for positions of shape {shape}, d_model=4")
        message = f"for positions of shape {shape}, d_model=4, the shape is {tuple(got.shape)}, "
        expect(got.shape == (*shape, 4), message + f"expected {(*shape, 4)}")


def _position_0(answer):
    """at position 0 sines are 0 and cosines are 1, in turn"""
    note = "Column 0 is a sine, column 1 the cosine of the same angle, and so on."
    agrees(answer, _sinusoids, torch.tensor([0]), 2, note=note)
    agrees(answer, _sinusoids, torch.tensor([0]), 4, note=note)


def _frequencies(answer):
    """each pair turns more slowly than the one before"""
    note = "Pair i turns by 1 / 10000^(2i/d_model) radians per position."
    agrees(answer, _sinusoids, torch.tensor([0, 1]), 2, note=note)
    agrees(answer, _sinusoids, torch.tensor([0, 1]), 4, note=note)
    agrees(answer, _sinusoids, torch.tensor([0, 1, 2, 3]), 6, note=note)


@hint("Which positions does your function use: those that it is given, or its own 0, 1, 2?")
def _as_given(answer):
    """positions are used as given: in any order, repeated, halves and negative ones"""
    note = "A row belongs to the number that was given, wherever it is in `positions`."
    agrees(answer, _sinusoids, torch.tensor([2]), 2, note=note)
    agrees(answer, _sinusoids, torch.tensor([[3, 0, 3], [1, 1, 2]]), 4, note=note)
    agrees(answer, _sinusoids, torch.tensor([2.5, -3.0]), 4, note=note)


def _odd_width(answer):
    """an odd width ends with a sine"""
    agrees(answer, _sinusoids, torch.tensor([0, 1]), 1, note="One sine, no cosine.")
    agrees(answer, _sinusoids, torch.tensor([0, 1, 2]), 5, note="Three sines, two cosines.")


def _far_positions(answer):
    """position 3,000 is as right as position 3"""
    note = "Angles need float32, at least."
    agrees(answer, _sinusoids, torch.tensor([2999, 3000]), 4, tolerance=5e-4, note=note)


SINUSOIDS = Exercise(
    id="08.1",
    title="the clock at any position",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_sinusoids(positions, d_model)`, which returns the paper's row for each position "
        "of the tensor `positions`. Positions can have any shape (…), and the result has the shape "
        "(…, d_model). They need not be whole numbers, and they may be negative; `d_model` may be "
        "odd."
    ),
    hint=(
        "`torch.arange(0, d_model, 2)` contains 2i for all pairs at once, and "
        "`positions[..., None]` adds an axis for the pairs. `torch.stack(…, dim=-1).flatten(-2)` "
        "interleaves two tensors. An odd width has one cosine fewer than sines."
    ),
    function=my_sinusoids,
    tests=(_row_each, _position_0, _frequencies, _as_given, _odd_width, _far_positions),
)


# 08.2 a test of the table


def my_table_test(encode):
    """Whether encode(max_len, d_model) returns the paper's table for all sizes: True or False.

    encode returns a tensor (max_len, d_model), in float32 or float64.
    """
    raise NotImplementedError


def _laid_out(angles, first=torch.sin, second=torch.cos):
    """A function of max_len and d_model from one for angles, two columns for each hand."""

    def encode(max_len, d_model):
        angle = angles(torch.arange(max_len, dtype=torch.float64)[:, None], d_model)
        pairs = torch.stack([first(angle), second(angle)], dim=-1).flatten(1)
        return pairs[:, :d_model].float()

    return encode


def _speeds(d_model, base=10000.0, exponent=-2):
    pair = torch.arange((d_model + 1) // 2, dtype=torch.float64)
    return base ** (exponent * pair / d_model)


def _own_angles(max_len, d_model):
    angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(d_model) / d_model)
    return torch.where(torch.arange(d_model) % 2 == 0, angle.sin(), angle.cos())


def _all_sines_first(max_len, d_model):
    table = _values(max_len, d_model)
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


RIGHT_TABLES = {
    "a right table": _values,
    "a right table in float64": lambda max_len, d_model: _values(max_len, d_model).double(),
    "a right table, computed in float32": lambda max_len, d_model: torch.stack(
        [
            (torch.arange(max_len) / 10000 ** ((j - j % 2) / d_model) + (j % 2) * math.pi / 2).sin()
            for j in range(d_model)
        ],
        dim=1,
    ),
}
WRONG_SPEEDS = {
    "hands that get faster": _laid_out(lambda pos, d: pos * _speeds(d, exponent=2)),
    "the exponent i/d in place of 2i/d": _laid_out(lambda pos, d: pos * _speeds(d, exponent=-1)),
    "the base 1,000": _laid_out(lambda pos, d: pos * _speeds(d, 1000.0)),
    "one speed for all hands": _laid_out(lambda pos, d: pos * torch.ones((d + 1) // 2)),
    "an exponent of its own for each column": _own_angles,
}
WRONG_LAYOUTS = {
    "cosine and sine swapped": _laid_out(lambda pos, d: pos * _speeds(d), torch.cos, torch.sin),
    "all sines before all cosines": _all_sines_first,
    "hands that turn the other way": _laid_out(lambda pos, d: -pos * _speeds(d)),
    "sines in all columns": _laid_out(lambda pos, d: pos * _speeds(d), torch.sin, torch.sin),
}
WRONG_PLACES = {
    "positions from 1": _laid_out(lambda pos, d: (pos + 1) * _speeds(d)),
    "clocks that stop at position 1": _laid_out(lambda pos, d: pos.clamp(max=1) * _speeds(d)),
    "position 0 everywhere": _laid_out(lambda pos, d: 0 * pos * _speeds(d)),
}
WRONG_WIDTHS = {
    "the speeds of width 4 at any width": _laid_out(
        lambda pos, d: pos * _speeds(4, exponent=-2)[0] * 100.0 ** -torch.arange((d + 1) // 2)
    ),
    "a column too many": lambda max_len, d_model: _values(max_len, d_model + 1),
    "a row too many": lambda max_len, d_model: _values(max_len + 1, d_model),
    "rows and columns exchanged": lambda max_len, d_model: _values(max_len, d_model).T,
    "an axis too many": lambda max_len, d_model: _values(max_len, d_model)[None],
    "speeds that depend on max_len, not d_model": lambda max_len, d_model: _laid_out(
        lambda pos, d: pos * 10000 ** (-2 * torch.arange((d + 1) // 2) / max_len)
    )(max_len, d_model),
    "an odd width that ends on a cosine": lambda max_len, d_model: torch.cat(
        [
            _values(max_len, d_model)[:, : d_model - d_model % 2],
            _values(max_len, d_model + 1)[:, d_model : d_model + d_model % 2],
        ],
        dim=1,
    ),
}


def _verdicts(answer, tables, expected, note):
    for name, encode in tables.items():
        got = answer(encode)
        where = f"for a function that makes {name}"
        says = isinstance(got, bool | int | np.bool_) or (
            isinstance(got, torch.Tensor) and got.numel() == 1
        )
        expect(says, f"{where}, you return {type(got).__name__}, expected True or False. {note}")
        message = f"{where}, your test returns {bool(got)}, expected {expected}. {note}"
        expect(bool(got) == expected, message)


def _passes_right(answer):
    """a right table passes, in float32 and in float64"""
    _verdicts(answer, RIGHT_TABLES, True, "Computed in float32, it differs by about 1e-6.")


def _finds_speeds(answer):
    """hands of a wrong speed are found"""
    _verdicts(answer, WRONG_SPEEDS, False, "Row 1 has a value in column 2 that tells.")


def _finds_layouts(answer):
    """sines and cosines in the wrong columns are found"""
    _verdicts(answer, WRONG_LAYOUTS, False, "Each column has its own value to compare.")


def _finds_places(answer):
    """rows in the wrong places are found"""
    _verdicts(answer, WRONG_PLACES, False, "Look at more rows than one.")


def _finds_widths(answer):
    """a wrong shape is found, and speeds that fit one width only"""
    _verdicts(answer, WRONG_WIDTHS, False, "Ask for several sizes, and look at the shape.")


def _finds_slips(answer):
    """a table that is off by a thousandth is found"""
    tables = {
        "numbers too large by 0.002": lambda max_len, d_model: _values(max_len, d_model) + 0.002,
        "numbers too small by 0.002": lambda max_len, d_model: _values(max_len, d_model) - 0.002,
        "0.999 for a cosine of 0": lambda max_len, d_model: (
            _values(max_len, d_model)
            - 0.001 * (torch.arange(max_len) == 0)[:, None] * (torch.arange(d_model) % 2)
        ),
        "a last column too large by 0.002": lambda max_len, d_model: (
            _values(max_len, d_model) + 0.002 * (torch.arange(d_model) == d_model - 1)
        ),
        "a last row too large by 0.002": lambda max_len, d_model: (
            _values(max_len, d_model) + 0.002 * (torch.arange(max_len) == max_len - 1)[:, None]
        ),
        "NaN in row 1": lambda max_len, d_model: _values(max_len, d_model).where(
            (torch.arange(max_len) != 1)[:, None], torch.nan
        ),
    }
    _verdicts(answer, tables, False, "Rounding is a million times smaller than 1.")


TABLE_TEST = Exercise(
    id="08.2",
    title="a test of the table",
    difficulty=2,
    minutes=12,
    statement=(
        "Design `my_table_test(encode)`, where `encode(max_len, d_model)` returns a tensor that "
        "should be the paper's table. Return `True` if it is, and `False` if it is wrong in any "
        "way: in its frequencies, the order of its columns, its first position or its shape, or at "
        "odd widths only. Choose the sizes to test yourself. Rounding errors are allowed, but a "
        "number that is off by a thousandth is a mistake."
    ),
    hint=(
        "Compare values with the formula, computed with `math.sin` and `math.cos`. Which sizes "
        "reveal most? At position 0 all frequencies give the same row, and width 2 has only one "
        "hand."
    ),
    function=my_table_test,
    tests=(
        _passes_right,
        _finds_speeds,
        _finds_layouts,
        _finds_places,
        _finds_widths,
        _finds_slips,
    ),
)


# 08.3 repair: positions are added


def my_add_positions(x, table, start=0):
    """Add to each word of x (B, T, C) its row of the table (max_len, C): a new tensor.

    The first word of each sentence is at position `start`. Gradients reach x and the table, which
    may be learned. Raises ValueError if it has no row for the last word.
    """
    raise NotImplementedError


def _added(x, table, start=0):
    """A word at a time."""
    return torch.stack(
        [
            torch.stack([word + table[start + t] for t, word in enumerate(sentence.unbind())])
            for sentence in x.unbind()
        ]
    )


def _one_row(answer):
    """a single word gets row 0"""
    agrees(answer, _added, torch.tensor([[[1.0, 2.0]]]), torch.tensor([[10.0, 20.0]]))


@hint("Which axis of x counts the words of a sentence?")
def _rows_by_place(answer):
    """every sentence gets the same rows, one for each of its words"""
    note = "Word t of every sentence gets row t."
    agrees(answer, _added, numbers(1, 2, 2, seed=21), numbers(4, 2, seed=22), note=note)
    agrees(answer, _added, numbers(3, 2, 4, seed=23), numbers(6, 4, seed=24), note=note)
    agrees(answer, _added, numbers(2, 5, 3, seed=25), numbers(5, 3, seed=26), note=note)
    agrees(answer, _added, numbers(4, 4, 2, seed=27), numbers(9, 2, seed=28), note=note)


@hint("At which row does a slice for T words end that begins at `start`?")
def _from_start(answer):
    """words can begin at a later position"""
    note = "The first word is at position 2."
    agrees(answer, _added, numbers(1, 1, 2, seed=31), numbers(4, 2, seed=32), 2, note=note)
    agrees(answer, _added, numbers(2, 3, 2, seed=33), numbers(9, 2, seed=34), 2, note=note)
    note = "The last word has the last row."
    agrees(answer, _added, numbers(3, 2, 4, seed=35), numbers(6, 4, seed=36), 4, note=note)


def _past_the_end(answer):
    """where the table has no row left, it refuses"""
    note = "A slice past the end is just shorter, and what is left broadcasts."
    cases = (3, 1, 0), (2, 1, 0), (2, 3, 2), (1, 3, 3), (3, 2, 0), (2, 4, 7)
    for words, rows, start in cases:
        x, table = numbers(1, words, 2, seed=41), numbers(rows, 2, seed=42)
        where = f"for x of shape {tuple(x.shape)}, table of shape {(rows, 2)}, start={start}"
        refuses(answer, x, table, start, note=note, where=where)


def _other_dtypes(answer):
    """it works in float64, and where its arguments are"""
    wide = [numbers(*shape, seed=51, dtype=torch.float64) for shape in ((2, 3, 4), (5, 4))]
    agrees(answer, _added, *wide, 1)
    travels(answer, numbers(2, 3, 4, seed=52), numbers(5, 4, seed=53), 1)


def _both_learn(answer):
    """gradients reach x, and the table, which may be learned"""
    gradients(answer, _added, numbers(1, 2, 2, seed=61), numbers(3, 2, seed=62))
    gradients(answer, _added, numbers(2, 3, 2, seed=63), numbers(6, 2, seed=64), 2)


ADDED = Exercise(
    id="08.3",
    title="repair: positions are added",
    difficulty=2,
    minutes=10,
    statement=(
        "`suspect`, above, is right only for square inputs that begin at position 0. Write "
        "`my_add_positions(x, table, start=0)`, which does what it should do: it adds to each word "
        "of `x` `(B, T, C)` the row of `table` `(max_len, C)` for its position, counted from "
        "`start`, and returns a new tensor. Raise a `ValueError` if the table has no row for the "
        "last word."
    ),
    hint=(
        "Four things are wrong: the axis whose length is taken, the end of the slice, what happens "
        "past the end of the table, and what becomes of the caller's `x`."
    ),
    function=my_add_positions,
    tests=(_one_row, _rows_by_place, _from_start, _past_the_end, _other_dtypes, _both_learn),
)


EXERCISES = (SINUSOIDS, TABLE_TEST, ADDED)
