"""08.1 the clock at any position (★★☆, 12 minutes)

Write `my_sinusoids(positions, d_model)`, which returns the paper's row for each position of the
tensor `positions`, of any shape (…): the result has the shape (…, d_model). Positions need not be
whole numbers, and they may be negative; `d_model` may be odd.

Hint: `torch.arange(0, d_model, 2)` contains 2i for all pairs at once, and `positions[..., None]`
adds an axis for the pairs.

Hint: `torch.stack(…, dim=-1).flatten(-2)` interleaves two tensors. An odd width has one cosine
fewer than sines.
"""

import math

import torch

from tinytf_course.expect import agrees, expect, tensor
from tinytf_course.grading import hint


def my_sinusoids(positions, d_model):
    """The sinusoidal encoding of each of `positions` (…), whole or not: (…, d_model), float32.

    Column 2i holds sin(pos / 10000^(2i / d_model)), column 2i + 1 the cosine of the same angle.
    An odd d_model ends with a sine.
    """
    frequency = 10000 ** (-torch.arange(0, d_model, 2) / d_model)  # (pairs,)
    angle = positions[..., None] * frequency  # (…, pairs)
    rows = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)  # a sine, a cosine, …
    return rows[..., :d_model]


def _sinusoids(positions, d_model):
    """Number by number, by the formula."""

    def value(position, j):
        angle = position / 10000 ** ((j - j % 2) / d_model)
        return math.cos(angle) if j % 2 else math.sin(angle)

    rows = [[value(p, j) for j in range(d_model)] for p in positions.flatten().tolist()]
    return torch.tensor(rows).reshape(*positions.shape, d_model)


def test_row_each(answer):
    """each position gets a row, whatever the shape of `positions`"""
    for shape in ((3,), (2, 3), (2, 1, 3)):
        where = f"for positions of shape {shape}, d_model=4"
        got = tuple(tensor(answer(torch.ones(shape), 4), where).shape)
        expect(got == (*shape, 4), f"{where}, the shape is {got}, expected {(*shape, 4)}")


def test_position_0(answer):
    """at position 0 sines are 0 and cosines are 1, in turn"""
    note = "Column 0 is a sine, column 1 the cosine of the same angle, and so on."
    agrees(answer, _sinusoids, torch.tensor([0]), 2, note=note)
    agrees(answer, _sinusoids, torch.tensor([0]), 4, note=note)


def test_frequencies(answer):
    """each pair turns more slowly than the one before"""
    note = "Pair i turns by 1 / 10000^(2i/d_model) radians per position."
    agrees(answer, _sinusoids, torch.tensor([0, 1]), 2, note=note)
    agrees(answer, _sinusoids, torch.tensor([0, 1]), 4, note=note)
    agrees(answer, _sinusoids, torch.tensor([0, 1, 2, 3]), 6, note=note)


@hint("Which positions does your function use: those that it is given, or its own 0, 1, 2?")
def test_as_given(answer):
    """positions are used as given: in any order, repeated, halves and negative ones"""
    note = "A row belongs to the number that was given, wherever it is in `positions`."
    agrees(answer, _sinusoids, torch.tensor([2]), 2, note=note)
    agrees(answer, _sinusoids, torch.tensor([[3, 0, 3], [1, 1, 2]]), 4, note=note)
    agrees(answer, _sinusoids, torch.tensor([2.5, -3.0]), 4, note=note)


def test_odd_width(answer):
    """an odd width ends with a sine"""
    agrees(answer, _sinusoids, torch.tensor([0, 1]), 1, note="One sine, no cosine.")
    agrees(answer, _sinusoids, torch.tensor([0, 1, 2]), 5, note="Three sines, two cosines.")


def test_far_positions(answer):
    """position 3,000 is as right as position 3"""
    note = "Angles need float32, at least."
    agrees(answer, _sinusoids, torch.tensor([2999, 3000]), 4, tolerance=5e-4, note=note)


MISTAKES = r"""
frequencies divided
    * frequency => / frequency
    says: Pair i turns by
    The hands get faster from pair to pair, up to 10,000 radians per position. Positions are
    still unique and bounded, and a shift is still a matrix; but neighbours are not alike. A
    published tutorial has this bug.
an exponent for every column
    -torch.arange(0, d_model, 2) => -torch.arange(d_model)
    rows = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2) =>
        rows = torch.where(torch.arange(d_model) % 2 == 0, angle.sin(), angle.cos())
    says: Pair i turns by
    A sine and its cosine share one angle: the exponent of column j is 2·(j // 2)/d, not j/d.
    Otherwise no matrix leads from one position to the next.
i in place of 2i
    2) / d_model => 2) / 2 / d_model
    says: Pair i turns by
    The exponent of pair i is 2i/d. With i/d the speeds end at 1/100 instead of 1/10000.
4i in place of 2i
    -torch.arange => -2 * torch.arange
    says: Pair i turns by
    The exponent of pair i is 2i/d, and `torch.arange(0, d_model, 2)` contains 2i already.
another base
    10000 ** => 1000 **
    says: Pair i turns by
    The base is 10,000: hand i turns by 1 / 10000^(2i/d) radians per position.
sines first, then cosines
    torch.stack => torch.cat
    .flatten(-2) =>
    says: Column 0 is a sine
    This is the layout of the paper's first code, and a model does not mind; but it is not the
    formula, and weights trained with one layout fail with the other.
an odd width crashes
    rows = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2) =>
        rows = torch.zeros(*positions.shape, d_model)
        rows[..., 0::2], rows[..., 1::2] = angle.sin(), angle.cos()
    says: raises RuntimeError
    For an odd width there are more sines than cosines: cut the cosines to `d_model // 2`.
an odd width made even
    [..., :d_model] =>
    says: One sine, no cosine
    An odd width has one cosine fewer than sines: leave the last cosine out.
the speeds of the next even width
    2) / d_model => 2) / (d_model + d_model % 2)
    says: Three sines, two cosines
    The width in the exponent is `d_model` itself, even where that is odd.
sine and cosine swapped
    [angle.sin(), angle.cos()] => [angle.cos(), angle.sin()]
    says: Column 0 is a sine
    Even columns are sines, odd ones cosines.
positions from 1
    positions[..., None] => (positions[..., None] + 1)
    says: Column 0 is a sine
    Positions count from 0, so row 0 is 0, 1, 0, 1.
degrees
    * frequency => * torch.deg2rad(frequency)
    says: Pair i turns by
    Angles are in radians, and `sin` and `cos` take radians.
its own 0, 1, 2, …
    positions[..., None] => torch.arange(positions.size(-1)).expand(positions.shape)[..., None]
    says: A row belongs to the number that was given
    Take the positions from `positions`: its first number need not be 0.
whole positions only
    positions[..., None] => positions[..., None].long()
    says: A row belongs to the number that was given
    Between two positions the hands are in between: don't round, and don't look rows up.
negative positions turned over
    positions[..., None] => positions[..., None].abs()
    says: A row belongs to the number that was given
    Below 0 the hands have turned the other way: the sine changes its sign.
flattened
    positions[..., None] => positions.flatten()[:, None]
    says: the shape is (6, 4), expected (2, 3, 4)
    Positions (B, T) give rows (B, T, d_model), to be added to words (B, T, d_model).
transposed
    rows[..., :d_model] => rows[..., :d_model].mT
    says: the shape is (4, 3), expected (3, 4)
    A row is a position, so that it can be added to a word.
positions in half precision
    positions[..., None] => positions[..., None].half()
    says: Angles need float32
    float16 counts in twos from 2048 on, bfloat16 from 256 on: neighbours get one row.
"""
