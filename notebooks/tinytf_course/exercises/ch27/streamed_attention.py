"""27.1 a softmax that never sees all scores (★★★, 15 minutes)

Write `my_streamed_attention(q, blocks)`, which, like a fused kernel, computes attention without
ever holding all scores. `blocks` is an iterator over pairs `(k, v)`, each of shape `(n, D)`, and
every block is overwritten by the next. Return the attention of `q`, of shape `(T, D)`, over all
keys, scaled as usual.

<details><summary>The conditions in detail</summary>

The scores may have any size and sign. The result has the dtype of `q` and is on its device. Keep
nothing that grows with the number of blocks, such as copies of them or a table of all scores,
because there may be far too many.

</details>

Hint: Carry three things along: the largest score so far, the sum of exp(score - largest), and the
weighted sum of the values. When a larger score comes, multiply both old sums by exp(old largest -
new largest).
"""

import math

import torch

from tinytf_course.exercises.ch26._shared import Held
from tinytf_course.expect import expect, numbers, same, tensor, travels
from tinytf_course.grading import hint


def my_streamed_attention(q, blocks):
    """Return attention over keys and values that come in blocks, each overwritten by the next.

    q is (T, D). `blocks` gives pairs (k, v), each (n, D), once. Returns (T, D), equal to attention
    over all keys at once, however large or small the scores are.
    """
    largest = q.new_full((len(q), 1), -torch.inf)
    total, mixed = q.new_zeros(len(q), 1), torch.zeros_like(q)
    for k, v in blocks:
        scores = q @ k.T / q.size(-1) ** 0.5
        new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        weights, old = (scores - new).exp(), (largest - new).exp()
        total = total * old + weights.sum(dim=-1, keepdim=True)
        mixed = mixed * old + weights @ v
        largest = new
    return mixed / total


class _Once:
    """An iterator that counts how often it was at its end: more than once if gone through again."""

    def __init__(self, blocks):
        self.blocks, self.ends = blocks, 0

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return next(self.blocks)
        except StopIteration:
            self.ends += 1
            raise


def _passing(k, v, sizes):
    """Blocks that share one memory, as those of a kernel do: each overwrites the one before."""
    room = [x.new_empty(max(sizes), x.size(-1)) for x in (k, v)]
    return _overwritten(room, zip(k.split(sizes), v.split(sizes), strict=True))


def _overwritten(room, blocks):
    for block in blocks:
        for place, part in zip(room, block, strict=True):
            place[: len(part)].copy_(part)
        yield tuple(place[: len(part)] for place, part in zip(room, block, strict=True))


def _at_once(q, k, v):
    """Query by query over all keys, in float64."""
    out = []
    for row in q.double():
        scores = (k.double() * row).sum(-1) / q.size(-1) ** 0.5
        weights = (scores - scores.logsumexp(0)).exp()
        out.append(sum(w * value for w, value in zip(weights, v.double(), strict=True)))
    return torch.stack(out).to(q.dtype)


def _streams(answer, q, k, v, sizes, note="", where="", tolerance=None):
    many = sizes if len(sizes) < 6 else [*sizes[:3], "…"]
    where = where or (
        f"for q of shape {tuple(q.shape)}, keys of width {k.size(-1)} in blocks of "
        f"{', '.join(map(str, many))}"
    )
    blocks = _Once(_passing(k, v, sizes))
    again = "`blocks` is empty when you go through it again, as each block comes once"
    try:
        got = tensor(answer(q, blocks), where)
    except ZeroDivisionError:
        expect(blocks.ends < 2, f"{where}, 0 is divided by 0: {again}")
        raise
    expected = _at_once(q, k, v)
    message = f"{where}, the shape is {tuple(got.shape)}, expected {tuple(expected.shape)}"
    expect(got.shape == expected.shape, message)
    message = f"{where}, the result is not finite: "
    overflow = "exp(100) overflows float32, and exp(-200) is 0, so that 0 may be divided by 0. "
    message += again if blocks.ends > 1 else f"{overflow}Where does your largest start?"
    expect(bool(got.isfinite().all()), message)
    same(got, expected, where, tolerance, note, dtype=True)


def _drawn(queries, keys, width, seed=1, dtype=torch.float32):
    """q, k and v at random."""
    q = numbers(queries, width, seed=seed, dtype=dtype)
    return q, *numbers(2, keys, width, seed=seed + 1, dtype=dtype)


def _column(*values):
    return torch.tensor(values)[:, None]


_LN3 = math.log(3)


def test_single(answer):
    """one block gives plain attention"""
    note = "Its weights are 1/4 and 3/4."
    where = "for q=[[1]] and a block of two keys, scores 0 and ln 3, values 10 and 20"
    _streams(answer, _column(1.0), _column(0.0, _LN3), _column(10.0, 20.0), [2], note, where)
    q = torch.tensor([[2.0, 0, 0, 0]])
    k = torch.tensor([[0.0, 0, 0, 0], [_LN3, 0, 0, 0]])
    note = "The score is 2 · ln 3 / √4, the weights 1/4 and 3/4."
    where = "for q=[[2, 0, 0, 0]] and a block of keys [0, 0, 0, 0] and [ln 3, 0, 0, 0]"
    _streams(answer, q, k, torch.eye(4)[:2] * 4, [2], note, where)
    _streams(answer, *_drawn(3, 4, 5), [4])


def test_several(answer):
    """several blocks give the same as all keys at once"""
    note = "All keys share one softmax: their weights are 1/4 and 3/4."
    for k, v, says in (((0.0, _LN3), (10.0, 20.0), "0, then ln 3, values 10, 20"),
                       ((_LN3, 0.0), (20.0, 10.0), "ln 3, then 0, values 20, 10")):  # fmt: skip
        where = f"for q=[[1]] and two blocks of one key, scores {says}"
        _streams(answer, _column(1.0), _column(*k), _column(*v), [1, 1], note, where)
    note = "All keys share one softmax."
    _streams(answer, *_drawn(3, 8, 5), [4, 4], note)
    _streams(answer, *_drawn(2, 9, 4, seed=5), [1, 5, 3], note)
    _streams(answer, *_drawn(4, 30, 3, seed=7), [1] * 30, note)


def test_large(answer):
    """scores of hundreds do not overflow"""
    for scores in ((200.0, 100.0), (100.0, 200.0)):
        where = f"for q=[[1]] and two blocks of one key, scores {scores[0]:g}, then {scores[1]:g}"
        _streams(answer, _column(1.0), _column(*scores), _column(1.0, 2.0), [1, 1], where=where)
    q, k, v = _drawn(3, 7, 4, seed=3)
    where = "for blocks of 3, 2 and 2 keys, with scores in the hundreds"
    _streams(answer, q * 20, k * 20, v, [3, 2, 2], where=where, tolerance=1e-4)


def test_negative(answer):
    """scores that are all far below 0 are not lost"""
    note = "The weights are 1/4 and 3/4."
    where = "for q=[[1]] and two blocks of one key, scores -300, then -300 + ln 3"
    _streams(answer, _column(1.0), _column(-300.0, -300 + _LN3), _column(10.0, 20.0), [1, 1], note,
             where, 1e-4)  # fmt: skip
    k, v = numbers(2, 7, 4, seed=4)
    q, k = torch.ones(2, 4) * 1e4, -200.0 - 8 * k.abs()
    where = "for blocks of 3 and 4 keys, with all scores below -3,000,000"
    _streams(answer, q, k, v, [3, 4], "The largest of them is below 0 too.", where, 1e-4)


def test_kept_kinds(answer):
    """the result has the dtype of q, and is where q is"""
    _streams(answer, *_drawn(2, 5, 3, dtype=torch.float64), [2, 3], where="for float64")
    half = [x.half() for x in _drawn(2, 5, 3)]
    _streams(answer, *half, [2, 3], where="for float16", tolerance=1e-2)
    q, k, v = _drawn(2, 5, 3)
    travels(lambda q, k, v: answer(q, iter([(k, v)])), q, k, v, where="for a block of 5 keys")


@hint("What do you need to know of a block that is gone?")
def test_no_copies(answer):
    """it never holds all scores, nor all keys or values"""
    q, k, v = _drawn(3, 120, 4, seed=9)
    room, sizes = [torch.empty(3, 4) for _ in "kv"], [3] * 40
    blocks = list(zip(k.split(sizes), v.split(sizes), strict=True))
    with Held() as held:
        answer(q, _overwritten(room, blocks))
    most = held.peak - q.numel()  # the answer gets a copy
    words = "for 3 queries, D=4, and 40 blocks of 3 keys, you hold more than 200 numbers at one "
    words += "time: all scores are 360, all keys 480. Carry sums, and nothing for each block"
    expect(most <= 200, words)


MISTAKES = r"""
the blocks collected
    k, v in blocks: => k, v in [[torch.cat(parts) for parts in zip(*blocks, strict=True)]]:
    says: All keys share one softmax
    By the time you join them, all hold the last block. In a kernel, too, the memory of a block
    is used again.
everything kept to the end
    for k, v in blocks: => for k, v in [(k.clone(), v.clone()) for k, v in blocks]:
    says: all scores are 360, all keys 480
    The result is right, but what you keep grows with the number of blocks: copies of them, a table
    of all scores, or a result for each block. Two numbers and a weighted sum for each query are
    enough.
the blocks are gone after one pass
    for k, v in blocks: =>
        for k, v in blocks:
            scores = q @ k.T / q.size(-1) ** 0.5
            largest = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        for k, v in blocks:
    says: is empty when you go through it again
    The first loop has used the iterator up, and the second gets no block. Do all in one pass: where
    a larger score comes, correct what you have so far.
the old sum not brought down
    total * old => total
    says: scores 0, then ln 3
    The old sum was taken against a smaller maximum: multiply it by exp(old - new).
the old mix not brought down
    mixed * old => mixed
    says: scores 0, then ln 3
    The weighted sum of the values needs the same factor as the sum.
neither brought down
    (largest - new).exp() => 1
    says: scores 0, then ln 3
    Both sums were taken against a smaller largest score: both need the factor exp(old - new).
the factor upside down
    (largest - new) => (new - largest)
    says: the result is not finite
    Both sums have to become smaller when a larger score comes: exp(old - new).
not divided in the end
    mixed / total => mixed
    says: Its weights are 1/4 and 3/4
    The result is the weighted sum divided by the total.
no largest score
    -torch.inf => 0.0
    torch.maximum(largest, scores.amax(dim=-1, keepdim=True)) => largest
    says: the result is not finite
    exp of a score of 100 is more than float32 holds. Subtract the largest score so far.
the largest starts at 0
    -torch.inf => 0.0
    says: Where does your largest start
    If all scores are far below 0, every exp(score - 0) is 0. Start at -inf.
the largest starts at a low number
    -torch.inf => -10_000.0
    says: with all scores below -3,000,000
    A score may be lower than any number that you choose, except -∞.
the largest of this block alone
    torch.maximum(largest, scores.amax(dim=-1, keepdim=True)) =>
        scores.amax(dim=-1, keepdim=True)
    says: scores 200, then 100
    When a block's largest is smaller than one before, the old sums are multiplied by exp of
    something large: keep the larger of the two.
one largest score for all queries
    scores.amax(dim=-1, keepdim=True) => scores.max()
    says: with scores in the hundreds
    Where one query's scores are hundreds above another's, the other's are all rounded to 0.
    Each query has a largest score of its own.
a softmax for each block
    (scores - new).exp(), (largest - new).exp() => scores.softmax(dim=-1), 1
    says: All keys share one softmax
    Averaging the blocks' results gives each block the same weight.
the first block used up
    torch.zeros_like(q) => q.new_zeros(len(q), next(blocks)[1].size(-1))
    says: scores 0, then ln 3, values 10, 20, you get [[20]]
    `next(blocks)` takes a block away, even if you only want its shape: it comes once.
only the last block
    largest = new =>
    says: All keys share one softmax
    The contribution of earlier blocks is lost: overwritten, or multiplied by exp(-∞ - new),
    since the largest stays where it started.
no scale
    q @ k.T / q.size(-1) ** 0.5 => q @ k.T
    says: 2 · ln 3 / √4
    Divide the scores by √D, as usual.
divided by D
    q.size(-1) ** 0.5 => q.size(-1)
    says: 2 · ln 3 / √4
    Divide by the square root of D, as usual.
scaled by the block's length
    q.size(-1) => len(k)
    says: for q=[[1]] and a block of two keys
    D is the width of a key, not the number of keys in a block.
float32 on the CPU
    q.new_full => torch.full
    q.new_zeros => torch.zeros
    torch.zeros_like(q) => torch.zeros(q.shape)
    weights @ v => weights.to(v.dtype) @ v
    says: for float16, the dtype is float32, expected float16
    `torch.zeros(...)` is float32 and on the CPU, whatever q is: `q.new_zeros(...)`.
"""

HARMLESS = r"""
total, mixed = … => total, mixed = …
    at the first block what it starts from is multiplied by exp(-∞) = 0
… => …q.size(1)…
    q has two axes, and the last is 1
… => …amax(dim=1, keepdim=True))
    scores have two axes, and the last is 1
… => …sum(dim=1, keepdim=True)
    weights have two axes, and the last is 1
… => …largest.__isub__(new)…
    it is a tensor of its own, and is not read again
"""
