"""08.2 a test of the table (★★☆, 12 minutes)

Design `my_table_test(encode)`, where `encode(max_len, d_model)` returns a tensor that should be the
paper's table. Return `True` if it is, and `False` if it is wrong in any way: in its frequencies,
the order of its columns, its first position or its shape, or at odd widths only. Choose the sizes
to test yourself. Rounding errors are allowed, but a number that is off by a thousandth is a
mistake.

Hint: Compare values with the formula, computed with `math.sin` and `math.cos`. Which sizes reveal
most? At position 0 all frequencies give the same row, and width 2 has only one hand.
"""

import math

import numpy as np
import torch

from tinytf_course.expect import expect


def my_table_test(encode):
    """Whether encode(max_len, d_model) returns the paper's table for all sizes: True or False.

    encode returns a tensor (max_len, d_model), in float32 or float64.
    """
    for max_len, d_model in ((20, 8), (20, 7)):
        table = encode(max_len, d_model)
        position, column = torch.arange(max_len)[:, None], torch.arange(d_model)
        angle = position / 10000 ** ((column - column % 2) / d_model)
        expected = torch.where(column % 2 == 0, angle.sin(), angle.cos())
        if table.shape != expected.shape or not torch.allclose(table.float(), expected, atol=1e-4):
            return False
    return True


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


def test_passes_right(answer):
    """a right table passes, in float32 and in float64"""
    _verdicts(answer, RIGHT_TABLES, True, "Computed in float32, it differs by about 1e-6.")


def test_finds_speeds(answer):
    """hands of a wrong speed are found"""
    _verdicts(answer, WRONG_SPEEDS, False, "Row 1 has a value in column 2 that tells.")


def test_finds_layouts(answer):
    """sines and cosines in the wrong columns are found"""
    _verdicts(answer, WRONG_LAYOUTS, False, "Each column has its own value to compare.")


def test_finds_places(answer):
    """rows in the wrong places are found"""
    _verdicts(answer, WRONG_PLACES, False, "Look at more rows than one.")


def test_finds_widths(answer):
    """a wrong shape is found, and speeds that fit one width only"""
    _verdicts(answer, WRONG_WIDTHS, False, "Ask for several sizes, and look at the shape.")


def test_finds_slips(answer):
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


def _table_test(max_len=20, d_model=8, rows=slice(None), columns=slice(None), atol=1e-4):
    """A `my_table_test` that looks at these sizes, rows and columns."""

    def test(encode):
        found, expected = encode(max_len, d_model), _values(max_len, d_model)
        return found.shape == expected.shape and torch.allclose(
            found.float()[rows, columns], expected[rows, columns], atol=atol
        )

    return test


def _both_widths(**looks):
    tests = [_table_test(d_model=d_model, **looks) for d_model in (8, 7)]
    return lambda encode: all(test(encode) for test in tests)


def _compared(near):
    """A `my_table_test` that looks at the shapes, and compares by `near`."""

    def test(encode):
        pairs = [(encode(20, width), _values(20, width)) for width in (8, 7)]
        return all(a.shape == b.shape and bool(near(a.double(), b)) for a, b in pairs)

    return test


MISTAKES = r"""
True, whatever comes
    … =>
        return encode(4, 4) is not None
    says: hands that get faster
    A test that can't fail tests nothing.
True and False exchanged
    … =>
        return not my_table_test(encode)
    says: expected True
    The right table is the one that gets True.
properties, not values
    … =>
        table = encode(50, 8).float()
        apart = torch.cdist(table, table).fill_diagonal_(torch.inf).min() > 1e-3
        return bool(apart and table.abs().max() <= 1)
    says: hands that get faster
    Unique and bounded are tables of any speed. Compare values.
only position 0
    … =>
        return _table_test(max_len=1)(encode)
    says: hands that get faster
    At position 0 every angle is 0, whatever the speed.
only the first hand
    … =>
        return _table_test(columns=slice(2))(encode)
    says: hands that get faster
    Hand 0 turns by 1 radian in nearly every wrong table as well.
only sines
    … =>
        return _table_test(columns=slice(0, None, 2))(encode)
    says: sines in all columns
    Half of the columns are cosines.
only row 1
    … =>
        return _table_test(rows=slice(1, 2))(encode)
    says: clocks that stop at position 1
    One row says nothing of the next ones.
the last row left out
    … =>
        return _both_widths(rows=slice(-1))(encode)
    says: a last row too large
    A table may be right as far as its last row, say where it was cut too early.
the last column left out
    … =>
        return _both_widths(columns=slice(-1))(encode)
    says: an odd width that ends on a cosine
    The last column is where an odd width goes wrong. Compare all of them.
only even widths
    … =>
        return _table_test()(encode)
    says: an odd width that ends on a cosine
    An odd width has one cosine fewer, which is where code for pairs goes wrong.
only a square
    … =>
        return _table_test(8, 8)(encode)
    says: speeds that depend on max_len
    Where max_len and d_model are equal, one may stand for the other.
only what is too large
    … =>
        return _compared(lambda found, expected: not (found - expected).max() > 1e-4)(encode)
    says: numbers too small by 0.002
    `max()` of the differences sees what is too large: take `abs()` first.
NaN let through
    … =>
        return _compared(lambda found, expected: not ((found - expected).abs() > 1e-4).any())(encode)
    says: NaN in row 1
    NaN > 0.0001 is False, and so is every comparison with NaN. Ask whether all numbers are
    near, not whether none is far.
only width 4
    … =>
        return _table_test(d_model=4)(encode)
    says: the speeds of width 4 at any width
    At width 4, 10000^(2i/d) is 100^i, whether or not the width is in the formula.
shape taken on trust
    … =>
        return (
            torch.allclose(encode(20, 8)[:20, :8].float(), _values(20, 8), atol=1e-4)
            if encode(20, 8).size(0) >= 20
            else False
        )
    says: a row too many
    A row too many has all the right values, and one more.
equal to the last digit
    … =>
        return torch.equal(encode(20, 8).float(), _values(20, 8))
    says: a right table, computed in float32
    Two right ways to compute an angle round differently: allow for 1e-5 or so.
too forgiving
    … =>
        return _table_test(atol=0.05)(encode)
    says: numbers too large by 0.002
    float32 is right to about 1e-6; 0.05 lets slow hands stand still.
float32 only
    … =>
        return encode(20, 8).dtype == torch.float32 and my_table_test(encode)
    says: a right table in float64
    The dtype says nothing about the values.
"""

HARMLESS = r"""
for max_len, d_model in ((20, 8), (20, 7)): => for max_len, d_model in …
    other sizes may show as much
… => if table.shape != angle.shape or …
    it has the shape of expected
table = encode(max_len, d_model) => table = encode(max_len, d_model).detach()
    neither a gradient nor more digits change what a test of values says
table = encode(max_len, d_model) => table = encode(max_len, d_model).float()
    neither a gradient nor more digits change what a test of values says
table = encode(max_len, d_model) => table = encode(max_len, d_model).double()
    neither a gradient nor more digits change what a test of values says
angle = position / 10000 ** ((column - column % 2) / d_model) => angle = (position / 10000 ** ((column - column % 2) / d_model)).detach()
    neither a gradient nor more digits change what a test of values says
angle = position / 10000 ** ((column - column % 2) / d_model) => angle = (position / 10000 ** ((column - column % 2) / d_model)).float()
    neither a gradient nor more digits change what a test of values says
angle = position / 10000 ** ((column - column % 2) / d_model) => angle = position.detach() / 10000 ** ((column - column % 2) / d_model)
    neither a gradient nor more digits change what a test of values says
angle = position / 10000 ** ((column - column % 2) / d_model) => angle = position.float() / 10000 ** ((column - column % 2) / d_model)
    neither a gradient nor more digits change what a test of values says
angle = position / 10000 ** ((column - column % 2) / d_model) => angle = position / 10000 ** ((column.detach() - column % 2) / d_model)
    neither a gradient nor more digits change what a test of values says
angle = position / 10000 ** ((column - column % 2) / d_model) => angle = position / 10000 ** ((column.float() - column % 2) / d_model)
    neither a gradient nor more digits change what a test of values says
angle = position / 10000 ** ((column - column % 2) / d_model) => angle = position / 10000 ** ((column - column.detach() % 2) / d_model)
    neither a gradient nor more digits change what a test of values says
angle = position / 10000 ** ((column - column % 2) / d_model) => angle = position / 10000 ** ((column - column.float() % 2) / d_model)
    neither a gradient nor more digits change what a test of values says
angle = position / 10000 ** ((column - column % 2) / d_model) => angle = position / 10001 ** ((column - column % 2) / d_model)
    so small a change of the base moves a value by 1e-5 at most, as rounding might
angle = position / 10000 ** ((column - column % 2) / d_model) => angle = position / 9999 ** ((column - column % 2) / d_model)
    so small a change of the base moves a value by 1e-5 at most, as rounding might
expected = torch.where(column % 2 == 0, angle.sin(), angle.cos()) => expected = torch.where(column % 2 == 0, angle.sin(), angle.cos()).detach()
    neither a gradient nor more digits change what a test of values says
expected = torch.where(column % 2 == 0, angle.sin(), angle.cos()) => expected = torch.where(column % 2 == 0, angle.sin(), angle.cos()).float()
    neither a gradient nor more digits change what a test of values says
expected = torch.where(column % 2 == 0, angle.sin(), angle.cos()) => expected = torch.where(column.detach() % 2 == 0, angle.sin(), angle.cos())
    neither a gradient nor more digits change what a test of values says
expected = torch.where(column % 2 == 0, angle.sin(), angle.cos()) => expected = torch.where(column.float() % 2 == 0, angle.sin(), angle.cos())
    neither a gradient nor more digits change what a test of values says
expected = torch.where(column % 2 == 0, angle.sin(), angle.cos()) => expected = torch.where(column % 2 == 0, angle.detach().sin(), angle.cos())
    neither a gradient nor more digits change what a test of values says
expected = torch.where(column % 2 == 0, angle.sin(), angle.cos()) => expected = torch.where(column % 2 == 0, angle.float().sin(), angle.cos())
    neither a gradient nor more digits change what a test of values says
expected = torch.where(column % 2 == 0, angle.sin(), angle.cos()) => expected = torch.where(column % 2 == 0, angle.sin(), angle.detach().cos())
    neither a gradient nor more digits change what a test of values says
expected = torch.where(column % 2 == 0, angle.sin(), angle.cos()) => expected = torch.where(column % 2 == 0, angle.sin(), angle.float().cos())
    neither a gradient nor more digits change what a test of values says
if table.shape != expected.shape or not torch.allclose(table.float(), expected, atol=0.0001): => if table.shape != expected.shape or not torch.allclose(expected, table.float(), atol=0.0001):
    neither a gradient nor more digits change what a test of values says
if table.shape != expected.shape or not torch.allclose(table.float(), expected, atol=0.0001): => if table.shape != expected.shape or not torch.allclose(table.float(), expected.detach(), atol=0.0001):
    neither a gradient nor more digits change what a test of values says
if table.shape != expected.shape or not torch.allclose(table.float(), expected, atol=0.0001): => if table.shape != expected.shape or not torch.allclose(table.float(), expected.float(), atol=0.0001):
    neither a gradient nor more digits change what a test of values says
if table.shape != expected.shape or not torch.allclose(table.float(), expected, atol=0.0001): => if table.shape != expected.shape or not torch.allclose(table.detach().float(), expected, atol=0.0001):
    neither a gradient nor more digits change what a test of values says
if table.shape != expected.shape or not torch.allclose(table.float(), expected, atol=0.0001): => if table.shape != expected.shape or not torch.allclose(table.float().float(), expected, atol=0.0001):
    neither a gradient nor more digits change what a test of values says
if table.shape != expected.shape or not torch.allclose(table.float(), expected, atol=0.0001): => if table.shape != expected.shape or not torch.allclose(table.float(), expected, atol=0.0002):
    both allow less than a thousandth, and more than rounding
"""
