"""Chapter 09: rotary positions, and linear biases."""

import math

import torch
from torch.overrides import TorchFunctionMode

from tinytf.course.expect import (
    agrees,
    expect,
    gradients,
    numbers,
    precise,
    same,
    tensor,
    travels,
)
from tinytf.course.grading import Exercise

# 09.1 rotary positions


def my_rotate(x, start=0, base=10000.0):
    """Turn each neighbouring pair of x by its position times the pair's frequency.

    x is (..., T, D) with an even D, its first row at position `start`. Pair i, which is
    (x[2i], x[2i + 1]), turns counterclockwise by position · base^(-2i / D). The result has the
    dtype of x; angles are float32 even for half precision.
    """
    raise NotImplementedError


PAIR = torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 2.0]])


def _turned(x, start=0, base=10000.0):
    """An element at a time, each angle in Python's own numbers."""
    rows = []
    for t in range(x.size(-2)):
        row = []
        for i in range(0, x.size(-1), 2):
            angle = (start + t) / base ** (i / x.size(-1))
            c, s, a, b = math.cos(angle), math.sin(angle), x[..., t, i], x[..., t, i + 1]
            row += [a * c - b * s, a * s + b * c]
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)


def _position_0_stays(answer):
    """position 0 is not turned"""
    agrees(answer, lambda x: x, torch.tensor([[1.0, 2.0]]), note="Its angles are 0.")
    agrees(answer, lambda x: x, torch.tensor([[1.0, 2.0, 3.0, 4.0]]), note="Its angles are 0.")


def _quarter(answer):
    """a pair turns counterclockwise by its angle"""
    got = tensor(answer(PAIR), "for x[1] = [1, 0, 0, 0]")
    expect(got.shape == PAIR.shape, f"for x of shape (3, 4), the shape is {tuple(got.shape)}")
    note = "The first pair becomes (cos 1, sin 1), the second stays (0, 0)."
    same(got[1], [math.cos(1), math.sin(1), 0.0, 0.0], "for x[1] = [1, 0, 0, 0]", note=note)


def _keeps_norms(answer):
    """a turn changes no norm"""
    x = numbers(2, 5, 6, seed=1)
    where = "for x of shape (B=2, T=5, D=6)"
    same(tensor(answer(x), where).norm(dim=-1), x.norm(dim=-1), f"{where}, the norms", 1e-4)


def _own_frequency(answer):
    """each pair has its frequency, which the base sets"""
    note = "Pair i turns by position · base^(-2i/D)."
    agrees(answer, _turned, numbers(2, 4, seed=2), note=note)
    agrees(answer, _turned, numbers(2, 4, seed=2), 0, 100.0, note=note)
    agrees(answer, _turned, numbers(2, 5, 8, seed=3), 0, 100.0, tolerance=1e-4, note=note)


def _starts(answer):
    """the first row stands at `start`"""
    agrees(answer, _turned, numbers(1, 2, seed=4), 7, note="The first row stands at position 7.")
    note = "The first row stands at position 3000."
    agrees(answer, _turned, numbers(2, 2, 4, seed=5), 3000, tolerance=5e-4, note=note)


def _leading_axes(answer):
    """words are the last axis but one: without a batch, or with heads"""
    agrees(answer, _turned, numbers(2, 3, 1, 2, seed=6), 1)
    agrees(answer, _turned, numbers(2, 3, 5, 8, seed=7), 2, tolerance=1e-4)
    agrees(answer, _turned, numbers(3, 1, 2, 4, 2, seed=8), tolerance=1e-4)


def _rotary_dtype(answer):
    """the result has the dtype of x, its angles all their digits"""
    where = "for x of shape (3, 2) in bfloat16, start=301"
    note = "bfloat16 has no 301: the angle has to be float32."
    precise(answer, lambda x, start: _turned(x, start), numbers(3, 2, seed=9), 301,
            dtype=torch.bfloat16, where=where, note=note)  # fmt: skip
    precise(answer, _turned, numbers(2, 3, 4, seed=10), dtype=torch.float16)
    precise(answer, _turned, numbers(2, 3, 4, seed=10), dtype=torch.float64, tolerance=1e-5)


def _rotary_travels(answer):
    """it turns where x is"""
    travels(answer, numbers(2, 3, 4, seed=11), 1)


def _rotary_gradient(answer):
    """the gradient is turned back"""
    gradients(answer, _turned, numbers(2, 2, seed=12), tolerance=1e-5)
    gradients(answer, _turned, numbers(2, 3, 4, seed=13), 2, tolerance=1e-5)


ROTATE = Exercise(
    id="09.1",
    title="rotary positions",
    difficulty=3,
    minutes=15,
    statement=(
        "Write `my_rotate(x, start=0, base=10000.0)`: for `x` of shape `(..., T, D)`, turn each "
        "neighbouring pair `(x[2i], x[2i + 1])` counterclockwise by its position times "
        "`base ** (-2i / D)`. The first row stands at position `start`. The result has the dtype "
        "and the device of `x`, but angles are float32 even where `x` is in half precision."
    ),
    hint=(
        "A turn by a maps (x, y) to (x cos a - y sin a, x sin a + y cos a). "
        "`torch.stack([…], dim=-1).flatten(-2)` puts pairs back side by side."
    ),
    function=my_rotate,
    tests=(
        _position_0_stays,
        _quarter,
        _keeps_norms,
        _own_frequency,
        _starts,
        _leading_axes,
        _rotary_dtype,
        _rotary_travels,
        _rotary_gradient,
    ),
)


# 09.2 linear biases


def my_alibi_bias(num_heads, length, device=None):
    """ALiBi's bias for `length` queries and keys, (num_heads, length, length), on this device.

    Head h, from 0, has the slope 2^(-8 (h + 1) / num_heads); the bias is minus the slope times the
    distance of query and key, on both sides. num_heads is a power of two.
    """
    raise NotImplementedError


_HEADS = "for num_heads=4, length=3"


def _alibi_loop(num_heads, length):
    """Number by number."""
    place = range(length)
    return torch.tensor(
        [
            [[-abs(q - k) * 2.0 ** (-8 * (h + 1) / num_heads) for k in place] for q in place]
            for h in range(num_heads)
        ]
    )


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


def _any_heads(answer):
    """the slopes follow the number of heads, and every table its length"""
    note = "Head h has the slope 2^(-8 (h + 1)/num_heads)."
    agrees(answer, _alibi_loop, 1, 2, note=note)
    agrees(answer, _alibi_loop, 2, 2, note=note)
    agrees(answer, _alibi_loop, 2, 1, note="A word is at distance 0 from itself.")
    agrees(answer, _alibi_loop, 8, 5, note=note)
    agrees(answer, _alibi_loop, 16, 3, note=note)
    row = [-(299 - key) / 256 for key in range(300)]
    same(answer(1, 300)[0, -1], row, "for num_heads=1, length=300, the last query")


class _Places(TorchFunctionMode):
    """Notes the device of every tensor that is made."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_function__(self, function, types, arguments=(), named=None):
        got = function(*arguments, **(named or {}))
        if isinstance(got, torch.Tensor):
            self.seen.add(got.device.type)
        return got


def _bias_device(answer):
    """it is made on the device that is asked for"""
    where = "for num_heads=2, length=3 and another device than the CPU"
    with _Places() as places:
        got = answer(2, 3, torch.device("meta"))  # which stands for any
    on = got.device.type if isinstance(got, torch.Tensor) else type(got).__name__
    message = f"{where}, the result stays on the {on}: give `device` to each tensor you make"
    expect(on == "meta", message)
    made = "a tensor is made on the CPU and moved: give `device` to each tensor you make"
    expect("cpu" not in places.seen, f"{where}, {made}")


ALIBI = Exercise(
    id="09.2",
    title="linear biases",
    difficulty=1,
    minutes=10,
    statement=(
        "Write `my_alibi_bias(num_heads, length, device=None)`: what ALiBi adds to the scores, of "
        "shape `(num_heads, length, length)`. Head h has the slope "
        "`2 ** (-8 * (h + 1) / num_heads)` and the bias is minus the slope times the distance of "
        "query and key, on both sides. `num_heads` is a power of two. All tensors are made on "
        "`device`."
    ),
    hint=(
        "With `place = torch.arange(length, device=device)`, `place[:, None] - place` is a table "
        "of distances; slopes need two axes of size 1 more."
    ),
    function=my_alibi_bias,
    tests=(_bias_shape, _falls, _both_sides, _slopes, _any_heads, _bias_device),
)


EXERCISES = (ROTATE, ALIBI)
