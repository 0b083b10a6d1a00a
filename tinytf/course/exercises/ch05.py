"""Chapter 05: sinusoids, a step as a matrix, rotary positions and linear biases."""

import math

import torch

from tinytf.course.grading import Exercise, WrongAnswer, calls, expect, same, tensor

# 05.1 the table of sines and cosines


def my_sinusoidal(max_len, d_model):
    """The sinusoidal positions, (max_len, d_model).

    Column 2i holds sin(pos / 10000^(2i / d_model)), column 2i + 1 the cosine of the same angle.
    An odd d_model ends on a sine.
    """
    position = torch.arange(max_len)[:, None]
    angle = position / 10000 ** (torch.arange(0, d_model, 2) / d_model)  # (max_len, pairs)
    table = torch.empty(max_len, d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table


def _angles(max_len, d_model, power=-1.0):
    return torch.arange(max_len)[:, None] * 10000.0 ** (
        power * torch.arange(0, d_model, 2) / d_model
    )


def _table(angle, d_model):
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model]


def _halves(max_len, d_model):
    angle = _angles(max_len, d_model)
    return torch.cat([angle.sin(), angle.cos()], dim=-1)[:, :d_model]


def _own_exponent(max_len, d_model):
    angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(d_model) / d_model)
    table = angle.sin()
    table[:, 1::2] = angle[:, 1::2].cos()
    return table


def _odd_crash(max_len, d_model):
    angle, table = _angles(max_len, d_model), torch.zeros(max_len, d_model)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


def _swapped(max_len, d_model):
    angle = _angles(max_len, d_model)
    return torch.stack([angle.cos(), angle.sin()], dim=-1).flatten(1)[:, :d_model]


def _from_one(max_len, d_model):
    return _table(_angles(max_len + 1, d_model)[1:], d_model)


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
    reference=my_sinusoidal,
    wrong=(
        WrongAnswer(
            "frequencies divided",
            lambda max_len, d_model: _table(_angles(max_len, d_model, 1.0), d_model),
            "Pair i turns by",
            "The hands get faster from pair to pair, up to 10,000 radians a word. Positions are "
            "still unique and bounded, and a shift is still a matrix; but neighbours are not "
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
            "sine and cosine swapped",
            _swapped,
            "Column 0 is a sine",
            "Even columns are sines, odd ones cosines.",
        ),
        WrongAnswer(
            "positions from 1",
            _from_one,
            "Column 0 is a sine",
            "Positions count from 0, so row 0 is 0, 1, 0, 1.",
        ),
        WrongAnswer(
            "transposed",
            lambda max_len, d_model: my_sinusoidal(max_len, d_model).T,
            "the shape is (4, 3), expected (3, 4)",
            "A row is a position, so that `table[:T]` can be added to (B, T, C).",
        ),
    ),
    tests=(_sine_shape, _position_0, _frequencies, _odd_width),
    probes=(calls(3, 4), calls(4, 6), calls(3, 5)),
)


# 05.2 a step as a matrix


def my_shift_matrix(k, d_model):
    """The matrix M with M @ PE[pos] = PE[pos + k] for every pos, (d_model, d_model).

    d_model is even; the columns of PE are sine, cosine, sine, cosine, ….
    """
    M = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        delta = torch.tensor(k / 10000 ** (i / d_model))
        M[i, i], M[i, i + 1] = delta.cos(), delta.sin()
        M[i + 1, i], M[i + 1, i + 1] = -delta.sin(), delta.cos()
    return M


def _one_angle(k, d_model):
    return torch.block_diag(*[my_shift_matrix(k, 2)] * (d_model // 2))


def _only_cosines(k, d_model):
    return my_shift_matrix(k, d_model).diagonal().diag()


def _turned_layout(k, d_model):
    order = torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])
    return my_shift_matrix(k, d_model)[order][:, order]


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
    reference=my_shift_matrix,
    wrong=(
        WrongAnswer(
            "backwards",
            lambda k, d_model: my_shift_matrix(-k, d_model),
            "It must be PE[2]",
            "This is the transpose, the turn by -δ: it leads k places back. Our pairs are (sine, "
            "cosine), and the sine stands in the first row.",
        ),
        WrongAnswer(
            "no mixing of sine and cosine",
            _only_cosines,
            "It must be PE[2]",
            "The diagonal alone shrinks each number. A turn mixes the two of a pair.",
        ),
        WrongAnswer(
            "one angle for every pair",
            _one_angle,
            "It must be PE[2]",
            "Pair i turns by k / 10000^(2i/d_model), each pair by its own angle.",
        ),
        WrongAnswer(
            "all sines first",
            _turned_layout,
            "It must be PE[2]",
            "This matrix fits a table whose left half holds the sines. In ours a sine and its "
            "cosine are neighbours, so the blocks sit on the diagonal.",
        ),
        WrongAnswer(
            "a step of one, whatever k",
            lambda k, d_model: my_shift_matrix(1, d_model),
            "That is the identity",
            "The angle is k times the frequency of the pair.",
        ),
        WrongAnswer(
            "fitted to position 0",
            lambda k, d_model: torch.outer(
                _values(k + 1, d_model)[k], _values(1, d_model)[0] / (d_model / 2)
            ),
            "One matrix has to serve every position",
            "It maps PE[0] to PE[k], and every other position to a multiple of PE[k].",
        ),
    ),
    tests=(_from_zero, _from_anywhere, _standing, _steps_add_up),
    probes=(calls(2, 6), calls(3, 4), calls(0, 4)),
)


# 05.3 rotary positions


def my_rotate(x, start=0, base=10000.0):
    """Turn each neighbouring pair of x by its position times the pair's frequency.

    x is (..., T, D) with an even D, its first row at position `start`. Pair i, which is
    (x[2i], x[2i + 1]), turns counterclockwise by position · base^(-2i / D).
    """
    T, D = x.shape[-2:]
    position = torch.arange(start, start + T)[:, None]
    angle = position * base ** (-torch.arange(0, D, 2) / D)  # (T, D / 2)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = [even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()]
    return torch.stack(turned, dim=-1).flatten(-2)


def _turn(
    sign=1, half=False, by_pair=False, ignore=False, one=False, first_only=False, torn=False, i=2
):
    """A `my_rotate` with one thing wrong."""

    def turn(x, start=0, base=10000.0):
        T, D = x.shape[-2:]
        position = torch.arange(T)[:, None] + (0 if ignore else start)
        frequency = base ** (-i * torch.arange(D // 2) / D)
        angle = torch.ones(T, 1) * torch.arange(D // 2) if by_pair else position * frequency
        angle = sign * (position * torch.ones(D // 2) if one else angle)
        a, b = (x[..., : D // 2], x[..., D // 2 :]) if half else (x[..., 0::2], x[..., 1::2])
        parts = [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
        parts[1] = b if first_only else parts[1]
        return torch.cat(parts, -1) if half or torn else torch.stack(parts, -1).flatten(-2)

    return turn


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
    reference=my_rotate,
    wrong=(
        WrongAnswer(
            "turned clockwise",
            _turn(sign=-1),
            "The first pair becomes",
            "The minus stands with the sine of the first number. Turned the other way for queries "
            "and keys alike, scores are the same; but weights trained one way fail the other.",
        ),
        WrongAnswer(
            "pairs i and i + D/2",
            _turn(half=True),
            "The first pair becomes",
            "This is how Hugging Face's Llama pairs them. Both are fine; mixing them, in weights "
            "or between queries and keys, is not.",
        ),
        WrongAnswer(
            "pairs torn apart",
            _turn(torn=True),
            "Its angles are 0",
            "`torch.cat` puts all first numbers before all second ones. `stack` on a new last "
            "axis, then `flatten`, puts each pair back where it was.",
        ),
        WrongAnswer(
            "an exponent of i, not 2i",
            _turn(i=1),
            "Pair i turns by",
            "Pair i, counted from 0, has the exponent -2i/D; with -i/D slow hands are too fast.",
        ),
        WrongAnswer(
            "only the first of a pair",
            _turn(first_only=True),
            "the norms",
            "Both numbers of a pair change in a turn; otherwise the norm does.",
        ),
        WrongAnswer(
            "turned by the pair, not the position",
            _turn(by_pair=True),
            "Its angles are 0",
            "The angle is position times frequency. Here every position is turned alike, and "
            "attention still can't see the order.",
        ),
        WrongAnswer(
            "one frequency for all pairs",
            _turn(one=True),
            "Pair i turns by",
            "With 1 radian for all pairs, positions 0 and 44 are nearly the same (44 ≈ 7 · 2π).",
        ),
        WrongAnswer(
            "start ignored",
            _turn(ignore=True),
            "The first row stands at position 7",
            "With a cache the new token does not stand at position 0.",
        ),
    ),
    tests=(_position_0_stays, _quarter, _keeps_norms, _own_frequency, _starts),
    probes=(calls(PAIR), calls(MANY, 0, 100.0), calls(MANY, 7)),
)


# 05.4 linear biases


def my_alibi_bias(num_heads, length):
    """ALiBi's bias for `length` queries and keys, (num_heads, length, length).

    Head h, from 0, has the slope 2^(-8 (h + 1) / num_heads); the bias is minus the slope times the
    distance of query and key, on both sides. num_heads is a power of two.
    """
    slopes = 2 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)
    place = torch.arange(length)
    return -slopes[:, None, None] * (place[:, None] - place).abs()


def _alibi(sign=-1.0, slopes=None, distance=None):
    """A `my_alibi_bias` with one thing wrong."""

    def bias(num_heads, length):
        m = 2 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)
        m = m if slopes is None else slopes(num_heads)
        place = torch.arange(length)
        far = place[:, None] - place
        far = far.abs() if distance is None else distance(far)
        return sign * m[:, None, None] * far

    return bias


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
    reference=my_alibi_bias,
    wrong=(
        WrongAnswer(
            "far keys rewarded",
            _alibi(sign=1.0),
            "far keys get less",
            "A positive slope makes far keys louder: the bias must be negative.",
        ),
        WrongAnswer(
            "the future rewarded",
            _alibi(distance=lambda far: far),
            "Distance is |query - key|",
            "Without the absolute value, keys to the right get a bonus. Under a causal mask it "
            "does not show.",
        ),
        WrongAnswer(
            "the future hidden as well",
            lambda num_heads, length: my_alibi_bias(num_heads, length).masked_fill(
                torch.ones(length, length).triu(1).bool(), -torch.inf
            ),
            "Distance is |query - key|",
            "Hiding the future is the causal mask's work. The bias only says how far a key is.",
        ),
        WrongAnswer(
            "one slope for all heads",
            _alibi(slopes=lambda heads: torch.full((heads,), 2.0 ** (-8 / heads))),
            "Head h has the slope",
            "With one slope every head is equally nearsighted, and none can see far.",
        ),
        WrongAnswer(
            "slopes of eight heads",
            _alibi(slopes=lambda heads: 2.0 ** -torch.arange(1.0, heads + 1)),
            "far keys get less",
            "1/2, 1/4, 1/8, … are the slopes for 8 heads. For fewer, they fall faster and still "
            "end at 2^-8.",
        ),
        WrongAnswer(
            "slopes from h = 0",
            _alibi(slopes=lambda heads: 2 ** (-8 * torch.arange(heads) / heads)),
            "far keys get less",
            "The first head is h = 0, and its slope is 2^(-8/H), not 1.",
        ),
        WrongAnswer(
            "no table per head",
            lambda num_heads, length: my_alibi_bias(num_heads, length)[0],
            "expected (4, 3, 3)",
            "Every head has its own slope, so there is a table per head.",
        ),
    ),
    tests=(_bias_shape, _falls, _both_sides, _slopes),
    probes=(calls(4, 3), calls(2, 4), calls(8, 2)),
)

EXERCISES = (SINUSOIDAL, SHIFT, ROTATE, ALIBI)
