"""09.1 scores by distance (★★★, 15 minutes)

Write `my_rope_scores(q, k, distances, base=10000.0)`, which returns RoPE's scores of queries and
keys `(..., D)` at each of the `distances` `(N,)`, with the shape `(..., N)`. A distance is the
query's position minus the key's, so it can be negative. Pair i, `(x[2i], x[2i + 1])`, turns
counterclockwise by `base ** (-2i / D)` per position, and scores are not scaled.

Hint: The two positions themselves are not given, and they don't matter. Put the key at position 0,
where it is not rotated.

Hint: A turn by a takes (x, y) to (x cos a - y sin a, x sin a + y cos a). With `q[..., None, 0::2]`,
(..., 1, D / 2), and angles (N, D / 2), the rotated queries have a row for each distance.
"""

import math

import torch

from tinytf_course.expect import agrees, gradients, numbers, precise, travels
from tinytf_course.grading import hint


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


def _scores(q, k, distances, base=10000.0):
    """A distance and a pair at a time, each angle in Python's own numbers."""
    columns = []
    for distance in distances.tolist():
        total = 0
        for i in range(0, q.size(-1), 2):
            angle = distance / base ** (i / q.size(-1))
            c, s, a, b = math.cos(angle), math.sin(angle), q[..., i], q[..., i + 1]
            total = total + (a * c - b * s) * k[..., i] + (a * s + b * c) * k[..., i + 1]
        columns.append(total)
    return torch.stack(columns, dim=-1)


def test_at_distance_0(answer):
    """at distance 0 the score is the dot product"""
    note = "Nothing has turned against anything else."
    q, k = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    agrees(answer, _scores, q, k, torch.tensor([0]), note=note)
    q, k = torch.tensor([1.0, 2.0, 0.0, 1.0]), torch.tensor([3.0, 4.0, 5.0, 6.0])
    agrees(answer, _scores, q, k, torch.tensor([0]), note=note)


@hint("In which direction does the query turn against the key when its position is further on?")
def test_one_on(answer):
    """a query one position further on has turned by the pair's angle, counterclockwise"""
    note = "Turned by 1 radian, (1, 0) is (cos 1, sin 1)."
    q, k = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    agrees(answer, _scores, q, k, torch.tensor([1]), note=note)
    q, k = torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.tensor([2.0, 1.0, 0.0, 0.0])
    agrees(answer, _scores, q, k, torch.tensor([1]), note=note)


def test_given_distances(answer):
    """distances count as they are given, in any order, and below 0"""
    note = "Below 0 the query is before the key."
    q, k = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    agrees(answer, _scores, q, k, torch.tensor([-1]), note=note)
    agrees(answer, _scores, q, k, torch.tensor([3, 0, -2, 3]), note=note)


def test_own_frequency(answer):
    """each pair has its frequency, which the base sets"""
    note = "Pair i turns by base^(-2i/D) per position."
    q, k = torch.tensor([0.0, 0.0, 1.0, 0.0]), torch.tensor([0.0, 0.0, 0.0, 1.0])
    agrees(answer, _scores, q, k, torch.tensor([1]), note=note)
    agrees(answer, _scores, q, k, torch.tensor([1]), 100.0, note=note)
    q, k = numbers(8, seed=2), numbers(8, seed=3)
    agrees(answer, _scores, q, k, torch.tensor([1, 4]), 100.0, tolerance=1e-4, note=note)


def test_leading_axes(answer):
    """there may be batch and heads, and as many distances as one likes"""
    q, k = numbers(2, 4, seed=4), numbers(2, 4, seed=5)
    agrees(answer, _scores, q, k, torch.tensor([1]), tolerance=1e-4)
    q, k = numbers(2, 3, 6, seed=6), numbers(2, 3, 6, seed=7)
    agrees(answer, _scores, q, k, torch.tensor([2, -1, 0, 5]), tolerance=1e-4)
    q, k = numbers(3, 1, 2, 2, seed=8), numbers(3, 1, 2, 2, seed=9)
    agrees(answer, _scores, q, k, torch.arange(7), tolerance=1e-4)


def test_far(answer):
    """30,000 positions apart is as right as three"""
    q, k = numbers(2, 4, seed=10), numbers(2, 4, seed=11)
    agrees(answer, _scores, q, k, torch.tensor([30000, 29999]), tolerance=3e-3)


def test_rope_dtype(answer):
    """the result has the dtype of q, its angles all their digits"""
    places = torch.tensor([301, 302])
    where = "for q and k of shape (3, 2) in bfloat16, distances=[301, 302]"
    note = "bfloat16 has no 301: the angle has to be float32."
    q, k = numbers(3, 2, seed=12), numbers(3, 2, seed=13)
    precise(_at(answer, places), _at(_scores, places), q, k,
            dtype=torch.bfloat16, where=where, note=note)  # fmt: skip
    near = torch.tensor([0, 2])
    q, k = numbers(2, 4, seed=14), numbers(2, 4, seed=15)
    for dtype, tolerance in ((torch.float16, None), (torch.float64, 1e-5)):
        where = f"for q and k of shape (2, 4) in {str(dtype).split('.')[1]}, distances=[0, 2]"
        precise(_at(answer, near), _at(_scores, near), q, k,
                dtype=dtype, tolerance=tolerance, where=where)  # fmt: skip


def _at(scores, places):
    """A function of q and k alone, whose numbers are to be rounded; the places are not."""
    return lambda q, k: scores(q, k, places)


def test_rope_travels(answer):
    """it turns where its arguments are"""
    travels(answer, numbers(2, 3, 4, seed=16), numbers(2, 3, 4, seed=17), torch.arange(3))


def test_rope_gradient(answer):
    """gradients reach the query and the key"""
    q, k, places = numbers(2, seed=18), numbers(2, seed=19), torch.tensor([1])
    gradients(answer, _scores, q, k, places, tolerance=1e-5)
    q, k, places = numbers(2, 3, 4, seed=20), numbers(2, 3, 4, seed=21), torch.tensor([2, -5])
    gradients(answer, _scores, q, k, places, tolerance=1e-5)


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


MISTAKES = r"""
turned clockwise
    … =>
        return _scored(sign=-1)(q, k, distances, base)
    says: Turned by 1 radian
    A query further on has turned further counterclockwise; clockwise is what the key has done,
    seen from it. The two distances 1 and -1 are exchanged.
pairs i and i + D/2
    … =>
        return _scored(half=True)(q, k, distances, base)
    says: Turned by 1 radian
    This is how Hugging Face's Llama pairs them. Both are fine; mixing them, in weights or
    between queries and keys, is not.
both turned by the distance
    … =>
        return _scored(key=True)(q, k, distances, base)
    says: Turned by 1 radian
    If query and key turn by the same angle, the angle between them stays: every distance gets
    the score of distance 0. Turn the query alone.
an exponent of i, not 2i
    … =>
        return _scored(i=1)(q, k, distances, base)
    says: Pair i turns by
    Pair i, counted from 0, has the exponent -2i/D; with -i/D slow hands are too fast.
an exponent of 4i, not 2i
    … =>
        return _scored(i=4)(q, k, distances, base)
    says: Pair i turns by
    `torch.arange(0, D, 2)` holds 2i already.
hands that get faster
    … =>
        return _scored(i=-2)(q, k, distances, base)
    says: Pair i turns by
    The exponent is negative: pair 0 is the fastest.
only the first of a pair
    … =>
        return _scored(first_only=True)(q, k, distances, base)
    says: Turned by 1 radian
    Both numbers of a pair change in a turn.
turned by the pair, not the distance
    … =>
        return _scored(by_pair=True)(q, k, distances, base)
    says: Nothing has turned
    The angle is distance times frequency. Here every distance is turned alike.
one frequency for all pairs
    … =>
        return _scored(one=True)(q, k, distances, base)
    says: Pair i turns by
    With 1 radian for all pairs, distances 0 and 44 are nearly the same (44 ≈ 7 · 2π).
base ignored
    … =>
        return _scored(always=10000.0)(q, k, distances, base)
    says: base=100
    `base` is an argument: models that read longer texts have a larger one.
distances without their sign
    … =>
        return _scored(places=torch.abs)(q, k, distances, base)
    says: Below 0 the query is before the key
    One step before and one step after are turns in opposite directions.
its own 0, 1, 2, …
    … =>
        return _scored(places=lambda d: torch.arange(len(d), device=d.device))(q, k, distances, base)
    says: Turned by 1 radian
    Take the distances as they are given; the first need not be 0.
from distance 1 on
    … =>
        return _scored(places=lambda d: d + 1)(q, k, distances, base)
    says: Nothing has turned
    At distance 0 nothing has turned against anything else.
a mean over pairs
    … =>
        return _scored(mean=True)(q, k, distances, base)
    says: for q=[1, 2, 0, 1], k=[3, 4, 5, 6]
    A dot product is a sum.
scaled by √D
    … =>
        return _scored(scaled=True)(q, k, distances, base)
    says: Nothing has turned
    The scale is the attention's work; asked for are the dot products.
a turned vector, not a score
    … =>
        return (
                                                  torch.stack(
                [my_rope_scores(q, one, distances, base) for one in torch.eye(q.size(-1))], dim=-1
            )
        )
    says: expected (1,)
    A score is one number: multiply the turned query by the key, and sum.
distances before the batch
    … =>
        return (
                                                  my_rope_scores(q, k, distances, base).movedim(
                -1, 0
            )
        )
    says: expected (2, 1)
    The last axis counts the distances: (..., N).
angles in half precision
    … =>
        return _scored(kind=None)(q, k, distances, base)
    says: bfloat16 has no 301
    Distances and angles in the dtype of q lose whole steps: 301 is 302 in bfloat16. Turn in
    float32, and round the result.
float32 comes out
    … =>
        return _scored(back=False)(q, k, distances, base)
    says: the dtype is float32, expected bfloat16
    The angles are float32, and half precision times float32 is float32: hand back the dtype
    that came in.
angles on the CPU
    … =>
        return _scored(device=lambda q: "cpu")(q, k, distances, base)
    says: on another device than the CPU it fails
    `torch.arange(...)` is on the CPU unless it is told `device=q.device`.
the key cut off from the graph
    … =>
        return my_rope_scores(q, k.detach(), distances, base)
    says: no gradient reaches `k`
    The numbers are right, but the projection of the keys would never learn: leave `detach`,
    `.data` and `no_grad` out of it.
the query cut off from the graph
    … =>
        return my_rope_scores(q.detach(), k, distances, base)
    says: no gradient reaches `q`
    The numbers are right, but the projection of the queries would never learn: leave `detach`,
    `.data` and `no_grad` out of it.
"""

HARMLESS = r"""
angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D) => angle = (distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)).detach()
    positions, distances and angles have no gradient to lose
angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D) => angle = distances.detach()[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)
    positions, distances and angles have no gradient to lose
angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D) => angle = (distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)).float()
    it is float32 already, or will be, or small whole numbers
angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D) => angle = distances.float()[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)
    it is float32 already, or will be, or small whole numbers
angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D) => angle = (distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D)).double()
    more digits on the way to float32
scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1) => scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1).float()
    it is float32 already, or will be, or small whole numbers
scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1) => scores = (first.float() * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1)
    it is float32 already, or will be, or small whole numbers
scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1) => scores = (first * k[..., None, 0::2] + second.float() * k[..., None, 1::2]).sum(dim=-1)
    it is float32 already, or will be, or small whole numbers
scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1) => scores = (first * k.float()[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1)
    it is float32 already, or will be, or small whole numbers
scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1) => scores = (first * k[..., None, 0::2] + second * k.float()[..., None, 1::2]).sum(dim=-1)
    it is float32 already, or will be, or small whole numbers
scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1) => scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1).double()
    more digits on the way to float32
D = q.size(-1) => D = k.size(-1)
    q and k are of one width
even, odd = (q[..., None, 0::2], q[..., None, 1::2]) => even, odd = (q.float()[..., None, 0::2], q[..., None, 1::2])
    it is float32 already, or will be, or small whole numbers
even, odd = (q[..., None, 0::2], q[..., None, 1::2]) => even, odd = (q[..., None, 0::2], q.float()[..., None, 1::2])
    it is float32 already, or will be, or small whole numbers
return scores.to(q.dtype) => return scores.float().to(q.dtype)
    it is float32 already, or will be, or small whole numbers
return scores.to(q.dtype) => return scores.to(k.dtype)
    q and k are of one dtype
cos, sin = (angle.cos(), angle.sin()) => cos, sin = (angle.detach().cos(), angle.sin())
    positions, distances and angles have no gradient to lose
cos, sin = (angle.cos(), angle.sin()) => cos, sin = (angle.cos(), angle.detach().sin())
    positions, distances and angles have no gradient to lose
cos, sin = (angle.cos(), angle.sin()) => cos, sin = (angle.float().cos(), angle.sin())
    it is float32 already, or will be, or small whole numbers
cos, sin = (angle.cos(), angle.sin()) => cos, sin = (angle.cos(), angle.float().sin())
    it is float32 already, or will be, or small whole numbers
even, odd = (q[..., None, 0::2], q[..., None, 1::2]) => even, odd = (q[..., None, ::2], q[..., None, 1::2])
    a slice starts at 0
first, second = (even * cos - odd * sin, even * sin + odd * cos) => first, second = (even.float() * cos - odd * sin, even * sin + odd * cos)
    it is float32 already, or will be, or small whole numbers
first, second = (even * cos - odd * sin, even * sin + odd * cos) => first, second = (even * cos.float() - odd * sin, even * sin + odd * cos)
    it is float32 already, or will be, or small whole numbers
first, second = (even * cos - odd * sin, even * sin + odd * cos) => first, second = (even * cos - odd.float() * sin, even * sin + odd * cos)
    it is float32 already, or will be, or small whole numbers
first, second = (even * cos - odd * sin, even * sin + odd * cos) => first, second = (even * cos - odd * sin.float(), even * sin + odd * cos)
    it is float32 already, or will be, or small whole numbers
first, second = (even * cos - odd * sin, even * sin + odd * cos) => first, second = (even * cos - odd * sin, even.float() * sin + odd * cos)
    it is float32 already, or will be, or small whole numbers
first, second = (even * cos - odd * sin, even * sin + odd * cos) => first, second = (even * cos - odd * sin, even * sin.float() + odd * cos)
    it is float32 already, or will be, or small whole numbers
first, second = (even * cos - odd * sin, even * sin + odd * cos) => first, second = (even * cos - odd * sin, even * sin + odd.float() * cos)
    it is float32 already, or will be, or small whole numbers
first, second = (even * cos - odd * sin, even * sin + odd * cos) => first, second = (even * cos - odd * sin, even * sin + odd * cos.float())
    it is float32 already, or will be, or small whole numbers
first, second = (even * cos - odd * sin, even * sin + odd * cos) => first, second = (even * cos.detach() - odd * sin, even * sin + odd * cos)
    positions, distances and angles have no gradient to lose
first, second = (even * cos - odd * sin, even * sin + odd * cos) => first, second = (even * cos - odd * sin.detach(), even * sin + odd * cos)
    positions, distances and angles have no gradient to lose
first, second = (even * cos - odd * sin, even * sin + odd * cos) => first, second = (even * cos - odd * sin, even * sin.detach() + odd * cos)
    positions, distances and angles have no gradient to lose
first, second = (even * cos - odd * sin, even * sin + odd * cos) => first, second = (even * cos - odd * sin, even * sin + odd * cos.detach())
    positions, distances and angles have no gradient to lose
scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1) => scores = (first * k[..., None, ::2] + second * k[..., None, 1::2]).sum(dim=-1)
    a slice starts at 0
angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D) => angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=k.device) / D)
    all three are on one device
angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D) => angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=distances.device) / D)
    all three are on one device
"""
