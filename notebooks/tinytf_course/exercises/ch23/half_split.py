"""23.2 weights for the other RoPE (★★☆, 10 minutes)

The weight of a query or key projection, `(H D, C)`, was trained with neighbouring pairs: RoPE
rotates rows 2i and 2i + 1 of a head together. Write `my_half_split(weight, num_heads)`, which
reorders its rows for code that rotates rows i and i + D/2 of a head together, so that the same two
rows form a pair in the same order.

Hint: Within each head, the even rows come first and the odd rows after them. `unflatten(0,
(num_heads, -1))` separates the heads.
"""

import torch

from tinytf.relative import rotary_angles, rotate
from tinytf_course.expect import agrees, expect, gradients, numbers, precise, same, tensor, travels


def my_half_split(weight, num_heads):
    """Reorder the rows of a query or key projection (H D, C) for code with half-split pairs.

    Our RoPE rotates rows 2i and 2i + 1 of a head together; the result is for code that rotates rows
    i and i + D/2 of a head.
    """
    heads = weight.unflatten(0, (num_heads, -1))  # (H D, C) -> (H, D, C)
    return torch.cat([heads[:, 0::2], heads[:, 1::2]], dim=1).flatten(0, 1)


def _row_by_row(weight, num_heads):
    """Each row in its new place, one by one."""
    new, width = torch.zeros_like(weight), len(weight) // num_heads
    for row in range(len(weight)):
        head, place = divmod(row, width)
        pair, side = divmod(place, 2)
        new[head * width + side * (width // 2) + pair] = weight[row]
    return new


def _named(rows, columns=4):
    """A map whose every row is its number, and a tenth more by column."""
    return torch.arange(float(rows))[:, None] + torch.arange(columns) / 10


def test_one_head(answer):
    """in one head, the first of every pair comes before the second of any"""
    note = "Rows 0 and 1 are a pair, rows 2 and 3 another: expected are rows 0, 2, 1, 3."
    agrees(answer, _row_by_row, _named(4, 1), 1, note=note)
    note = "Expected are rows 0 2 4 1 3 5: 0 and 1 were a pair, and are now 3 apart."
    agrees(answer, _row_by_row, _named(6, 2), 1, note=note)


def test_heads(answer):
    """each head keeps its rows"""
    note = "Rows 0 to 5 are the first head's, before and after."
    agrees(answer, _row_by_row, _named(12, 1), 2, note=note)
    agrees(answer, _row_by_row, _named(8), 4, note="Heads of one pair each: nothing moves.")
    agrees(answer, _row_by_row, numbers(24, 5, seed=1), 3)


def test_scores(answer):
    """queries and keys rotated in the other pairs have the same scores"""
    q, k = numbers(2, 24, 5, seed=2)
    x, angles = numbers(4, 5, seed=3), rotary_angles(4, 8, base=50.0)

    def scores(turn, *maps):
        one, other = (turn((x @ m.T).unflatten(-1, (3, -1)).transpose(0, 1)) for m in maps)
        return one @ other.mT  # (H, T, T)

    def halves(y):
        cos, sin = angles.cos().float(), angles.sin().float()
        first, second = y.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)

    where = "for maps (24, 5) of 3 heads"
    maps = [tensor(answer(m, 3), where).float() for m in (q, k)]
    shape = tuple(maps[0].shape)
    expect(shape == (24, 5), f"{where}, the shape is {shape}, expected (24, 5)")
    expected = scores(lambda y: rotate(y, angles), q, k)
    note = "Expected are the scores of neighbouring pairs."
    where = f"{where}, rotated in half-split pairs, the scores"
    same(scores(halves, *maps), expected, where, tolerance=1e-4, note=note)


def test_kept(answer):
    """dtype, device and gradient stay with the rows"""
    precise(answer, _row_by_row, numbers(12, 5, seed=4), 2, dtype=torch.float64)
    precise(answer, _row_by_row, numbers(12, 5, seed=4), 2, dtype=torch.bfloat16)
    thirds = torch.arange(12, dtype=torch.float64)[:, None] / 3
    where = "for rows 0, 1/3, … 11/3 in float64 and 2 heads, to the last bit"
    agrees(answer, _row_by_row, thirds, 2, where=where, tolerance=0)
    gradients(answer, _row_by_row, numbers(12, 5, seed=5), 2)
    travels(answer, numbers(12, 5, seed=5), 2)


MISTAKES = r"""
nothing reordered
    torch.cat([heads[:, 0::2], heads[:, 1::2]], dim=1) => heads.clone()
    says: expected are rows 0, 2, 1, 3
    All shapes fit and there is no error, but the wrong features are rotated together.
the way back
    torch.cat([heads[:, 0::2], heads[:, 1::2]], dim=1) =>
        torch.stack(heads.chunk(2, dim=1), dim=2).flatten(1, 2)
    says: Expected are rows 0 2 4 1 3 5
    This leads from half-split to neighbouring pairs. (For heads of width 4 the two reorderings
    are the same.)
over all heads at once
    weight.unflatten(0, (num_heads, -1)) => weight[None]
    says: Rows 0 to 5 are the first head's
    The even rows of all heads end up in the first half of the heads.
columns
    heads[:, 0::2], heads[:, 1::2]], dim=1 => heads[..., 0::2], heads[..., 1::2]], dim=-1
    says: expected are rows 0, 2, 1, 3
    The rows of a weight produce the outputs, which are rotated. Columns belong to the input.
halves exchanged
    0::2], heads[:, 1::2 => 1::2], heads[:, 0::2
    says: expected are rows 0, 2, 1, 3
    With its two features exchanged, a pair is rotated backwards, as if earlier positions were
    later ones.
heads taken apart by turns
    (num_heads, -1)) => (-1, num_heads)).transpose(0, 1)
    says: Rows 0 to 5 are the first head's
    `unflatten(0, (-1, num_heads))` gives every H-th row to a head. The rows of a head are
    neighbours, so it has to be `(num_heads, -1)`.
into a new float32 table on the CPU
    … =>
        new, half = torch.zeros(weight.shape), len(weight) // num_heads // 2
        for row in range(len(weight)):
            head, place = divmod(row, 2 * half)
            new[head * 2 * half + place % 2 * half + place // 2] = weight[row]
        return new
    says: the dtype is float32, expected float64
    `torch.zeros(...)` is float32 and on the CPU, whatever `weight` is. Use
    `torch.zeros_like(weight)`, or no new tensor at all.
cut off from the graph
    weight.unflatten => weight.detach().unflatten
    says: no gradient reaches `weight`
    The rows are right, but no gradient reaches the weight, so it would never be trained.
the caller's weight reordered
    return torch => return weight.copy_(torch
    .flatten(0, 1) => .flatten(0, 1))
    says: your code changes the caller's `weight`
    Reordered twice, it would be wrong again. Return a new tensor and leave the old one as it
    is.
"""

HARMLESS = r"""
… => …heads[:, ::2]…
    a slice begins at 0 unless told
"""
