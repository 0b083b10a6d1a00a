"""Answers to chapter 09: references and mistakes."""

import torch

from tinytf_course.grading import Answers, WrongAnswer

_NO_GRADIENT = "positions, distances and angles have no gradient to lose"
_FLOAT32 = "it is float32 already, or will be, or small whole numbers"
_MORE_DIGITS = "more digits on the way to float32"


def _alike(line, why, *changes):
    """Harmless mutants of a line: what is replaced, and by what, with … for itself."""
    return {f"{line} => {line.replace(old, new.replace('…', old), 1)}": why for old, new in changes}


# 09.1 scores by distance


def my_rope_scores(q, k, distances, base=10000.0):
    """RoPE's scores of queries and keys (..., D) at each of these distances (N,): (..., N).

    A distance is the query's position minus the key's. Pair i, which is (x[2i], x[2i + 1]), turns
    counterclockwise by base^(-2i / D) per position. The result has the dtype and the device of q;
    angles are float32 even for half precision.
    """
    D = q.size(-1)
    angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)
    cos, sin = angle.cos(), angle.sin()  # (N, D / 2)
    even, odd = q[..., None, 0::2], q[..., None, 1::2]  # (..., 1, D / 2): the key is at position 0
    first, second = even * cos - odd * sin, even * sin + odd * cos  # (..., N, D / 2)
    scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1)
    return scores.to(q.dtype)


def _scored(
    sign=1,
    half=False,
    i=2,
    one=False,
    by_pair=False,
    first_only=False,
    always=None,
    places=lambda distances: distances,
    kind=torch.float32,
    device=lambda q: q.device,
    back=True,
    key=False,
    mean=False,
    scaled=False,
):
    """A `my_rope_scores` with one thing wrong."""

    def scores(q, k, distances, base=10000.0):
        D, base = q.size(-1), always or base
        pair = torch.arange(D // 2, device=device(q))
        place = places(distances).to(kind or q.dtype)[:, None]
        frequency = base ** (-i * pair / D)
        angle = torch.ones_like(place) * pair if by_pair else place * frequency
        angle = sign * (place * torch.ones_like(frequency) if one else angle)
        cos, sin = angle.cos(), angle.sin()

        def split(x):
            x = x[..., None, :]
            return (x[..., : D // 2], x[..., D // 2 :]) if half else (x[..., 0::2], x[..., 1::2])

        def turn(a, b):
            return a * cos - b * sin, b if first_only else a * sin + b * cos

        (a, b), (c, d) = turn(*split(q)), split(k)
        c, d = turn(c, d) if key else (c, d)
        y = a * c + b * d
        y = y.mean(dim=-1) if mean else y.sum(dim=-1)
        y = y / D**0.5 if scaled else y
        return y.to(q.dtype) if back else y

    return scores


SCORES = Answers(
    reference=my_rope_scores,
    wrong=(
        WrongAnswer(
            "turned clockwise",
            _scored(sign=-1),
            "Turned by 1 radian",
            "A query further on has turned further counterclockwise; clockwise is what the key has "
            "done, seen from it. The two distances 1 and -1 are exchanged.",
        ),
        WrongAnswer(
            "pairs i and i + D/2",
            _scored(half=True),
            "Turned by 1 radian",
            "This is how Hugging Face's Llama pairs them. Both are fine; mixing them, in weights "
            "or between queries and keys, is not.",
        ),
        WrongAnswer(
            "both turned by the distance",
            _scored(key=True),
            "Turned by 1 radian",
            "If query and key turn by the same angle, the angle between them stays: every distance "
            "gets the score of distance 0. Turn the query alone.",
        ),
        WrongAnswer(
            "an exponent of i, not 2i",
            _scored(i=1),
            "Pair i turns by",
            "Pair i, counted from 0, has the exponent -2i/D; with -i/D slow hands are too fast.",
        ),
        WrongAnswer(
            "an exponent of 4i, not 2i",
            _scored(i=4),
            "Pair i turns by",
            "`torch.arange(0, D, 2)` holds 2i already.",
        ),
        WrongAnswer(
            "hands that get faster",
            _scored(i=-2),
            "Pair i turns by",
            "The exponent is negative: pair 0 is the fastest.",
        ),
        WrongAnswer(
            "only the first of a pair",
            _scored(first_only=True),
            "Turned by 1 radian",
            "Both numbers of a pair change in a turn.",
        ),
        WrongAnswer(
            "turned by the pair, not the distance",
            _scored(by_pair=True),
            "Nothing has turned",
            "The angle is distance times frequency. Here every distance is turned alike.",
        ),
        WrongAnswer(
            "one frequency for all pairs",
            _scored(one=True),
            "Pair i turns by",
            "With 1 radian for all pairs, distances 0 and 44 are nearly the same (44 ≈ 7 · 2π).",
        ),
        WrongAnswer(
            "base ignored",
            _scored(always=10000.0),
            "base=100",
            "`base` is an argument: models that read longer texts have a larger one.",
        ),
        WrongAnswer(
            "distances without their sign",
            _scored(places=torch.abs),
            "Below 0 the query is before the key",
            "One step before and one step after are turns in opposite directions.",
        ),
        WrongAnswer(
            "its own 0, 1, 2, …",
            _scored(places=lambda d: torch.arange(len(d), device=d.device)),
            "Turned by 1 radian",
            "Take the distances as they are given; the first need not be 0.",
        ),
        WrongAnswer(
            "from distance 1 on",
            _scored(places=lambda d: d + 1),
            "Nothing has turned",
            "At distance 0 nothing has turned against anything else.",
        ),
        WrongAnswer(
            "a mean over pairs",
            _scored(mean=True),
            "for q=[1, 2, 0, 1], k=[3, 4, 5, 6]",
            "A dot product is a sum.",
        ),
        WrongAnswer(
            "scaled by √D",
            _scored(scaled=True),
            "Nothing has turned",
            "The scale is the attention's work; asked for are the dot products.",
        ),
        WrongAnswer(
            "a turned vector, not a score",
            lambda q, k, distances, base=10000.0: torch.stack(
                [my_rope_scores(q, one, distances, base) for one in torch.eye(q.size(-1))], dim=-1
            ),
            "expected (1,)",
            "A score is one number: multiply the turned query by the key, and sum.",
        ),
        WrongAnswer(
            "distances before the batch",
            lambda q, k, distances, base=10000.0: my_rope_scores(q, k, distances, base).movedim(
                -1, 0
            ),
            "expected (2, 1)",
            "The last axis counts the distances: (..., N).",
        ),
        WrongAnswer(
            "angles in half precision",
            _scored(kind=None),
            "bfloat16 has no 301",
            "Distances and angles in the dtype of q lose whole steps: 301 is 302 in bfloat16. "
            "Turn in float32, and round the result.",
        ),
        WrongAnswer(
            "float32 comes out",
            _scored(back=False),
            "the dtype is float32, expected bfloat16",
            "The angles are float32, and half precision times float32 is float32: hand back the "
            "dtype that came in.",
        ),
        WrongAnswer(
            "angles on the CPU",
            _scored(device=lambda q: "cpu"),
            "on another device than the CPU it fails",
            "`torch.arange(...)` is on the CPU unless it is told `device=q.device`.",
        ),
        WrongAnswer(
            "the key cut off from the graph",
            lambda q, k, distances, base=10000.0: my_rope_scores(q, k.detach(), distances, base),
            "no gradient reaches `k`",
            "The numbers are right, but the projection of the keys would never learn: leave "
            "`detach`, `.data` and `no_grad` out of it.",
        ),
        WrongAnswer(
            "the query cut off from the graph",
            lambda q, k, distances, base=10000.0: my_rope_scores(q.detach(), k, distances, base),
            "no gradient reaches `q`",
            "The numbers are right, but the projection of the queries would never learn: leave "
            "`detach`, `.data` and `no_grad` out of it.",
        ),
    ),
    equivalent={
        **_alike(
            "angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)",
            _NO_GRADIENT,
            (
                "distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)",
                "(…).detach()",
            ),
            ("distances", "….detach()"),
        ),
        **_alike(
            "angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)",
            _FLOAT32,
            (
                "distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)",
                "(…).float()",
            ),
            ("distances", "….float()"),
        ),
        **_alike(
            "angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)",
            _MORE_DIGITS,
            (
                "distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)",
                "(…).double()",
            ),
        ),
        **_alike(
            "scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1)",
            _FLOAT32,
            ("1)", "….float()"),
            ("first", "….float()"),
            ("second", "….float()"),
            ("* k", "….float()"),
            ("second * k", "….float()"),
        ),
        **_alike(
            "scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1)",
            _MORE_DIGITS,
            ("1)", "….double()"),
        ),
        **_alike("D = q.size(-1)", "q and k are of one width", ("= q", "= k")),
        **_alike(
            "even, odd = (q[..., None, 0::2], q[..., None, 1::2])",
            _FLOAT32,
            (" (q", "….float()"),
            (", q", "….float()"),
        ),
        **_alike("return scores.to(q.dtype)", _FLOAT32, ("scores.", "…float().")),
        **_alike("return scores.to(q.dtype)", "q and k are of one dtype", ("to(q", "to(k")),
        **_alike(
            "cos, sin = (angle.cos(), angle.sin())",
            _NO_GRADIENT,
            ("angle.", "…detach()."),
            (" angle.", "…detach()."),
        ),
        **_alike(
            "cos, sin = (angle.cos(), angle.sin())",
            _FLOAT32,
            ("angle.", "…float()."),
            (" angle.", "…float()."),
        ),
        **_alike(
            "even, odd = (q[..., None, 0::2], q[..., None, 1::2])",
            "a slice starts at 0",
            (", 0", ", "),
        ),
        **_alike(
            "first, second = (even * cos - odd * sin, even * sin + odd * cos)",
            _FLOAT32,
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
            "first, second = (even * cos - odd * sin, even * sin + odd * cos)",
            _NO_GRADIENT,
            ("cos", "….detach()"),
            ("sin", "….detach()"),
            ("even * sin", "….detach()"),
            ("odd * cos", "….detach()"),
        ),
        **_alike(
            "scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1)",
            "a slice starts at 0",
            (", 0", ", "),
        ),
        **_alike(
            "angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)",
            "all three are on one device",
            ("device=q", "device=k"),
        ),
        **_alike(
            "angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)",
            "all three are on one device",
            ("device=q", "device=distances"),
        ),
    },
)


# 09.2 one row for all queries


def my_row_bias(slopes, length):
    """One bias for all queries, (H, 1, length), that replaces ALiBi's table (H, length, length).

    Added to the scores before the causal mask and the softmax, it gives the same weights as the
    table. It has the dtype of the slopes (H,), and is on their device.
    """
    key = torch.arange(length, device=slopes.device)
    return slopes[:, None, None] * key


def _row(of=lambda key: key, slopes=lambda m: m):
    """A `my_row_bias` with one thing wrong."""

    def bias(m, length):
        return slopes(m)[:, None, None] * of(torch.arange(length, device=m.device))

    return bias


def _whole(slopes, length):
    place = torch.arange(length)
    return -slopes[:, None, None] * (place[:, None] - place).abs()


ROW = Answers(
    reference=my_row_bias,
    wrong=(
        WrongAnswer(
            "far keys rewarded",
            _row(lambda key: -key),
            "one step further",
            "This is the first row of the table, for a query at position 0. For any later query "
            "the first key is the farthest, and has to get the least.",
        ),
        WrongAnswer(
            "the whole table",
            _whole,
            "the shape is (1, 3, 3), expected (1, 1, 3)",
            "The table has a row for each query. One row is to do for all.",
        ),
        WrongAnswer(
            "no slope",
            _row(slopes=torch.ones_like),
            "for slopes=[0.5]",
            "How much each step counts is the slope's to say.",
        ),
        WrongAnswer(
            "one slope for all heads",
            _row(slopes=lambda m: m[:1].expand(len(m))),
            "A row for each of the slopes",
            "With one slope every head is equally nearsighted, and none can see far.",
        ),
        WrongAnswer(
            "slopes in another order",
            _row(slopes=lambda m: m.flip(0)),
            "A row for each of the slopes",
            "Row h belongs to slope h.",
        ),
        WrongAnswer(
            "a fraction of the length",
            _row(lambda key: key / max(len(key), 1)),
            "one step further",
            "A step costs the slope, however long the text is.",
        ),
        WrongAnswer(
            "the middle is best",
            _row(lambda key: -(key - len(key) // 2).abs()),
            "for slopes=[0.5], length=3",
            "Bias grows with the position of the key throughout: the later a key that is seen, the "
            "nearer it is.",
        ),
        WrongAnswer(
            "no axis for the queries",
            lambda slopes, length: my_row_bias(slopes, length)[:, 0],
            "the shape is (1, 3), expected (1, 1, 3)",
            "(H, length) would be added to (H, length, length) as if heads were queries: the axis "
            "of the queries has size 1.",
        ),
        WrongAnswer(
            "the mask as well",
            lambda slopes, length: my_row_bias(slopes, length).masked_fill(
                torch.arange(length) > 0, -torch.inf
            ),
            "one step further",
            "What later queries may see, one row can't hide: the mask comes afterwards.",
        ),
        WrongAnswer(
            "squares of positions",
            _row(lambda key: key**2),
            "for slopes=[0.5], length=3",
            "Every step costs the same.",
        ),
        WrongAnswer(
            "float32 whatever the slopes",
            lambda slopes, length: my_row_bias(slopes, length).float(),
            "the dtype is float32, expected float64",
            "The bias is added to scores in the dtype of the slopes.",
        ),
        WrongAnswer(
            "on the CPU whatever the device",
            lambda slopes, length: slopes[:, None, None] * torch.arange(length),
            "on another device than the CPU it fails",
            "`torch.arange(...)` is on the CPU unless it is told `device=slopes.device`.",
        ),
    ),
    equivalent={
        **_alike(
            "key = torch.arange(length, device=slopes.device)", _NO_GRADIENT, (")", "….detach()")
        ),
        **_alike("key = torch.arange(length, device=slopes.device)", _FLOAT32, (")", "….float()")),
        **_alike(
            "key = torch.arange(length, device=slopes.device)",
            "half precision has all whole numbers up to 2,048",
            (")", "….half()"),
        ),
        **_alike(
            "return slopes[:, None, None] * key",
            _NO_GRADIENT,
            ("slopes[:, None, None] * key", "(slopes[:, None, None] * key).detach()"),
            ("key", "….detach()"),
            ("slopes", "….detach()"),
        ),
        **_alike("return slopes[:, None, None] * key", _FLOAT32, ("key", "….float()")),
    },
)


ANSWERS = {
    "09.1": SCORES,
    "09.2": ROW,
}
