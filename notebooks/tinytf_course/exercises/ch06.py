"""Chapter 06: splitting into heads, and a causal attention to repair."""

import torch
from torch.nn.functional import multi_head_attention_forward

from tinytf_course.expect import (
    agrees,
    expect,
    given,
    gradients,
    numbers,
    refuses,
    tensor,
    travels,
)
from tinytf_course.grading import Exercise, hint

# 06.1 split into heads


def my_split_heads(x, num_heads):
    """Give each head its own slice of every vector: (B, T, C) -> (B, H, T, D), D = C / H.

    Head h gets the features h * D to (h + 1) * D - 1. Raises ValueError if H does not divide C.
    """
    raise NotImplementedError


def _one_by_one(x, num_heads):
    """Number by number: entry d of head h of word t is x[b, t, h * D + d]."""
    width = x.size(-1) // num_heads
    heads = [x[..., head * width : (head + 1) * width] for head in range(num_heads)]
    return torch.stack(heads, dim=1)


def _counted(*shape):
    """The numbers 0, 1, 2, ... in this shape: every one says where it came from."""
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape)


def _split_content(answer):
    """head h holds slice h of every word, (B, H, T, D)"""
    note = "A row for each word, its own numbers."
    agrees(answer, _one_by_one, _counted(1, 3, 4), 2, note=note)


def _split_lined_up(answer):
    """also where there are as many heads as words"""
    agrees(answer, _one_by_one, _counted(1, 2, 8), 2)


def _split_edges(answer):
    """also with one head, one number a head, or one word"""
    agrees(answer, _one_by_one, _counted(1, 2, 3), 1)
    agrees(answer, _one_by_one, _counted(1, 2, 3), 3)
    agrees(answer, _one_by_one, _counted(2, 1, 4), 2)


@hint("Name the axes (B, T, H, D) first, and only then put them in another order.")
def _split_batch(answer):
    """every sentence of a batch is split by itself, of a part of a larger tensor too"""
    agrees(answer, _one_by_one, _counted(2, 1, 2), 2, note="Sentence 0 is [0, 1].")
    agrees(answer, _one_by_one, _counted(2, 3, 8), 4)
    agrees(answer, _one_by_one, _counted(3, 5, 2).transpose(0, 1)[1:], 2)


def _split_dtype(answer):
    """the numbers keep their dtype, and gradients pass"""
    for dtype in (torch.float64, torch.float16):
        agrees(answer, _one_by_one, numbers(2, 3, 4, seed=1, dtype=dtype), 2)
    gradients(answer, _one_by_one, numbers(2, 3, 4, seed=2), 2)


def _split_refuses(answer):
    """heads that do not divide the width are refused"""
    refuses(answer, _counted(1, 2, 10), 3, note="10 is not 3 × D.")
    refuses(answer, _counted(1, 6, 4), 6, note="4 is not 6 × D.")


SPLIT = Exercise(
    id="06.1",
    title="split into heads",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `my_split_heads(x, num_heads)`, which turns `(B, T, C)` into `(B, H, T, D)` so "
        "that head h gets slice h of every token's features. Raise `ValueError` if `num_heads` "
        "does not divide C."
    ),
    hint=(
        "First split the last axis into two, with `unflatten(-1, (num_heads, -1))`. Then swap "
        "two axes."
    ),
    function=my_split_heads,
    tests=(
        _split_content,
        _split_lined_up,
        _split_edges,
        _split_batch,
        _split_dtype,
        _split_refuses,
    ),
)


# 06.2 repair a causal attention


def my_causal_heads(x, w_q, w_k, w_v, w_o, num_heads):
    """Causal self-attention with `num_heads` heads: x (B, T, C) -> (B, T, C).

    Each w is (C, C) and multiplies from the right: q = x @ w_q. Token t sees the tokens 0 to t.
    """
    raise NotImplementedError


def torchs_heads(x, memory, w_q, w_k, w_v, w_o, num_heads):
    """torch's own, whose maps multiply from the left and whose words come first."""
    memory = memory.transpose(0, 1)
    out, _ = multi_head_attention_forward(
        x.transpose(0, 1), memory, memory, x.size(-1), num_heads,
        torch.cat([w_q.T, w_k.T, w_v.T]), None, None, None, False, 0.0, w_o.T, None,
        training=False, need_weights=False,
    )  # fmt: skip
    return out.transpose(0, 1)


def random_inputs(b, t, s, c, seed, scale=1.0, dtype=torch.float32):
    """x, memory and four maps of random numbers."""
    maps = numbers(4, c, c, seed=seed, scale=c**-0.5, dtype=dtype).unbind()
    x = numbers(b, t, c, seed=seed + 1, scale=scale, dtype=dtype)
    return x, numbers(b, s, c, seed=seed + 2, scale=scale, dtype=dtype), *maps


def _causal(x, w_q, w_k, w_v, w_o, num_heads):
    """Word by word, each with a memory of the words up to itself: there is nothing to hide."""
    words = range(x.size(1))
    maps = (w_q, w_k, w_v, w_o, num_heads)
    return torch.cat([torchs_heads(x[:, t : t + 1], x[:, : t + 1], *maps) for t in words], dim=1)


def _alone(b, t, c, seed, **how):
    """x and four maps of random numbers."""
    x, _, *maps = random_inputs(b, t, 1, c, seed, **how)
    return x, *maps


def _repaired(answer, wrong, *arguments):
    """Expect what `suspect` should give; a message says first what is wrong, then the matrices."""
    agrees(answer, _causal, *arguments, where=f"{wrong}: {given(answer, arguments)}")


def _one_word(answer):
    """a word that is alone gets its own value, through w_v and w_o"""
    wrong = "a word that is alone: its weight is 1, and every row is x @ w_v @ w_o"
    _repaired(answer, wrong, *_alone(1, 1, 2, seed=71), 1)
    _repaired(answer, wrong, *_alone(3, 1, 4, seed=72), 2)


@hint("Do the weights that are left in a row sum to 1? With one head, only the mask is at work.")
def _first_word(answer):
    """with one head, no word sees a later one, and its weights sum to 1"""
    wrong = "no word should see a later one, and weights should sum to 1. Row 0 is x[0] @ w_v @ w_o"
    _repaired(answer, wrong, *_alone(1, 3, 2, seed=73), 1)
    _repaired(answer, wrong, *_alone(2, 5, 4, seed=74), 1)


@hint("Change the last word: does a word before it move, and in which head?")
def _leak(answer):
    """with several heads, the past does not move when the last word changes"""
    for b, t, c, heads in ((1, 2, 2, 2), (2, 5, 6, 3)):
        x, *maps = _alone(b, t, c, seed=75 + t)
        changed = x.clone()
        changed[:, -1] += 1
        where = f"for x of shape {(b, t, c)} and num_heads={heads}"
        before, after = (tensor(answer(each, *maps, heads), where) for each in (x, changed))
        expect(before.shape == x.shape, f"{where}, the shape is {tuple(before.shape)}")
        moved = (after - before)[:, :-1].abs().max().item()
        expect(moved < 1e-6, f"{where}, the last word changes, and words before it move by "
               f"{moved:.3g}, expected 0")  # fmt: skip


@hint("How many numbers has one head's query? And is head h slice h of every word?")
def _causal_heads(answer):
    """each head has its own slice of every word, and scores of its own"""
    wrong = "head h should have slice h of every word, and scores of its own"
    _repaired(answer, wrong, *_alone(1, 2, 2, seed=81), 2)
    _repaired(answer, wrong, *_alone(1, 3, 4, seed=82), 2)
    _repaired(answer, wrong, *_alone(2, 5, 6, seed=83), 3)
    _repaired(answer, wrong, *_alone(3, 4, 8, seed=84), 4)


def _causal_large(answer):
    """scores in the thousands, and beyond 1e9, give no NaN, and hide as well"""
    note = "All that a word may see can have a weight of 0 before later words are hidden."
    agrees(answer, _causal, *_alone(2, 4, 4, seed=85, scale=300.0), 2, tolerance=1e-3, note=note)
    note = "A later word is hidden whatever the scores are: a fill of -1e9 is not low enough."
    agrees(answer, _causal, *_alone(2, 4, 4, seed=85, scale=1e6, dtype=torch.float64), 2, note=note)


def _causal_dtype(answer):
    """it works in float64, and where its arguments are"""
    agrees(answer, _causal, *_alone(2, 3, 4, seed=86, dtype=torch.float64), 2)
    travels(answer, *_alone(2, 3, 4, seed=87), 2)


def _causal_learns(answer):
    """gradients reach x and every map"""
    gradients(answer, _causal, *_alone(1, 3, 2, seed=88), 1)
    gradients(answer, _causal, *_alone(2, 3, 4, seed=89), 2)


REPAIR = Exercise(
    id="06.2",
    title="repair a causal attention",
    difficulty=2,
    minutes=15,
    statement=(
        "Four lines of `suspect`, above, are wrong although the shape of its output is right. "
        "Write `my_causal_heads(x, w_q, w_k, w_v, w_o, num_heads)`, which does what `suspect` "
        "should: copy the function and repair it line by line. The projections are `(C, C)` "
        "matrices that multiply from the right, without biases, and the scores may be very "
        "large."
    ),
    hint=(
        "Ask of each line in turn: which features does a head hold? How wide is a head's "
        "query? What do the weights of a row sum to? Whose outputs end up side by side?"
    ),
    function=my_causal_heads,
    tests=(
        _one_word,
        _first_word,
        _leak,
        _causal_heads,
        _causal_large,
        _causal_dtype,
        _causal_learns,
    ),
)


EXERCISES = (SPLIT, REPAIR)
