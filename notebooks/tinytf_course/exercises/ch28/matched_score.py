"""28.4 two tokens must match (★★★, 15 minutes)

In `7 3 5 3 7 3`, two different tokens have followed a 3, so an induction head is torn between them.
A cleverer head would match the last *two* tokens and attend only to what followed `7 3`. Write
`my_matched_score(weights, ids, match)`, the induction score for a head that matches the last
`match` tokens. With `match=1` it equals `induction_score`.

<details><summary>The rule in detail</summary>

`weights` is (B, H, T, T), `ids` is (B, T), and the result is (H,). Key s is wanted by query t if
match ≤ s ≤ t and the `match` tokens before s equal, in their order, the last `match` tokens up to
and including t: ids[s − match] to ids[s − 1] equal ids[t − match + 1] to ids[t]. The weights of
several wanted keys are added. The score is the mean of this sum over all queries of the batch that
want at least one key, each counting once, and NaN if there is none.

</details>

Hint: `same = ids[:, :, None] == ids[:, None, :]` says whether the tokens at t and s are equal. The
last two match where it is true at [t, s] and at [t − 1, s − 1]: shift the table by one along both
axes, with False in the first row and column.

Hint: Three match where it is true at [t, s], and the last two match at [t − 1, s − 1].
"""

import math

import torch

from tinytf_course.expect import agrees, expect, gradients, numbers, precise, tensor, travels


def my_matched_score(weights, ids, match):
    """Score heads for what followed the last `match` tokens: (B, H, T, T) -> (H,)."""
    same = ids[:, :, None] == ids[:, None, :]  # (B, T, T)
    matched = same
    for _ in range(match - 1):
        before = torch.zeros_like(same)
        before[:, 1:, 1:] = matched[:, :-1, :-1]
        matched = same & before
    wanted = torch.zeros_like(same)
    wanted[:, :, 1:] = matched[:, :, :-1]
    wanted = wanted.tril()
    sums = (weights * wanted[:, None]).sum(dim=-1)  # (B, H, T)
    return sums.sum(dim=(0, 2)) / wanted.any(dim=-1).sum()


def _s_by_loop(weights, ids, match):
    """Query by query, key by key."""
    total, count = weights.new_zeros(weights.size(1)), 0
    for row, tokens in enumerate(ids.tolist()):
        for t in range(len(tokens)):
            last = tokens[max(0, t - match + 1) : t + 1]
            keys = [s for s in range(match, t + 1) if tokens[s - match : s] == last]
            if keys:
                count += 1
                total = total + sum(weights[row, :, t, s] for s in keys)
    return total / count if count else total * math.nan


def _patterns(ids, seed=0, dtype=torch.float32):
    """Random causal weights of three heads for these ids."""
    scores = numbers(len(ids), 3, ids.size(1), ids.size(1), seed=seed, scale=2.0, dtype=dtype)
    future = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(dim=-1)


TWICE = torch.tensor([[7, 3, 5, 3, 7, 3]])


def test_s_small(answer):
    """in 7 3 5 3 7 3, the last query wants key 2, which follows 7 3, and not key 4"""
    weights = torch.zeros(1, 3, 6, 6)
    weights[0, 0, 5, 2], weights[0, 0, 5, 4] = 0.75, 0.25  # what followed 7 3, and 5 3
    weights[0, 1, 5, 4] = 1.0
    weights[0, 2, 5, 1], weights[0, 2, 3, 2] = 1.0, 1.0  # the same token; one back
    note = (
        "The last two tokens up to query 5 are 7 3. Key 2 follows 7 3 and is wanted, and key 4 "
        "follows 5 3. The other queries want no key."
    )
    agrees(answer, _s_by_loop, weights, TWICE, 2, note=note)


def test_s_one(answer):
    """with match=1 it is the induction score"""
    weights = torch.zeros(1, 3, 4, 4)
    weights[0, 0, 2, 1], weights[0, 0, 3, 2] = 0.75, 0.25  # what followed
    weights[0, 1, 2, 0], weights[0, 1, 3, 1] = 1.0, 1.0  # the same token
    weights[0, 2, 1, 0], weights[0, 2, 2, 1], weights[0, 2, 3, 2] = 1.0, 0.5, 0.5  # one back
    note = "Key 1 follows the first 7 and key 2 the first 3. Queries 0 and 1 want no key."
    agrees(answer, _s_by_loop, weights, torch.tensor([[7, 3, 7, 3]]), 1, note=note)


def test_s_order(answer):
    """the tokens must match in their order, each of them"""
    ids = torch.tensor([[1, 2, 9, 2, 1, 8, 1, 2]])
    note = "The last two tokens up to query 7 are 1 2. Key 2 follows 1 2, and key 5 follows 2 1."
    agrees(answer, _s_by_loop, _patterns(ids, 3), ids, 2, note=note)
    ids = torch.tensor([[4, 1, 2, 9, 4, 6, 2]])
    note = "In 4 6 2 and 4 1 2, the middle tokens differ."
    _none(answer, ids, 3, note)
    ids = torch.tensor([[4, 1, 2, 9, 5, 1, 2, 8, 6, 1, 2, 4, 1, 2], [3, 1, 3, 2] * 3 + [3, 1]])
    for match in (3, 2, 4):
        agrees(answer, _s_by_loop, _patterns(ids, 4), ids, match)


def _none(answer, ids, match, note=""):
    """Expect NaN for each of three heads."""
    got = tensor(answer(_patterns(ids), ids, match), f"for ids {ids.tolist()}, match={match}")
    said = f"for ids {ids.tolist()}, match={match}, your scores are {got.tolist()}, expected NaN"
    expect(got.shape == (3,) and bool(got.isnan().all()), f"{said} for each of 3 heads. {note}")


def test_s_several(answer):
    """what has occurred several times has several keys, and their weights are added"""
    ids = torch.tensor([[4, 4, 4, 4, 9, 4, 4]])
    note = "The last two tokens up to query 6 are 4 4. It wants keys 2, 3 and 4, which follow 4 4."
    agrees(answer, _s_by_loop, _patterns(ids), ids, 2, note=note)


def test_s_batch(answer):
    """rows that repeat differently; each query counts once, whichever row it is in"""
    some = torch.tensor([[1, 2, 3, 4, 5], [8, 8, 9, 8, 8]])
    agrees(answer, _s_by_loop, _patterns(some, 4), some, 2, note="In row 0 no token occurs twice.")
    ids = torch.tensor([[1, 2, 1, 2, 1, 2], [5, 6, 7, 8, 5, 6], [3, 3, 0, 1, 2, 4]])
    for match in (2, 1, 3):
        agrees(answer, _s_by_loop, _patterns(ids, 1), ids, match)
        agrees(answer, _s_by_loop, _patterns(ids.flip(0), 2), ids.flip(0), match)
    agrees(answer, _s_by_loop, _patterns(ids[:2] * 0, 3), ids[:2] * 0, 2)
    near = torch.tensor([[2**24, 5, 2**24 + 1, 5, 2**24, 5]])  # the same in float32
    agrees(answer, _s_by_loop, _patterns(near, 9), near, 2, note="Compare the ids as integers.")


def test_s_past(answer):
    """only keys up to the query count, even if later keys have weight"""
    ids = torch.tensor([[2, 5, 2, 5, 2, 5], [0, 0, 0, 1, 0, 0]])
    weights = numbers(2, 3, 6, 6, seed=8).softmax(dim=-1)
    note = "Some of these weights are on keys after the query, which are never wanted."
    for match in (2, 1):
        agrees(answer, _s_by_loop, weights, ids, match, note=note)


def test_s_none(answer):
    """where nothing that long is repeated, every head's score is NaN"""
    _none(answer, torch.tensor([[3, 1, 2]]), 1)
    _none(answer, torch.tensor([[3, 1, 3, 2, 3]]), 2)
    _none(answer, torch.tensor([[3, 3]]), 2)
    _none(answer, torch.tensor([[3, 3, 3]]), 5, "The text is shorter than 5.")
    _none(answer, torch.tensor([[3]]), 1)


def test_s_kinds(answer):
    """in other dtypes, with gradients, on other devices"""
    ids = torch.tensor([[1, 2, 1, 2, 1], [0, 4, 4, 0, 4]])
    agrees(answer, _s_by_loop, _patterns(ids, 5, torch.float64), ids.int(), 2)
    precise(answer, _s_by_loop, _patterns(ids, 6), ids, 2, dtype=torch.float16, tolerance=2e-3)
    gradients(answer, _s_by_loop, _patterns(ids, 7), ids, 2)
    travels(answer, _patterns(ids, 7), ids, 2)


MISTAKES = r"""
match is ignored
    range(match - 1) => range(0)
    says: follows 5 3
    That is the induction score, whatever `match` is.
one of them matches
    same & before => same | before
    says: follows 5 3
    All of the last tokens must match, not one of them.
the first and the last match
    for _ in range(match - 1): => if match > 1:
    before[:, 1:, 1:] = matched[:, :-1, :-1] =>
        before[:, match - 1 :, match - 1 :] = same[:, : 1 - match, : 1 - match]
    says: the middle tokens differ
    Of three tokens the middle one must match, too.
one too many match
    range(match - 1) => range(match)
    says: Queries 0 and 1 want no key
    The loop goes match − 1 times, because one token is matched before it.
the table is rolled
    before = torch.zeros_like(same) => before = matched.roll((1, 1), dims=(1, 2))
    before[:, 1:, 1:] = matched[:, :-1, :-1] =>
    says: The other queries want no key
    What leaves at the end of a rolled table comes in at the front, and matches there.
the token itself
    wanted = wanted.tril() => wanted = matched.tril(-1)
    says: Key 2 follows 7 3
    That finds heads that attend to the same token. The wanted key is the one after it.
two positions later
    wanted[:, :, 1:] = matched[:, :, :-1] => wanted[:, :, 2:] = matched[:, :, :-2]
    says: Key 2 follows 7 3
    The key that follows is one position later, not two.
queries that want no key count
    sums.sum(dim=(0, 2)) / wanted.any(dim=-1).sum() => sums.mean(dim=(0, 2))
    says: The other queries want no key
    They add 0 to the sum and 1 to the count.
the mean over links
    wanted.any(dim=-1).sum() => wanted.sum()
    says: It wants keys 2, 3 and 4
    A query with three keys has one weight of at most 1 to give.
only the latest
    wanted = wanted.tril() =>
        wanted = wanted.tril()
        wanted &= wanted.flip(-1).cumsum(-1).flip(-1) == 1
    says: It wants keys 2, 3 and 4
    If the tokens occurred several times, each key that followed them is wanted.
rows count alike
    sums.sum(dim=(0, 2)) / wanted.any(dim=-1).sum() =>
        (sums.sum(dim=2) / wanted.any(dim=-1).sum(dim=1)[:, None]).mean(dim=0)
    says: In row 0 no token occurs twice
    Rows with few queries then count for more, and a row with none makes all NaN.
the future counts
    wanted = wanted.tril() =>
    says: keys after the query, which are never wanted
    Only keys up to the query can be wanted.
"""

HARMLESS = r"""
… => …torch.zeros_like(matched)
    matched and same have one shape
matched = … => matched = matched & before
    two runs, one place apart, make one longer
wanted = … => wanted = wanted.tril_()
    it is our own tensor, made above
sums = … => ….sum(dim=-2)
    queries first or keys first, both are summed
return … => …sum(dim=(2, 0))…
    the same two axes, in another order
return … => …any(dim=1)…
    as many keys are wanted as queries want: each repeat makes one of both
return … => …any(dim=-2)…
    as many keys are wanted as queries want: each repeat makes one of both
"""
