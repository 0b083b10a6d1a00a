"""Chapter 23, Llama: grouped queries, heads put into groups, RoPE's two orders, cache size."""

import itertools

import torch

from tinytf.relative import rotary_angles, rotate
from tinytf_course.expect import (
    agrees,
    expect,
    gradients,
    numbers,
    precise,
    same,
    tensor,
    travels,
)
from tinytf_course.grading import Exercise
from tinytf_course.words import described, given

# 23.3 how large is the cache?


def my_cache_bytes(num_layers, num_heads, num_kv_heads, d_model, length, bytes_per_number=2):
    """Return how many bytes the keys and values of `length` tokens take, as an integer.

    A head is d_model / num_heads wide, for queries, keys and values alike.
    """
    raise NotImplementedError


def _bytes(answer, *sizes, expected, note):
    """Expect this many bytes, a whole number, for these sizes."""
    where = given(my_cache_bytes, sizes)
    got = answer(*sizes)
    got = got.item() if isinstance(got, torch.Tensor) and got.numel() == 1 else got
    whole = isinstance(got, int) and not isinstance(got, bool)
    expect(whole, f"{where}, you return {described(got)}, expected a whole number")
    expect(got == expected, f"{where}, you get {got:,}, expected {expected:,}. {note}")


def _one_token(answer):
    """one layer keeps a key and a value of each key head"""
    _bytes(answer, 1, 1, 1, 3, 1, 1, expected=6, note="3 numbers of a key and 3 of a value.")
    note = "Each of 10 key heads keeps 30 / 10 = 3 numbers of a key and 3 of a value."
    _bytes(answer, 1, 10, 10, 30, 1, 1, expected=60, note=note)


def _groups(answer):
    """query heads are not kept"""
    note = "Two heads, as wide as the queries': 30 / 10 = 3 numbers, twice."
    _bytes(answer, 1, 10, 2, 30, 1, 1, expected=12, note=note)


def _layers(answer):
    """every layer keeps its own"""
    _bytes(answer, 5, 10, 2, 30, 1, 1, expected=60, note="12 bytes in each of 5 layers.")


def _tokens(answer):
    """every token is kept once"""
    _bytes(answer, 1, 10, 2, 30, 7, 1, expected=84, note="12 bytes for each of 7 tokens.")
    _bytes(answer, 1, 10, 2, 30, 0, 1, expected=0, note="Nothing has been read.")


def _numbers_in_bytes(answer):
    """each number takes the given number of bytes, two by default"""
    _bytes(answer, 1, 10, 2, 30, 1, 4, expected=48, note="12 numbers of 4 bytes.")
    _bytes(answer, 1, 10, 2, 30, 1, expected=24, note="12 numbers; bytes_per_number is 2.")


def _all_together(answer):
    """layers, tokens and bytes multiply, in large models too"""
    _bytes(answer, 5, 10, 2, 30, 7, 4, expected=1680, note="12 · 5 · 7 · 4.")
    note = "This is Llama 3's smallest model after 8,192 tokens: a gibibyte."
    _bytes(answer, 32, 32, 8, 4096, 8192, expected=2**30, note=note)
    note = "A million texts of a million tokens: no float holds this number."
    _bytes(answer, 61, 3, 1, 3, 10**12, 10**6 + 1, expected=122 * 10**12 * (10**6 + 1), note=note)


CACHE = Exercise(
    id="23.3",
    title="how large is the cache?",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_cache_bytes(num_layers, num_heads, num_kv_heads, d_model, length, "
        "bytes_per_number=2)`, which returns the size of a model's KV cache after `length` tokens, "
        "in bytes and as an integer."
    ),
    hint=(
        "For each token and layer, the cache holds a key and a value per key head. How wide is each"
        " of them?"
    ),
    function=my_cache_bytes,
    tests=(_one_token, _groups, _layers, _tokens, _numbers_in_bytes, _all_together),
)


# 23.2 weights for the other RoPE


def my_half_split(weight, num_heads):
    """Reorder the rows of a query or key projection (H D, C) for code with half-split pairs.

    Our RoPE rotates rows 2i and 2i + 1 of a head together; the result is for code that rotates rows
    i and i + D/2 of a head.
    """
    raise NotImplementedError


def _row_by_row(weight, num_heads):
    """Each row in its new place, one by one."""
    new, width = torch.zeros_like(weight), len(weight) // num_heads
    for row in range(len(weight)):
        head, place = divmod(row, width)
        pair, side = divmod(place, 2)
        new[head * width + side * (width // 2) + pair] = weight[row]
    return new


def _named(rows, columns=4):
    """A map whose every row is its number, and a tenth more by column."""
    return torch.arange(float(rows))[:, None] + torch.arange(columns) / 10


def _one_head(answer):
    """in one head, the first of every pair comes before the second of any"""
    note = "Rows 0 and 1 are a pair, rows 2 and 3 another: expected are rows 0, 2, 1, 3."
    agrees(answer, _row_by_row, _named(4, 1), 1, note=note)
    note = "Expected are rows 0 2 4 1 3 5: 0 and 1 were a pair, and are now 3 apart."
    agrees(answer, _row_by_row, _named(6, 2), 1, note=note)


def _heads(answer):
    """each head keeps its rows"""
    note = "Rows 0 to 5 are the first head's, before and after."
    agrees(answer, _row_by_row, _named(12, 1), 2, note=note)
    agrees(answer, _row_by_row, _named(8), 4, note="Heads of one pair each: nothing moves.")
    agrees(answer, _row_by_row, numbers(24, 5, seed=1), 3)


def _scores(answer):
    """queries and keys rotated in the other pairs have the same scores"""
    q, k = numbers(2, 24, 5, seed=2)
    x, angles = numbers(4, 5, seed=3), rotary_angles(4, 8, base=50.0)

    def scores(turn, *maps):
        one, other = (turn((x @ m.T).unflatten(-1, (3, -1)).transpose(0, 1)) for m in maps)
        return one @ other.mT  # (H, T, T)

    def halves(y):
        cos, sin = angles.cos().float(), angles.sin().float()
        first, second = y.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)

    where = "for maps (24, 5) of 3 heads"
    maps = [tensor(answer(m, 3), where).float() for m in (q, k)]
    shape = tuple(maps[0].shape)
    expect(shape == (24, 5), f"{where}, the shape is {shape}, expected (24, 5)")
    expected = scores(lambda y: rotate(y, angles), q, k)
    note = "Expected are the scores of neighbouring pairs."
    where = f"{where}, rotated in half-split pairs, the scores"
    same(scores(halves, *maps), expected, where, tolerance=1e-4, note=note)


def _kept(answer):
    """dtype, device and gradient stay with the rows"""
    precise(answer, _row_by_row, numbers(12, 5, seed=4), 2, dtype=torch.float64)
    precise(answer, _row_by_row, numbers(12, 5, seed=4), 2, dtype=torch.bfloat16)
    thirds = torch.arange(12, dtype=torch.float64)[:, None] / 3
    where = "for rows 0, 1/3, … 11/3 in float64 and 2 heads, to the last bit"
    agrees(answer, _row_by_row, thirds, 2, where=where, tolerance=0)
    gradients(answer, _row_by_row, numbers(12, 5, seed=5), 2)
    travels(answer, numbers(12, 5, seed=5), 2)


HALF_SPLIT = Exercise(
    id="23.2",
    title="weights for the other RoPE",
    difficulty=2,
    minutes=10,
    statement=(
        "The weight of a query or key projection, `(H D, C)`, was trained with neighbouring pairs: "
        "RoPE rotates rows 2i and 2i + 1 of a head together. Write `my_half_split(weight, "
        "num_heads)`, which reorders its rows for code that rotates rows i and i + D/2 of a head "
        "together, so that the same two rows form a pair in the same order. The result keeps the "
        "dtype and the device."
    ),
    hint=(
        "Within each head, the even rows come first and the odd rows after them. "
        "`unflatten(0, (num_heads, -1))` separates the heads."
    ),
    function=my_half_split,
    tests=(_one_head, _heads, _scores, _kept),
)


# 23.1 grouped queries without copying keys


def my_grouped_attention(q, k, v):
    """Attend with H query heads to G key heads: q (B, H, T, D), k and v (B, G, S, D).

    Query heads 0 to H/G - 1 use key head 0, the next H/G use key head 1, and so on. There is no
    mask. Returns (B, H, T, D).
    """
    raise NotImplementedError


def _head_by_head(q, k, v):
    """Each sentence, query head and position by itself, in float64."""
    group, out = q.size(1) // k.size(1), torch.zeros(q.shape, dtype=torch.float64)
    rows = [x.double() for x in (q, k, v)]
    for b, h, t in itertools.product(*map(range, q.shape[:3])):
        asks, keys, values = rows[0][b, h, t], rows[1][b, h // group], rows[2][b, h // group]
        scores = torch.stack([(asks * key).sum() / q.size(-1) ** 0.5 for key in keys])
        shares = (scores - scores.max()).exp()
        out[b, h, t] = sum(w * value for w, value in zip(shares / shares.sum(), values))
    return out.to(q.dtype)


def _across(*numbers):
    """One sentence, one position, D = 1: a number for each head."""
    return torch.tensor(numbers)[None, :, None, None]


def _groups_read(answer):
    """each query head uses the key head of its group"""
    note = "Heads 0 to 2 use key head 0, heads 3 to 5 key head 1."
    where = "for 6 query heads, and 2 key heads of one key each, whose values are 10 and 20"
    got = answer(torch.ones(1, 6, 1, 1), torch.ones(1, 2, 1, 1), _across(10.0, 20.0))
    same(got, _across(*[10.0] * 3, *[20.0] * 3), where, note=note)


def _one_query(answer):
    """a query's scores are divided by √D, and make weights of its keys"""
    q = torch.tensor([2.0, 0, 0, 0]).view(1, 1, 1, 4)
    k = torch.tensor([[3.0, 0, 0, 0], [1.0, 0, 0, 0]]).view(1, 1, 2, 4)
    v = torch.tensor([[0.0, 0, 0, 0], [1.0, 2, 3, 4]]).view(1, 1, 2, 4)
    where = "for one head and q=[2, 0, 0, 0], k=[[3, 0, 0, 0], [1, 0, 0, 0]]"
    note = "The scores are 6 and 2, divided by √4: 3 and 1; the weights 0.881 and 0.119."
    agrees(answer, _head_by_head, q, k, v, where=f"{where}, v=[[0, 0, 0, 0], [1, 2, 3, 4]]",
           note=note)  # fmt: skip


def _own_questions(answer):
    """the heads of a group share keys, and each has a query of its own"""
    k, v = (torch.tensor(x).view(1, 1, 2, 1) for x in ([[1.0], [-1.0]], [[10.0], [20.0]]))
    where = "for 3 query heads, q=3, 0 and -3, and one key head with keys 1, -1, values 10, 20"
    note = "Head 0 reads the first value, nearly 10; head 1 both, 15; head 2 the second, nearly 20."
    agrees(answer, _head_by_head, _across(3.0, 0.0, -3.0), k, v, where=where, note=note)


def _own_places(answer):
    """head h at position t gets the output of its own query"""
    q = torch.tensor([[3.0, -3.0, 0.0], [1.0, -1.0, 2.0]]).view(1, 2, 3, 1)
    k, v = (torch.tensor(x).view(1, 1, 2, 1) for x in ([[1.0], [-1.0]], [[10.0], [20.0]]))
    where = "for 2 query heads and 3 positions, q=[[3, -3, 0], [1, -1, 2]], keys 1, -1, values "
    agrees(answer, _head_by_head, q, k, v, where=where + "10, 20")


def _own_sentences(answer):
    """each sentence uses its own keys"""
    q, k = torch.ones(2, 2, 1, 1), torch.ones(2, 1, 1, 1)
    v = torch.tensor([5.0, 7.0]).view(2, 1, 1, 1)
    where = "for 2 sentences, 2 query heads, and a key head whose value is 5 and 7"
    agrees(answer, _head_by_head, q, k, v, where=where, note="5, 5 and 7, 7.")


def _drawn(heads, groups, sentences=2, queries=3, keys=5, width=8, seed=1):
    """q, k and v at random; q as `split_heads` hands it over: positions came before heads."""
    q = numbers(sentences, queries, heads, width, seed=seed, scale=1.5).transpose(1, 2)
    return q, *numbers(2, sentences, groups, keys, width, seed=seed + 1)


def _any_groups(answer):
    """for any number of groups and heads, keys and queries"""
    agrees(answer, _head_by_head, *_drawn(4, 2, 1, 1, 2, 1), note="4 query heads, 2 key heads.")
    agrees(
        answer, _head_by_head, *_drawn(6, 6), note="A key head for each: chapter 06's attention."
    )
    agrees(answer, _head_by_head, *_drawn(6, 1), note="One for all: multi-query attention.")
    agrees(answer, _head_by_head, *_drawn(6, 2), note="6 query heads, 2 key heads.")
    agrees(answer, _head_by_head, *_drawn(4, 2, 3, 7, 2, 5), note="4 query heads, 2 key heads.")
    agrees(answer, _head_by_head, *_drawn(1, 1, 1, 1, 1, 1), note="One of everything.")


def _any_scores(answer):
    """large scores do not overflow, and dtypes are kept"""
    q, k, v = _drawn(4, 2, width=4)
    where = "for scores in the hundreds"
    agrees(answer, _head_by_head, q * 100, k * 10, v, tolerance=1e-4, where=where)
    precise(answer, _head_by_head, q, k, v, dtype=torch.float64)
    precise(answer, _head_by_head, q, k, v, dtype=torch.bfloat16)


def _learns(answer):
    """gradients reach q, k and v, on any device"""
    gradients(answer, _head_by_head, *_drawn(2, 1, 1, 1, 2, 1))
    gradients(answer, _head_by_head, *_drawn(6, 2))
    travels(answer, *_drawn(6, 2))


GROUPED = Exercise(
    id="23.1",
    title="grouped queries without copying keys",
    difficulty=3,
    minutes=18,
    statement=(
        "Write `my_grouped_attention(q, k, v)`, scaled dot-product attention without a mask, for q "
        "of shape `(B, H, T, D)` and k and v of shape `(B, G, S, D)`, where H is a multiple of G. "
        "Query heads 0 to H/G - 1 use key head 0, the next H/G use key head 1, and so on. A "
        "solution that repeats keys and values is correct, but try to write one that does not."
    ),
    hint=(
        "For a key head it makes no difference whether its queries come from one head or from "
        "several. Which two axes of q could you merge, so that q has an axis of length G where k "
        "has one?"
    ),
    function=my_grouped_attention,
    tests=(
        _groups_read,
        _one_query,
        _own_questions,
        _own_places,
        _own_sentences,
        _any_groups,
        _any_scores,
        _learns,
    ),
)


# 23.4 heads into groups


def my_grouped_map(weight, num_heads, num_kv_heads):
    """Put the heads of a key or value projection, (H D, C), into groups: (G D, C).

    The new head of a group is the mean of its old ones, which are neighbours. H is num_heads, and G
    is num_kv_heads and divides it.
    """
    raise NotImplementedError


def _mean_by_mean(weight, num_heads, num_kv_heads):
    """Each new row as the mean of its old ones, one by one."""
    width, size = len(weight) // num_heads, num_heads // num_kv_heads
    new = weight.new_zeros(num_kv_heads * width, weight.size(1))
    for row in range(len(new)):
        group, place = divmod(row, width)
        old = [weight[(group * size + member) * width + place] for member in range(size)]
        new[row] = sum(old) / size
    return new


def _two_heads(answer):
    """two heads of one row each become their mean"""
    note = "The rows are 2 and 6; their mean is 4."
    agrees(answer, _mean_by_mean, torch.tensor([[2.0], [6.0]]), 2, 1, note=note)


def _own_rows(answer):
    """row i of the new head is the mean of the rows i of the old ones"""
    weight = torch.tensor([[1.0], [10.0], [3.0], [30.0]])
    note = "Rows 0 and 2 are first rows of a head, 1 and 3 second ones: expected are 2 and 20."
    agrees(answer, _mean_by_mean, weight, 2, 1, note=note)


def _neighbours_share(answer):
    """heads of a group stand side by side"""
    weight = torch.tensor([[1.0], [3.0], [100.0], [300.0]])
    note = "Heads 0 and 1 make the first group, heads 2 and 3 the second: expected are 2 and 200."
    agrees(answer, _mean_by_mean, weight, 4, 2, note=note)


def _any_heads(answer):
    """for any number of heads, groups and columns"""
    weight = numbers(12, 5, seed=1)
    agrees(answer, _mean_by_mean, weight, 6, 2, note="6 heads of 2 rows, in 2 groups of 3.")
    agrees(answer, _mean_by_mean, weight, 6, 3, note="6 heads of 2 rows, in 3 groups of 2.")
    agrees(answer, _mean_by_mean, weight, 6, 6, note="As many groups as heads: nothing changes.")
    agrees(answer, _mean_by_mean, weight, 1, 1, note="One head stays as it is.")
    agrees(answer, _mean_by_mean, numbers(24, 3, seed=2), 4, 2, note="4 heads of 6 rows.")


def _arrives(answer):
    """dtype, device and gradient stay with the rows"""
    precise(answer, _mean_by_mean, numbers(12, 5, seed=4), 6, 2, dtype=torch.float64)
    precise(answer, _mean_by_mean, numbers(12, 5, seed=4), 6, 2, dtype=torch.bfloat16)
    gradients(answer, _mean_by_mean, numbers(12, 5, seed=5), 6, 2)
    travels(answer, numbers(12, 5, seed=5), 6, 2)


INTO_GROUPS = Exercise(
    id="23.4",
    title="put trained heads into groups",
    difficulty=2,
    minutes=10,
    statement=(
        "Ainslie et al. (2023) convert a trained model to groups by initialising the key head of a "
        "group with the *mean* of its old heads. Write `my_grouped_map(weight, num_heads, "
        "num_kv_heads)`, which does this for the weight `(H D, C)` of a key or value projection "
        "and returns `(G D, C)`, where H is num_heads and G is num_kv_heads. The heads of a group "
        "are neighbours, and row i of a new head is the mean of the rows i of its old heads. "
        "`weight` stays unchanged, and the result keeps its dtype and device."
    ),
    hint=(
        "Split the rows into three axes: the group, the head within the group, and the row within "
        "the head. Over which of them do you average?"
    ),
    function=my_grouped_map,
    tests=(_two_heads, _own_rows, _neighbours_share, _any_heads, _arrives),
)


EXERCISES = (GROUPED, HALF_SPLIT, CACHE, INTO_GROUPS)
