"""Answers to chapter 08: references and mistakes."""

import torch

from tinytf_course.exercises.ch08 import _values
from tinytf_course.grading import Answers, WrongAnswer

_NO_GRADIENT = "positions and angles have no gradient to lose"
_FLOAT32 = "it is float32 already, or will be, or small whole numbers"
_VERDICT = "neither a gradient nor more digits change what a test of values says"


def _alike(line, why, *changes):
    """Harmless mutants of a line: what is replaced, and by what, with … for itself."""
    return {f"{line} => {line.replace(old, new.replace('…', old), 1)}": why for old, new in changes}


# 08.1 the clock at any place


def my_sinusoids(positions, d_model):
    """The sinusoidal encoding of each of `positions` (…), whole or not: (…, d_model), float32.

    Column 2i holds sin(pos / 10000^(2i / d_model)), column 2i + 1 the cosine of the same angle.
    An odd d_model ends with a sine.
    """
    frequency = 10000 ** (-torch.arange(0, d_model, 2) / d_model)  # (pairs,)
    angle = positions[..., None] * frequency  # (…, pairs)
    rows = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)  # a sine, a cosine, …
    return rows[..., :d_model]


def _angles(positions, d_model, power=-1.0, base=10000.0):
    return positions[..., None] * base ** (power * torch.arange(0, d_model, 2) / d_model)


def _rows(angle, d_model):
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)[..., :d_model]


def _halves(positions, d_model):
    angle = _angles(positions, d_model)
    return torch.cat([angle.sin(), angle.cos()], dim=-1)[..., :d_model]


def _own_exponent(positions, d_model):
    angle = positions[..., None] / 10000 ** (torch.arange(d_model) / d_model)
    return torch.where(torch.arange(d_model) % 2 == 0, angle.sin(), angle.cos())


def _odd_crash(positions, d_model):
    angle, rows = _angles(positions, d_model), torch.zeros(*positions.shape, d_model)
    rows[..., 0::2], rows[..., 1::2] = angle.sin(), angle.cos()
    return rows


def _swapped(positions, d_model):
    angle = _angles(positions, d_model)
    return torch.stack([angle.cos(), angle.sin()], dim=-1).flatten(-2)[..., :d_model]


def _counted(positions, d_model):
    return my_sinusoids(torch.arange(positions.size(-1)).expand(positions.shape), d_model)


SINUSOIDS = Answers(
    reference=my_sinusoids,
    wrong=(
        WrongAnswer(
            "frequencies divided",
            lambda positions, d_model: _rows(_angles(positions, d_model, 1.0), d_model),
            "Pair i turns by",
            "The hands get faster from pair to pair, up to 10,000 radians per position. Positions "
            "are still unique and bounded, and a shift is still a matrix; but neighbours are not "
            "alike. A published tutorial has this bug.",
        ),
        WrongAnswer(
            "an exponent for every column",
            _own_exponent,
            "Pair i turns by",
            "A sine and its cosine share one angle: the exponent of column j is 2·(j // 2)/d, not "
            "j/d. Otherwise no matrix leads from one position to the next.",
        ),
        WrongAnswer(
            "i in place of 2i",
            lambda positions, d_model: _rows(_angles(positions, d_model, -0.5), d_model),
            "Pair i turns by",
            "The exponent of pair i is 2i/d. With i/d the speeds end at 1/100 instead of 1/10000.",
        ),
        WrongAnswer(
            "4i in place of 2i",
            lambda positions, d_model: _rows(_angles(positions, d_model, -2.0), d_model),
            "Pair i turns by",
            "The exponent of pair i is 2i/d, and `torch.arange(0, d_model, 2)` holds 2i already.",
        ),
        WrongAnswer(
            "another base",
            lambda positions, d_model: _rows(_angles(positions, d_model, base=1000.0), d_model),
            "Pair i turns by",
            "The base is 10,000: hand i turns by 1 / 10000^(2i/d) radians per position.",
        ),
        WrongAnswer(
            "sines first, then cosines",
            _halves,
            "Column 0 is a sine",
            "This is the layout of the paper's first code, and a model does not mind; but it is "
            "not the formula, and weights trained with one layout fail with the other.",
        ),
        WrongAnswer(
            "an odd width crashes",
            _odd_crash,
            "raises RuntimeError",
            "For an odd width there are more sines than cosines: cut the cosines to "
            "`d_model // 2`.",
        ),
        WrongAnswer(
            "an odd width made even",
            lambda positions, d_model: my_sinusoids(positions, d_model + d_model % 2),
            "One sine, no cosine",
            "An odd width has a sine more than cosines: the last cosine goes.",
        ),
        WrongAnswer(
            "the speeds of the next even width",
            lambda positions, d_model: my_sinusoids(positions, d_model + d_model % 2)[
                ..., :d_model
            ],
            "Three sines, two cosines",
            "The width in the exponent is the width that was asked for, odd as it is.",
        ),
        WrongAnswer(
            "sine and cosine swapped",
            _swapped,
            "Column 0 is a sine",
            "Even columns are sines, odd ones cosines.",
        ),
        WrongAnswer(
            "positions from 1",
            lambda positions, d_model: my_sinusoids(positions + 1, d_model),
            "Column 0 is a sine",
            "Positions count from 0, so row 0 is 0, 1, 0, 1.",
        ),
        WrongAnswer(
            "degrees",
            lambda positions, d_model: my_sinusoids(torch.deg2rad(positions.float()), d_model),
            "Pair i turns by",
            "Angles are in radians, and so are `sin` and `cos`.",
        ),
        WrongAnswer(
            "its own 0, 1, 2, …",
            _counted,
            "A row belongs to the number that was given",
            "Take the positions from `positions`: its first number need not be 0.",
        ),
        WrongAnswer(
            "whole positions only",
            lambda positions, d_model: my_sinusoids(positions.long(), d_model),
            "A row belongs to the number that was given",
            "Between two positions the hands are in between: don't round, and don't look rows up.",
        ),
        WrongAnswer(
            "negative positions turned over",
            lambda positions, d_model: my_sinusoids(positions.abs(), d_model),
            "A row belongs to the number that was given",
            "Below 0 the hands have turned the other way: the sine changes its sign.",
        ),
        WrongAnswer(
            "flattened",
            lambda positions, d_model: my_sinusoids(positions.flatten(), d_model),
            "the shape is (6, 4), expected (2, 3, 4)",
            "Positions (B, T) give rows (B, T, d_model), to be added to words (B, T, d_model).",
        ),
        WrongAnswer(
            "transposed",
            lambda positions, d_model: my_sinusoids(positions, d_model).transpose(-1, -2),
            "the shape is (4, 3), expected (3, 4)",
            "A row is a position, so that it can be added to a word.",
        ),
        WrongAnswer(
            "positions in half precision",
            lambda positions, d_model: my_sinusoids(positions.half().float(), d_model),
            "Angles need float32",
            "float16 counts in twos from 2048 on, bfloat16 from 256 on: neighbours get one row.",
        ),
    ),
    equivalent={
        **_alike(
            "frequency = 10000 ** (-torch.arange(0, d_model, 2) / d_model)",
            _NO_GRADIENT,
            ("10000 ** (-torch.arange(0, d_model, 2) / d_model)", "(…).detach()"),
        ),
        **_alike(
            "frequency = 10000 ** (-torch.arange(0, d_model, 2) / d_model)",
            _FLOAT32,
            ("10000 ** (-torch.arange(0, d_model, 2) / d_model)", "(…).float()"),
        ),
        **_alike(
            "angle = positions[..., None] * frequency",
            _NO_GRADIENT,
            ("positions[..., None] * frequency", "(…).detach()"),
            ("positions", "….detach()"),
            ("frequency", "….detach()"),
        ),
        **_alike(
            "angle = positions[..., None] * frequency",
            _FLOAT32,
            ("positions[..., None] * frequency", "(…).float()"),
            ("positions", "….float()"),
            ("frequency", "….float()"),
        ),
        **_alike(
            "rows = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)",
            _NO_GRADIENT,
            ("(-2)", "….detach()"),
            ("angle.sin", "angle.detach().sin"),
            ("angle.cos", "angle.detach().cos"),
        ),
        **_alike(
            "rows = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)",
            _FLOAT32,
            ("(-2)", "….float()"),
            ("angle.sin", "angle.float().sin"),
            ("angle.cos", "angle.float().cos"),
        ),
        **_alike(
            "return rows[..., :d_model]",
            _NO_GRADIENT,
            ("d_model]", "….detach()"),
            ("rows", "….detach()"),
        ),
        **_alike(
            "return rows[..., :d_model]", _FLOAT32, ("d_model]", "….float()"), ("rows", "….float()")
        ),
    },
)


# 08.2 a test of the table


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


def _properties(encode):
    table = encode(50, 8).float()
    apart = torch.cdist(table, table).fill_diagonal_(torch.inf).min() > 1e-3
    return bool(apart and table.abs().max() <= 1)


TABLE_TEST = Answers(
    reference=my_table_test,
    wrong=(
        WrongAnswer(
            "True, whatever comes",
            lambda encode: encode(4, 4) is not None,
            "hands that get faster",
            "A test that can't fail tests nothing.",
        ),
        WrongAnswer(
            "True and False exchanged",
            lambda encode: not my_table_test(encode),
            "expected True",
            "The right table is the one that gets True.",
        ),
        WrongAnswer(
            "properties, not values",
            _properties,
            "hands that get faster",
            "Unique and bounded are tables of any speed. Compare values.",
        ),
        WrongAnswer(
            "only position 0",
            _table_test(max_len=1),
            "hands that get faster",
            "At position 0 every angle is 0, whatever the speed.",
        ),
        WrongAnswer(
            "only the first hand",
            _table_test(columns=slice(2)),
            "hands that get faster",
            "Hand 0 turns by 1 radian in nearly every wrong table as well.",
        ),
        WrongAnswer(
            "only sines",
            _table_test(columns=slice(0, None, 2)),
            "sines in all columns",
            "Half of the columns are cosines.",
        ),
        WrongAnswer(
            "only row 1",
            _table_test(rows=slice(1, 2)),
            "clocks that stop at position 1",
            "One row says nothing of the next ones.",
        ),
        WrongAnswer(
            "the last row left out",
            _both_widths(rows=slice(-1)),
            "a last row too large",
            "A table may be right as far as its last row, say where it was cut too early.",
        ),
        WrongAnswer(
            "the last column left out",
            _both_widths(columns=slice(-1)),
            "an odd width that ends on a cosine",
            "The last column is where an odd width goes wrong. Compare all of them.",
        ),
        WrongAnswer(
            "only even widths",
            _table_test(),
            "an odd width that ends on a cosine",
            "An odd width has one cosine fewer, which is where code for pairs goes wrong.",
        ),
        WrongAnswer(
            "only a square",
            _table_test(8, 8),
            "speeds that depend on max_len",
            "Where max_len and d_model are equal, one may stand for the other.",
        ),
        WrongAnswer(
            "only what is too large",
            _compared(lambda found, expected: not (found - expected).max() > 1e-4),
            "numbers too small by 0.002",
            "`max()` of the differences sees what is too large: take `abs()` first.",
        ),
        WrongAnswer(
            "NaN let through",
            _compared(lambda found, expected: not ((found - expected).abs() > 1e-4).any()),
            "NaN in row 1",
            "NaN > 0.0001 is False, and so is every comparison with NaN. Ask whether all numbers "
            "are near, not whether none is far.",
        ),
        WrongAnswer(
            "only width 4",
            _table_test(d_model=4),
            "the speeds of width 4 at any width",
            "At width 4, 10000^(2i/d) is 100^i, whether or not the width is in the formula.",
        ),
        WrongAnswer(
            "shape taken on trust",
            lambda encode: (
                torch.allclose(encode(20, 8)[:20, :8].float(), _values(20, 8), atol=1e-4)
                if encode(20, 8).size(0) >= 20
                else False
            ),
            "a row too many",
            "A row too many has all the right values, and one more.",
        ),
        WrongAnswer(
            "equal to the last digit",
            lambda encode: torch.equal(encode(20, 8).float(), _values(20, 8)),
            "a right table, computed in float32",
            "Two right ways to compute an angle round differently: allow for 1e-5 or so.",
        ),
        WrongAnswer(
            "too forgiving",
            _table_test(atol=0.05),
            "numbers too large by 0.002",
            "float32 is right to about 1e-6; 0.05 lets slow hands stand still.",
        ),
        WrongAnswer(
            "float32 only",
            lambda encode: encode(20, 8).dtype == torch.float32 and my_table_test(encode),
            "a right table in float64",
            "The dtype says nothing about the values.",
        ),
    ),
    equivalent={
        "for max_len, d_model in ((20, 8), (20, 7)): => for max_len, d_model in …": "other sizes "
        "may show as much",
        "… => if table.shape != angle.shape or …": "it has the shape of expected",
        **_alike(
            "table = encode(max_len, d_model)",
            _VERDICT,
            ("d_model)", "….detach()"),
            ("d_model)", "….float()"),
            ("d_model)", "….double()"),
        ),
        **_alike(
            "angle = position / 10000 ** ((column - column % 2) / d_model)",
            _VERDICT,
            ("position / 10000 ** ((column - column % 2) / d_model)", "(…).detach()"),
            ("position / 10000 ** ((column - column % 2) / d_model)", "(…).float()"),
            ("position", "….detach()"),
            ("position", "….float()"),
            ("column", "….detach()"),
            ("column", "….float()"),
            ("- column", "….detach()"),
            ("- column", "….float()"),
        ),
        **_alike(
            "angle = position / 10000 ** ((column - column % 2) / d_model)",
            "so small a change of the base moves a value by 1e-5 at most, as rounding might",
            ("10000", "10001"),
            ("10000", "9999"),
        ),
        **_alike(
            "expected = torch.where(column % 2 == 0, angle.sin(), angle.cos())",
            _VERDICT,
            ("torch.where(column % 2 == 0, angle.sin(), angle.cos())", "….detach()"),
            ("torch.where(column % 2 == 0, angle.sin(), angle.cos())", "….float()"),
            ("column", "….detach()"),
            ("column", "….float()"),
            ("angle", "….detach()"),
            ("angle", "….float()"),
            (" angle.cos", " angle.detach().cos"),
            (" angle.cos", " angle.float().cos"),
        ),
        **_alike(
            "if table.shape != expected.shape or not "
            "torch.allclose(table.float(), expected, atol=0.0001):",
            _VERDICT,
            ("table.float(), expected", "expected, table.float()"),
            (", expected,", ", expected.detach(),"),
            (", expected,", ", expected.float(),"),
            ("table.float", "table.detach().float"),
            ("table.float", "table.float().float"),
        ),
        **_alike(
            "if table.shape != expected.shape or not "
            "torch.allclose(table.float(), expected, atol=0.0001):",
            "both allow less than a thousandth, and more than rounding",
            ("0.0001", "0.0002"),
        ),
    },
)


# 08.3 repair: positions are added


def my_add_positions(x, table, start=0):
    """Add to each word of x (B, T, C) its row of the table (max_len, C): a new tensor.

    The first word of each sentence is at position `start`. Gradients reach x and the table, which
    may be learned. Raises ValueError if it has no row for the last word.
    """
    end = start + x.size(1)
    if end > table.size(0):
        raise ValueError(f"position {end - 1} is past a table of {table.size(0)} rows")
    return x + table[start:end]


def _in_place(x, table, start=0):
    rows = my_add_positions(torch.zeros_like(x), table, start)
    x += rows
    return x


ADDED = Answers(
    reference=my_add_positions,
    wrong=(
        WrongAnswer(
            "counted along the batch",
            lambda x, table, start=0: (
                x + table[start : start + x.size(0)][:, None]
                if start + x.size(0) <= table.size(0)
                else my_add_positions(x, table, start)
            ),
            "Word t of every sentence gets row t",
            "`x.size(0)` is the batch: all words of sentence 3 get position 3. Words are axis 1.",
        ),
        WrongAnswer(
            "cut by the batch",
            lambda x, table, start=0: x + table[start : start + x.size(0)],
            "for x of shape (1, 3, 2)",
            "`x.size(0)` is the number of sentences; words are axis 1.",
        ),
        WrongAnswer(
            "a slice that ends at T",
            lambda x, table, start=0: (
                x + table[start : x.size(1)]
                if start + x.size(1) <= table.size(0)
                else my_add_positions(x, table, start)
            ),
            "The first word is at position 2",
            "T words from `start` end at start + T.",
        ),
        WrongAnswer(
            "start ignored",
            lambda x, table, start=0: (
                my_add_positions(x, table[: x.size(1)])
                if start + x.size(1) <= table.size(0)
                else my_add_positions(x, table, start)
            ),
            "The first word is at position 2",
            "With a cache the new word comes alone, and is not at position 0.",
        ),
        WrongAnswer(
            "nothing refused",
            lambda x, table, start=0: x + table[start : start + x.size(1)],
            "expected a ValueError",
            "One row that is left is added to both words, and no row makes the word disappear.",
        ),
        WrongAnswer(
            "measured without start",
            lambda x, table, start=0: (
                x
                + my_add_positions(torch.zeros_like(x), table)[:1] * 0
                + table[start : start + x.size(1)]
            ),
            "start=2, you return",
            "The last word stands at start + T - 1, and that row has to be there.",
        ),
        WrongAnswer(
            "one row too many",
            lambda x, table, start=0: (
                x + table[start : start + x.size(1)]
                if start + x.size(1) - 1 <= table.size(0)
                else my_add_positions(x, table, start)
            ),
            "start=0, you return",
            "Rows are counted from 0: the last of n rows is row n - 1.",
        ),
        WrongAnswer(
            "the last row refused",
            lambda x, table, start=0: my_add_positions(x, table[:-1], start),
            "raises ValueError",
            "A sentence that ends with the table's last row fits.",
        ),
        WrongAnswer(
            "added in place",
            _in_place,
            "x",
            "`+=` changes the caller's tensor, who may still need the words without positions.",
        ),
        WrongAnswer(
            "a table that can't learn",
            lambda x, table, start=0: my_add_positions(x, table.detach(), start),
            "no gradient reaches `table`",
            "A learned table needs its gradient.",
        ),
    ),
    equivalent={},
)


ANSWERS = {
    "08.1": SINUSOIDS,
    "08.2": TABLE_TEST,
    "08.3": ADDED,
}
