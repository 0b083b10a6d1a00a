"""23.1 grouped queries without copying keys (★★★, 18 minutes)

Write `my_grouped_attention(q, k, v)`, scaled dot-product attention without a mask, for q of shape
`(B, H, T, D)` and k and v of shape `(B, G, S, D)`, where H is a multiple of G. A solution that
repeats keys and values is correct, but try to write one that does not.

<details><summary>The rule in detail</summary>

Query heads 0 to H/G - 1 use key head 0, the next H/G use key head 1, and so on. The result
has the dtype and the device of `q`, and gradients reach `q`, `k` and `v`.

</details>

Hint: For a key head it makes no difference whether its queries come from one head or from several.
Which two axes of q could you merge, so that q has an axis of length G where k has one?
"""

import itertools
import math

import torch

from tinytf_course.expect import agrees, gradients, numbers, precise, same, travels


def my_grouped_attention(q, k, v):
    """Attend with H query heads to G key heads: q (B, H, T, D), k and v (B, G, S, D).

    Query heads 0 to H/G - 1 use key head 0, the next H/G use key head 1, and so on. There is no
    mask. Returns (B, H, T, D).
    """
    folded = q.reshape(len(q), k.size(1), -1, q.size(-1))  # (B, H, T, D) -> (B, G, H/G T, D)
    weights = (folded @ k.mT / math.sqrt(q.size(-1))).softmax(dim=-1)
    return (weights @ v).view(q.shape)


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


def test_groups_read(answer):
    """each query head uses the key head of its group"""
    note = "Heads 0 to 2 use key head 0, heads 3 to 5 key head 1."
    where = "for 6 query heads, and 2 key heads of one key each, whose values are 10 and 20"
    got = answer(torch.ones(1, 6, 1, 1), torch.ones(1, 2, 1, 1), _across(10.0, 20.0))
    same(got, _across(*[10.0] * 3, *[20.0] * 3), where, note=note)


def test_one_query(answer):
    """a query's scores are divided by √D, and make weights of its keys"""
    q = torch.tensor([2.0, 0, 0, 0]).view(1, 1, 1, 4)
    k = torch.tensor([[3.0, 0, 0, 0], [1.0, 0, 0, 0]]).view(1, 1, 2, 4)
    v = torch.tensor([[0.0, 0, 0, 0], [1.0, 2, 3, 4]]).view(1, 1, 2, 4)
    where = "for one head and q=[2, 0, 0, 0], k=[[3, 0, 0, 0], [1, 0, 0, 0]]"
    note = "The scores are 6 and 2, divided by √4: 3 and 1; the weights 0.881 and 0.119."
    agrees(answer, _head_by_head, q, k, v, where=f"{where}, v=[[0, 0, 0, 0], [1, 2, 3, 4]]",
           note=note)  # fmt: skip


def test_own_questions(answer):
    """the heads of a group share keys, and each has a query of its own"""
    k, v = (torch.tensor(x).view(1, 1, 2, 1) for x in ([[1.0], [-1.0]], [[10.0], [20.0]]))
    where = "for 3 query heads, q=3, 0 and -3, and one key head with keys 1, -1, values 10, 20"
    note = "Head 0 reads the first value, nearly 10; head 1 both, 15; head 2 the second, nearly 20."
    agrees(answer, _head_by_head, _across(3.0, 0.0, -3.0), k, v, where=where, note=note)


def test_own_places(answer):
    """head h at position t gets the output of its own query"""
    q = torch.tensor([[3.0, -3.0, 0.0], [1.0, -1.0, 2.0]]).view(1, 2, 3, 1)
    k, v = (torch.tensor(x).view(1, 1, 2, 1) for x in ([[1.0], [-1.0]], [[10.0], [20.0]]))
    where = "for 2 query heads and 3 positions, q=[[3, -3, 0], [1, -1, 2]], keys 1, -1, values "
    agrees(answer, _head_by_head, q, k, v, where=where + "10, 20")


def test_own_sentences(answer):
    """each sentence uses its own keys"""
    q, k = torch.ones(2, 2, 1, 1), torch.ones(2, 1, 1, 1)
    v = torch.tensor([5.0, 7.0]).view(2, 1, 1, 1)
    where = "for 2 sentences, 2 query heads, and a key head whose value is 5 and 7"
    agrees(answer, _head_by_head, q, k, v, where=where, note="5, 5 and 7, 7.")


def _drawn(heads, groups, sentences=2, queries=3, keys=5, width=8, seed=1):
    """q, k and v at random; q as `split_heads` hands it over: positions came before heads."""
    q = numbers(sentences, queries, heads, width, seed=seed, scale=1.5).transpose(1, 2)
    return q, *numbers(2, sentences, groups, keys, width, seed=seed + 1)


def test_any_groups(answer):
    """for any number of groups and heads, keys and queries"""
    agrees(answer, _head_by_head, *_drawn(4, 2, 1, 1, 2, 1), note="4 query heads, 2 key heads.")
    agrees(
        answer, _head_by_head, *_drawn(6, 6), note="A key head for each: chapter 06's attention."
    )
    agrees(answer, _head_by_head, *_drawn(6, 1), note="One for all: multi-query attention.")
    agrees(answer, _head_by_head, *_drawn(6, 2), note="6 query heads, 2 key heads.")
    agrees(answer, _head_by_head, *_drawn(4, 2, 3, 7, 2, 5), note="4 query heads, 2 key heads.")
    agrees(answer, _head_by_head, *_drawn(1, 1, 1, 1, 1, 1), note="One of everything.")


def test_any_scores(answer):
    """large scores do not overflow, and dtypes are kept"""
    q, k, v = _drawn(4, 2, width=4)
    where = "for scores in the hundreds"
    agrees(answer, _head_by_head, q * 100, k * 10, v, tolerance=1e-4, where=where)
    precise(answer, _head_by_head, q, k, v, dtype=torch.float64)
    precise(answer, _head_by_head, q, k, v, dtype=torch.bfloat16)


def test_learns(answer):
    """gradients reach q, k and v, on any device"""
    gradients(answer, _head_by_head, *_drawn(2, 1, 1, 1, 2, 1))
    gradients(answer, _head_by_head, *_drawn(6, 2))
    travels(answer, *_drawn(6, 2))


MISTAKES = r"""
key heads by turns
    folded = =>
        k, v = (x.repeat(1, q.size(1) // x.size(1), 1, 1) for x in (k, v))
        folded =
    says: Heads 0 to 2 use key head 0
    `repeat` gives heads 0 1 0 1 …, whereas `repeat_interleave` gives 0 0 … 1 1. A trained model
    would attend to the wrong keys, in the right shape.
values by turns
    folded = =>
        k = k.repeat_interleave(q.size(1) // k.size(1), dim=1)
        v = v.repeat(1, q.size(1) // v.size(1), 1, 1)
        folded =
    says: 2 key heads of one key each
    A head needs the values that belong to its keys, so both are shared in the same way.
the first key head for all
    folded = =>
        k, v = k[:, :1], v[:, :1]
        folded =
    says: heads 3 to 5 key head 1
    That is multi-query attention, whatever the number of key heads.
key heads averaged
    folded = =>
        k, v = (x.mean(dim=1, keepdim=True) for x in (k, v))
        folded =
    says: Heads 0 to 2 use key head 0
    Averaging is how the key heads of a trained model are *converted* to fewer, once, before
    further training (Ainslie et al. 2023). It is not how groups use them.
as many heads in a group as there are groups
    folded = =>
        heads = torch.arange(q.size(1)) // k.size(1) % k.size(1)
        k, v = k[:, heads], v[:, heads]
        folded =
    says: heads 3 to 5 key head 1
    G is the number of groups, and each of them has H / G query heads.
queries averaged
    q.reshape(len(q), k.size(1), -1, q.size(-1)) => q.unflatten(1, (k.size(1), -1)).mean(dim=2)
    .view(q.shape) => .repeat_interleave(q.size(1) // k.size(1), dim=1)
    says: Head 0 reads the first value
    The heads of a group share keys and values, but each has a query of its own.
heads and positions mixed
    q.reshape => q.transpose(1, 2).reshape
    says: for 2 query heads and 3 positions
    The queries were merged along positions first, so heads got the queries of other heads.
not scaled
     / math.sqrt(q.size(-1)) =>
    says: divided by √4
    The scores are divided by √D.
scaled by the whole width
    math.sqrt(q.size(-1)) => math.sqrt(q.size(-1) * q.size(1))
    says: Head 0 reads the first value
    D is the width of one head, not of all.
scaled by the number of queries
    math.sqrt(q.size(-1)) => math.sqrt(folded.size(-2))
    says: divided by √4
    Merging axes makes more queries, not wider ones, so scores are divided by √D as before.
softmax over queries
    folded = =>
        k, v = (x.repeat_interleave(q.size(1) // x.size(1), dim=1) for x in (k, v))
        folded =
    softmax(dim=-1) => softmax(dim=-2)
    says: divided by √4
    The weights of each query sum to 1 over the keys, which are the last axis.
values read from the keys
    @ v) => @ k)
    says: whose values are 10 and 20
    The weights are right, but they average `v`, not `k`.
the first sentence's keys for all
    folded = =>
        k, v = k[:1], v[:1]
        folded =
    says: whose value is 5 and 7
    The batch is the first axis of keys and values, too.
exp without the largest score
    softmax(dim=-1) => exp()
    (weights @ v) => (weights / weights.sum(dim=-1, keepdim=True) @ v)
    says: for scores in the hundreds
    exp(100) is more than float32 holds. `softmax` subtracts the largest score first.
a view of what is not in order
    q.reshape => q.view
    says: raises RuntimeError
    q comes from `transpose`, so its numbers are not in memory in the order of its axes.
    `reshape` copies them where it must, whereas `view` raises an error.
float32 comes out
    folded = =>
        q, k, v = q.float(), k.float(), v.float()
        folded =
    says: the dtype is float32, expected float64
    `.float()` gives float32, whatever came in. Return the dtype of q.
cut off from the graph
    (weights @ v) => (weights @ v).detach()
    says: no gradient reaches `q`
    The numbers are right, but nothing could be trained. Leave `no_grad` and `detach` out.
q overwritten
     / math.sqrt(q.size(-1)) =>
    folded = =>
        q /= math.sqrt(q.size(-1))
        folded =
    says: your code changes the caller's `q`
    `q /= …` changes the caller's tensor, and `backward` then finds numbers that the forward
    pass did not use. `q / …` makes a new tensor.
keys cut off from the graph
    folded = =>
        k, v = k.detach(), v.detach()
        folded =
    says: no gradient reaches `k`
    The numbers are right, but the projections of keys and values could never be trained.
"""

HARMLESS = r"""
… => return (weights @ v).reshape(q.shape)
    as good as `view`, and more patient
folded = … => …len(k)…
    q, k and v have the same sentences
folded = … => …len(v)…
    q, k and v have the same sentences
folded = … => …len(q.detach())…
    only the length is asked
folded = … => …len(q.float())…
    only the length is asked
folded = … => …v.size(1)…
    keys and values have as many heads
folded = … => …, k.size(-1))
    queries, keys and values are equally wide
folded = … => …, v.size(-1))
    queries, keys and values are equally wide
weights = … => …math.sqrt(k.size(-1))…
    queries, keys and values are equally wide
weights = … => …math.sqrt(v.size(-1))…
    queries, keys and values are equally wide
"""
