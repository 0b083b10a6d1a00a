"""20.1 repair a top-p (★★★, 12 minutes)

Code like this is passed around as top-p, and with a single text it seems to work. In a batch of
eight, the first text turns into nonsense, and the others read as if there were no filter.

```python
def my_top_p(logits, p):
    ranked, order = logits.sort(dim=-1, descending=True)
    out = ranked.softmax(dim=-1).cumsum(dim=-1) > p
    logits[0, order[out]] = -math.inf
    return logits
```

Find out why, and write `my_top_p(logits, p, least=1)` as it should be: in each row of `logits` (B,
V) it keeps the fewest tokens whose probabilities sum to p or more, but at least the `least`
likeliest, and gives all others `-inf`.

<details><summary>The rule in detail</summary>

A set that holds exactly p is complete. If fewer than `least` tokens hold p, the first `least` of
the ranking stay, from the likeliest down. The caller's `logits` stay as they are.

</details>

Hint: The code has three faults. Which rows lose tokens? Which token is the first to be dropped?
What becomes of the caller's `logits`?

Hint: Sort each row and sum. A token is ruled out if the likelier ones alone hold p already and it
is not one of the first `least`. This is known in sorted order, and `scatter` takes it back to the
tokens' own positions, in every row.
"""

import math

import torch

from tinytf_course.expect import agrees, expect, gradients, numbers, tensor
from tinytf_course.words import given, short


def my_top_p(logits, p, least=1):
    """Keep the fewest tokens that hold p, but `least` or more, in each row of logits (B, V).

    The others get -inf.
    """
    ranked, order = logits.sort(dim=-1, descending=True)
    probs = ranked.softmax(dim=-1)
    before = probs.cumsum(dim=-1) - probs  # what the likelier ones hold without this token
    enough = before >= p
    enough[:, :least] = False
    out = torch.zeros_like(enough).scatter(-1, order, enough)
    return logits.masked_fill(out, -math.inf)


LOGITS = torch.tensor([[0.125, 0.5, 0.25, 0.125], [0.0625, 0.1875, 0.125, 0.625]]).log()


def _by_rank(logits, p, least=1):
    """Row by row, token by token from the likeliest on, summed in float64; of equals the first."""
    stay = torch.zeros(logits.shape, dtype=torch.bool)
    for b, row in enumerate(logits.detach()):
        probs, held = row.double().softmax(-1).tolist(), 0.0
        ranking = sorted(range(len(row)), key=lambda i: -row[i].item())
        for number, i in enumerate(ranking):
            if held >= p and number >= least:
                break
            stay[b, i] = True
            held += probs[i]
    return torch.where(stay, logits, -math.inf)


def _keeps(answer, logits, *how, note=""):
    """Expect the tokens that the oracle keeps, shown as ids; `how` is p, and perhaps least."""
    few = f"rows of probability {short(logits.softmax(-1))}"
    where = f"for {few if logits.numel() <= 12 else f'logits of shape {tuple(logits.shape)}'}, "
    where += ", ".join(f"{name}={value}" for name, value in zip(("p", "least"), how))
    got = tensor(answer(logits, *how), where)
    message = f"{where}, the shape is {tuple(got.shape)}, expected {tuple(logits.shape)}"
    expect(got.shape == logits.shape, message)
    for b, rows in enumerate(zip(got.isfinite(), _by_rank(logits, *how).isfinite(), strict=True)):
        kept, expected = (row.nonzero().flatten().tolist() for row in rows)
        message = f"{where}, in row {b} you keep the tokens {short(kept)}"
        expect(kept == expected, f"{message}, expected {short(expected)}. {note}")


def _counts(answer, logits, p, count, note):
    """How many tokens of one row are kept, where it is open which."""
    where = given(answer, (logits, p))
    kept = int(tensor(answer(logits, p), where).isfinite().sum())
    expect(kept == count, f"{where}, you keep {kept} tokens, expected {count}. {note}")


def test_p_one_row(answer):
    """in one row, it keeps what it takes to reach p"""
    _keeps(answer, LOGITS[:1], 0.7, note="0.5 + 0.25 reaches 0.7, and fewer do not.")


def test_p_rows(answer):
    """each row has a nucleus of its own"""
    _keeps(answer, LOGITS, 0.6, note="Row 1 is surer, and needs its best token only.")


def test_p_exact(answer):
    """exactly p is enough"""
    _counts(answer, torch.zeros(1, 4), 0.5, 2, "Two of four equal tokens hold exactly 0.5.")


def test_p_never_empty(answer):
    """a small p leaves the likeliest token"""
    _keeps(answer, LOGITS, 0.1, note="There must be something to draw from.")


def test_p_least(answer):
    """at least as many as asked stay, the likeliest"""
    _keeps(answer, LOGITS, 0.1, 2, note="Two are asked for, and in each row its likeliest.")


def test_p_least_is_no_extra(answer):
    """a nucleus that has as many already stays as it is"""
    row = LOGITS[:1]
    note = "0.5 + 0.25 reaches 0.7, and these are two: `least` adds nothing."
    _keeps(answer, row, 0.7, 2, note=note)
    _keeps(answer, row, 0.8, 2, note="It takes three to reach 0.8, and two are asked for.")
    _keeps(answer, row, 0.8, 3, note="It takes three to reach 0.8, and three are asked for.")


def test_p_least_row_by_row(answer):
    """whether `least` matters is each row's own affair"""
    note = "Row 0 needs two for 0.6 anyway; row 1 needs one, and two are asked for."
    _keeps(answer, LOGITS, 0.6, 2, note=note)
    note = "Row 0 needs one, and two are asked for; row 1 needs two for 0.6 anyway."
    _keeps(answer, LOGITS.flip(0), 0.6, 2, note=note)
    three = torch.tensor([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [0.1, 0.1, 0.8]]).log()
    _keeps(answer, three, 0.75, 2, note="Row 1 needs three for 0.75, the others two or one.")


def test_p_all(answer):
    """p = 1 keeps all, p = 0 the `least` likeliest, and never are there more than all"""
    _keeps(answer, torch.zeros(2, 4), 1.0)
    _keeps(answer, LOGITS, 0.0, note="One stays at least, even for p = 0.")
    _keeps(answer, LOGITS, 0.0, 1)
    _keeps(answer, LOGITS, 0.3, 4)
    _keeps(answer, LOGITS, 0.9, 9, note="There are no more than four.")
    _keeps(answer, torch.tensor([[3.0], [-2.0]]), 0.5, 1)


def test_p_many(answer):
    """in larger vocabularies, for any p and `least`, however far apart the logits"""
    for seed, (rows, size, p, least) in enumerate(
        [(3, 7, 0.5, 1), (2, 40, 0.9, 3), (5, 40, 0.35, 12), (4, 9, 0.97, 1), (3, 30, 0.8, 6)]
    ):
        _keeps(answer, numbers(rows, size, seed=seed, scale=2), p, least)
    far = numbers(3, 6, seed=7, scale=300, shift=1000)
    _keeps(answer, far, 0.9, 1, note="`exp(1000)` is infinite; `softmax` is not.")
    _keeps(answer, far, 0.9, 2, note="The second likeliest stays, at probability 0 even.")


def test_p_values(answer):
    """what stays keeps its logit"""
    agrees(answer, _by_rank, LOGITS[:1], 0.7)


def test_p_kinds(answer):
    """and its dtype and its gradient"""
    for dtype in (torch.float64, torch.float16):
        few = torch.tensor([[0.1, 3.0, 1.0, 2.0], [4.0, 0.5, 2.0, 3.0]], dtype=dtype)
        agrees(answer, _by_rank, few, 0.8)
        agrees(answer, _by_rank, few, 0.8, 3)
    near = torch.tensor([[0.0, 0.0, 0.0, 1e-10]], dtype=torch.float64)
    note = "Token 3 holds a quarter and 1.9e-11, in float64."
    agrees(answer, _by_rank, near, 0.25 + 1e-11, note=note)
    _counts(answer, near, 0.25 + 3e-11, 2, note)
    gradients(answer, _by_rank, numbers(3, 5, seed=4), 0.7, 2)


MISTAKES = r"""
as it stood
    … =>
        ranked, order = logits.sort(dim=-1, descending=True)
        out = ranked.softmax(dim=-1).cumsum(dim=-1) > p
        logits[0, order[out]] = -math.inf
        return logits
    says: 0.5 + 0.25 reaches 0.7
    Nothing is repaired yet. Begin with one row: which token is the first that has to go?
all rows' tokens removed from row 0
    out = torch.zeros_like(enough).scatter(-1, order, enough) =>
        out = torch.zeros_like(enough)
        out[0, order[enough]] = True
    says: Row 1 is surer
    Indexing with a mask flattens it: row 0 loses what any row rules out, the others keep
    everything. With one row it works.
one token too many at a tie
    >= p => > p
    says: you keep 3 tokens, expected 2
    With `>` a set that holds exactly p is not yet complete, and one more comes in.
the token that reaches p is lost
    cumsum(dim=-1) - probs => cumsum(dim=-1)
    says: 0.5 + 0.25 reaches 0.7
    The running sum counts the token itself. It is out only if the sum *before* it has reached
    p; else the set holds less than p, and may be empty.
not sorted
    logits.sort(dim=-1, descending=True) => logits, torch.arange(logits.size(-1)).expand_as(logits)
    says: 0.5 + 0.25 reaches 0.7
    A running sum in the order of the ids keeps the first tokens of the vocabulary, not the
    likeliest.
the mask left in sorted order
    torch.zeros_like(enough).scatter(-1, order, enough) => enough
    says: 0.5 + 0.25 reaches 0.7
    Column j of the sorted mask is the j-th likeliest token, not token j. Scatter it.
a threshold on each probability
    … =>
        return logits.masked_fill(logits.softmax(dim=-1) < 1 - p, -math.inf)
    says: p=0.1, in row 0 you keep the tokens []
    p is a share of the sum, not a bound for each token.
least forgotten
    enough[:, :least] = False =>
    says: Two are asked for
    Where one token alone holds p, the others went, whatever `least` is.
least taken for the most
    enough[:, :least] = False => enough[:, least:] = True
    says: 0.5 + 0.25 reaches 0.7
    `least` is a lower limit: more tokens stay where p needs more.
the lowest ids spared
    enough[:, :least] = False =>
    out = torch.zeros_like(enough).scatter(-1, order, enough) =>
        out = torch.zeros_like(enough).scatter(-1, order, enough)
        out[:, :least] = False
    says: 0.5 + 0.25 reaches 0.7
    `[:, :least]` was applied after the mask had gone back to the tokens' own places: do it in
    sorted order.
returns probabilities
    return logits => return logits.masked_fill(out, -math.inf).softmax(dim=-1)
    says: for logits=[[-2.079
    Return logits, so that the next rule, or the draw, can go on from them.
moved by `least`
    before = probs.cumsum(dim=-1) - probs => before = probs.cumsum(dim=-1).roll(least, -1)
    says: `least` adds nothing
    The mask was moved by `least` places instead of one: a nucleus that has enough gets `least -
    1` tokens more. Move by one, then spare the first `least`.
row 0 decides about `least`
    enough[:, :least] = False =>
        if (~enough[0]).sum() < least:
            enough[:, :least] = False
    says: row 1 needs one, and two are asked for
    Some rows have enough tokens and others have not: decide in every row.
all rows get `least` if one needs it
    enough[:, :least] = False =>
        if (~enough).sum(dim=-1).min() < least:
            enough[:, :least], enough[:, least:] = False, True
    says: Row 1 needs three
    A row whose nucleus is larger than `least` keeps its nucleus.
cut off from the graph
    return logits => return logits.detach()
    says: no gradient reaches `logits`
    What stays is the logit itself: `masked_fill` and `where` let gradients through.
"""

HARMLESS = r"""
probs = … => ….detach()…
    places and masks carry no gradient
before = … => ….detach()…
    places and masks carry no gradient
enough… => …detach()…
    places and masks carry no gradient
ranked, order = … => ranked, order = logits.detach().sort(…
    places and masks carry no gradient
ranked, order = … => ranked, order = logits.sort(descending=True)
    -1 is the default
… => …dim=1…
    there are two axes: 1 is the last
out = … => ….scatter(1, …
    there are two axes: 1 is the last
… => ….double()
    only compared, and no less exactly
before = … => before = probs.cumsum(dim=-1) - probs.float()
    wrong by 1e-8 at most
out = … => out = enough.scatter(…
    every place is written over
out = … => out = torch.ones_like(…
    every place is written over
"""
