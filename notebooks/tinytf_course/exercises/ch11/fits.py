"""11.5 is it wide enough? (★☆☆, 5 minutes)

Design a check. Write `my_fits(width, d_ff, multiple_of=1)`, which returns True if `width` is the
right width for SwiGLU, and False otherwise. The right one is the smallest multiple of `multiple_of`
at which three matrices have no fewer weights than two of width `d_ff`. Don't compute the width, but
test the properties that make it right.

<details><summary>The rule in detail</summary>

For `d_ff = 16384` and multiples of 256, for example, the right width is 11008, as in Llama's 7B
model. All arguments are whole numbers from 1 up, of any length.

</details>

Hint: Three conditions must hold. For the last, ask which width is the next smaller one, and whether
it is enough.
"""

import math
from fractions import Fraction

from tinytf_course.expect import agrees


def my_fits(width, d_ff, multiple_of=1):
    """Return whether width is right for SwiGLU, True or False.

    The right one is the smallest multiple of multiple_of at which three matrices have no fewer
    weights than two of width d_ff. All are whole numbers from 1 up.
    """
    enough = 3 * width >= 2 * d_ff
    less_would_do = 3 * (width - multiple_of) >= 2 * d_ff
    return enough and not less_would_do and width % multiple_of == 0


def _width(d_ff, multiple_of):
    """In fractions."""
    return math.ceil(Fraction(2 * d_ff, 3) / multiple_of) * multiple_of


def _judged(answer, width, d_ff, multiple_of=None, note=""):
    given = (width, d_ff) if multiple_of is None else (width, d_ff, multiple_of)
    agrees(answer, width == _width(d_ff, multiple_of or 1), *given, note=note)


def test_exactly(answer):
    """where two thirds are whole, they are right"""
    _judged(answer, 2, 3, note="Three matrices of width 2 cost what two of width 3 do.")
    _judged(answer, 1, 3, note="3 · 1 weights are fewer than 2 · 3.")
    _judged(answer, 3, 3, note="A width of 2 is enough.")
    for d_ff in (6, 9, 15, 300):
        for width in (2 * d_ff // 3 - 1, 2 * d_ff // 3, 2 * d_ff // 3 + 1):
            _judged(answer, width, d_ff)


def test_between(answer):
    """where they are not, the next width above is"""
    for d_ff, two_thirds in ((1, "0.67"), (2, "1.33"), (7, "4.67"), (2048, "1365.33")):
        note = f"Two thirds of {d_ff} are {two_thirds}."
        for width in (2 * d_ff // 3, 2 * d_ff // 3 + 1, 2 * d_ff // 3 + 2):
            if width > 0:
                _judged(answer, width, d_ff, note=note)


def test_llama(answer):
    """Llama's 7B: of the multiples of 256 the first that is enough"""
    for width in (10923, 11008, 10752, 11264, 11007):
        _judged(answer, width, 16384, 256, note="Two thirds of 16384 are 42.67 times 256.")


def test_blocks(answer):
    """a multiple that is exactly enough is right, and the next is not"""
    for width, d_ff, multiple_of in (
        (2, 2, 1), (67, 100, 66), (256, 384, 256), (512, 384, 256), (4, 1, 4), (8, 1, 4),
        (66, 99, 66), (66, 100, 66), (132, 100, 66), (1400, 2048, 100), (1366, 2048, 100),
        (6, 7, 3), (5, 7, 3), (5, 5, 5), (4, 5, 5), (10, 5, 5), (68, 100, 4),
    ):  # fmt: skip
        _judged(answer, width, d_ff, multiple_of)


def test_long_numbers(answer):
    """numbers of any length"""
    d_ff = 300_000_000_000_000_001
    right = _width(d_ff, 1)
    note = "Floats have 16 digits."
    for width in (right - 1, right, right + 1):
        _judged(answer, width, d_ff, 1, note=note)
    for width in (1_000_000_001, 2_000_000_002):
        _judged(answer, width, 1_500_000_002, 1_000_000_001, note=note)


MISTAKES = r"""
too narrow passes
    enough and not => not
    says: 3 · 1 weights are fewer than 2 · 3
    Three matrices must have no fewer weights than two: 3 · width against 2 · d_ff.
too wide passes
     and not less_would_do =>
    says: A width of 2 is enough
    It must be the smallest: the next multiple below must be too narrow.
exactly as many
    3 * width >= => 3 * width ==
    says: Two thirds of 1 are 0.67
    For most d_ff no whole number costs exactly as much. Then the next one above is right.
any number, not only multiples
     and width % multiple_of == 0 =>
    says: for width=10923
    10923 is wide enough, and no multiple of 256: look at `width % multiple_of`.
the next below is one less
    (width - multiple_of) => (width - 1)
    says: for width=11008
    Only multiples are allowed, so the next smaller width is width − multiple_of.
exactly enough refused
    3 * width >= => 3 * width >
    (width - multiple_of) >= => (width - multiple_of) >
    says: for width=2, d_ff=3
    No fewer weights than two matrices: as many are enough.
the multiple ignored
    (width - multiple_of) => (width - 1)
     and width % multiple_of == 0 =>
    says: for width=10923
    The width is a multiple of `multiple_of`, and the smallest one that is enough.
rounded to the nearest
    … =>
        return width == round(2 * d_ff / (3 * multiple_of)) * multiple_of
    says: Two thirds of 2 are 1.33
    `round` goes down as often as up, and then three matrices have fewer weights.
rounded down, then up
    … =>
        return width == -(-(2 * d_ff // 3) // multiple_of) * multiple_of
    says: Two thirds of 1 are 0.67
    Llama's code does so, and at Llama's widths it makes no difference. Ask what makes `width`
    right, and nothing has to be rounded.
half
    3 * width => 4 * width
    3 * (width => 4 * (width
    says: for width=3, d_ff=6
    Three matrices against two, so two thirds: the matrix on the way back becomes narrower as
    well.
unchanged
    3 * width => 2 * width
    3 * (width => 2 * (width
    says: for width=2, d_ff=3
    Then SwiGLU has half as many weights again, and may win for that reason alone.
in floats
    … =>
        return width == math.ceil(2 * d_ff / (3 * multiple_of)) * multiple_of
    says: Floats have 16 digits
    `/` rounds long numbers to 16 digits. Products of whole numbers are exact.
"""
