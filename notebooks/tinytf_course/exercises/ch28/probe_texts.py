"""28.2 a text on which only induction scores (★★☆, 10 minutes)

A score is only as good as the text on which it is measured. Write `my_probe_texts(n, length,
draws)`, which draws n texts of `length` tokens on which an induction head scores 1 and every other
kind of head stays below 0.4.

<details><summary>The rule in detail</summary>

The other heads attend a fixed number of positions back or to a fixed position, spread their weight
over all tokens or over those equal to the query's, or have memorised from other texts of yours
which token usually follows which. In at least half of the positions there must be something to
find, that is, a key whose preceding token equals the query's token.

Return ids of shape (n, length) in int64, from 0 to 63, drawn with the generator `draws`. n may be
1, and `length` is 40 to 64. The scores are measured on 64 texts of 48 tokens.

</details>

Hint: Repeat a stretch of different tokens. What must differ from text to text so that no fixed
distance works, and what so that nothing can be memorised?

Hint: `torch.rand(n, 64, generator=draws).argsort(dim=-1)` shuffles 64 tokens n times.
"""

import torch

from tinytf_course.expect import expect


def my_probe_texts(n, length, draws):
    """Draw n texts of tokens 0 to 63, (n, length), on which only an induction head scores."""
    order = torch.rand(n, 64, generator=draws).argsort(dim=-1)  # (n, 64): each its own
    period = torch.randint(8, 21, (n, 1), generator=draws)
    return order.gather(1, torch.arange(length) % period)


N, LENGTH = 64, 48


def _texts(answer, seed, n=N, length=LENGTH):
    said = f"for n={n}, length={length} and a generator with seed {seed}"
    ids = answer(n, length, torch.Generator().manual_seed(seed))
    words = f"you return {type(ids).__name__}, expected a tensor"
    expect(isinstance(ids, torch.Tensor), f"{said}, {words}")
    shape, wanted = tuple(ids.shape), (n, length)
    expect(shape == wanted, f"{said}, your texts have shape {shape}, expected {wanted}")
    expect(ids.dtype == torch.int64, f"{said}, your ids are {ids.dtype}, expected torch.int64")
    low, high = int(ids.min()), int(ids.max())
    expect(low >= 0 and high < 64, f"{said}, ids go from {low} to {high}, expected 0 to 63")
    return ids


def _wanted(ids):
    """Whether the key follows an earlier occurrence of the query's token, (n, T, T)."""
    wanted = torch.zeros(*ids.shape, ids.size(1), dtype=torch.bool)
    wanted[:, :, 1:] = ids[:, :, None] == ids[:, None, :-1]
    return wanted.tril()


def _scores(weights, ids):
    """The induction score of one head, weights (n, T, T)."""
    wanted = _wanted(ids)
    return float((weights * wanted).sum() / wanted.any(dim=-1).sum().clamp(min=1))


def _low(score, head):
    expect(score < 0.4, f"for n={N}, length={LENGTH}, a head that {head} scores {score:.2f}")


def _spread(chosen):
    """Weights that are even over the chosen keys, with nothing where there are none."""
    return chosen / chosen.sum(dim=-1, keepdim=True).clamp(min=1)


def test_p_shape(answer):
    """n texts of tokens 0 to 63, drawn with the given generator"""
    for n, length in ((3, 40), (1, 64), (100, 40), (N, LENGTH)):
        first, again = (_texts(answer, 1, n, length) for _ in range(2))
        expect(torch.equal(first, again), "the same seed gives other texts: draw with `draws`")
    other = _texts(answer, 2)
    expect(not torch.equal(first, other), "another seed gives the same texts: draw with `draws`")


def test_p_enough(answer):
    """in at least half of the positions there is something to find"""
    for length in (LENGTH, 40, 64):
        share = _wanted(_texts(answer, 3, N, length)).any(dim=-1).float().mean().item()
        words = f"only {share:.0%} of the positions have something to find, expected half"
        expect(share >= 0.5, f"for n={N}, length={length}, {words}")


def test_p_distance(answer):
    """a head that attends a fixed number of positions back, or to a fixed one, scores under 0.4"""
    wanted = _wanted(_texts(answer, 4))
    asking = wanted.any(dim=-1).sum().clamp(min=1)
    for d in range(LENGTH):
        back = float(wanted.diagonal(-d, 1, 2).sum() / asking)
        _low(back, f"always attends {d} positions back")
        _low(float(wanted[:, :, d].sum() / asking), f"always attends to position {d}")


def test_p_even(answer):
    """a head that spreads its weight, over all or over the same token, scores under 0.4"""
    ids = _texts(answer, 5)
    everywhere = torch.ones(N, LENGTH, LENGTH).tril()
    _low(_scores(_spread(everywhere), ids), "spreads its weight evenly")
    same = (ids[:, :, None] == ids[:, None, :]).float().tril()
    _low(_scores(_spread(same), ids), "attends to tokens equal to the query's")


def test_p_order(answer):
    """a head that has memorised which token follows which scores under 0.4"""
    learned = torch.zeros(64, 64)
    for ids in (_texts(answer, 6), _texts(answer, 7)):
        learned.index_put_((ids[:, :-1], ids[:, 1:]), torch.tensor(1.0), accumulate=True)
    follower, ids = learned.argmax(dim=-1), _texts(answer, 8)
    knows = (follower[ids][:, :, None] == ids[:, None, :]).float().tril()
    head = "has memorised from other texts which token mostly follows which, without looking,"
    _low(_scores(_spread(knows), ids), head)


MISTAKES = r"""
one period for all
    torch.randint(8, 21, (n, 1), generator=draws) => torch.full((n, 1), 16)
    says: 15 positions back
    One distance fits all texts, so a head that compares no tokens scores 1.
one order for all
    torch.rand(n, 64, generator=draws).argsort(dim=-1) => torch.arange(64).expand(n, -1)
    says: which token mostly follows which
    If 7 always follows 6, a head can memorise that and need not look for an earlier 6.
nothing is repeated
    .gather(1, torch.arange(length) % period) => [:, :length]
    says: something to find, expected half
    If no token occurs twice, there is nothing to find.
two tokens
    … =>
        return torch.randint(0, 2, (n, length), generator=draws)
    says: spreads its weight evenly
    Half of all keys are then wanted, and a head that spreads its weight evenly finds them.
one token
    torch.arange(length) % period => torch.zeros(n, length, dtype=torch.long)
    says: 0 positions back
    Every key is then wanted, and any head scores.
too many tokens
    rand(n, 64 => rand(n, 100
    says: expected 0 to 63
    The vocabulary has 64 tokens.
drawn with the global generator
    order = torch =>
        draws = None
        order = torch
    says: draw with `draws`
    The texts must depend on the seed, and the seed is in `draws`.
floats
    % period) => % period).float()
    says: expected torch.int64
    Ids are integers, because an embedding looks them up.
"""

HARMLESS = r"""
… => …torch.rand(n, 63,…
    63 tokens to shuffle serve as well as 64
… => ….argsort()
    the last axis is the default
… => ….argsort(dim=1)
    of two axes, 1 is the last
… => …torch.randint(8, 20,…
    a longest period of 19 serves as well
… => …torch.randint(8, 22,…
    so does one of 21
… => …torch.randint(7, 21,…
    a shortest period of 7 serves as well
… => …torch.randint(9, 21,…
    so does one of 9
"""
