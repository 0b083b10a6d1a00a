"""Exercises of chapter 14, Three families: what noise leaves and asks, both sides of a blank."""

import torch

from tinytf.course.expect import expect, same, short
from tinytf.course.grading import Exercise, reference

# 14.3 what T5 reads and what it writes


def my_drop_spans(ids, noise, sentinels):
    """Turn ids (N,) into what T5's encoder reads and what its decoder has to write.

    noise (N,) is True at the tokens to drop, sentinels a list of ids in the order to use them.
    Returns the pair (corrupted, target), two lists of ids.
    """
    raise NotImplementedError


IDS = torch.tensor([11, 12, 13, 14, 15, 16, 17])
NOISE = torch.tensor([False, True, True, False, False, True, False])
EDGES = torch.tensor([True, False, True, True, False, True, True])
MARKS = [99, 98, 97, 96]


def _pair(answer, noise):
    where = f"for ids={short(IDS)}, noise={short(noise.long())}, sentinels={MARKS}"
    got = answer(IDS, noise, MARKS)
    expect(got is not None, f"{where}, you return None: is a `return` missing?")
    fits = isinstance(got, list | tuple) and len(got) == 2
    expect(fits, f"{where}, you return a {type(got).__name__}, expected (corrupted, target)")
    return where, [list(map(int, part)) if _rows(part) else part for part in got]


def _rows(part):
    return isinstance(part, list | tuple | torch.Tensor) and all(
        isinstance(t, int) or (isinstance(t, torch.Tensor) and t.dim() == 0) for t in part
    )


def _reads(answer):
    """the encoder reads one sentinel for each span"""
    where, (corrupted, _) = _pair(answer, NOISE)
    expected = [11, 99, 14, 15, 98, 17]
    expect(corrupted == expected, f"{where}, corrupted is {corrupted}, expected {expected}")


def _writes(answer):
    """the decoder writes the spans behind their sentinels, and one sentinel more"""
    where, (_, target) = _pair(answer, NOISE)
    expected = [99, 12, 13, 98, 16, 97]
    expect(target == expected, f"{where}, the target is {target}, expected {expected}")


def _edges(answer):
    """spans may stand at either end"""
    where, got = _pair(answer, EDGES)
    expected = [[99, 12, 98, 15, 97], [99, 11, 98, 13, 14, 97, 16, 17, 96]]
    expect(got == expected, f"{where}, you get {got}, expected {expected}")


DROP_SPANS = Exercise(
    id="14.3",
    title="what T5 reads and what it writes",
    difficulty=2,
    minutes=15,
    statement=(
        "Write `my_drop_spans(ids, noise, sentinels)`: given which tokens are to be dropped, the "
        "pair `(corrupted, target)` of T5, as two lists of ids. Each span (tokens dropped side by "
        "side) becomes the next sentinel of the list. The target holds each sentinel and its span, "
        "and ends in one sentinel more."
    ),
    hint=(
        "Walk over the tokens and remember whether the one before was dropped: only where that "
        "changes does a new span begin. A dropped token goes to the target, a kept one to the "
        "corrupted text."
    ),
    function=my_drop_spans,
    tests=(_reads, _writes, _edges),
)


# 14.4 BART's infilling, with spans of nothing


def my_infill(ids, spans, mask_id):
    """Put one mask in the place of each span of ids (N,).

    spans is a list of (start, length) from left to right, which do not overlap; a length of 0
    inserts a mask before the token at start. Returns a list of ids.
    """
    raise NotImplementedError


SPANS = [(1, 2), (4, 0), (5, 1)]
TWO = [(0, 0), (2, 3)]
TOUCHING = [(1, 2), (3, 0), (3, 1)]


def _infills(answer, spans):
    where = f"for ids={short(IDS)}, spans={spans}, mask_id=50"
    got = answer(IDS, spans, 50)
    same(got, reference("14.4")(IDS, spans, 50), where)


def _any_length(answer):
    """a span of any length becomes one mask"""
    _infills(answer, [(1, 3), (5, 1)])


def _empty(answer):
    """a span of length 0 inserts a mask where nothing was"""
    _infills(answer, SPANS)


def _ends(answer):
    """masks may come first and last"""
    _infills(answer, TWO)
    _infills(answer, [(0, 2), (7, 0)])


def _touching(answer):
    """spans that touch have a mask each"""
    _infills(answer, TOUCHING)


INFILL = Exercise(
    id="14.4",
    title="BART's infilling, with spans of nothing",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_infill(ids, spans, mask_id)`: put one `mask_id` in the place of each span of "
        "`ids`, and return a list. `spans` holds pairs `(start, length)` in the places of the "
        "original, from left to right; they may touch. A span of length 0 inserts a mask before "
        "the token at `start`."
    ),
    hint="Build a new list: what lies between the last span's end and this start, then a mask.",
    function=my_infill,
    tests=(_any_length, _empty, _ends, _touching),
)


# 14.5 both sides of a blank, from a model that sees one


def my_fill(log_probs, ids, at):
    """Give the probability of each word at place `at` of ids (T,), given all the other words.

    log_probs(ids) of a decoder-only model are (T, V): row t is the log-probability of each word
    after ids[: t + 1]. What stands at `at` (1 or more) is not looked at. Returns (V,).
    """
    raise NotImplementedError


_AFTER = torch.randn(5, 5, generator=torch.Generator().manual_seed(3)) * 2  # by the last word
_TWO_BACK = torch.randn(5, 5, generator=torch.Generator().manual_seed(4))


def _model(ids):
    """A little language that looks two words back."""
    older = torch.cat([ids[:1], ids[:-1]])
    return (_AFTER[ids] + _TWO_BACK[older]).log_softmax(-1)


ROW = torch.tensor([0, 3, 1, 4, 2])


def _fills(answer, ids, at):
    note = "Sum log P(word | words before it) over the blank and all that follows; then normalise."
    where = f"for the row {short(ids)} with the blank at {at}"
    same(answer(_model, ids, at), reference("14.5")(_model, ids, at), where, note=note)


def _in_the_middle(answer):
    """in the middle both sides count"""
    _fills(answer, ROW, 2)


def _early(answer):
    """all that follows counts, not the next word alone"""
    _fills(answer, ROW, 1)


def _last(answer):
    """at the end the left side is all there is"""
    _fills(answer, ROW, 4)


def _unseen(answer):
    """what stands at the blank does not matter"""
    other = torch.tensor([0, 3, 0, 4, 2])
    got = [answer(_model, row, 2) for row in (ROW, other)]
    same(got[0], reference("14.5")(_model, ROW, 2), f"for the row {short(ROW)} with the blank at 2")
    same(got[1], got[0], f"for {short(other)} instead of {short(ROW)}, blank at 2: the two")


FILL = Exercise(
    id="14.5",
    title="both sides of a blank, from a model that sees one",
    difficulty=3,
    minutes=20,
    statement=(
        "Write `my_fill(log_probs, ids, at)`: the probability of every word at place `at`, given "
        "all other words of the row, from a decoder-only model. `log_probs(ids)` gives (T, V): row "
        "t holds the log-probability of each word after `ids[: t + 1]`. Return (V,), which sums "
        "to 1."
    ),
    hint=(
        "By Bayes' rule, P(word | left, right) goes with P(word | left) · P(right | left, "
        "word): the model's probability of the whole row with that word in it. Score V rows."
    ),
    function=my_fill,
    tests=(_in_the_middle, _early, _last, _unseen),
)


EXERCISES = (DROP_SPANS, INFILL, FILL)
