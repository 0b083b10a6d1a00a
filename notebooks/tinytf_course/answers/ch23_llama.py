"""Answers to chapter 23 (llama): references and mistakes."""

import math

import torch

from tinytf_course.grading import Answers, WrongAnswer

# 23.3 how large is the cache?


def my_cache_bytes(num_layers, num_heads, num_kv_heads, d_model, length, bytes_per_number=2):
    """Return how many bytes the keys and values of `length` tokens take, as an integer.

    A head is d_model / num_heads wide, for queries, keys and values alike.
    """
    width = d_model // num_heads
    return 2 * num_layers * num_kv_heads * width * length * bytes_per_number


def _bytes(sides=2, layers=lambda n: n, heads=lambda h, g: g, width=lambda d, h, g: d // h,
           tokens=lambda t: t, size=lambda b: b):  # fmt: skip
    """A `my_cache_bytes` with one part counted otherwise."""

    def count(num_layers, num_heads, num_kv_heads, d_model, length, bytes_per_number=2):
        found = sides * layers(num_layers) * heads(num_heads, num_kv_heads)
        found *= width(d_model, num_heads, num_kv_heads)
        return found * tokens(length) * size(bytes_per_number)

    return count


CACHE = Answers(
    reference=my_cache_bytes,
    equivalent={},
    wrong=(
        WrongAnswer(
            "values forgotten",
            _bytes(sides=1),
            "3 numbers of a key and 3 of a value",
            "Scores need the keys and outputs need the values, so both are kept for every token.",
        ),
        WrongAnswer(
            "queries kept too",
            _bytes(sides=3),
            "3 numbers of a key and 3 of a value",
            "A token's query is used once, in the token's own step, and never again.",
        ),
        WrongAnswer(
            "all heads kept",
            _bytes(heads=lambda h, g: h),
            "Two heads, as wide as the queries'",
            "That is the size of the cache without groups. The cache holds num_kv_heads heads, "
            "each as wide as a query head: d_model / num_heads.",
        ),
        WrongAnswer(
            "d_model for each head",
            _bytes(width=lambda d, h, g: d),
            "Each of 10 key heads keeps",
            "The heads share d_model: each is d_model / num_heads wide.",
        ),
        WrongAnswer(
            "one layer",
            _bytes(layers=lambda n: 1),
            "12 bytes in each of 5 layers",
            "Each layer computes other keys and values from other inputs.",
        ),
        WrongAnswer(
            "scores kept",
            _bytes(tokens=lambda t: t * t),
            "12 bytes for each of 7 tokens",
            "The T × T weights are not kept. Each new token needs one row of them, once.",
        ),
        WrongAnswer(
            "the newest token not kept",
            _bytes(tokens=lambda t: t - 1),
            "for num_layers=1, num_heads=1, num_kv_heads=1, d_model=3, length=1",
            "All `length` tokens are kept, the last one too, because the next token will attend "
            "to it.",
        ),
        WrongAnswer(
            "a place for the next token, too",
            _bytes(tokens=lambda t: t + 1),
            "3 numbers of a key and 3 of a value",
            "Keys and values are kept for the `length` tokens of the context and for no others.",
        ),
        WrongAnswer(
            "as many heads as share a key head",
            _bytes(heads=lambda h, g: h // g),
            "Each of 10 key heads keeps",
            "num_heads / num_kv_heads is how many query heads share one key head. The cache holds "
            "all num_kv_heads key heads.",
        ),
        WrongAnswer(
            "numbers, not bytes",
            _bytes(size=lambda b: 1),
            "12 numbers of 4 bytes",
            "You counted numbers. In bfloat16, each of them takes two bytes.",
        ),
        WrongAnswer(
            "two bytes always",
            _bytes(size=lambda b: 2),
            "3 numbers of a key and 3 of a value",
            "Two is only the default; the argument bytes_per_number gives the size of a number.",
        ),
        WrongAnswer(
            "four bytes unless told",
            lambda *sizes, bytes_per_number=4: my_cache_bytes(*(*sizes, bytes_per_number)[:6]),
            "bytes_per_number is 2",
            "The function's first line gives the default: two bytes, as in bfloat16.",
        ),
        WrongAnswer(
            "a float",
            _bytes(width=lambda d, h, g: d / h),
            "expected a whole number",
            "`/` gives a float. A head's width is an integer, so use `//`.",
        ),
        WrongAnswer(
            "gigabytes",
            lambda *sizes, **named: my_cache_bytes(*sizes, **named) / 2**30,
            "expected a whole number",
            "Return bytes, and convert them only where the number is shown.",
        ),
    ),
)


# 23.2 weights for the other RoPE


def my_half_split(weight, num_heads):
    """Reorder the rows of a query or key projection (H D, C) for code with half-split pairs.

    Our RoPE rotates rows 2i and 2i + 1 of a head together; the result is for code that rotates rows
    i and i + D/2 of a head.
    """
    heads = weight.unflatten(0, (num_heads, -1))  # (H D, C) -> (H, D, C)
    return torch.cat([heads[:, 0::2], heads[:, 1::2]], dim=1).flatten(0, 1)


def _by_head(change):
    """Apply a change of each head's rows, (H, D, C), to a whole projection."""
    return lambda weight, num_heads: change(weight.unflatten(0, (num_heads, -1))).flatten(0, 1)


def _interleave(heads):
    first, second = heads.chunk(2, dim=1)
    return torch.stack([first, second], dim=2).flatten(1, 2)


def _whole(weight, num_heads):
    return torch.cat([weight[0::2], weight[1::2]])


def _columns(weight, num_heads):
    return torch.cat([weight[:, 0::2], weight[:, 1::2]], dim=1)


def _in_place(weight, num_heads):
    weight.copy_(my_half_split(weight.clone(), num_heads))
    return weight


def _filled(weight, num_heads):
    new, half = torch.zeros(weight.shape), len(weight) // num_heads // 2
    for row in range(len(weight)):
        head, place = divmod(row, 2 * half)
        new[head * 2 * half + place % 2 * half + place // 2] = weight[row]
    return new


def _heads_interleaved(weight, num_heads):
    heads = weight.unflatten(0, (-1, num_heads)).transpose(0, 1)
    return torch.cat([heads[:, 0::2], heads[:, 1::2]], dim=1).flatten(0, 1)


HALF_SPLIT = Answers(
    reference=my_half_split,
    equivalent={"… => …heads[:, ::2]…": "a slice begins at 0 unless told"},
    wrong=(
        WrongAnswer(
            "nothing reordered",
            lambda weight, num_heads: weight.clone(),
            "expected are rows 0, 2, 1, 3",
            "All shapes fit and there is no error, but the wrong features are rotated together.",
        ),
        WrongAnswer(
            "the way back",
            _by_head(_interleave),
            "Expected are rows 0 2 4 1 3 5",
            "This leads from half-split to neighbouring pairs. (For heads of width 4 the two "
            "reorderings are the same.)",
        ),
        WrongAnswer(
            "over all heads at once",
            _whole,
            "Rows 0 to 5 are the first head's",
            "The even rows of all heads end up in the first half of the heads.",
        ),
        WrongAnswer(
            "columns",
            _columns,
            "expected are rows 0, 2, 1, 3",
            "The rows of a weight produce the outputs, which are rotated. Columns belong to the "
            "input.",
        ),
        WrongAnswer(
            "halves exchanged",
            _by_head(lambda heads: torch.cat([heads[:, 1::2], heads[:, 0::2]], dim=1)),
            "expected are rows 0, 2, 1, 3",
            "With its two features exchanged, a pair is rotated backwards, as if earlier positions "
            "were later ones.",
        ),
        WrongAnswer(
            "heads taken apart by turns",
            _heads_interleaved,
            "Rows 0 to 5 are the first head's",
            "`unflatten(0, (-1, num_heads))` gives every H-th row to a head. The rows of a head "
            "are neighbours, so it has to be `(num_heads, -1)`.",
        ),
        WrongAnswer(
            "into a new float32 table on the CPU",
            _filled,
            "the dtype is float32, expected float64",
            "`torch.zeros(...)` is float32 and on the CPU, whatever `weight` is. Use "
            "`torch.zeros_like(weight)`, or no new tensor at all.",
        ),
        WrongAnswer(
            "cut off from the graph",
            lambda weight, num_heads: my_half_split(weight.detach(), num_heads),
            "no gradient reaches `weight`",
            "The rows are right, but no gradient reaches the weight, so it would never be trained.",
        ),
        WrongAnswer(
            "the caller's weight reordered",
            _in_place,
            "your code changes the caller's `weight`",
            "Reordered twice, it would be wrong again. Return a new tensor and leave the old one "
            "as it is.",
        ),
    ),
)


# 23.1 grouped queries without copying keys


def my_grouped_attention(q, k, v):
    """Attend with H query heads to G key heads: q (B, H, T, D), k and v (B, G, S, D).

    Query heads 0 to H/G - 1 use key head 0, the next H/G use key head 1, and so on. There is no
    mask. Returns (B, H, T, D).
    """
    folded = q.reshape(len(q), k.size(1), -1, q.size(-1))  # (B, H, T, D) -> (B, G, H/G T, D)
    weights = (folded @ k.mT / math.sqrt(q.size(-1))).softmax(dim=-1)
    return (weights @ v).view(q.shape)


def _attend(q, k, v, scale=None):
    scores = q @ k.mT / (math.sqrt(q.size(-1)) if scale is None else scale)
    return scores.softmax(dim=-1) @ v


def _right(x, heads):
    return x.repeat_interleave(heads // x.size(1), dim=1)


def _repeated(prepare, scale=lambda q, k: math.sqrt(q.size(-1))):
    """Attention after the key heads were brought to the number of the query heads."""
    return lambda q, k, v: _attend(q, *(prepare(x, q.size(1)) for x in (k, v)), scale(q, k))


def _turns(x, heads):
    return x.repeat(1, heads // x.size(1), 1, 1)


def _first(x, heads):
    return x[:, :1].expand(-1, heads, -1, -1)


def _mean(x, heads):
    return x.mean(1, keepdim=True).expand(-1, heads, -1, -1)


def _mixed(q, k, v):
    folded = q.transpose(1, 2).reshape(len(q), k.size(1), -1, q.size(-1))
    return _attend(folded, k, v).view(q.shape)


def _averaged_queries(q, k, v):
    group = q.size(1) // k.size(1)
    pooled = q.unflatten(1, (-1, group)).mean(2)
    return _attend(pooled, k, v).repeat_interleave(group, dim=1)


def _scaled_by_the_list(q, k, v):
    folded = q.reshape(len(q), k.size(1), -1, q.size(-1))
    return _attend(folded, k, v, math.sqrt(folded.size(-2))).view(q.shape)


def _over_queries(q, k, v):
    k, v = (_right(x, q.size(1)) for x in (k, v))
    return (q @ k.mT / math.sqrt(q.size(-1))).softmax(dim=-2) @ v


def _raw_exp(q, k, v):
    k, v = (_right(x, q.size(1)) for x in (k, v))
    weights = (q @ k.mT / math.sqrt(q.size(-1))).exp()
    return weights / weights.sum(-1, keepdim=True) @ v


def _viewed(q, k, v):
    folded = q.view(len(q), k.size(1), -1, q.size(-1))
    return _attend(folded, k, v).view(q.shape)


def _first_sentence(q, k, v):
    return _attend(q, *(_right(x[:1], q.size(1)) for x in (k, v)))


def _groups_of_heads(q, k, v):
    """Takes G for the size of a group."""
    heads = torch.arange(q.size(1)) // k.size(1) % k.size(1)
    return _attend(q, k[:, heads], v[:, heads])


def _values_from_keys(q, k, v):
    return my_grouped_attention(q, k, k)


def _in_float32(q, k, v):
    return my_grouped_attention(q.float(), k.float(), v.float())


def _q_overwritten(q, k, v):
    q /= math.sqrt(q.size(-1))
    return _attend(q, *(_right(x, q.size(1)) for x in (k, v)), scale=1.0)


GROUPED = Answers(
    reference=my_grouped_attention,
    equivalent={
        "… => return (weights @ v).reshape(q.shape)": "as good as `view`, and more patient",
        "folded = … => …len(k)…": "q, k and v have the same sentences",
        "folded = … => …len(v)…": "q, k and v have the same sentences",
        "folded = … => …len(q.detach())…": "only the length is asked",
        "folded = … => …len(q.float())…": "only the length is asked",
        "folded = … => …v.size(1)…": "keys and values have as many heads",
        "folded = … => …, k.size(-1))": "queries, keys and values are equally wide",
        "folded = … => …, v.size(-1))": "queries, keys and values are equally wide",
        "weights = … => …math.sqrt(k.size(-1))…": "queries, keys and values are equally wide",
        "weights = … => …math.sqrt(v.size(-1))…": "queries, keys and values are equally wide",
    },
    wrong=(
        WrongAnswer(
            "key heads by turns",
            _repeated(_turns),
            "Heads 0 to 2 use key head 0",
            "`repeat` gives heads 0 1 0 1 …, whereas `repeat_interleave` gives 0 0 … 1 1. A "
            "trained model would attend to the wrong keys, in the right shape.",
        ),
        WrongAnswer(
            "values by turns",
            lambda q, k, v: _attend(q, _right(k, q.size(1)), _turns(v, q.size(1))),
            "2 key heads of one key each",
            "A head needs the values that belong to its keys, so both are shared in the same way.",
        ),
        WrongAnswer(
            "the first key head for all",
            _repeated(_first),
            "heads 3 to 5 key head 1",
            "That is multi-query attention, whatever the number of key heads.",
        ),
        WrongAnswer(
            "key heads averaged",
            _repeated(_mean),
            "Heads 0 to 2 use key head 0",
            "Averaging is how the key heads of a trained model are *converted* to fewer, once, "
            "before further training (Ainslie et al. 2023). It is not how groups use them.",
        ),
        WrongAnswer(
            "as many heads in a group as there are groups",
            _groups_of_heads,
            "heads 3 to 5 key head 1",
            "G is the number of groups, and each of them has H / G query heads.",
        ),
        WrongAnswer(
            "queries averaged",
            _averaged_queries,
            "Head 0 reads the first value",
            "The heads of a group share keys and values, but each has a query of its own.",
        ),
        WrongAnswer(
            "heads and positions mixed",
            _mixed,
            "for 2 query heads and 3 positions",
            "The queries were merged along positions first, so heads got the queries of other "
            "heads.",
        ),
        WrongAnswer(
            "not scaled",
            _repeated(_right, lambda q, k: 1.0),
            "divided by √4",
            "The scores are divided by √D.",
        ),
        WrongAnswer(
            "scaled by the whole width",
            _repeated(_right, lambda q, k: math.sqrt(q.size(-1) * q.size(1))),
            "Head 0 reads the first value",
            "D is the width of one head, not of all.",
        ),
        WrongAnswer(
            "scaled by the length of the list",
            _scaled_by_the_list,
            "divided by √4",
            "Merging axes makes more queries, not wider ones, so scores are divided by √D as "
            "before.",
        ),
        WrongAnswer(
            "softmax over queries",
            _over_queries,
            "divided by √4",
            "The weights of each query sum to 1 over the keys, which are the last axis.",
        ),
        WrongAnswer(
            "values read from the keys",
            _values_from_keys,
            "whose values are 10 and 20",
            "The weights are right, but they average `v`, not `k`.",
        ),
        WrongAnswer(
            "the first sentence's keys for all",
            _first_sentence,
            "whose value is 5 and 7",
            "The batch is the first axis of keys and values, too.",
        ),
        WrongAnswer(
            "exp without the largest score",
            _raw_exp,
            "for scores in the hundreds",
            "exp(100) is more than float32 holds. `softmax` subtracts the largest score first.",
        ),
        WrongAnswer(
            "a view of what is not in order",
            _viewed,
            "raises RuntimeError",
            "q comes from `transpose`, so its numbers are not in memory in the order of its axes. "
            "`reshape` copies them where it must, whereas `view` raises an error.",
        ),
        WrongAnswer(
            "float32 comes out",
            _in_float32,
            "the dtype is float32, expected float64",
            "`.float()` gives float32, whatever came in. Return the dtype of q.",
        ),
        WrongAnswer(
            "cut off from the graph",
            torch.no_grad()(my_grouped_attention),
            "no gradient reaches `q`",
            "The numbers are right, but nothing could be trained. Leave `no_grad` and `detach` "
            "out.",
        ),
        WrongAnswer(
            "q overwritten",
            _q_overwritten,
            "your code changes the caller's `q`",
            "`q /= …` changes the caller's tensor, and `backward` then finds numbers that the "
            "forward pass did not use. `q / …` makes a new tensor.",
        ),
        WrongAnswer(
            "keys cut off from the graph",
            lambda q, k, v: my_grouped_attention(q, k.detach(), v.detach()),
            "no gradient reaches `k`",
            "The numbers are right, but the projections of keys and values could never be trained.",
        ),
    ),
)

# 23.4 heads into groups


def my_grouped_map(weight, num_heads, num_kv_heads):
    """Put the heads of a key or value projection, (H D, C), into groups: (G D, C).

    The new head of a group is the mean of its old ones, which are neighbours. H is num_heads, and G
    is num_kv_heads and divides it.
    """
    width = len(weight) // num_heads
    groups = weight.view(num_kv_heads, -1, width, weight.size(1))  # (H D, C) -> (G, H/G, D, C)
    return groups.mean(dim=1).flatten(0, 1)  # (G, H/G, D, C) -> (G D, C)


def _by_groups(make):
    """A `my_grouped_map` that makes (G D, C) of (G, H/G, D, C) in another way."""

    def grouped(weight, num_heads, num_kv_heads):
        shape = (num_kv_heads, num_heads // num_kv_heads, -1, weight.size(1))
        return make(weight.reshape(shape))

    return grouped


def _every_other_head(weight, num_heads, num_kv_heads):
    return weight.unflatten(0, (-1, num_kv_heads, len(weight) // num_heads)).mean(0).flatten(0, 1)


def _neighbouring_rows(weight, num_heads, num_kv_heads):
    return weight.unflatten(0, (-1, num_heads // num_kv_heads)).mean(1)


def _group_and_size(weight, num_heads, num_kv_heads):
    return my_grouped_map(weight, num_heads, num_heads // num_kv_heads)


def _in_place_of_the_first(weight, num_heads, num_kv_heads):
    shape = (num_kv_heads, num_heads // num_kv_heads, -1, weight.size(1))
    first = weight.view(shape)[:, 0]
    return first.copy_(weight.view(shape).mean(1)).flatten(0, 1)


def _mean_in_float32(weight, num_heads, num_kv_heads):
    return my_grouped_map(weight.float(), num_heads, num_kv_heads)


def _cut_off(weight, num_heads, num_kv_heads):
    return my_grouped_map(weight.detach(), num_heads, num_kv_heads)


INTO_GROUPS = Answers(
    reference=my_grouped_map,
    equivalent={
        "groups = … => groups = weight.reshape(num_kv_heads, -1, width, weight.size(1))": "as good "
        "as `view`, and more patient",
        "width = … => …len(weight.detach())…": "only the length is asked",
        "width = … => …len(weight.float())…": "only the length is asked",
    },
    wrong=(
        WrongAnswer(
            "the first head of each group",
            _by_groups(lambda groups: groups[:, 0].flatten(0, 1)),
            "their mean is 4",
            "The paper tried that as well. It forgets what the other heads have learned.",
        ),
        WrongAnswer(
            "the sum",
            _by_groups(lambda groups: groups.sum(1).flatten(0, 1)),
            "their mean is 4",
            "The sum makes the scores larger by the size of a group, so divide by that size.",
        ),
        WrongAnswer(
            "one mean for all rows of a head",
            _by_groups(
                lambda groups: (
                    groups.mean((1, 2), keepdim=True).expand_as(groups)[:, 0].flatten(0, 1)
                )
            ),
            "expected are 2 and 20",
            "The rows of a head are different features of its keys. Average over heads, row by "
            "row.",
        ),
        WrongAnswer(
            "neighbouring rows",
            _neighbouring_rows,
            "expected are 2 and 20",
            "Neighbouring rows belong to one head. The same row of the next head is D rows "
            "further on.",
        ),
        WrongAnswer(
            "every other head",
            _every_other_head,
            "expected are 2 and 200",
            "The heads of a group are neighbours, as in `repeat_interleave`. With 4 heads in 2 "
            "groups, they are 0 and 1, then 2 and 3.",
        ),
        WrongAnswer(
            "groups and their size exchanged",
            _group_and_size,
            "The rows are 2 and 6",
            "num_kv_heads is the number of groups, not the number of heads in one.",
        ),
        WrongAnswer(
            "float32 comes out",
            _mean_in_float32,
            "the dtype is float32, expected float64",
            "`.float()` gives float32, whatever came in. Keep the dtype of `weight`.",
        ),
        WrongAnswer(
            "cut off from the graph",
            _cut_off,
            "no gradient reaches `weight`",
            "The numbers are right, but no gradient reaches the weight, so it would never be "
            "trained.",
        ),
        WrongAnswer(
            "the mean written over the first head",
            _in_place_of_the_first,
            "your code changes the caller's `weight`",
            "A view shares the caller's memory, so this has changed the old model.",
        ),
    ),
)

ANSWERS = {
    "23.1": GROUPED,
    "23.2": HALF_SPLIT,
    "23.3": CACHE,
    "23.4": INTO_GROUPS,
}
