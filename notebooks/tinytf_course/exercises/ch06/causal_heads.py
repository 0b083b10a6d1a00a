"""06.2 repair a causal attention (★★☆, 15 minutes)

`suspect`, above, returns the right shape, and yet its past moves when the last token changes. Write
`my_causal_heads(x, w_q, w_k, w_v, w_o, num_heads)`, which does what `suspect` should: copy the
function, find what is wrong, and repair it.

<details><summary>The rule in detail</summary>

The projections are `(C, C)` matrices that multiply from the right, without biases. The scores may
be very large, and all is computed on the device of `x`.

</details>

Hint: There is more than one fault. Give `suspect` one head, and only the mask is at work: what do
the weights of a row sum to? Then give it several, and change one feature of one token.

Hint: Four lines are wrong. Ask of each in turn: which features does a head hold? How wide is a
head's query? What do the weights of a row sum to? Whose outputs end up side by side?
"""

import math

import torch
from torch.nn.functional import multi_head_attention_forward

from tinytf_course.expect import agrees, expect, given, gradients, numbers, same, tensor, travels
from tinytf_course.grading import hint


def my_causal_heads(x, w_q, w_k, w_v, w_o, num_heads):
    """Causal self-attention with `num_heads` heads: x (B, T, C) -> (B, T, C).

    Each w is (C, C) and multiplies from the right: q = x @ w_q. Token t sees the tokens 0 to t.
    """
    q, k, v = ((x @ w).unflatten(-1, (num_heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    scores = q @ k.mT / math.sqrt(q.size(-1))  # (B, H, T, T)
    later = torch.ones_like(scores, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(later, -math.inf).softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ w_o  # (B, H, T, D) -> (B, T, C)


def _causal(x, w_q, w_k, w_v, w_o, num_heads):
    """torch's own, whose maps multiply from the left and whose words come first."""
    words = x.transpose(0, 1)
    later = torch.ones(len(words), len(words), dtype=torch.bool).triu(1)  # True = hidden
    out, _ = multi_head_attention_forward(
        words, words, words, x.size(-1), num_heads,
        torch.cat([w_q.T, w_k.T, w_v.T]), None, None, None, False, 0.0, w_o.T, None,
        training=False, need_weights=False, attn_mask=later,
    )  # fmt: skip
    return out.transpose(0, 1)


def _inputs(b, t, c, seed, scale=1.0, dtype=torch.float32):
    """x and four maps of random numbers."""
    maps = numbers(4, c, c, seed=seed, scale=c**-0.5, dtype=dtype).unbind()
    return numbers(b, t, c, seed=seed + 1, scale=scale, dtype=dtype), *maps


def _repaired(answer, wrong, *arguments):
    """Expect what `suspect` should give; a message says first what is wrong, then the matrices."""
    agrees(answer, _causal, *arguments, where=f"{wrong}: {given(answer, arguments)}")


def test_one_word(answer):
    """a word that is alone gets its own value, through w_v and w_o"""
    wrong = "a word that is alone: its weight is 1, and every row is x @ w_v @ w_o"
    _repaired(answer, wrong, *_inputs(1, 1, 2, seed=71), 1)
    _repaired(answer, wrong, *_inputs(3, 1, 4, seed=72), 2)


@hint("Do the weights that are left in a row sum to 1? With one head, only the mask is at work.")
def test_first_word(answer):
    """with one head, no word sees a later one, and its weights sum to 1"""
    for b, t, c, seed in ((1, 3, 2, 73), (2, 5, 4, 74)):
        x, *maps = _inputs(b, t, c, seed=seed)
        own = (x @ maps[2] @ maps[3])[:, 0]
        where = f"row 0 is x[0] @ w_v @ w_o: {given(answer, (x, *maps, 1))}"
        got = tensor(answer(x, *maps, 1), where)
        same(got[:, :1] if got.dim() == 3 else got, own[:, None], where)
        alike = x[:, :1].repeat(1, t, 1)
        where = f"if all words are alike, all rows are x[0] @ w_v @ w_o: for x of shape {(b, t, c)}"
        same(answer(alike, *maps, 1), own[:, None].repeat(1, t, 1), where)
        _past_stays(answer, b, t, c, 1)


@hint("The mask is right. What is a score, and by what is it divided?")
def test_scores(answer):
    """with one head, a word weighs what it sees by the softmax of q · k / √D"""
    wrong = "weights should be the softmax of q @ k.mT / √D over what is seen"
    _repaired(answer, wrong, *_inputs(1, 3, 2, seed=73), 1)
    _repaired(answer, wrong, *_inputs(2, 5, 4, seed=74), 1)


def _past_stays(answer, b, t, c, heads):
    """Expect the rows before the last to stay as they are when the last word changes."""
    x, *maps = _inputs(b, t, c, seed=75 + t)
    changed = x.clone()
    changed[:, -1] += 1
    where = f"for x of shape {(b, t, c)} and num_heads={heads}"
    before, after = (tensor(answer(each, *maps, heads), where) for each in (x, changed))
    expect(before.shape == x.shape, f"{where}, the shape is {tuple(before.shape)}")
    if before.shape == after.shape == x.shape:
        moved = (after - before)[:, :-1].abs().max().item()
        expect(moved < 1e-6, f"{where}, the last word changes, and words before it move by "
               f"{moved:.3g}, expected 0")  # fmt: skip


@hint("Change the last word: does a word before it move, and in which head?")
def test_leak(answer):
    """with several heads, the past does not move when the last word changes"""
    for b, t, c, heads in ((1, 2, 2, 2), (2, 5, 6, 3)):
        _past_stays(answer, b, t, c, heads)


@hint("How many numbers has one head's query? And is head h slice h of every word?")
def test_causal_heads(answer):
    """each head has its own slice of every word, and scores of its own"""
    wrong = "head h should have slice h of every word, and scores of its own"
    _repaired(answer, wrong, *_inputs(1, 2, 2, seed=81), 2)
    _repaired(answer, wrong, *_inputs(1, 3, 4, seed=82), 2)
    _repaired(answer, wrong, *_inputs(2, 5, 6, seed=83), 3)
    _repaired(answer, wrong, *_inputs(3, 4, 8, seed=84), 4)


def test_causal_large(answer):
    """scores in the thousands, and beyond 1e9, give no NaN, and hide as well"""
    note = "All that a word may see can have a weight of 0 before later words are hidden."
    agrees(answer, _causal, *_inputs(2, 4, 4, seed=85, scale=300.0), 2, tolerance=1e-3, note=note)
    note = "A later word is hidden whatever the scores are: a fill of -1e9 is not low enough."
    agrees(
        answer, _causal, *_inputs(2, 4, 4, seed=85, scale=1e6, dtype=torch.float64), 2, note=note
    )


def test_causal_dtype(answer):
    """it works in float64, and where its arguments are"""
    agrees(answer, _causal, *_inputs(2, 3, 4, seed=86, dtype=torch.float64), 2)
    travels(answer, *_inputs(2, 3, 4, seed=87), 2)


def test_causal_learns(answer):
    """gradients reach x and every map"""
    gradients(answer, _causal, *_inputs(1, 3, 2, seed=88), 1)
    gradients(answer, _causal, *_inputs(2, 3, 4, seed=89), 2)


MISTAKES = r"""
as it was
    … =>
        B, T, C = x.shape
        q, k, v = ((x @ w).reshape(B, num_heads, T, -1) for w in (w_q, w_k, w_v))
        weights = (q @ k.mT / math.sqrt(C)).softmax(dim=-1)
        weights = weights * torch.ones(T, T).tril()
        return (weights @ v).reshape(B, T, C) @ w_o
    says: row 0 is x[0] @ w_v @ w_o
    Nothing is repaired yet. Begin with the mask, which one head alone can test.
split by reshape
    unflatten(-1, (num_heads, -1)).transpose(1, 2) => reshape(len(x), num_heads, x.size(1), -1)
    says: words before it move by
    `reshape` to (B, H, T, D) only recounts: head 0 gets the first words in pieces. Name the
    axes (B, T, H, D), then transpose.
scaled by the whole width
    q.size(-1) => x.size(-1)
    says: position [0, 1,
    A score is a dot product of D numbers, those of one head: divide by √D, not √C.
not scaled
     / math.sqrt(q.size(-1)) =>
    says: weights should be the softmax of
    A dot product of D numbers has a spread of √D: divide the scores by it.
masked after the softmax
    .masked_fill(later, -math.inf).softmax(dim=-1) => .softmax(dim=-1).masked_fill(later, 0.0)
    says: row 0 is x[0] @ w_v @ w_o
    The later words' weights are gone, but they had their share of the 1: a row sums to less,
    and by how much tells what comes later. Hide scores, with -∞, before it.
joined by reshape
    .transpose(1, 2).flatten(2) => .reshape(x.shape)
    says: words before it move by
    `reshape` from (B, H, T, D) puts different words of one head in a row. Transpose back to (B,
    T, H, D) first.
no mask
    .masked_fill(later, -math.inf) =>
    says: row 0 is x[0] @ w_v @ w_o
    Every word sees the later ones.
the triangle the wrong way round
    triu(1) => tril(-1)
    says: row 0 is x[0] @ w_v @ w_o
    You hide what came before. Above the diagonal the key is later than the query.
a word does not see itself
    triu(1) => triu()
    says: every row is x @ w_v @ w_o
    `triu()` has the diagonal too, so word 0 sees nothing at all: `triu(1)`.
one word too far
    triu(1) => triu(2)
    says: row 0 is x[0] @ w_v @ w_o
    `triu(2)` leaves the next word to be seen, the very one to be predicted: `triu(1)`.
hidden with a low number
    -math.inf => -1e4
    says: can have a weight of 0 before
    A score of its own can be lower than -100, or -10,000. Hide with -∞, or the least number
    there is.
hidden scores set to 0
    -math.inf => 0.0
    says: row 0 is x[0] @ w_v @ w_o
    A score of 0 is a score like any other, and e^0 is 1. Hide with -∞.
zeroed, and divided by what is left
    .masked_fill(later, -math.inf).softmax(dim=-1) => .softmax(dim=-1).masked_fill(later, 0.0)
    (weights @ v) => (weights / weights.sum(-1, keepdim=True) @ v)
    says: can have a weight of 0 before
    That is right until a later word takes all the weight: then 0 is divided by 0. Hide the
    scores before the softmax.
no output map
     @ w_o =>
    says: every row is x @ w_v @ w_o
    Joined heads lie side by side and have not met: `w_o` lets them mix.
a mask on the CPU
    torch.ones_like(scores, => torch.ones(scores.shape,
    says: device
    `torch.ones(...)` is on the CPU, wherever `x` is: give it `device=x.device`.
weights cut off from the graph
    scores.masked_fill => scores.detach().masked_fill
    says: for the gradient to
    The numbers are right, but `w_q` and `w_k` would never learn: leave `detach`, `.data` and
    `no_grad` out of it.
"""

HARMLESS = r"""
… => later = torch.ones_like(scores.detach(), …
    only the shape and the device of the scores are taken
… => later = torch.ones_like(scores.float(), …
    only the shape and the device of the scores are taken
… => …math.sqrt(k.size(-1))
    queries and keys are D wide
… => …math.sqrt(v.size(-1))
    values are D wide, too
"""
