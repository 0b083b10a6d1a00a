"""21.3 find the answer (★★☆, 12 minutes)

Write `my_best_span(start, end, allowed)`. From each token's score as the answer's first word and
its score as the last, find the span with the largest sum that does not end before it begins and
whose two ends are both allowed. Return `(first, last)`.

<details><summary>The rule in detail</summary>

A span may have any length, and scores may be any numbers. If several spans are best, return any of
them.

</details>

Hint: Make a table of all sums, `start[:, None] + end[None, :]`. Cells below the diagonal and cells
that are not allowed become -inf. The `argmax` of a table counts row by row.
"""

import torch

from tinytf_course.exercises.ch21._shared import whole_numbers
from tinytf_course.expect import expect, numbers
from tinytf_course.grading import hint
from tinytf_course.tensors import plain
from tinytf_course.words import described, given


def my_best_span(start, end, allowed):
    """Find the answer: (first, last), two whole numbers, the last word included.

    start and end are scores (S,), and allowed (S,) is True where an answer may begin or end. Of
    all spans that do not end before they begin, return one with the largest start[first] +
    end[last].
    """
    scores = start[:, None] + end[None, :]  # (S, S)
    possible = (allowed[:, None] & allowed[None, :]).triu()
    best = int(scores.masked_fill(~possible, -torch.inf).argmax())
    return best // len(start), best % len(start)


def _best(start, end, allowed):
    """The largest sum of all spans, one by one, in float64."""
    start, end = start.tolist(), end.tolist()
    places = [i for i, may in enumerate(allowed.tolist()) if may]
    return max(start[i] + end[j] for i in places for j in places if i <= j)


def _spans(answer, start, end, allowed=None, note="", where=None):
    """Expect a span of the largest sum, whichever one it is."""
    if allowed is None:
        allowed = torch.ones(len(start), dtype=torch.bool)
    where = where or given(my_best_span, (start, end, allowed.long()))
    got = answer(start, end, allowed)
    pair = isinstance(plain(got), list) and len(got) == 2
    expect(pair, f"{where}, you return {described(got)}, expected (first, last)")
    first, last = whole_numbers(got, f"{where},")
    says = f"{where}, you return ({first}, {last})"
    inside = 0 <= first < len(start) and 0 <= last < len(start)
    expect(inside, f"{says}, but positions are 0 to {len(start) - 1}. {note}")
    expect(first <= last, f"{says}: it ends before it begins. {note}")
    may = bool(allowed[first] and allowed[last])
    expect(may, f"{says}: its ends are not both allowed. {note}")
    scale = max(float(start.abs().max()), float(end.abs().max()), 1.0)
    found, best = float(start[first]) + float(end[last]), _best(start, end, allowed)
    near = best - found <= scale * (1e-6 if start.dtype == torch.float32 else 1e-12)
    expect(near, f"{says}, whose scores add up to {found:g}; one has {best:g}. {note}")


def _row(*scores):
    return torch.tensor(scores, dtype=torch.float32)


def test_both_fit(answer):
    """the best start and the best end, where they form a span"""
    _spans(answer, _row(0, 5, 0), _row(0, 0, 4), note="The last word is part of the answer.")
    _spans(answer, _row(5, 0, 1, 0), _row(0, 0, 0, 4))


def test_in_order(answer):
    """an answer does not end before it begins"""
    note = "From 0 to 1 is 3 + 5 = 8; from 2 to 2 is 4 + 1 = 5."
    _spans(answer, _row(3, 0, 4), _row(0, 5, 1), note=note)


def test_single(answer):
    """an answer may be one word"""
    _spans(answer, _row(0, 6, 0), _row(0, 6, 0), note="From 1 to 1 is 6 + 6 = 12.")
    _spans(answer, _row(-2), _row(-3), note="There is only one.")


def test_where_allowed(answer):
    """both ends are at allowed positions"""
    note = "At 1 and 2, the allowed positions, all scores are negative."
    text = torch.tensor([False, True, True, False])
    _spans(answer, _row(9, -2, -4, 0), _row(-4, -4, -3, 8), text, note)
    _spans(answer, _row(9, -2, -4, 0), _row(9, -4, -3, 0), text, note)


def test_sums(answer):
    """scores are added"""
    note = "From 2 to 2 is 9 + 1.5 = 10.5, from 3 to 3 is 10, from 0 to 1 is 8."
    _spans(answer, _row(3, 1, 9, 10), _row(0, 5, 1.5, 0), note=note)


def test_hole(answer):
    """between its ends, an answer may contain a word that can't be an end"""
    hole = torch.tensor([True, False, True])
    note = "From 0 to 2 is 7 + 8 = 15. Only the two ends have to be allowed."
    _spans(answer, _row(7, 0, 0), _row(0, 0, 8), hole, note)


def test_long(answer):
    """an answer may be long"""
    for size in (6, 40, 200):
        start, end = torch.zeros(2, size)
        start[0], end[-1] = 3.0, 2.0
        note = f"From 0 to {size - 1} is 3 + 2 = 5: the length of an answer is not limited."
        where = f"for {size} words, start[0] = 3, end[{size - 1}] = 2, and 0 everywhere else"
        _spans(answer, start, end, note=note, where=where)


def test_crossed(answer):
    """all good starts may come after all good ends"""
    _spans(answer, _row(0, 2, 3), _row(3, 2, 0), note="From 1 to 1 is 2 + 2 = 4.")
    start = torch.arange(60.0)
    start[30] += 0.5
    where = "for 60 words, starts 0, 1, 2, … 59, but 30.5 at 30, and ends 0, -1, -2, … -59"
    _spans(answer, start, -torch.arange(60.0), note="From 30 to 30 is 0.5.", where=where)


_LOW = torch.tensor([-7e4, -6e4, 0.0])
_NOT_LAST = torch.tensor([True, True, False])


@hint("Which number is below every score, also below those that float16 can't hold?")
def test_far_below(answer):
    """scores may be far below 0"""
    note = "A position that is not allowed must lose to any score: -10,000 is not low enough."
    _spans(answer, _LOW, _LOW, _NOT_LAST, note)


def test_far_apart(answer):
    """the best start and the best end may be far above the best span"""
    note = "From 1 to 1 is -1100 - 1100 = -2200: as probabilities, exp(-1100) is 0."
    _spans(answer, _row(-300, -110, 0), _row(0, -110, -300), note="From 1 to 1 is -220.")
    _spans(answer, _row(-3000, -1100, 0), _row(0, -1100, -3000), note=note)


@hint("Which number is below every score, also below those that float16 can't hold?")
def test_any_numbers(answer):
    """scores in float64 may be far below 0, or very close together"""
    low, note = _LOW.double() * 1e7, "-1,000,000,000 is not low enough."
    _spans(answer, low, low, _NOT_LAST, note)
    one, more = torch.tensor([[1, 1], [1, 1 + 1e-9]], dtype=torch.float64)
    note = "The second score is larger by 1e-9, which float64 can represent."
    _spans(answer, more, one, note=note, where="for start=[1, 1 + 1e-9] and end=[1, 1]")
    _spans(answer, one, more, note=note, where="for start=[1, 1] and end=[1, 1 + 1e-9]")
    where = "for start=[1 + 1e-9, 1] and end=[1, 1 + 1e-9]"
    _spans(answer, more.flip(0), more, note="From 0 to 1 is 2 + 2e-9.", where=where)


def test_any_scores(answer):
    """for random scores and any allowed positions"""
    for size, seed in ((2, 1), (5, 2), (11, 3), (30, 4)):
        for shift in (0.0, -20.0):
            start, end = numbers(2, size, seed=seed, scale=3.0, shift=shift)
            allowed = numbers(size, seed=seed + 10) > -0.5
            allowed[size // 2] = True
            where = f"for {size} scores drawn at random" + " and all negative" * (shift < 0)
            _spans(answer, start, end, allowed, where=where)


MISTAKES = r"""
two argmaxes
    … =>
        start, end = (x.masked_fill(~allowed, -torch.inf) for x in (start, end))
        return int(start.argmax()), int(end.argmax())
    says: From 0 to 1 is 3 + 5
    Each end is best by itself, but together they may not form a span: an answer needs first <=
    last.
two argmaxes, put in order
    … =>
        start, end = (x.masked_fill(~allowed, -torch.inf) for x in (start, end))
        return tuple(sorted([int(start.argmax()), int(end.argmax())]))
    says: From 0 to 1 is 3 + 5
    If the two are swapped, the span begins where an end was scored.
the start first, then the best end after it
    … =>
        first = int(start.masked_fill(~allowed, -torch.inf).argmax())
        return first, first + int(end.masked_fill(~allowed, -torch.inf)[first:].argmax())
    says: From 0 to 1 is 3 + 5
    The best start may leave only bad ends. Compare sums.
no answers of one word
    triu() => triu(1)
    says: From 1 to 1 is 6 + 6
    The diagonal belongs to the possible spans: `triu()`, not `triu(1)`.
allowed not used
    (allowed[:, None] & allowed[None, :]) => torch.ones_like(scores, dtype=torch.bool)
    says: At 1 and 2, the allowed positions
    The question's words have scores, too, but the answer is in the text.
only the start is checked
    (allowed[:, None] & allowed[None, :]) => allowed[:, None].expand(scores.shape)
    says: At 1 and 2, the allowed positions
    The end must be allowed as well.
one allowed end is enough
    allowed[:, None] & allowed[None, :] => allowed[:, None] | allowed[None, :]
    says: At 1 and 2, the allowed positions
    Both ends have to be allowed: `&`, not `|`.
mask by multiplying
    start[:, None] + end[None, :] => (start * allowed)[:, None] + end * allowed
    (allowed[:, None] & allowed[None, :]) => torch.ones_like(scores, dtype=torch.bool)
    says: all scores are negative
    A hidden score becomes 0, and 0 beats a negative score. Use -inf.
probabilities added
    start[:, None] + end[None, :] => start.softmax(0)[:, None] + end.softmax(0)
    says: 9 + 1.5 = 10.5
    Probabilities of two things at once are multiplied: add their logarithms, or scores.
scores multiplied
    + end[None, :] => * end
    says: 9 + 1.5 = 10.5
    Scores are logarithms, up to a constant: to multiply the odds, add the scores.
every word between must be allowed
    best = =>
        barred = (~allowed).cumsum(0)
        possible &= barred[:, None] == barred
        best =
    says: Only the two ends have to be allowed
    `allowed` marks where an answer may begin or end; what lies between may be anything.
the end first
    best // len(start), best % len(start) => best % len(start), best // len(start)
    says: The last word is part of the answer
    Return (first, last) in this order.
the word after the last
    best % len(start) => best % len(start) + 1
    says: The last word is part of the answer
    Return the last word's own position, not Python's end of a slice.
long answers dropped
    triu() => triu().tril(3)
    says: the length of an answer is not limited
    Programs for BERT often stop at some length, for example 30 tokens, and silently drop every
    longer answer. Here an answer may have any length.
very long answers dropped
    triu() => triu().tril(29)
    says: From 0 to 39 is 3 + 2
    Hugging Face's example has such a limit, `max_answer_length`; here there is none.
a low number for -∞
    -torch.inf => -10_000.0
    says: -10,000 is not low enough
    A score may be lower than any number that you choose, except -∞.
the best so far begins at 0
    … =>
        best, found = 0.0, (0, 0)
        for i in range(len(start)):
            for j in range(i, len(start)):
                if allowed[i] and allowed[j] and start[i] + end[j] > best:
                    best, found = start[i] + end[j], (i, j)
        return found
    says: all scores are negative
    Where all sums are negative none beats 0: begin with -∞, or with the first span.
only the best few starts and ends
    best = =>
        first, last = (x.topk(min(20, len(x))).indices for x in (start, end))
        few = torch.zeros_like(possible)
        few[first[:, None], last] = True
        possible &= few
        best =
    says: From 30 to 30 is 0.5
    A list of the 20 best starts and ends, as in Hugging Face's example, is quick and may miss
    the best pair: all good starts may come after all good ends.
the scores overwritten
    scores = =>
        start[~allowed] = end[~allowed] = -torch.inf
        scores =
    says: your code changes the caller's `start`
    `start[~allowed] = …` works in the caller's memory; `masked_fill` is a new tensor.
probabilities multiplied
    scores = =>
        start, end = (x.masked_fill(~allowed, -torch.inf).softmax(0) for x in (start, end))
        scores =
    + end[None, :] => * end
    says: end=[0, -110, -300]
    The largest product is that of the largest sum, but exp(-110) is 0 in float32, and all
    products of it are equal. Stay with the scores, which add up.
"""

HARMLESS = r"""
… => scores = start[:, None] + end
    a row without the axis is broadcast as one
… => possible = (allowed[:, None] & allowed).triu()
    a row without the axis is broadcast as one
best = … => best = scores.masked_fill(~possible, -torch.inf).argmax()
    a tensor of one whole number is a number, too
return … => …len(end)…
    start, end and allowed are equally long
return … => …len(allowed)…
    start, end and allowed are equally long
"""
