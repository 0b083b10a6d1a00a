"""09.1 scores by distance (★★★, 15 minutes)

Write `my_rope_scores(q, k, distances, base=10000.0)`, which returns RoPE's scores of queries and
keys `(..., D)` at each of the `distances` `(N,)`, with the shape `(..., N)`. A distance is the
query's position minus the key's, so it can be negative.

<details><summary>The rule in detail</summary>

Pair i, `(x[2i], x[2i + 1])`, turns counterclockwise by `base ** (-2i / D)` per position, and scores
are not scaled. The result has the dtype and the device of `q`; angles need all the digits of
float32, even where `q` has half precision.

</details>

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

    def term(distance, i):
        angle = distance / base ** (i / q.size(-1))
        c, s, a, b = math.cos(angle), math.sin(angle), q[..., i], q[..., i + 1]
        return (a * c - b * s) * k[..., i] + (a * s + b * c) * k[..., i + 1]

    pairs = range(0, q.size(-1), 2)
    return torch.stack([sum(term(n, i) for i in pairs) for n in distances.tolist()], dim=-1)


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
    q, k, places = numbers(3, 2, seed=12), numbers(3, 2, seed=13), torch.tensor([301, 302])
    note = "bfloat16 has no 301: the angle has to be float32."
    precise(answer, _scores, q, k, places, dtype=torch.bfloat16, note=note,
            where="for q and k of shape (3, 2) in bfloat16, distances=[301, 302]")  # fmt: skip
    q, k, places = numbers(2, 4, seed=14), numbers(2, 4, seed=15), torch.tensor([0, 2])
    for dtype, tolerance in ((torch.float16, None), (torch.float64, 1e-5)):
        precise(answer, _scores, q, k, places, dtype=dtype, tolerance=tolerance)


def test_rope_travels(answer):
    """it turns where its arguments are"""
    travels(answer, numbers(2, 3, 4, seed=16), numbers(2, 3, 4, seed=17), torch.arange(3))


def test_rope_gradient(answer):
    """gradients reach the query and the key"""
    q, k, places = numbers(2, seed=18), numbers(2, seed=19), torch.tensor([1])
    gradients(answer, _scores, q, k, places, tolerance=1e-5)
    q, k, places = numbers(2, 3, 4, seed=20), numbers(2, 3, 4, seed=21), torch.tensor([2, -5])
    gradients(answer, _scores, q, k, places, tolerance=1e-5)


MISTAKES = r"""
turned clockwise
    angle.cos(), angle.sin() => angle.cos(), -angle.sin()
    says: Turned by 1 radian
    A query further on has turned further counterclockwise; clockwise is what the key has done,
    seen from it. The two distances 1 and -1 are exchanged.
pairs i and i + D/2
    q[..., None, 0::2], q[..., None, 1::2] => q[..., None, : D // 2], q[..., None, D // 2 :]
    k[..., None, 0::2] => k[..., None, : D // 2]
    k[..., None, 1::2] => k[..., None, D // 2 :]
    says: Turned by 1 radian
    This is how Hugging Face's Llama pairs them. Both are fine; mixing them, in weights or
    between queries and keys, is not.
both turned by the distance
    scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1) =>
        a, b = k[..., None, 0::2], k[..., None, 1::2]
        scores = (first * (a * cos - b * sin) + second * (a * sin + b * cos)).sum(dim=-1)
    says: Turned by 1 radian
    If query and key turn by the same angle, the angle between them stays: every distance gets
    the score of distance 0. Turn the query alone.
an exponent of i, not 2i
    q.device) / D => q.device) / 2 / D
    says: Pair i turns by
    Pair i, counted from 0, has the exponent -2i/D; with -i/D all but the first turn too fast.
an exponent of 4i, not 2i
    -torch.arange => -2 * torch.arange
    says: Pair i turns by
    `torch.arange(0, D, 2)` contains 2i already.
hands that get faster
    -torch.arange => torch.arange
    says: Pair i turns by
    The exponent is negative: pair 0 is the fastest.
only the first of a pair
    even * sin + odd * cos => odd
    says: Turned by 1 radian
    Both numbers of a pair change in a turn.
turned by the pair, not the distance
    angle = distances[:, None] * base ** (-torch.arange(0, D, 2, device=q.device) / D) =>
        angle = torch.arange(D // 2, device=q.device).expand(len(distances), -1)
    says: Nothing has turned
    The angle is distance times frequency. Here every distance is turned alike.
one frequency for all pairs
    base ** (-torch.arange(0, D, 2, device=q.device) / D) => torch.ones(D // 2, device=q.device)
    says: Pair i turns by
    With 1 radian for all pairs, distances 0 and 44 are nearly the same (44 ≈ 7 · 2π).
base ignored
    * base ** => * 10000.0 **
    says: base=100
    `base` is an argument: models that read longer texts have a larger one.
distances without their sign
    distances[:, None] => distances.abs()[:, None]
    says: Below 0 the query is before the key
    One step before and one step after are turns in opposite directions.
its own 0, 1, 2, …
    distances[:, None] => torch.arange(len(distances), device=q.device)[:, None]
    says: Turned by 1 radian
    Take the distances as they are given; the first need not be 0.
from distance 1 on
    distances[:, None] => (distances[:, None] + 1)
    says: Nothing has turned
    At distance 0 nothing has turned against anything else.
a mean over pairs
    .sum(dim=-1) => .mean(dim=-1)
    says: for q=[1, 2, 0, 1], k=[3, 4, 5, 6]
    A dot product is a sum.
scaled by √D
    .sum(dim=-1) => .sum(dim=-1) / D**0.5
    says: Nothing has turned
    Attention divides by √D later: return the dot products themselves.
a turned vector, not a score
    scores = (first * k[..., None, 0::2] + second * k[..., None, 1::2]).sum(dim=-1) =>
        scores = torch.stack([first, second], dim=-1).flatten(-2)
    says: expected (1,)
    A score is one number: multiply the turned query by the key, and sum.
distances before the batch
    scores.to(q.dtype) => scores.to(q.dtype).movedim(-1, 0)
    says: expected (2, 1)
    The last axis counts the distances: (..., N).
angles in half precision
    distances[:, None] => distances.to(q.dtype)[:, None]
    says: bfloat16 has no 301
    Distances and angles in the dtype of q lose whole steps: 301 is 302 in bfloat16. Turn in
    float32, and round the result.
float32 comes out
    return scores.to(q.dtype) => return scores
    says: the dtype is float32, expected bfloat16
    The angles are float32, and half precision times float32 is float32: return the dtype of q.
angles on the CPU
    , device=q.device =>
    says: on another device than the CPU it fails
    `torch.arange(...)` is on the CPU unless it gets `device=q.device`.
the key cut off from the graph
    D = q.size(-1) => D, k = q.size(-1), k.detach()
    says: no gradient reaches `k`
    The numbers are right, but the projection of the keys would never learn: leave `detach`,
    `.data` and `no_grad` out of it.
the query cut off from the graph
    D = q.size(-1) => D, q = q.size(-1), q.detach()
    says: no gradient reaches `q`
    The numbers are right, but the projection of the queries would never learn: leave `detach`,
    `.data` and `no_grad` out of it.
"""

HARMLESS = r"""
D = q.size(-1) => D = k.size(-1)
    q and k are of one width
return scores.to(q.dtype) => return scores.to(k.dtype)
    q and k are of one dtype
return scores.to(q.dtype) => return scores.float().to(q.dtype)
    float32 is enough, and the dtype of q comes last
angle = … => …device=k.device) / D)
    all three are on one device
angle = … => …device=distances.device) / D)
    all three are on one device
even, odd = … => …q.float()…
    the angles are float32, so that the products are
first, second = … => …even.float()…
    the angles are float32, so that the products are
first, second = … => …odd.float()…
    the angles are float32, so that the products are
scores = … => ….float()…
    float32 is enough, and the dtype of q comes last
scores = … => ….double()
    more digits on the way to float32
even, odd = … => even, odd = (q[..., None, ::2], …
    a slice starts at 0
scores = … => scores = (first * k[..., None, ::2] + …
    a slice starts at 0
"""
