"""Chapter 14, first part: how a pair of sentences is written for BERT, and where an answer is."""

import torch

from tinytf.course.expect import expect, same, tensor
from tinytf.course.grading import Exercise

# 14.1 write a pair for BERT


def my_pair(first, second, cls_id=1, sep_id=2):
    """Two lists of ids as BERT reads them: (ids, segments), two lists of one length.

    [CLS] first [SEP] second [SEP]; the segment is 0 up to the first [SEP], it included, then 1.
    """
    raise NotImplementedError


_FIRST, _SECOND = [7, 8, 9], [11, 12, 13, 14, 15]
_PAIR = "for first=[7, 8, 9], second=[11, 12, 13, 14, 15]"


def _two(answer, *arguments, where=_PAIR):
    got = answer(*arguments)
    kind = type(got).__name__
    expect(
        isinstance(got, tuple | list) and len(got) == 2,
        f"{where}, you return {kind}, expected two lists: ids and segments",
    )
    return [tensor(part, where) for part in got]


def _ids(answer):
    """one [CLS] begins, and a [SEP] ends each sentence"""
    ids, _ = _two(answer, _FIRST, _SECOND)
    same(ids, [1, 7, 8, 9, 2, 11, 12, 13, 14, 15, 2], f"{_PAIR}, the ids")
    where = "for first=[4], second=[5, 6], cls_id=101, sep_id=102"
    ids, _ = _two(answer, [4], [5, 6], 101, 102, where=where)
    same(ids, [101, 4, 102, 5, 6, 102], f"{where}, the ids")


def _segments(answer):
    """the first [SEP] belongs to the first sentence, the last one to the second"""
    ids, segments = _two(answer, _FIRST, _SECOND)
    expect(
        segments.shape == ids.shape,
        f"{_PAIR}, there are {segments.numel()} segments for {ids.numel()} ids: every id has one, "
        "the marks too",
    )
    same(segments, [0] * 5 + [1] * 6, f"{_PAIR}, the segments")
    _, segments = _two(answer, [4], [5, 6], where="for first=[4], second=[5, 6]")
    same(segments, [0] * 3 + [1] * 3, "for first=[4], second=[5, 6], the segments")


PAIR = Exercise(
    id="14.1",
    title="write a pair for BERT",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_pair(first, second, cls_id=1, sep_id=2)`: put two lists of ids together as BERT "
        "reads them, [CLS] first [SEP] second [SEP], and say which segment each id belongs to."
    ),
    hint="Two lists of equal length: how many ids come before the second sentence begins?",
    function=my_pair,
    tests=(_ids, _segments),
)


# 14.2 find the answer


def my_best_span(start, end, allowed):
    """Where the answer is: (first, last), two whole numbers, the last word included.

    start and end are scores (S,), allowed (S,) is True where an answer may begin or end. Of all
    spans that do not end before they begin, the one whose start[first] + end[last] is largest.
    """
    raise NotImplementedError


_TEXT = torch.tensor([False, False, False, True, True, True, True, False])
_HOLE = _TEXT.index_fill(0, torch.tensor(4), False)


def _scores(start, end):
    return torch.tensor(start), torch.tensor(end)


def _expect_span(answer, scores, expected, where, note, allowed=_TEXT):
    start, end = scores
    got = answer(start, end, allowed)
    kind = type(got).__name__
    expect(
        isinstance(got, tuple | list | torch.Tensor) and len(got) == 2,
        f"{where}, you return {kind}, expected two numbers",
    )
    same(torch.stack([tensor(x, where) for x in got]), list(expected), where, note=note)


def _plain(answer):
    """the best start and the best end, where these fit"""
    scores = _scores([0.0, 0, 0, 1, 5, 0, 0, 0], [0.0, 0, 0, 0, 0, 1, 4, 0])
    where = "where start is best at 4 and end at 6"
    _expect_span(answer, scores, (4, 6), where, "The last word is part of the answer.")


def _in_order(answer):
    """an answer does not end before it begins"""
    scores = _scores([0.0, 0, 0, 3, 0, 0, 4, 0], [0.0, 0, 0, 0, 5, 0, 1, 0])
    where = "where start is best at 6 (4, and 3 at 3), and end at 4 (5, and 1 at 6)"
    note = "From 3 to 4 is 3 + 5 = 8; from 6 to 6 is 4 + 1 = 5."
    _expect_span(answer, scores, (3, 4), where, note)


def _one_word(answer):
    """an answer may be one word"""
    scores = _scores([0.0, 0, 0, 0, 0, 6, 0, 0], [0.0, 0, 0, 0, 0, 6, 0, 0])
    _expect_span(answer, scores, (5, 5), "where both are best at 5", "One word is an answer.")


def _where_allowed(answer):
    """both ends stand where an answer may be"""
    scores = _scores([9.0, 0, 0, -3, -2, -4, -4, 0], [0.0, 0, 0, -4, -4, -2, -3, 8])
    where = "where the best scores stand in the question and on the last [SEP]"
    note = "Only 3 to 6 are allowed; all scores there are negative."
    _expect_span(answer, scores, (4, 5), where, note)


def _sums(answer):
    """scores are added"""
    scores = _scores([0.0, 0, 0, 3, 1, 9, 10, 0], [0.0, 0, 0, 0, 5, 1.5, 0, 0])
    where = "where start is 3, 1, 9, 10 and end 0, 5, 1.5, 0 at places 3 to 6"
    note = "From 5 to 5 is 9 + 1.5 = 10.5, from 6 to 6 is 10, from 3 to 4 is 8."
    _expect_span(answer, scores, (5, 5), where, note)


def _hole(answer):
    """between its ends an answer may hold a word that can't be an end"""
    scores = _scores([0.0, 0, 0, 7, 0, 0, 0, 0], [0.0, 0, 0, 0, 0, 0, 8, 0])
    where = "where start is best at 3, end at 6, and 4 is not allowed"
    note = "Only the two ends have to be allowed."
    _expect_span(answer, scores, (3, 6), where, note, _HOLE)


SPAN = Exercise(
    id="14.2",
    title="find the answer",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_best_span(start, end, allowed)`: from a score per token for the answer's first "
        "word and one for its last, the span with the largest sum that does not end before it "
        "begins and whose ends are both allowed. Return `(first, last)`."
    ),
    hint=(
        "A table of all sums, `start[:, None] + end[None, :]`; cells below the diagonal and cells "
        "not allowed become -inf. `argmax` of a table counts row by row."
    ),
    function=my_best_span,
    tests=(_plain, _in_order, _one_word, _where_allowed, _sums, _hole),
)


EXERCISES = (PAIR, SPAN)
