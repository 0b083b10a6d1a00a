"""22.1 what T5 reads and what it writes (★★☆, 10 minutes)

Write `my_drop_spans(ids, noise, sentinels)`, which drops the tokens where `noise` is True. Each
span of neighbouring dropped tokens is replaced by the next sentinel of the list. Return
`(corrupted, target)`, two lists of ids; the target holds each sentinel followed by its span, and
one more sentinel at the end.

Hint: Go through the tokens and remember whether the previous one was dropped, because a new span
begins only where this changes. A dropped token goes to the target, and a kept one to the corrupted
text.
"""

import itertools

import torch

from tinytf_course.exercises.ch21._shared import two_lists
from tinytf_course.expect import expect, numbers
from tinytf_course.words import given, short


def my_drop_spans(ids, noise, sentinels):
    """Turn ids (N,) into the input of T5's encoder and the target of its decoder.

    noise (N,) is True at the tokens to drop, and sentinels is a list of ids in the order of use.
    Returns the pair (corrupted, target), two lists of ids.
    """
    left, corrupted, target = list(sentinels), [], []
    before = False
    for token, dropped in zip(ids.tolist(), noise.tolist()):
        if dropped and not before:  # a new span
            mark = left.pop(0)
            corrupted.append(mark)
            target.append(mark)
        (target if dropped else corrupted).append(token)
        before = dropped
    return corrupted, [*target, left[0]]


IDS = torch.tensor([11, 12, 13, 14, 15, 16, 17])
MARKS = [99, 40, 98, 3, 77]  # in no order: a sentinel is looked up, not computed


def _by_runs(ids, noise, sentinels):
    """Run by run of tokens dropped or kept."""
    corrupted, target, marks = [], [], iter(sentinels)
    runs = itertools.groupby(zip(ids.tolist(), noise.tolist(), strict=True), lambda pair: pair[1])
    for dropped, run in runs:
        tokens = [token for token, _ in run]
        if dropped:
            mark = next(marks)
            corrupted, target = [*corrupted, mark], [*target, mark, *tokens]
        else:
            corrupted = corrupted + tokens
    return corrupted, [*target, next(marks)]


def _both(answer, ids, noise, sentinels=MARKS):
    """The two lists of the answer, the two expected, and for what."""
    ids, noise = torch.as_tensor(ids), torch.as_tensor(noise, dtype=torch.bool)
    where = given(my_drop_spans, (ids, noise.long(), sentinels))
    got = two_lists(answer(ids, noise, sentinels), ("corrupted", "target"), where)
    return got, _by_runs(ids, noise, sentinels), where


_CASES = (([11, 12, 13], [0, 1, 0]), (IDS, [0, 1, 1, 0, 0, 1, 0]))


def test_reads(answer):
    """the encoder's input has one sentinel for each span"""
    for case in _CASES:
        (got, _), (expected, _), where = _both(answer, *case)
        expect(got == expected, f"{where}, corrupted is {got}, expected {expected}")


def test_writes(answer):
    """the target has each span after its sentinel, and one more sentinel at the end"""
    for case in _CASES:
        (_, got), (_, expected), where = _both(answer, *case)
        expect(got == expected, f"{where}, the target is {got}, expected {expected}")


def _lists(answer, ids, noise, sentinels=MARKS):
    got, expected, where = _both(answer, ids, noise, sentinels)
    for mine, right, name in zip(got, expected, ("corrupted", "target"), strict=True):
        expect(mine == right, f"{where}, {name} is {short(mine)}, expected {short(right)}")


def test_edges(answer):
    """spans may be at either end of the text"""
    _lists(answer, [11, 12], [1, 0])
    _lists(answer, [11, 12], [0, 1])
    _lists(answer, IDS, [1, 0, 1, 1, 0, 1, 1])


def test_all_or_none(answer):
    """everything may be dropped, or nothing"""
    _lists(answer, [11], [1])
    _lists(answer, [11], [0])
    _lists(answer, [11, 12, 13], [1, 1, 1])
    _lists(answer, [11, 12, 13], [0, 0, 0])


def test_repeats(answer):
    """a token may occur twice, dropped at one position and kept at another"""
    _lists(answer, [5, 5, 5], [0, 1, 0])
    _lists(answer, [5, 6, 5, 6, 6, 5], [1, 0, 0, 0, 1, 1])


def test_no_more_sentinels(answer):
    """there may be exactly as many sentinels as needed"""
    _lists(answer, [11, 12, 13, 14], [0, 1, 0, 1], [30, 20, 10])


def test_any_noise(answer):
    """for any row and any noise"""
    for seed in range(6):
        row = numbers(3, 25, seed=seed)
        _lists(answer, (row[0].abs() * 5).long(), row[1] > 0, list(range(50, 90, 2)))


MISTAKES = r"""
the whole text as target
    [*target, left[0]] => ids.tolist()
    says: the target is [11, 12, 13], expected [99, 12, 40]
    Writing the whole text again is BART's task. T5 writes only the dropped spans, which makes
    its targets short.
a sentinel for each token
    dropped and not before => dropped
    says: corrupted is [11, 99, 40, 14
    A span has one sentinel however long it is, so the model has to find out how many tokens are
    missing.
no sentinel at the end
    [*target, left[0]] => target
    says: the target is [99, 12], expected [99, 12, 40]
    The last sentinel marks the end of the last span. (T5's code leaves it out where the text
    ends in a span; the paper has it.)
no sentinels in the target
    target.append(mark) =>
    says: the target is [12, 40], expected
    It would be unclear which words belong in which gap: put each span after its sentinel.
one sentinel for all
    left.pop(0) => left[0]
    says: corrupted is [11, 99, 14, 15, 99, 17]
    That is a mask. Sentinels differ, so that the target can refer to each gap.
gaps closed
    corrupted.append(mark) =>
    says: corrupted is [11, 13], expected [11, 99, 13]
    That is token deletion, one of BART's noises. T5 leaves a sentinel in each gap.
a first span without a sentinel
    before = False => before = bool(noise[0])
    says: noise=[1, 0], sentinels=[99, 40, 98, 3, 77], corrupted is [12]
    A span may begin at the first token, where there is no neighbour to differ from.
sentinels counted down from the first
    list(sentinels) => [sentinels[0] - i for i in range(len(sentinels))]
    says: corrupted is [11, 99, 14, 15, 98, 17]
    T5's own sentinels do count down, but here the list gives their ids.
looked up by the word
    noise.tolist() => torch.isin(ids, ids[noise]).tolist()
    says: ids=[5, 5, 5]
    A word may occur twice: `noise` marks the positions that are dropped, not the words.
no last sentinel after a span at the end
    [*target, left[0]] => target if before else [*target, left[0]]
    says: noise=[0, 1], sentinels=[99, 40, 98, 3, 77], target is [99, 12], expected
    That is what T5's own code does. The paper's figure always has a last sentinel, and so does
    this exercise.
a sentinel skipped
    left[0] => left[1]
    says: the target is [99, 12, 98], expected
    The last sentinel is the next unused one: count those that are used, from 0.
the caller's sentinels used up
    list(sentinels) => sentinels
    says: your code changes the caller's `sentinels`
    `pop` takes them out of the caller's own list, and none are left for the next row. Copy it
    first, or count.
"""

HARMLESS = r"""
… => for token, dropped in zip(ids, noise.tolist()):
    a tensor of one whole number is a number, too
… => for token, dropped in zip(ids.tolist(), noise):
    a tensor of one boolean decides as well
"""
