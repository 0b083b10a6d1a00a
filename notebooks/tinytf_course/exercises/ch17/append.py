"""17.1 a cache that grows (★☆☆, 6 minutes)

Write `my_append(cache, k, v)`, which adds new keys and values to a cache. `cache` is `None` or a
pair of earlier keys and values; `k` and `v` are the new ones, `(B, H, new, D)`. Return the pair of
all keys and all values so far, oldest first.

Hint: Positions are axis 2 of (B, H, T, D).
"""

import torch

from tinytf_course.expect import agrees, expect, gradients, numbers, same, travels
from tinytf_course.words import described


def my_append(cache, k, v):
    """Add new keys and values after the cached ones; return all of them, as (k, v).

    cache is None, or the pair that the last call returned. k and v are (B, H, new, D).
    """
    if cache is None:
        return k, v
    return torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)


OLD_K = torch.arange(24.0).reshape(2, 2, 3, 2)
OLD_V = OLD_K + 100
NEW_K, NEW_V = (100 * torch.ones(2, 2, 1, 2) * sign for sign in (-1.0, -2.0))
WIDE_K = -torch.arange(24.0).reshape(2, 2, 3, 2) - 50
_FIRST = "for an empty cache"
_ONE = "for 3 positions in the cache and 1 new, B=2, H=2, D=2"
_THREE = "for 3 positions in the cache and 3 new"
_NINE = "after 9 positions, one by one"


def _joined(cache, k, v):
    """Position by position."""
    old_k, old_v = cache if cache is not None else (k[:, :, :0], v[:, :, :0])
    return tuple(torch.stack([*x.unbind(2), *y.unbind(2)], 2) for x, y in ((old_k, k), (old_v, v)))


def _two(answer, *arguments, where):
    got = answer(*arguments)
    fits = isinstance(got, tuple | list) and len(got) == 2
    expect(fits, f"{where}, you return {described(got)}, expected (k, v)")
    return got


def test_begins(answer):
    """the first keys and values are the cache"""
    got = _two(answer, None, NEW_K, NEW_V, where=_FIRST)
    same(got[0], NEW_K, f"{_FIRST}, k")
    same(got[1], NEW_V, f"{_FIRST}, v")


def test_keys(answer):
    """new keys come after the old ones"""
    got = _two(answer, (OLD_K, OLD_V), NEW_K, NEW_V, where=_ONE)[0]
    same(got[0, 0], [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [-100.0, -100.0]], f"{_ONE}, k[0, 0]")
    same(got, torch.cat([OLD_K, NEW_K], 2), f"{_ONE}, k")


def test_values(answer):
    """and new values after the old values"""
    got = _two(answer, (OLD_K, OLD_V), NEW_K, NEW_V, where=_ONE)[1]
    same(got, torch.cat([OLD_V, NEW_V], 2), f"{_ONE}, v")


def test_several(answer):
    """several positions may come at once"""
    got = _two(answer, (OLD_K, OLD_V), WIDE_K, WIDE_K, where=_THREE)[0]
    same(got, torch.cat([OLD_K, WIDE_K], 2), f"{_THREE}, k")


def test_grows(answer):
    """nothing is forgotten, however many come"""
    cache = None
    for t in range(9):
        cache = _two(answer, cache, NEW_K + t, NEW_V - t, where=f"{_NINE}, at number {t + 1}")
    for name, got, new, way in (("k", cache[0], NEW_K, 1), ("v", cache[1], NEW_V, -1)):
        same(got, torch.cat([new + way * t for t in range(9)], 2), f"{_NINE}, {name}")


def test_any_kind(answer):
    """in every dtype, on every device, with gradients and numbers of heads and widths of its own"""
    for dtype in (torch.float32, torch.float64, torch.float16):
        k, v, old = (numbers(3, 2, n, 5, seed=n, dtype=dtype) for n in (1, 1, 4))
        where = f"for k, v of shape (3, 2, 1, 5) ({str(dtype).removeprefix('torch.')})"
        agrees(answer, _joined, None, k, v, where=f"{where} and an empty cache")
        agrees(answer, _joined, (old, old + 1), k, v + 2, where=f"{where} and 4 positions cached")
    long = numbers(1, 2, 70, 3, seed=5)
    agrees(answer, _joined, (long, long + 1), long[:, :, :5] + 2, long[:, :, :5] + 3)
    gradients(answer, _joined, None, k, v)
    gradients(answer, _joined, (old, old + 1), k, v)
    travels(answer, None, k, v)
    travels(answer, (old, old + 1), k, v)


MISTAKES = r"""
joined along the width
    k], dim=2 => k], dim=-1
    v], dim=2 => v], dim=-1
    says: k
    The last axis is D, the numbers of one position. New positions go along axis 2.
joined along the batch
    k], dim=2 => k], dim=0
    v], dim=2 => v], dim=0
    says: k
    Axis 0 counts sentences: the new positions would become further sentences.
joined along the heads
    k], dim=2 => k], dim=1
    v], dim=2 => v], dim=1
    says: k
    Axis 1 counts heads. New positions go along axis 2.
the new ones first
    [cache[0], k] => [k, cache[0]]
    [cache[1], v] => [v, cache[1]]
    says: expected [[0, 1], [2, 3], [4, 5], [-100, -100]]
    Attention over all of them would not notice, since no mask is applied at one new position.
    The next chunk of several, with its mask, would.
values not kept
    torch.cat([cache[1], v], dim=2) => v
    says: v, the shape is (2, 2, 1, 2), expected (2, 2, 4, 2)
    The same weights are applied to the values: there must be one for every key.
keys kept as values
    [cache[1], v] => [cache[1], k]
    says: v, position [0, 0, 3, 0] is -100, expected -200
    A slip of copy and paste that no shape can show.
an empty cache not expected
    if cache is None: =>
    return k, v =>
    says: raises TypeError
    Before the first step there is nothing: `cache` is None, and the new ones are all.
a window of the last few
    k], dim=2) => k], dim=2)[:, :, -4:]
    v], dim=2) => v], dim=2)[:, :, -4:]
    says: 9 positions, one by one, k
    Every word so far may be attended to; a cache that forgets changes the answer. (Models with
    sliding windows do so on purpose.)
only the new ones
    if cache is None => if True
    says: k[0, 0], the shape is (1, 2), expected (4, 2)
    The past has to be returned too: the new query attends to all of it.
float32 whatever comes
    k], dim=2) => k], dim=2).float()
    v], dim=2) => v], dim=2).float()
    says: the dtype is float32, expected float64
    A cache in another dtype than the model's can't be multiplied by its queries.
"""
