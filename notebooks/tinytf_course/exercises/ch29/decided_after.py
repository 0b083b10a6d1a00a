"""29.1 decided, and not taken back (★★☆, 8 minutes)

When is a prediction *decided*? Not when it first appears, because a guess may be given up again,
but after the first level from which on the most likely token is the final one and stays so. Write
`my_decided_after(logits)`, which takes the lens at L levels, `logits` of shape (L, B, T, V), the
last of them being the model's own logits. It returns a tensor of shape (B, T) with the number of
that level for each position, counted from 0. If the levels predict 2, 2, 0, 2, 2, the answer is 3.

Hint: `logits.argmax(dim=-1)` is what each level predicts, (L, B, T). Start at the last level and go
down as long as the level below predicts the same token.

Hint: A loop over levels is fine: keep a mask of the positions that have agreed so far.
"""

import torch

from tinytf_course.expect import agrees, expect, numbers, same, tensor


def my_decided_after(logits):
    """Find the level from which on each position's most likely token is the final one.

    logits is (L, B, T, V). Returns the numbers of the levels (B, T), counted from 0.
    """
    says = logits.argmax(dim=-1)  # (L, B, T)
    agreed = torch.ones_like(says[-1], dtype=torch.bool)
    layer = torch.full_like(says[-1], len(says))
    for level in reversed(says):
        agreed = agreed & (level == says[-1])
        layer = layer - agreed.long()
    return layer


def _logits(guesses, size=5):
    """Logits (L, B, T, V) whose likeliest tokens are `guesses` (L, B, T)."""
    guesses = torch.tensor(guesses)
    return torch.nn.functional.one_hot(guesses, size).float() * 2 - 1


def _walk_down(logits):
    """Position by position, from the last level down as long as the guess stays."""
    found = []
    for guesses in logits.argmax(dim=-1).flatten(1).T.tolist():
        layer = len(guesses) - 1
        while layer > 0 and guesses[layer - 1] == guesses[-1]:
            layer -= 1
        found.append(layer)
    return torch.tensor(found).view(logits.shape[1:3])


def test_d_one(answer):
    """one position that is decided after level 2"""
    where = "for one position at which five levels predict 1, 3, 4, 4, 4"
    same(answer(_logits([[[1]], [[3]], [[4]], [[4]], [[4]]])), [[2]], where)


def test_d_back(answer):
    """a guess that is given up and comes back counts from its return"""
    where = "for one position at which five levels predict 2, 2, 0, 2, 2"
    note = "Level 2 predicts something else, so the prediction stays the same only from level 3 on."
    same(answer(_logits([[[2]], [[2]], [[0]], [[2]], [[2]]])), [[3]], where, note=note)


def test_d_ends(answer):
    """decided at the first level, or only at the last"""
    where = "for two positions at which three levels predict 1, 1, 1 and 1, 1, 3"
    same(answer(_logits([[[1, 1]], [[1, 1]], [[1, 3]]])), [[0, 2]], where)
    agrees(answer, _walk_down, numbers(1, 2, 3, 4, seed=1), note="A single level is the final one.")


def test_d_places(answer):
    """every position by itself, in every row"""
    for seed, shape in enumerate([(4, 3, 2, 2), (7, 2, 5, 3), (3, 1, 6, 2), (5, 4, 1, 2)]):
        agrees(answer, _walk_down, numbers(*shape, seed=seed))


def test_d_kinds(answer):
    """in half and double precision, for large logits, for no positions"""
    near = torch.tensor([[0.0, 1e-12], [0.0, 1e-12], [1e-12, 0.0]], dtype=torch.float64)
    agrees(answer, _walk_down, near[[0, 2, 1], None, None] + 1)
    agrees(answer, _walk_down, numbers(4, 2, 3, 2, seed=5, dtype=torch.float16))
    agrees(answer, _walk_down, numbers(4, 2, 3, 2, seed=6, scale=1e4, shift=-1e5))
    empty = answer(torch.zeros(3, 2, 0, 4))
    got = tuple(tensor(empty, "for no positions").shape)
    expect(got == (2, 0), f"for logits of shape (3, 2, 0, 4), you return {got}, expected (2, 0)")


MISTAKES = r"""
the first time it is guessed
    return layer => return (says == says[-1]).int().argmax(dim=0)
    says: Level 2 predicts something else
    A guess that is given up again is not decided. Go down from the last level, and stop where a
    level predicts something else.
counted over all levels
    agreed & (level == says[-1]) => level == says[-1]
    says: Level 2 predicts something else
    This counts all levels that agree. Only those that agree without a gap up to the last count.
the number of agreeing levels
    return layer => return len(says) - layer
    says: predict 1, 3, 4, 4, 4
    That is how many levels agree at the end. Return the number of the first of them.
one level too far
    return layer => return layer - 1
    says: predict 1, 3, 4, 4, 4
    That level still predicts something else. The one above it is the first that agrees.
"""

HARMLESS = r"""
agreed = … => agreed = torch.ones_like(says[-1])
    `&` of 1 and True is 1
agreed = … => agreed &= …
    the mask is the answer's own
layer = … => layer -= …
    the numbers are the answer's own
layer = … => …len(logits))
    there is one guess a layer
… => …says[-0]…
    only the shape and dtype are taken
"""
