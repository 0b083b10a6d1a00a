"""16.1 a step of beam search (★★☆, 12 minutes)

Write `my_beam_step(alive, log_probs)`, one step of beam search for a single sentence. `alive`
`(K,)` holds the log-probabilities of K prefixes, and `log_probs` `(K, V)` those of every possible
next token after each prefix. Return `(totals, beams, tokens)`, each `(K,)` and best first: the
log-probabilities of the K best longer prefixes (in the dtype of `alive`), the index of the prefix
that each continues, and its new token.

Hint: Add to get (K, V), flatten, and use `topk`. Entry i of the flat tensor is row `i // V`.
"""

import math

import torch

from tinytf_course.expect import expect, numbers, same, tensor
from tinytf_course.words import described, given, short


def my_beam_step(alive, log_probs):
    """The K best ways to continue K prefixes by one token: (totals, beams, tokens), each (K,).

    alive (K,) holds the prefixes' log-probabilities, log_probs (K, V) those of the next token.
    Best first; `beams` holds the index of the continued prefix, `tokens` the token.
    """
    total = alive[:, None] + log_probs  # (K, V)
    totals, index = total.flatten().topk(alive.size(0))
    return totals, index // log_probs.size(1), index % log_probs.size(1)


ALIVE = torch.tensor([-1.0, -1.5, -3.0])
NEXT = torch.tensor(
    [
        [-4.0, -3.0, -0.2, -2.5, -5.0],
        [-0.3, -6.0, -2.0, -0.9, -4.0],
        [-5.0, -0.1, -4.0, -6.0, -2.6],
    ]
)
_STEP = f"for alive={short(ALIVE)} and log_probs={short(NEXT)}"
ONE_PARENT = torch.tensor([[-1.5, -1.2, -4.0, -1.3], [-0.1, -3.0, -3.0, -4.0]])
_FAR = "for alive=[-1, -9] (the second prefix is far behind)"


def _all_pairs(alive, log_probs):
    """Every prefix with every token, one by one, sorted: (total, beam, token), the K best."""
    rows = log_probs.double().tolist()
    found = [
        (before + after, beam, token)
        for beam, (before, row) in enumerate(zip(alive.double().tolist(), rows, strict=True))
        for token, after in enumerate(row)
    ]
    return sorted(found, reverse=True)[: len(rows)]


def _three(answer, *arguments, where):
    got = answer(*arguments)
    fits = isinstance(got, tuple | list) and len(got) == 3
    expect(fits, f"{where}, you return {described(got)}, expected (totals, beams, tokens)")
    return got


def _step(answer, alive, log_probs, note=""):
    """All three, against every pair one by one."""
    where = given(answer, (alive, log_probs))
    totals, beams, tokens = zip(*_all_pairs(alive, log_probs), strict=True)
    got = _three(answer, alive, log_probs, where=where)
    exact = isinstance(got[0], torch.Tensor)  # a list of numbers has no dtype
    totals = torch.tensor(totals, dtype=alive.dtype)
    same(got[0], totals, f"{where}, totals", None if exact else 1e-6, note, dtype=exact)
    for name, one, other in (("beams", got[1], beams), ("tokens", got[2], tokens)):
        same(one, list(other), f"{where}, {name}", note=note)
        kind = tensor(one, where).dtype
        message = f"{where}, {name} are of {kind}: they are indices, and must be whole numbers"
        expect(not kind.is_floating_point, message)


def test_totals(answer):
    """the totals are those of the longer prefixes, best first"""
    got = _three(answer, ALIVE, NEXT, where=_STEP)[0]
    same(got, [-1.2, -1.8, -2.4], f"{_STEP}, totals", note="log p(prefix) + log p(token).")


def test_parents(answer):
    """beams says which prefix is continued"""
    same(_three(answer, ALIVE, NEXT, where=_STEP)[1], [0, 1, 1], f"{_STEP}, beams")


def test_tokens(answer):
    """tokens says by which token"""
    same(_three(answer, ALIVE, NEXT, where=_STEP)[2], [2, 0, 3], f"{_STEP}, tokens")


def test_one_parent(answer):
    """all continuations may come from one prefix"""
    got = _three(answer, torch.tensor([-1.0, -9.0]), ONE_PARENT, where=_FAR)
    same(got[1], [0, 0], f"{_FAR}, beams", note="Both of the best continue prefix 0.")


def test_first_step(answer):
    """one prefix lives at first, and the others are at minus infinity"""
    _step(answer, torch.tensor([-0.5]), torch.tensor([[-3.0, -0.1, -2.0]]))
    nothing = torch.tensor([[-0.1, -0.2, -0.3], [-3.0, -1.0, -2.0]])
    note = "Prefix 0 has probability 0, and so has everything that continues it."
    _step(answer, torch.tensor([-math.inf, 0.0]), nothing, note=note)


def test_sizes(answer):
    """with any number of prefixes and tokens, however unlikely"""
    _step(answer, numbers(4, seed=1), numbers(4, 3, seed=2), note="More prefixes than tokens.")
    _step(answer, numbers(3, seed=7), numbers(3, 3, seed=8), note="As many prefixes as tokens.")
    _step(answer, numbers(5, seed=3, scale=3), numbers(5, 40, seed=4))
    double = torch.float64
    _step(answer, numbers(2, seed=5, dtype=double), numbers(2, 3, seed=6, dtype=double))
    alive = torch.tensor([-2000.02, -2000.01, -2000.03], dtype=double)
    near = torch.tensor([[-3.0, -1.0], [-1.02, -4.0], [-5.0, -6.0]], dtype=double)
    note = "Long prefixes that are nearly equally likely: float64 goes in, and has to stay."
    _step(answer, alive, near, note)


MISTAKES = r"""
each prefix for itself
    … =>
        best, tokens = log_probs.max(dim=-1)
        totals, beams = (alive + best).sort(descending=True)
        return totals, beams, tokens[beams]
    says: Both of the best continue prefix 0
    Taking the best token after each prefix keeps every prefix alive for ever: that is K greedy
    searches. The K best of all K x V continuations go on.
the past forgotten
    alive[:, None] + log_probs => log_probs
    says: totals, you get [-0.1, -0.2, -0.3]
    A likely word after an unlikely beginning is still unlikely: add the prefix's own
    log-probability.
log-probabilities multiplied
    alive[:, None] + log_probs => alive[:, None] * log_probs
    says: log p(prefix) + log p(token)
    Probabilities multiply, so their logarithms add.
prefix and token swapped
    index // log_probs.size(1), index % log_probs.size(1) =>
        index % log_probs.size(1), index // log_probs.size(1)
    says: beams, you get [2, 0, 3], expected [0, 1, 1]
    In the flat (K, V) tensor the whole part of i / V is the row, the prefix; the rest is the
    token.
divided by K
    index // log_probs.size(1), index % log_probs.size(1) =>
        index // alive.size(0), index % alive.size(0)
    says: tokens, you get
    A row of the (K, V) tensor is V long, so the row of entry i is i // V, not i // K.
ranked by the last word alone
    totals, index = total.flatten() => _, index = log_probs.flatten()
    return totals => return total.flatten()[index]
    says: log p(prefix) + log p(token)
    The totals are right, but they are not those of the K best: add the prefix's log-probability
    before `topk`, not after.
2K of them
    topk(alive.size(0)) => topk(2 * alive.size(0))
    says: expected (3,)
    `candidates` in the chapter looks at 2K because some end; here the K best are wanted.
a fraction of a beam
    index // log_probs => index / log_probs
    says: beams, you get
    `/` divides exactly, and 7 / 5 is no row: `//` gives the whole part.
totals rounded to half precision
    alive[:, None] + log_probs => (alive[:, None] + log_probs).half()
    says: the dtype is float16
    Near 2000 float16 knows only whole numbers, and prefixes that differ become equal.
a dead prefix revived
    alive[:, None] => alive[:, None].nan_to_num(neginf=0.0)
    says: so has everything that continues it
    A log-probability of minus infinity is probability 0. As 0 it would be certain.
"""

HARMLESS = r"""
… => totals, index = total.flatten().topk(…size(…))
    K is the size of all three
return … => …total.size(1)…
    the sums have a column for each token
"""
