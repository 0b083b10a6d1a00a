"""Chapter 14b, Llama: bytes of a cache, the two orders of RoPE's pairs, grouped queries."""

import math

import torch

from tinytf.course.expect import expect, same, short, tensor
from tinytf.course.grading import Exercise
from tinytf.relative import rotary_angles, rotate

# 14b.1 how large is the cache?


def my_cache_bytes(num_layers, num_heads, num_kv_heads, d_model, length, bytes_per_number=2):
    """How many bytes the keys and values of `length` tokens take: an integer.

    A head is d_model / num_heads wide, for queries, keys and values alike.
    """
    raise NotImplementedError


def _one_token(answer):
    """one layer keeps a key and a value of each key head"""
    got = tensor(answer(1, 6, 6, 18, 1, 1), "the answer")
    same(got, 36, "for 1 layer, 6 heads, 6 key heads, d_model=18, 1 token, 1 byte a number",
         note="Each of 6 key heads keeps 3 numbers of a key and 3 of a value.")  # fmt: skip


def _groups(answer):
    """query heads are not kept"""
    got = tensor(answer(1, 6, 2, 18, 1, 1), "the answer")
    same(got, 12, "for 1 layer, 6 heads, 2 key heads, d_model=18, 1 token, 1 byte a number",
         note="Two heads, as wide as the queries': 18 / 6 = 3 numbers, twice.")  # fmt: skip


def _grows(answer):
    """layers, tokens and bytes multiply"""
    got = tensor(answer(5, 6, 2, 18, 7, 4), "the answer")
    same(got, 12 * 5 * 7 * 4, "for 5 layers, 7 tokens, 4 bytes a number, the rest as before",
         note="Every layer keeps its own, of every token once.")  # fmt: skip


CACHE = Exercise(
    id="14b.1",
    title="how large is the cache?",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `my_cache_bytes(num_layers, num_heads, num_kv_heads, d_model, length, "
        "bytes_per_number=2)`: how many bytes of keys and values a model keeps for `length` tokens."
    ),
    hint="Per token and layer: a key and a value of every key head, each d_model / num_heads wide.",
    function=my_cache_bytes,
    tests=(_one_token, _groups, _grows),
)


# 14b.2 weights for the other RoPE


def my_half_split(weight, num_heads):
    """Reorder the rows of a query or key map, (H D, C), from neighbouring pairs to half-split ones.

    Ours turns rows 2i and 2i+1 of a head together; the result is for code that turns rows i and
    i + D/2 of a head.
    """
    raise NotImplementedError


def _named(rows):
    """A map of four columns, whose every row is its number, and a tenth more by column."""
    return torch.arange(float(rows))[:, None] + torch.arange(4) / 10


def _one_head(answer):
    """in one head, the first of every pair comes before the second of any"""
    got = tensor(answer(_named(6), 1), "for one head of width 6")
    same(
        got,
        _named(6)[[0, 2, 4, 1, 3, 5]],
        "for one head whose rows are 0 1 2 3 4 5",
        note="Expected are rows 0 2 4 1 3 5: 0 and 1 were a pair, and now stand 3 apart.",
    )


def _heads(answer):
    """each head keeps its rows"""
    got = tensor(answer(_named(12), 2), "for two heads of width 6")
    wanted = _named(12)[[0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]]
    same(
        got,
        wanted,
        "for two heads, rows 0 to 5 and 6 to 11",
        note="Rows 0 to 5 are the first head's, before and after.",
    )


def _scores(answer):
    """queries and keys turned the other way have the same scores"""
    draws = torch.Generator().manual_seed(3)
    q, k = (torch.randn(16, 5, generator=draws) for _ in range(2))
    x, angles = torch.randn(4, 5, generator=draws), rotary_angles(4, 8, base=50.0)

    def scores(turn, *maps):
        one, other = (turn((x @ m.T).unflatten(-1, (2, -1)).transpose(0, 1)) for m in maps)
        return one @ other.mT  # (H, T, T)

    def halves(y):
        cos, sin = angles.cos().float(), angles.sin().float()
        first, second = y.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)

    maps = [tensor(answer(m, 2), "for a map (16, 5)").float() for m in (q, k)]
    expect(
        all(m.shape == (16, 5) for m in maps),
        f"for a map (16, 5), the shape is {tuple(maps[0].shape)}, expected (16, 5)",
    )
    got = scores(halves, *maps)
    same(
        got,
        scores(lambda y: rotate(y, angles), q, k),
        "turned in half-split pairs, the scores",
        tolerance=1e-4,
        note="Expected are the scores of neighbouring pairs.",
    )


HALF_SPLIT = Exercise(
    id="14b.2",
    title="weights for the other RoPE",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_half_split(weight, num_heads)`: reorder the rows of a query or key map "
        "`(H D, C)` that was trained with neighbouring pairs (rows 2i and 2i+1 of a head), so that "
        "code which turns rows i and i + D/2 of a head turns the same two together, the first "
        "before the second."
    ),
    hint="Head by head, the even rows, then the odd ones. `unflatten(0, (num_heads, -1))` helps.",
    function=my_half_split,
    tests=(_one_head, _heads, _scores),
)


# 14b.3 grouped queries without copying keys


def my_grouped_attention(q, k, v):
    """Attend with H query heads to G key heads: q (B, H, T, D), k and v (B, G, S, D).

    Query heads 0 … H/G - 1 read key head 0, the next H/G key head 1, and so on. There is no mask.
    Returns (B, H, T, D).
    """
    raise NotImplementedError


def _attend(q, k, v, scale=None):
    scores = q @ k.mT / (math.sqrt(q.size(-1)) if scale is None else scale)
    return scores.softmax(dim=-1) @ v


def _right(x, heads):
    return x.repeat_interleave(heads // x.size(1), dim=1)


_DRAWS = torch.Generator().manual_seed(14)
_Q = torch.randn(2, 6, 3, 8, generator=_DRAWS) * 2  # a group of 3 heads, and 2 groups
_K, _V = (torch.randn(2, 2, 5, 8, generator=_DRAWS) for _ in range(2))


def _small(answer):
    """each query head reads the key head of its group"""
    v = torch.tensor([10.0, 20.0])[None, :, None, None]  # key head 0 hands over 10, 1 hands over 20
    got = tensor(answer(torch.ones(1, 6, 1, 1), torch.ones(1, 2, 1, 1), v), "for one key a head")
    same(got.reshape(-1), [10.0] * 3 + [20.0] * 3,
         "with 6 query heads, and key heads that hand over 10 and 20",
         note="Heads 0 to 2 read key head 0, heads 3 to 5 key head 1.")  # fmt: skip


def _weights(answer):
    """it is scaled dot-product attention"""
    got = tensor(answer(_Q, _K, _V), "for q (2, 6, 3, 8), k and v (2, 2, 5, 8)")
    same(got, _attend(_Q, _right(_K, 6), _right(_V, 6)),
         f"for q {short(list(_Q.shape))}, k and v {short(list(_K.shape))}, drawn at random",
         note="A softmax over the keys of q · k / √8.")  # fmt: skip


def _ends(answer):
    """with one key head for each query head, and with one for all, it is what it was"""
    for keys in (6, 1):
        k, v = (_draw(keys, seed) for seed in (1, 2))
        got = tensor(answer(_Q, k, v), f"for {keys} key heads")
        same(
            got,
            _attend(_Q, _right(k, 6), _right(v, 6)),
            f"for 6 query and {keys} key heads",
            note="One for each is chapter 04's attention, one for all multi-query attention.",
        )


def _draw(heads, seed):
    return torch.randn(2, heads, 5, 8, generator=torch.Generator().manual_seed(seed))


GROUPED = Exercise(
    id="14b.3",
    title="grouped queries without copying keys",
    difficulty=3,
    minutes=15,
    statement=(
        "Write `my_grouped_attention(q, k, v)` for q `(B, H, T, D)`, k and v `(B, G, S, D)`, H a "
        "multiple of G, and no mask. Query heads 0 … H/G - 1 read key head 0, and so on. Repeating "
        "keys is right, too; try it without."
    ),
    hint=(
        "To a key head, the queries of its whole group are just more queries: one list of H/G · T "
        "of them. Heads of a group stand next to each other, so one `reshape` makes it, and one "
        "undoes it."
    ),
    function=my_grouped_attention,
    tests=(_small, _weights, _ends),
)


EXERCISES = (CACHE, HALF_SPLIT, GROUPED)
