"""20.2 a penalty of the right strength (★★☆, 8 minutes)

How strong is a presence penalty of 3? Turn the question round: write `my_alpha(logits, ids,
share)`, which returns for each row of `logits` (B, V) the α of the presence penalty after which the
tokens that occur in the same row of `ids` (B, T) together hold exactly `share` of the probability.

<details><summary>The rule in detail</summary>

No search is needed. `share` lies between 0 and 1, and a row of `ids` contains at least one token of
the vocabulary, but not all of them. The result must also be right where the model is almost
certain.

</details>

Hint: Together these tokens hold a probability q. The penalty multiplies their odds q / (1 - q) by
e^-α, and the odds that you want are share / (1 - share).

Hint: Where the model is almost certain, 1 - q rounds to 0. The same odds are a quotient of two sums
of e^logit, one over the tokens that occur and one over all others. `logsumexp` of logits is the
logarithm of such a sum, and it leaves out what is filled with `-inf`.
"""

import math

import torch

from tinytf_course.expect import agrees, gradients, numbers, same, tensor
from tinytf_course.grading import hint
from tinytf_course.words import short


def my_alpha(logits, ids, share):
    """Find the presence penalty after which a row's ids hold `share` of its probability.

    logits is (B, V), ids (B, T), share a number between 0 and 1; returns one strength a row, (B,).
    """
    seen = torch.zeros_like(logits, dtype=torch.bool).scatter(1, ids, True)
    said = logits.masked_fill(~seen, -math.inf).logsumexp(dim=-1)
    new = logits.masked_fill(seen, -math.inf).logsumexp(dim=-1)
    return (said - new) - math.log(share / (1 - share))  # the odds now, over those wished


INF = math.inf
EVEN = torch.zeros(1, 4)
SCORES = torch.tensor([[2.0, -1.0, 0.5, -4.0], [1.0, 3.0, -2.0, 0.0]])
SAID = torch.tensor([[0, 1, 1], [2, 2, 2]])


def _alpha_by_row(logits, ids, share):
    """Row by row: each token that occurs adds its probability once, in float64."""
    rows = []
    for row, said in zip(logits.unbind(), ids.tolist(), strict=True):
        held, others = [], []
        for i, part in enumerate(row.double().unbind()):
            (held if i in said else others).append(part)
        tops = [max(part.item() for part in parts) for parts in (held, others)]
        sums = [
            sum((part - top).exp() for part in parts).log() + top
            for parts, top in zip((held, others), tops, strict=True)
        ]
        rows.append(sums[0] - sums[1] - math.log(share / (1 - share)))
    return torch.stack(rows).to(logits.dtype)


def test_alpha_even(answer):
    """two of four equal tokens shall hold a quarter"""
    where = f"for logits={short(EVEN)}, ids=[[0, 2]], share=0.25"
    note = "Their odds are 1 now, 0.5 to 0.5, and shall be 1 to 3: e^-α is 1/3."
    got = tensor(answer(EVEN, torch.tensor([[0, 2]]), 0.25), where)
    same(got, torch.tensor([math.log(3)]), where, note=note)


def test_alpha_up(answer):
    """where they hold too little, α is negative"""
    where = f"for logits={short(EVEN)}, ids=[[3]], share=0.75"
    note = "Their odds are 1 to 3 now and shall be 3 to 1: a penalty that rewards."
    got = tensor(answer(EVEN, torch.tensor([[3]]), 0.75), where)
    same(got, torch.tensor([-math.log(9)]), where, note=note)


def test_alpha_repeats(answer):
    """a token that occurs three times counts once"""
    note = "It matters whether a token occurs, not how often."
    agrees(answer, _alpha_by_row, EVEN, torch.tensor([[1, 1, 1]]), 0.2, note=note)
    agrees(answer, _alpha_by_row, SCORES[:1], SAID[:1], 0.3, note=note)


def test_alpha_rows(answer):
    """each row has tokens of its own, and gets its own strength"""
    note = "The tokens 0 and 1 occur in row 0, the token 2 in row 1."
    agrees(answer, _alpha_by_row, SCORES, SAID, 0.3, note=note)
    agrees(answer, _alpha_by_row, SCORES.flip(0), SAID, 0.5)
    agrees(answer, _alpha_by_row, torch.tensor([[3.0, 1.0]]), torch.tensor([[0]]), 0.9)
    ids = numbers(3, 5, seed=1).abs().mul(3).long().clamp(max=6)
    agrees(answer, _alpha_by_row, numbers(3, 8, seed=2, scale=3), ids, 0.07)
    agrees(answer, _alpha_by_row, numbers(3, 8, seed=2, scale=3, shift=50), ids[:, :1], 0.6)


@hint(
    "Compare the two sums, not 1 minus one of them; `logsumexp` of some logits is ln of their sum."
)
def test_alpha_sure(answer):
    """also where the model is almost certain"""
    sure = torch.tensor([[60.0, 0.0, 1.0], [0.0, 40.0, -30.0], [-90.0, 2.0, 0.0]])
    note = "1 minus a probability that rounds to 1 is 0, and 0 has no logarithm."
    agrees(answer, _alpha_by_row, sure, torch.tensor([[0], [1], [0]]), 0.5, note=note)
    note = "In float32, `exp` is infinite from 89 on and 0 below -104; in float64, 710 and -746."
    for logits in ([100.0, 0.0, 0.0], [1000.0, 999.0, 998.0], [-2000.0, -2000.0, -1.0]):
        given = torch.tensor([logits]), torch.tensor([[0]]), 0.5
        agrees(answer, _alpha_by_row, *given, tolerance=1e-3, note=note)


@hint("`logsumexp` leaves out what is filled with `-inf`, and nothing else.")
def test_alpha_ruled_out(answer):
    """and where tokens are ruled out, or nearly so"""
    ruled_out = torch.tensor([[1.0, -INF, 0.5, 2.0], [3.0, 0.0, -INF, 1.0]])
    agrees(answer, _alpha_by_row, ruled_out, torch.tensor([[0, 1], [0, 3]]), 0.4)
    low, note = torch.tensor([[-2e5, -2e5, -1.0]]), "A logit may lie below any number but -inf."
    agrees(answer, _alpha_by_row, low, torch.tensor([[0]]), 0.5, tolerance=1e-3, note=note)


def test_alpha_kinds(answer):
    """in float64 too, with gradients"""
    ids = torch.tensor([[0, 1, 1], [3, 2, 3]])
    agrees(answer, _alpha_by_row, numbers(2, 5, seed=4).double(), ids, 1e-9)
    gradients(answer, _alpha_by_row, numbers(2, 5, seed=4), ids, 0.25)


MISTAKES = r"""
probabilities, not odds
    (said - new) - math.log(share / (1 - share)) => said - logits.logsumexp(-1) - math.log(share)
    says: Their odds are 1 now
    A penalty multiplies odds, not probabilities: what these tokens lose, the others gain,
    and both sides of the ratio move.
turned round
    (said - new) - => (new - said) +
    says: Their odds are 1 now
    The sign: α is subtracted, so a larger one makes the odds smaller.
the factor itself
    (said - new) - math.log(share / (1 - share)) => (said - new).exp() / (share / (1 - share))
    says: Their odds are 1 now
    That is what the odds are divided by; α is its logarithm.
never negative
    return (said - new) => return ((said - new)
    (1 - share))  # => (1 - share))).clamp(min=0)  #
    says: a penalty that rewards
    Where these tokens hold less than is wished, α must lift them.
once for every time
    … =>
        q = logits.softmax(dim=-1).gather(1, ids).sum(dim=-1)
        return (q / (1 - q)).log() - math.log(share / (1 - share))
    says: not how often
    `gather` takes a token's probability each time it was said. Mark tokens, then sum.
one history for all rows
    .scatter(1, ids, True) => .scatter(1, ids, True).any(dim=0)
    says: The tokens 0 and 1 occur in row 0
    The rows of a batch don't know each other: the ids of one have no effect on the next.
one strength for all rows
    return (said - new) => return (said - new).mean().expand(len(logits))
    says: The tokens 0 and 1 occur in row 0
    Each row holds another share now, and needs a strength of its own.
1 minus what rounds to 1
    … =>
        seen = torch.zeros_like(logits).scatter(1, ids, 1.0)
        q = (logits.softmax(dim=-1) * seen).sum(dim=-1)
        return (q / (1 - q)).log() - math.log(share / (1 - share))
    says: rounds to 1 is 0
    The formula is right, the arithmetic is not: `logsumexp` of their logits minus that of
    the others is the same logarithm, and nothing rounds away.
left out by -10,000
    (~seen, -math.inf) => (~seen, -1e4)
    (seen, -math.inf) => (seen, -1e4)
    says: below any number but -inf
    -10,000 is a logit like any other, and larger than some. Only e^-inf is 0.
cut off from the graph
    return (said - new) => return (said - new).detach()
    says: no gradient reaches `logits`
    A detached tensor, or a new one made of numbers, is cut off from what it came from.
"""

HARMLESS = r"""
seen = … => …zeros_like(logits.…(), …
    only the shape and the device are taken
said = … => ….logsumexp(dim=1)
    there are two axes: 1 is the last
new = … => ….logsumexp(dim=1)
    there are two axes: 1 is the last
"""
