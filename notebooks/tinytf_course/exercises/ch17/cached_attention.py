"""17.2 attention with a cache (★★★, 15 minutes)

Write `my_cached_attention(x, w_q, w_k, w_v, cache=None)`: causal attention with one head, for the
newest positions only. It returns `(y, (k, v))`: the outputs of the new positions, and all keys and
values so far.

<details><summary>The rule in detail</summary>

`x` `(B, T, C)` holds T new positions, one or several. Each projection is `(C, D)`, multiplies from
the right and has no bias. `cache` is `None` or a pair `(k, v)`, each `(B, S, D)`: the keys and
values of the S positions before. A new position attends to everything in the cache, to itself, and
to the new positions before it; scores are divided by √D, and may be very large. y is `(B, T, D)`,
and keys and values are `(B, S + T, D)`, oldest first, in the dtype and on the device of `x`.

</details>

Hint: Only the new positions are multiplied by the projections. For the mask, think how far the
triangle has to move: the last query attends to all S + T keys.
"""

import math

import torch

from tinytf_course.expect import expect, gradients, numbers, same, travels
from tinytf_course.words import described


def my_cached_attention(x, w_q, w_k, w_v, cache=None):
    """Causal attention of the newest positions x (B, T, C): (y, (k, v)).

    Each w is (C, D) and multiplies from the right. cache is None, or the keys and values of the S
    positions before, each (B, S, D). y is (B, T, D), k and v are (B, S + T, D), oldest first.
    """
    q, k, v = x @ w_q, x @ w_k, x @ w_v  # each (B, T, C) -> (B, T, D)
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=1), torch.cat([cache[1], v], dim=1)
    scores = q @ k.mT / math.sqrt(q.size(-1))  # (B, T, S + T)
    allowed = torch.ones_like(scores, dtype=torch.bool).tril(k.size(1) - q.size(1))
    weights = scores.masked_fill(~allowed, -math.inf).softmax(dim=-1)
    return weights @ v, (k, v)


EYE = torch.eye(2)
LEAN = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
PAST = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]]])
_ALONE = "for one position and no cache"
_PROMPT = "for 3 positions at once and no cache"
_NEXT = "for 1 new position after 3 in the cache"
_CHUNK = "for 2 new positions after 3 in the cache"
_KEPT = f"{_CHUNK}, what is returned as the cache"


def _attended(x, w_q, w_k, w_v, cache=None):
    """Query by query, key by key."""
    keys = [] if cache is None else list(cache[0].unbind(1))
    values = [] if cache is None else list(cache[1].unbind(1))
    rows = []
    for new in x.unbind(1):  # (B, C)
        keys.append(torch.einsum("bc,cd->bd", new, w_k))
        values.append(torch.einsum("bc,cd->bd", new, w_v))
        query = torch.einsum("bc,cd->bd", new, w_q)
        scores = torch.stack([(query * key).sum(-1) for key in keys]) / w_q.size(1) ** 0.5
        shares = torch.softmax(scores, 0)
        rows.append(sum(s[:, None] * value for s, value in zip(shares, values, strict=True)))
    return torch.stack(rows, 1), (torch.stack(keys, 1), torch.stack(values, 1))


def _answered(answer, *arguments, where):
    """What it returns, taken apart: y, k, v."""
    got = answer(*arguments)
    fits = isinstance(got, tuple | list) and len(got) == 2
    expect(fits, f"{where}, you return {described(got)}, expected (y, (k, v))")
    fits = isinstance(got[1], tuple | list) and len(got[1]) == 2
    expect(fits, f"{where}, the second is {described(got[1])}, expected (k, v)")
    return got[0], *got[1]


def _whole(answer, *arguments, where=None, tolerance=None):
    """y, k and v against the oracle's."""
    where = where or f"for x of shape {tuple(arguments[0].shape)}"
    y, k, v = _answered(answer, *arguments, where=where)
    theirs, (keys, values) = _attended(*arguments)
    for name, one, other in (("y", y, theirs), ("k", k, keys), ("v", v, values)):
        same(one, other, f"{where}, {name}", tolerance, dtype=True)


def _past(x, w_k, w_v):
    return x @ w_k, x @ w_v


def test_first_position(answer):
    """the first position of all sees itself"""
    x = torch.tensor([[[3.0, 4.0]]])
    y, k, v = _answered(answer, x, EYE, EYE, LEAN, where=_ALONE)
    same(y, [[[3.0, 8.0]]], f"{_ALONE}, y", note="There is nothing else to mix.")
    same(k, [[[3.0, 4.0]]], f"{_ALONE}, k")
    same(v, [[[3.0, 8.0]]], f"{_ALONE}, v")


def test_the_prompt(answer):
    """several positions at once: each sees itself and those before it"""
    y, *_ = _answered(answer, PAST, LEAN, EYE, LEAN, where=_PROMPT)
    expected = _attended(PAST, LEAN, EYE, LEAN)[0]
    same(y[0, 0], expected[0, 0], f"{_PROMPT}, y of the first",
         note="The first position sees itself only.")  # fmt: skip
    same(y, expected, f"{_PROMPT}, y")


def test_the_next(answer):
    """a single new position sees all of the cache and itself"""
    x = torch.tensor([[[0.5, -1.0]]])
    cache = _past(PAST, EYE, LEAN)
    y, *_ = _answered(answer, x, LEAN, EYE, LEAN, cache, where=_NEXT)
    same(y, _attended(x, LEAN, EYE, LEAN, cache)[0], f"{_NEXT}, y")


def test_the_chunk(answer):
    """of two new positions the first sees the cache and itself, and not the second"""
    x = torch.tensor([[[0.5, -1.0], [3.0, 2.0]]])
    cache = _past(PAST, EYE, LEAN)
    y, *_ = _answered(answer, x, LEAN, EYE, LEAN, cache, where=_CHUNK)
    expected = _attended(x, LEAN, EYE, LEAN, cache)[0]
    same(y[0, 0], expected[0, 0], f"{_CHUNK}, y of the first",
         note="It sees four positions: three of the cache, and itself.")  # fmt: skip
    same(y, expected, f"{_CHUNK}, y")


def test_what_is_kept(answer):
    """all keys and all values come back, oldest first"""
    x = torch.tensor([[[0.5, -1.0], [3.0, 2.0]]])
    cache = _past(PAST, EYE, LEAN)
    _, k, v = _answered(answer, x, LEAN, EYE, LEAN, cache, where=_KEPT)
    same(k, torch.cat([PAST, x], 1), f"{_KEPT}, k")
    same(v, torch.cat([PAST, x], 1) * torch.tensor([1.0, 2.0]), f"{_KEPT}, v")


def test_in_pieces(answer):
    """in pieces of 3, 1 and 2 it gives what it gives all at once"""
    x, maps = numbers(2, 6, 5, seed=1), [numbers(5, 4, seed=seed) for seed in (2, 3, 4)]
    cache, rows = None, []
    for piece in x.split([3, 1, 2], dim=1):
        where = f"for a piece of {piece.size(1)} positions of two sentences"
        y, *cache = _answered(answer, piece, *maps, cache, where=where)
        rows.append(y)
    same(torch.cat(rows, 1), _attended(x, *maps)[0], "for 6 positions in pieces, y")


def test_any_sizes(answer):
    """whatever the sizes, the dtype and the scores, with gradients"""
    for dtype in (torch.float32, torch.float64):
        x, *maps = (numbers(*shape, seed=i, dtype=dtype) for i, shape in
                    enumerate(((3, 2, 7), (7, 5), (7, 5), (7, 5))))  # fmt: skip
        cache = tuple(numbers(3, 4, 5, seed=seed, dtype=dtype) for seed in (8, 9))
        _whole(answer, x, *maps)
        _whole(answer, x, *maps, cache, where=f"for 2 new after 4 ({str(dtype)[6:]})")
        _whole(answer, x[:, :1], *maps, cache)
        _whole(answer, 40 * x, *maps, cache, where="for scores in the hundreds", tolerance=1e-4)
    low = 20 * PAST
    where = "for scores that are all below -10,000"
    _whole(answer, low, -200 * EYE, EYE, LEAN, where=where, tolerance=1e-4)
    flat = _flat(answer)
    gradients(flat, _flat(_attended), x, *maps, *cache)
    travels(flat, x, *maps, *cache)


def _flat(answer):
    """The same with the cache's two tensors as arguments, and all three results in one."""

    def flat(x, w_q, w_k, w_v, k, v):
        y, (keys, values) = answer(x, w_q, w_k, w_v, (k, v))
        return torch.cat([y, keys, values], dim=1)

    return flat


MISTAKES = r"""
the triangle at the left
    tril(k.size(1) - q.size(1)) => tril()
    says: for 1 new position after 3 in the cache, y
    The new positions are the last of all, not the first: the triangle has to move right by the
    number of positions in the cache.
no mask
    .tril(k.size(1) - q.size(1)) =>
    says: The first position sees itself only
    A single new position needs none. Several at once do: the first of them must not see the
    second.
one position too few
    k.size(1) - q.size(1) => max(k.size(1) - q.size(1) - 1, 0)
    says: for 1 new position after 3 in the cache, y
    A position sees itself, too.
the cache is kept and not read
    if cache is not None: =>
        kept = k, v
        if cache is not None:
    k, v = torch.cat => kept = torch.cat
    weights @ v, (k, v) => weights @ v, kept
    says: for 1 new position after 3 in the cache, y
    A new query attends to all keys so far, those of the cache included.
the new ones first
    [cache[0], k] => [k, cache[0]]
    [cache[1], v] => [v, cache[1]]
    says: for 2 new positions after 3 in the cache, y of the first
    The mask goes by places: position 0 has to be the oldest.
only the new ones are returned
    weights @ v, (k, v) => weights @ v, (x @ w_k, x @ w_v)
    says: the shape is (1, 2, 2), expected (1, 5, 2)
    The next call has only what this one returns: the past has to be in it.
keys kept as values
    weights @ v, (k, v) => weights @ v, (k, k)
    says: for one position and no cache, v
    A slip of copy and paste that no shape can show.
queries kept as keys
    weights @ v, (k, v) => weights @ v, (torch.cat([k[:, : -q.size(1)], q], dim=1), v)
    says: what is returned as the cache, k
    An old query is not used again. What the later ones need are keys and values.
divided by the root of C
    math.sqrt(q.size(-1)) => math.sqrt(x.size(-1))
    says: for 6 positions in pieces, y
    Queries and keys have D numbers each: √D, not the root of the model's width.
not divided
    q @ k.mT / math.sqrt(q.size(-1)) => q @ k.mT
    says: for 3 positions at once and no cache, y
    Scores are divided by √D before the softmax.
a low number for -∞
    -math.inf => -1e4
    says: all below -10,000
    A score may be lower than any number that you choose, except -∞.
masked after the softmax
    scores.masked_fill(~allowed, -math.inf).softmax(dim=-1) => scores.softmax(dim=-1) * allowed
    says: The first position sees itself only
    What is hidden has taken its share by then, and the rest no longer sums to 1.
"""

HARMLESS = r"""
allowed = … => allowed = ….tril(v.size(1) - q.size(1))
    as many values as keys
scores = … => scores = q @ k.mT / math.sqrt(k.size(-1))
    a key is as wide as a query
scores = … => scores = q @ k.mT / math.sqrt(v.size(-1))
    a value is as wide as a key
"""
