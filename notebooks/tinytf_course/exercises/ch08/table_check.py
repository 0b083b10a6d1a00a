"""08.2 a test of the table (★★☆, 12 minutes)

Design `my_table_test(encode)`, where `encode(max_len, d_model)` returns a tensor that should be the
paper's table. Return `True` if it is, and `False` if it is wrong in any way.

<details><summary>The rule in detail</summary>

It may be wrong in its frequencies, the order of its columns, its first position or its shape, or at
odd widths only, even ones only or wide ones only, or hold NaN. Choose the sizes to test yourself.
Rounding errors are allowed, but a number that is off by a thousandth is a mistake.

</details>

Hint: Which sizes reveal most? At position 0 all frequencies give the same row, and width 2 has only
one hand.

Hint: Compare all values with the formula, computed with `math.sin` and `math.cos`, at an even width
and at an odd one, neither of them equal to `max_len`.
"""

import math

import torch

from tinytf_course.expect import same


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


def _table(slow=lambda j, d: 10000 ** ((j - j % 2) / d), place=lambda position: position,
           even=torch.sin, odd=torch.cos, dtype=torch.float64):  # fmt: skip
    """An `encode` whose column j turns by 1 / slow per position; right, unless told otherwise."""

    def encode(max_len, d_model):
        position, column = (torch.arange(size, dtype=dtype) for size in (max_len, d_model))
        angle = place(position)[:, None] / slow(column, d_model)
        return torch.where(column % 2 == 0, even(angle), odd(angle)).float()

    return encode


def _off(by, rows=slice(None), columns=slice(None)):
    """An `encode` whose numbers are off in these rows and columns."""

    def encode(max_len, d_model):
        table = RIGHT(max_len, d_model)
        table[rows, columns] += by
        return table

    return encode


def _sines_first(max_len, d_model):
    table = RIGHT(max_len, d_model)
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


def _ends_on_cosine(max_len, d_model):
    last = _table(even=torch.cos)(max_len, d_model)[:, -1:]
    return torch.cat([RIGHT(max_len, d_model)[:, :-1], last], dim=1)


RIGHT = _table()
LAST = slice(-1, None)


def _verdicts(answer, expected, note, tables):
    for name, encode in tables.items():
        same(answer(encode), expected, f"for a function that makes {name}", note=note)


def test_passes_right(answer):
    """a right table passes, in float32 and in float64"""
    _verdicts(answer, True, "Is your own table right? Two right ones differ by about 1e-6.", {
        "a right table": RIGHT,
        "a right table in float64": lambda max_len, d_model: RIGHT(max_len, d_model).double(),
        "a right table, computed in float32": _table(dtype=torch.float32),
        "a right table of sines, shifted for cosines": _table(
            odd=lambda angle: (angle + math.pi / 2).sin(), dtype=torch.float32
        ),
    })  # fmt: skip


def test_finds_speeds(answer):
    """hands of a wrong speed are found"""
    _verdicts(answer, False, "Row 1 has a value in column 2 that tells.", {
        "hands that get faster": _table(lambda j, d: 10000 ** ((j % 2 - j) / d)),
        "the exponent i/d in place of 2i/d": _table(lambda j, d: 10000 ** ((j - j % 2) / 2 / d)),
        "the base 1,000": _table(lambda j, d: 1000 ** ((j - j % 2) / d)),
        "one speed for all hands": _table(lambda j, d: torch.ones(d)),
        "an exponent of its own for each column": _table(lambda j, d: 10000 ** (j / d)),
    })  # fmt: skip


def test_finds_layouts(answer):
    """sines and cosines in the wrong columns are found"""
    _verdicts(answer, False, "Each column has its own value to compare.", {
        "cosine and sine swapped": _table(even=torch.cos, odd=torch.sin),
        "all sines before all cosines": _sines_first,
        "hands that turn the other way": _table(place=torch.neg),
        "sines in all columns": _table(odd=torch.sin),
    })  # fmt: skip


def test_finds_places(answer):
    """rows in the wrong places are found"""
    _verdicts(answer, False, "Look at more rows than one.", {
        "positions from 1": _table(place=lambda position: position + 1),
        "clocks that stop at position 1": _table(place=lambda position: position.clamp(max=1)),
        "position 0 everywhere": _table(place=torch.zeros_like),
    })  # fmt: skip


def test_finds_widths(answer):
    """a wrong shape is found, and speeds that fit one width only"""
    _verdicts(answer, False, "Try several sizes, and look at the shape.", {
        "the speeds of width 4 at any width": _table(lambda j, d: 10000 ** ((j - j % 2) / 4)),
        "a column too many": lambda max_len, d_model: RIGHT(max_len, d_model + 1),
        "a row too many": lambda max_len, d_model: RIGHT(max_len + 1, d_model),
        "rows and columns exchanged": lambda max_len, d_model: RIGHT(max_len, d_model).T,
        "an axis too many": lambda max_len, d_model: RIGHT(max_len, d_model)[None],
        "speeds that depend on max_len, not d_model": lambda max_len, d_model: _table(
            lambda j, _: 10000 ** ((j - j % 2) / max_len)
        )(max_len, d_model),
        "an odd width that ends on a cosine": _ends_on_cosine,
        "an even width with the speeds of the one before": _table(
            lambda j, d: 10000 ** ((j - j % 2) / (d - 1 + d % 2))
        ),
        "a third hand, from width 5 on, that is like the first": _table(
            lambda j, d: torch.where(j < 4, 10000 ** ((j - j % 2) / d), 1.0)
        ),
        "an odd width with the speeds of the next": lambda max_len, d_model: RIGHT(
            max_len, d_model + d_model % 2
        )[:, :d_model],
    })  # fmt: skip


def test_finds_slips(answer):
    """a table that is off by a thousandth is found"""
    _verdicts(answer, False, "Rounding is a million times smaller than 1.", {
        "numbers too large by 0.002": _off(0.002),
        "numbers too small by 0.002": _off(-0.002),
        "0.999 for a cosine of 0": _off(-0.001, slice(1), slice(1, None, 2)),
        "a last column too large by 0.002": _off(0.002, columns=LAST),
        "a last row too large by 0.002": _off(0.002, rows=LAST),
        "the column before the last too large by 0.002": _off(0.002, columns=slice(-2, -1)),
    })  # fmt: skip


def test_finds_nan(answer):
    """a table that holds NaN is found"""
    _verdicts(answer, False, "Every comparison with NaN is False.", {
        "NaN in row 0": _off(math.nan, slice(1)),
        "NaN everywhere": _off(math.nan),
    })  # fmt: skip


MISTAKES = r"""
True and False exchanged
    return True => return not True
    return False => return not False
    says: expected True
    The right table is the one that gets True.
properties, not values
    … =>
        table = encode(50, 8).float()
        apart = torch.cdist(table, table).fill_diagonal_(torch.inf).min() > 1e-3
        return bool(apart and table.abs().max() <= 1)
    says: hands that get faster
    Tables of any speed are unique and bounded. Compare values.
only position 0
    ((20, 8), (20, 7)) => ((1, 8), (1, 7))
    says: hands that get faster
    At position 0 every angle is 0, whatever the speed.
only the first hand
    table.float(), expected => table.float()[:, :2], expected[:, :2]
    says: hands that get faster
    Hand 0 turns by 1 radian in nearly every wrong table as well.
only sines
    table.float(), expected => table.float()[:, ::2], expected[:, ::2]
    says: sines in all columns
    Half of the columns are cosines.
only row 1
    table.float(), expected => table.float()[1], expected[1]
    says: clocks that stop at position 1
    One right row does not make the next ones right.
the last row left out
    table.float(), expected => table.float()[:-1], expected[:-1]
    says: a last row too large
    A table may be right except for its last row, for example where it was cut too early.
the last column left out
    table.float(), expected => table.float()[:, :-1], expected[:, :-1]
    says: an odd width that ends on a cosine
    The last column is where an odd width goes wrong. Compare all of them.
only even widths
    ((20, 8), (20, 7)) => ((20, 8),)
    says: an odd width that ends on a cosine
    An odd width has one cosine fewer, which is where code for pairs goes wrong.
only odd widths
    ((20, 8), (20, 7)) => ((20, 7),)
    says: an even width with the speeds of the one before
    Code for pairs may divide by a width of its own where the last pair is whole. Try an even width,
    too.
only narrow tables
    ((20, 8), (20, 7)) => ((20, 4), (20, 3))
    says: a third hand, from width 5 on
    Two hands say little about the third. Try a width of 7 or 8.
only a square
    ((20, 8), (20, 7)) => ((8, 8), (7, 7))
    says: speeds that depend on max_len
    Where max_len and d_model are equal, code that confuses them is right.
only what is too large
    not torch.allclose(table.float(), expected, atol=1e-4) =>
        (table.float() - expected).max() > 1e-4
    says: numbers too small by 0.002
    `max()` of the differences finds what is too large: take `abs()` first.
NaN let through
    not torch.allclose(table.float(), expected, atol=1e-4) =>
        ((table.float() - expected).abs() > 1e-4).any()
    says: NaN in row 0
    NaN > 0.0001 is False, and so is every comparison with NaN. Test whether all numbers are
    near, not whether none is far.
only width 4
    ((20, 8), (20, 7)) => ((20, 4),)
    says: the speeds of width 4 at any width
    At width 4, 10000^(2i/d) is 100^i, whether or not the width is in the formula.
shape taken on trust
    table.shape != expected.shape => len(table) < max_len
    table.float(), => table.float()[:max_len, :d_model],
    says: a row too many
    A table with a row too many has all the right values, and others.
equal to the last digit
    torch.allclose(table.float(), expected, atol=1e-4) => torch.equal(table.float(), expected)
    says: differ by about 1e-6
    Two right ways to compute an angle round differently: allow for 1e-5 or so.
too forgiving
    atol=1e-4 => atol=0.05
    says: numbers too large by 0.002
    float32 is right to about 1e-6. Within 0.05 slow hands need not turn at all.
float32 only
    if table.shape => if table.dtype != torch.float32 or table.shape
    says: a right table in float64
    A right table may be in float64: compare the values alone.
"""

HARMLESS = r"""
for max_len, d_model in ((20, 8), (20, 7)): => for max_len, d_model in …
    other sizes may show as much
… => if table.shape != angle.shape or …
    it has the shape of expected
angle = position / 10000 ** … => angle = position / 10001 ** …
    so small a change of the base moves a value by 1e-5 at most, as rounding might
angle = position / 10000 ** … => angle = position / 9999 ** …
    so small a change of the base moves a value by 1e-5 at most, as rounding might
… => …torch.allclose(expected, table.float(), …
    both ways round compare the same numbers
… => …atol=0.0002):
    both allow less than a thousandth, and more than rounding
"""
