"""Answers to chapter 09: references and mistakes."""

import torch

from tinytf.course.grading import Answers, WrongAnswer

_NO_GRADIENT = "positions and angles have no gradient to lose"
_FLOAT32 = "it is float32 already, or will be, or small whole numbers"
_MORE_DIGITS = "more digits on the way to float32"


def _alike(line, why, *changes):
    """Harmless mutants of a line: what is replaced, and by what, with … for itself."""
    return {f"{line} => {line.replace(old, new.replace('…', old), 1)}": why for old, new in changes}


# 09.1 rotary positions


def my_rotate(x, start=0, base=10000.0):
    """Turn each neighbouring pair of x by its position times the pair's frequency.

    x is (..., T, D) with an even D, its first row at position `start`. Pair i, which is
    (x[2i], x[2i + 1]), turns counterclockwise by position · base^(-2i / D). The result has the
    dtype of x; angles are float32 even for half precision.
    """
    T, D = x.shape[-2:]
    position = torch.arange(start, start + T, device=x.device)[:, None]
    angle = position * base ** (-torch.arange(0, D, 2, device=x.device) / D)  # (T, D / 2)
    cos, sin = angle.cos(), angle.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
    return turned.flatten(-2).to(x.dtype)


def _turn(
    sign=1,
    half=False,
    by_pair=False,
    ignore=False,
    one=False,
    first_only=False,
    torn=False,
    i=2,
    words=lambda x: x.size(-2),
    device=lambda x: x.device,
    kind=torch.float32,
    back=True,
    always=None,
):
    """A `my_rotate` with one thing wrong."""

    def turn(x, start=0, base=10000.0):
        D, base = x.size(-1), always or base
        place = torch.arange(words(x), device=device(x))
        pair = torch.arange(D // 2, device=device(x))
        position = (place[:, None] + (0 if ignore else start)).to(kind or x.dtype)
        frequency = base ** (-i * pair / D)
        angle = torch.ones_like(position) * pair if by_pair else position * frequency
        angle = sign * (position * torch.ones_like(frequency) if one else angle)
        a, b = (x[..., : D // 2], x[..., D // 2 :]) if half else (x[..., 0::2], x[..., 1::2])
        parts = [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
        parts[1] = b if first_only else parts[1]
        y = torch.cat(parts, -1) if half or torn else torch.stack(parts, -1).flatten(-2)
        return y.to(x.dtype) if back else y

    return turn


ROTATE = Answers(
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
        WrongAnswer(
            "base ignored",
            _turn(always=10000.0),
            "base=100",
            "`base` is an argument: models that read longer texts have a larger one.",
        ),
        WrongAnswer(
            "words counted on the second axis",
            _turn(words=lambda x: x.size(1 if x.dim() > 2 else 0)),
            "expected (2, 3, 1, 2)",
            "With heads, (B, H, T, D), axis 1 is not the words: count axes from the end, "
            "`x.size(-2)`.",
        ),
        WrongAnswer(
            "angles in half precision",
            _turn(kind=None),
            "bfloat16 has no 301",
            "Positions and angles in the dtype of x lose whole steps: 301 is 302 in bfloat16. "
            "Turn in float32, and round the result.",
        ),
        WrongAnswer(
            "float32 comes out",
            _turn(back=False),
            "the dtype is float32, expected bfloat16",
            "The angles are float32, and half precision times float32 is float32: hand back the "
            "dtype that came in.",
        ),
        WrongAnswer(
            "angles on the CPU",
            _turn(device=lambda x: "cpu"),
            "on another device than the CPU it fails",
            "`torch.arange(...)` stands on the CPU unless it is told `device=x.device`.",
        ),
        WrongAnswer(
            "cut off from the graph",
            lambda x, start=0, base=10000.0: my_rotate(x.detach(), start, base),
            "no gradient reaches `x`",
            "The numbers are right, but the maps of queries and keys would never learn: leave "
            "`detach`, `.data` and `no_grad` out of it.",
        ),
    ),
    equivalent={
        **_alike(
            "position = torch.arange(start, start + T, device=x.device)[:, None]",
            _NO_GRADIENT,
            ("None]", "….detach()"),
        ),
        **_alike(
            "position = torch.arange(start, start + T, device=x.device)[:, None]",
            _FLOAT32,
            ("None]", "….float()"),
        ),
        **_alike(
            "position = torch.arange(start, start + T, device=x.device)[:, None]",
            _MORE_DIGITS,
            ("None]", "….double()"),
        ),
        **_alike(
            "angle = position * base ** (-torch.arange(0, D, 2, device=x.device) / D)",
            _NO_GRADIENT,
            ("position * base ** (-torch.arange(0, D, 2, device=x.device) / D)", "(…).detach()"),
            ("position", "….detach()"),
        ),
        **_alike(
            "angle = position * base ** (-torch.arange(0, D, 2, device=x.device) / D)",
            _FLOAT32,
            ("position * base ** (-torch.arange(0, D, 2, device=x.device) / D)", "(…).float()"),
            ("position", "….float()"),
        ),
        **_alike(
            "angle = position * base ** (-torch.arange(0, D, 2, device=x.device) / D)",
            _MORE_DIGITS,
            ("position * base ** (-torch.arange(0, D, 2, device=x.device) / D)", "(…).double()"),
        ),
        **_alike(
            "turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)",
            _FLOAT32,
            ("1)", "….float()"),
            ("even", "….float()"),
            ("cos", "….float()"),
            ("odd", "….float()"),
            ("sin", "….float()"),
            (" even", "….float()"),
            ("even * sin", "….float()"),
            ("+ odd", "….float()"),
            ("odd * cos", "….float()"),
        ),
        **_alike(
            "turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)",
            _MORE_DIGITS,
            ("1)", "….double()"),
        ),
        **_alike(
            "turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)",
            _NO_GRADIENT,
            ("cos", "….detach()"),
            ("sin", "….detach()"),
            ("even * sin", "….detach()"),
            ("odd * cos", "….detach()"),
        ),
        **_alike(
            "even, odd = (x[..., 0::2], x[..., 1::2])",
            _FLOAT32,
            ("x", "….float()"),
            (" x", "….float()"),
        ),
        **_alike("even, odd = (x[..., 0::2], x[..., 1::2])", "a slice starts at 0", ("0", "")),
        **_alike(
            "cos, sin = (angle.cos(), angle.sin())",
            _NO_GRADIENT,
            ("angle", "….detach()"),
            (" angle", "….detach()"),
        ),
        **_alike(
            "cos, sin = (angle.cos(), angle.sin())",
            _FLOAT32,
            ("angle", "….float()"),
            (" angle", "….float()"),
        ),
        **_alike("return turned.flatten(-2).to(x.dtype)", _FLOAT32, ("turned", "….float()")),
    },
)


# 09.2 linear biases


def my_alibi_bias(num_heads, length, device=None):
    """ALiBi's bias for `length` queries and keys, (num_heads, length, length), on this device.

    Head h, from 0, has the slope 2^(-8 (h + 1) / num_heads); the bias is minus the slope times the
    distance of query and key, on both sides. num_heads is a power of two.
    """
    slopes = 2 ** (-8 * torch.arange(1, num_heads + 1, device=device) / num_heads)
    place = torch.arange(length, device=device)
    return -slopes[:, None, None] * (place[:, None] - place).abs()


def _alibi(sign=-1.0, slopes=None, distance=None):
    """A `my_alibi_bias` with one thing wrong."""

    def bias(num_heads, length, device=None):
        m = 2 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)
        m = m if slopes is None else slopes(num_heads)
        place = torch.arange(length)
        far = place[:, None] - place
        far = far.abs() if distance is None else distance(far)
        return sign * m[:, None, None] * far

    return bias


ALIBI = Answers(
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
            lambda num_heads, length, device=None: my_alibi_bias(num_heads, length).masked_fill(
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
            lambda num_heads, length, device=None: my_alibi_bias(num_heads, length)[0],
            "expected (4, 3, 3)",
            "Every head has its own slope, so there is a table per head.",
        ),
        WrongAnswer(
            "on the CPU whatever the device",
            lambda num_heads, length, device=None: my_alibi_bias(num_heads, length),
            "the result stays on the cpu",
            "`torch.arange(...)` stands on the CPU unless it is told `device=device`.",
        ),
        WrongAnswer(
            "made on the CPU, and moved",
            lambda num_heads, length, device=None: my_alibi_bias(num_heads, length).to(device),
            "a tensor is made on the CPU and moved",
            "At every step the table would be copied to the GPU, which waits for it. Each "
            "`torch.arange` takes `device=device`.",
        ),
        WrongAnswer(
            "slopes of four heads",
            _alibi(slopes=lambda heads: torch.tensor([0.25**h for h in range(1, heads + 1)])),
            "for num_heads=1, length=2",
            "1/4, 1/16, 1/64, 1/256 are the slopes of 4 heads. With H heads the exponents go from "
            "-8/H to -8, in steps of 8/H.",
        ),
    ),
    equivalent={
        **_alike(
            "slopes = 2 ** (-8 * torch.arange(1, num_heads + 1, device=device) / num_heads)",
            _NO_GRADIENT,
            (
                "2 ** (-8 * torch.arange(1, num_heads + 1, device=device) / num_heads)",
                "(…).detach()",
            ),
        ),
        **_alike(
            "slopes = 2 ** (-8 * torch.arange(1, num_heads + 1, device=device) / num_heads)",
            _FLOAT32,
            (
                "2 ** (-8 * torch.arange(1, num_heads + 1, device=device) / num_heads)",
                "(…).float()",
            ),
        ),
        **_alike(
            "place = torch.arange(length, device=device)", _NO_GRADIENT, ("device)", "….detach()")
        ),
        **_alike(
            "place = torch.arange(length, device=device)",
            "half precision has all whole numbers up to 2,048, more words than a loop has time for",
            ("device)", "….half()"),
        ),
        **_alike("place = torch.arange(length, device=device)", _FLOAT32, ("device)", "….float()")),
        **_alike(
            "return -slopes[:, None, None] * (place[:, None] - place).abs()",
            _NO_GRADIENT,
            ("-slopes[:, None, None] * (place[:, None] - place).abs()", "(…).detach()"),
            ("slopes", "….detach()"),
            (" place", "….detach()"),
            ("place", "….detach()"),
        ),
        **_alike(
            "return -slopes[:, None, None] * (place[:, None] - place).abs()",
            _FLOAT32,
            ("-slopes[:, None, None] * (place[:, None] - place).abs()", "(…).float()"),
            ("slopes", "….float()"),
            (" place", "….float()"),
            ("place", "….float()"),
        ),
    },
)


ANSWERS = {
    "09.1": ROTATE,
    "09.2": ALIBI,
}
