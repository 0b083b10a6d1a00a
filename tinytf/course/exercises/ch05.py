"""Chapter 05: sinusoids, a step as a matrix, rotary positions and linear biases."""

import math

import torch

from tinytf.course.expect import expect, same, tensor
from tinytf.course.grading import Exercise

# 05.1 the table of sines and cosines


def my_sinusoidal(max_len, d_model):
    """The sinusoidal positions, (max_len, d_model).

    Column 2i holds sin(pos / 10000^(2i / d_model)), column 2i + 1 the cosine of the same angle.
    An odd d_model ends on a sine.
    """
    raise NotImplementedError


def _values(max_len, d_model):
    angle = [[p / 10000 ** ((j - j % 2) / d_model) for j in range(d_model)] for p in range(max_len)]
    return torch.tensor(
        [[math.cos(a) if j % 2 else math.sin(a) for j, a in enumerate(row)] for row in angle]
    )


def _sine_shape(answer):
    """there is a row per position and a column per dimension"""
    got = tensor(answer(3, 4), "for max_len=3, d_model=4")
    message = f"for max_len=3, d_model=4, the shape is {tuple(got.shape)}, expected (3, 4)"
    expect(got.shape == (3, 4), message)


def _position_0(answer):
    """at position 0 sines are 0 and cosines are 1, in turn"""
    got = tensor(answer(2, 4), "for max_len=2, d_model=4")
    expect(got.dim() == 2 and len(got), "for max_len=2, d_model=4, there is no row 0")
    note = "Column 0 is a sine, column 1 the cosine of the same angle, and so on."
    same(got[0], [0.0, 1.0, 0.0, 1.0], "for max_len=2, d_model=4, in row 0", note=note)


def _frequencies(answer):
    """each pair turns more slowly than the one before"""
    note = "Pair i turns by 1 / 10000^(2i/d_model) radians per position."
    same(answer(4, 6), _values(4, 6), "for max_len=4, d_model=6", note=note)


def _odd_width(answer):
    """an odd width ends on a sine"""
    same(answer(3, 5), _values(3, 5), "for max_len=3, d_model=5", note="Three sines, two cosines.")


SINUSOIDAL = Exercise(
    id="05.1",
    title="the table of sines and cosines",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_sinusoidal(max_len, d_model)`: the paper's table, a row per position. Column "
        "2i is a sine, column 2i + 1 the cosine of the same angle. It also has to work for an odd "
        "`d_model`."
    ),
    hint=(
        "`torch.arange(0, d_model, 2)` is 2i for every pair at once. Fill `table[:, 0::2]` and "
        "`table[:, 1::2]`; for an odd width there is one cosine fewer."
    ),
    function=my_sinusoidal,
    tests=(_sine_shape, _position_0, _frequencies, _odd_width),
)


# 05.2 a step as a matrix


def my_shift_matrix(k, d_model):
    """The matrix M with M @ PE[pos] = PE[pos + k] for every pos, (d_model, d_model).

    d_model is even; the columns of PE are sine, cosine, sine, cosine, ….
    """
    raise NotImplementedError


def _moves(answer, k, positions, note):
    table = _values(max(positions) + k + 1, 6)
    M = tensor(answer(k, 6), f"for k={k}, d_model=6").float()
    message = f"for k={k}, d_model=6, the shape is {tuple(M.shape)}, expected (6, 6)"
    expect(M.shape == (6, 6), message)
    for pos in positions:
        where = f"for k={k}, d_model=6, M @ PE[{pos}]"
        same(M @ table[pos], table[pos + k], where, tolerance=1e-4, note=note)


def _from_zero(answer):
    """it leads from position 0 to position k"""
    _moves(answer, 2, [0], "It must be PE[2].")


def _from_anywhere(answer):
    """the same matrix leads from any position to the one k further"""
    _moves(answer, 3, [1, 5, 20], "One matrix has to serve every position.")


def _standing(answer):
    """a step of 0 changes nothing"""
    same(answer(0, 4), torch.eye(4), "for k=0, d_model=4", note="That is the identity.")


def _steps_add_up(answer):
    """two steps after one another are their sum"""
    got = tensor(answer(2, 4), "for k=2, d_model=4").float()
    expect(got.shape == (4, 4), f"for k=2, d_model=4, the shape is {tuple(got.shape)}")
    where = "for d_model=4, the step of 2 after the step of 2"
    same(got @ got, answer(4, 4), where, tolerance=1e-4, note="It must be the step of 4.")


SHIFT = Exercise(
    id="05.2",
    title="a step as a matrix",
    difficulty=2,
    minutes=15,
    statement=(
        "Write `my_shift_matrix(k, d_model)`: the matrix M with `M @ PE[pos] == PE[pos + k]` for "
        "every position. `d_model` is even, and PE's columns are sine, cosine, sine, cosine, …"
    ),
    hint=(
        "sin(a + δ) = sin a cos δ + cos a sin δ and cos(a + δ) = cos a cos δ - sin a sin δ. Each "
        "pair has a 2 × 2 block on the diagonal, with δ = k / 10000^(2i/d_model)."
    ),
    function=my_shift_matrix,
    tests=(_from_zero, _from_anywhere, _standing, _steps_add_up),
)


# 05.3 rotary positions


def my_rotate(x, start=0, base=10000.0):
    """Turn each neighbouring pair of x by its position times the pair's frequency.

    x is (..., T, D) with an even D, its first row at position `start`. Pair i, which is
    (x[2i], x[2i + 1]), turns counterclockwise by position · base^(-2i / D).
    """
    raise NotImplementedError


PAIR = torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 2.0]])
MANY = torch.arange(2 * 5 * 6.0).reshape(2, 5, 6).sin()
_WHERE = "for x of shape (B=2, T=5, D=6)"


def _expected(x, start, base=10000.0):
    """Complex multiplication, an element at a time."""
    out = torch.empty_like(x)
    for t in range(x.size(-2)):
        for i in range(0, x.size(-1), 2):
            angle = (start + t) / base ** (i / x.size(-1))
            c, s, a, b = math.cos(angle), math.sin(angle), x[..., t, i], x[..., t, i + 1]
            out[..., t, i], out[..., t, i + 1] = a * c - b * s, a * s + b * c
    return out


def _position_0_stays(answer):
    """position 0 is not turned"""
    got = tensor(answer(MANY), _WHERE)
    expect(got.shape == MANY.shape, f"{_WHERE}, the shape is {tuple(got.shape)}")
    same(got[:, 0], MANY[:, 0], f"{_WHERE}, at position 0", note="Its angles are 0.")


def _quarter(answer):
    """a pair turns counterclockwise by its angle"""
    got = tensor(answer(PAIR), "for x[1] = [1, 0, 0, 0]")
    expect(got.shape == PAIR.shape, f"for x of shape (3, 4), the shape is {tuple(got.shape)}")
    note = "The first pair becomes (cos 1, sin 1), the second stays (0, 0)."
    same(got[1], [math.cos(1), math.sin(1), 0.0, 0.0], "for x[1] = [1, 0, 0, 0]", note=note)


def _keeps_norms(answer):
    """a turn changes no norm"""
    got = tensor(answer(MANY), _WHERE).norm(dim=-1)
    same(got, MANY.norm(dim=-1), f"{_WHERE}, the norms", tolerance=1e-4)


def _own_frequency(answer):
    """each pair has its frequency, which the base sets"""
    note = "Pair i turns by position · base^(-2i/D)."
    same(answer(MANY, 0, 100.0), _expected(MANY, 0, 100.0), f"{_WHERE}, base=100", 1e-4, note)


def _starts(answer):
    """the first row stands at `start`"""
    note = "The first row stands at position 7."
    same(answer(MANY, 7), _expected(MANY, 7), f"{_WHERE}, start=7", 1e-4, note)


ROTATE = Exercise(
    id="05.3",
    title="rotary positions",
    difficulty=3,
    minutes=15,
    statement=(
        "Write `my_rotate(x, start=0, base=10000.0)`: for `x` of shape `(..., T, D)`, turn each "
        "neighbouring pair `(x[2i], x[2i + 1])` counterclockwise by its position times "
        "`base ** (-2i / D)`. The first row stands at position `start`."
    ),
    hint=(
        "A turn by a maps (x, y) to (x cos a - y sin a, x sin a + y cos a). "
        "`torch.stack([…], dim=-1).flatten(-2)` puts pairs back side by side."
    ),
    function=my_rotate,
    tests=(_position_0_stays, _quarter, _keeps_norms, _own_frequency, _starts),
)


# 05.4 linear biases


def my_alibi_bias(num_heads, length):
    """ALiBi's bias for `length` queries and keys, (num_heads, length, length).

    Head h, from 0, has the slope 2^(-8 (h + 1) / num_heads); the bias is minus the slope times the
    distance of query and key, on both sides. num_heads is a power of two.
    """
    raise NotImplementedError


_HEADS = "for num_heads=4, length=3"


def _bias_shape(answer):
    """there is a table per head"""
    got = tensor(answer(4, 3), _HEADS)
    message = f"{_HEADS}, the shape is {tuple(got.shape)}, expected (4, 3, 3)"
    expect(got.shape == (4, 3, 3), message)


def _row(answer, row, expected, note):
    got = tensor(answer(4, 3), _HEADS)
    expect(got.dim() == 3 and got.size(1) > row, f"{_HEADS}, there is no row {row}")
    same(got[0, row], expected, f"{_HEADS}, head 0, query {row}", note=note)


def _falls(answer):
    """the bias of head 0 falls by its slope with each step into the past"""
    _row(answer, 2, [-0.5, -0.25, 0.0], "Its slope is 2^-2 = 0.25, and far keys get less.")


def _both_sides(answer):
    """keys to the right are far as well"""
    _row(answer, 0, [0.0, -0.25, -0.5], "Distance is |query - key|.")


def _slopes(answer):
    """each head has its own slope"""
    got = tensor(answer(4, 2), "for num_heads=4, length=2")
    expect(got.shape == (4, 2, 2), f"for num_heads=4, length=2, the shape is {tuple(got.shape)}")
    expected = [-(2.0**-2), -(2.0**-4), -(2.0**-6), -(2.0**-8)]
    where = "for num_heads=4, length=2, the bias at distance 1 of the four heads"
    same(got[:, 1, 0], expected, where, note="Head h has the slope 2^(-8 (h + 1)/4).")


ALIBI = Exercise(
    id="05.4",
    title="linear biases",
    difficulty=1,
    minutes=10,
    statement=(
        "Write `my_alibi_bias(num_heads, length)`: what ALiBi adds to the scores, of shape "
        "`(num_heads, length, length)`. Head h has the slope `2 ** (-8 * (h + 1) / num_heads)` and "
        "the bias is minus the slope times the distance of query and key, on both sides."
    ),
    hint="`place[:, None] - place` is a table of distances; slopes need two axes of size 1 more.",
    function=my_alibi_bias,
    tests=(_bias_shape, _falls, _both_sides, _slopes),
)


EXERCISES = (SINUSOIDAL, SHIFT, ROTATE, ALIBI)
