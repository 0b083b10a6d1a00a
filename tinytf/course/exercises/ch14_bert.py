"""Chapter 14, first part: how a pair of sentences is written for BERT, and where an answer is."""

import torch

from tinytf.course.grading import Exercise, WrongAnswer, calls, expect, same, tensor

# 14.1 a pair


def my_pair(first, second, cls_id=1, sep_id=2):
    """Two lists of ids as BERT reads them: (ids, segments), two lists of one length.

    [CLS] first [SEP] second [SEP]; the segment is 0 up to the first [SEP], it included, then 1.
    """
    ids = [cls_id, *first, sep_id, *second, sep_id]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    return ids, segments


def _paired(ids=None, segments=None):
    """A `my_pair` with one of its two lists made otherwise."""

    def pair(first, second, cls_id=1, sep_id=2):
        right = my_pair(first, second, cls_id, sep_id)
        f, s = list(first), list(second)
        return (
            ids(f, s, cls_id, sep_id) if ids else right[0],
            segments(len(f), len(s)) if segments else right[1],
        )

    return pair


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
    reference=my_pair,
    wrong=(
        WrongAnswer(
            "no [SEP] at the end",
            _paired(
                lambda f, s, cls, sep: [cls, *f, sep, *s],
                lambda f, s: [0] * (f + 2) + [1] * s,
            ),
            "the shape is (10,), expected (11,)",
            "The second sentence ends in a [SEP] too.",
        ),
        WrongAnswer(
            "a [CLS] for each",
            _paired(
                lambda f, s, cls, sep: [cls, *f, sep, cls, *s, sep],
                lambda f, s: [0] * (f + 2) + [1] * (s + 2),
            ),
            "the shape is (12,), expected (11,)",
            "There is one [CLS]: it stands for the whole input.",
        ),
        WrongAnswer(
            "no [SEP] between",
            _paired(
                lambda f, s, cls, sep: [cls, *f, *s, sep],
                lambda f, s: [0] * (f + 1) + [1] * (s + 1),
            ),
            "the shape is (10,), expected (11,)",
            "A [SEP] stands between the two.",
        ),
        WrongAnswer(
            "marks swapped",
            _paired(lambda f, s, cls, sep: [sep, *f, cls, *s, cls]),
            "the ids, you get [2, 7",
            "[CLS] begins, [SEP] separates.",
        ),
        WrongAnswer(
            "marks typed in",
            lambda first, second, cls_id=1, sep_id=2: my_pair(first, second),
            "cls_id=101, sep_id=102",
            "Use the arguments: BERT's own numbers are 101 and 102.",
        ),
        WrongAnswer(
            "middle [SEP] in the second sentence",
            _paired(segments=lambda f, s: [0] * (f + 1) + [1] * (s + 2)),
            "the segments, you get [0, 0, 0, 0, 1",
            "A [SEP] belongs to the sentence that it ends.",
        ),
        WrongAnswer(
            "marks without a segment",
            _paired(segments=lambda f, s: [0] * f + [1] * s),
            "8 segments for 11 ids",
            "[CLS] and the two [SEP] have embeddings like any token, so they need a segment.",
        ),
        WrongAnswer(
            "one segment for all",
            _paired(segments=lambda f, s: [0] * (f + s + 3)),
            "the segments, you get [0, 0, 0, 0, 0, 0",
            "Then nothing but the [SEP] says where the second sentence begins.",
        ),
        WrongAnswer(
            "segments 1 and 2",
            _paired(segments=lambda f, s: [1] * (f + 2) + [2] * (s + 1)),
            "the segments, you get [1, 1",
            "BERT's table of segments has two rows, 0 and 1.",
        ),
    ),
    tests=(_ids, _segments),
    probes=(calls(_FIRST, _SECOND), calls([4], [5, 6], 101, 102), calls([4, 5], [6])),
)


# 14.2 the answer


def my_best_span(start, end, allowed):
    """Where the answer is: (first, last), two whole numbers, the last word included.

    start and end are scores (S,), allowed (S,) is True where an answer may begin or end. Of all
    spans that do not end before they begin, the one whose start[first] + end[last] is largest.
    """
    scores = start[:, None] + end[None, :]  # (S, S)
    possible = (allowed[:, None] & allowed[None, :]).triu()
    best = int(scores.masked_fill(~possible, -torch.inf).argmax())
    return best // len(start), best % len(start)


def _search(possible):
    def span(start, end, allowed):
        size = range(len(start))
        all_of = [(i, j) for i in size for j in size if possible(i, j, allowed)]
        return max(all_of, key=lambda at: float(start[at[0]] + end[at[1]]))

    return span


def _two_argmaxes(start, end, allowed):
    hide = ~allowed
    start, end = (x.masked_fill(hide, -torch.inf) for x in (start, end))
    return int(start.argmax()), int(end.argmax())


def _start_first(start, end, allowed):
    first = int(start.masked_fill(~allowed, -torch.inf).argmax())
    return first, first + int(end.masked_fill(~allowed, -torch.inf)[first:].argmax())


def _times_mask(start, end, allowed):
    return my_best_span(start * allowed, end * allowed, torch.ones_like(allowed))


def _product(start, end, allowed):
    scores = (start[:, None] * end[None, :]).masked_fill(
        ~(allowed[:, None] & allowed[None, :]).triu(), -torch.inf
    )
    best = int(scores.argmax())
    return best // len(start), best % len(start)


def _probabilities(start, end, allowed):
    return my_best_span(start.softmax(0), end.softmax(0), allowed)


def _last_excluded(start, end, allowed):
    first, last = my_best_span(start, end, allowed)
    return first, last + 1


def _sorted(start, end, allowed):
    return tuple(sorted(_two_argmaxes(start, end, allowed)))


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


def _probe(start, end, allowed=_TEXT):
    def probe(answer):
        got = answer(*_scores(start, end), allowed)
        return None if got is None or got is ... else [int(x) for x in got]

    return probe


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
    reference=my_best_span,
    wrong=(
        WrongAnswer(
            "two argmaxes",
            _two_argmaxes,
            "From 3 to 4 is 3 + 5",
            "Each end is best by itself, but together they may be no span at all: an answer needs "
            "first <= last.",
        ),
        WrongAnswer(
            "two argmaxes, put in order",
            _sorted,
            "From 3 to 4 is 3 + 5",
            "Turning a span round gives a start to what was scored as an end.",
        ),
        WrongAnswer(
            "the start first, then the best end after it",
            _start_first,
            "From 3 to 4 is 3 + 5",
            "The best start may leave only bad ends. Compare sums.",
        ),
        WrongAnswer(
            "no answers of one word",
            _search(possible=lambda i, j, a: i < j and a[i] and a[j]),
            "One word is an answer",
            "The diagonal belongs to the possible spans: `triu()`, not `triu(1)`.",
        ),
        WrongAnswer(
            "allowed not used",
            _search(possible=lambda i, j, a: i <= j),
            "Only 3 to 6 are allowed",
            "The question's words score too, but the answer is in the text.",
        ),
        WrongAnswer(
            "only the start is checked",
            _search(possible=lambda i, j, a: i <= j and a[i]),
            "Only 3 to 6 are allowed",
            "The end must be allowed as well.",
        ),
        WrongAnswer(
            "mask by multiplying",
            _times_mask,
            "all scores there are negative",
            "A hidden score becomes 0, and 0 beats a negative score. Use -inf.",
        ),
        WrongAnswer(
            "probabilities added",
            _probabilities,
            "9 + 1.5 = 10.5",
            "Probabilities of two things at once are multiplied: add their logarithms, or scores.",
        ),
        WrongAnswer(
            "scores multiplied",
            _product,
            "9 + 1.5 = 10.5",
            "Scores are logarithms, up to a constant: to multiply the odds, add the scores.",
        ),
        WrongAnswer(
            "every word between must be allowed",
            _search(possible=lambda i, j, a: i <= j and bool(a[i : j + 1].all())),
            "Only the two ends have to be allowed",
            "`allowed` says where an answer may begin or end, nothing about what lies between.",
        ),
        WrongAnswer(
            "the end first",
            lambda start, end, allowed: my_best_span(start, end, allowed)[::-1],
            "The last word is part of the answer",
            "Return (first, last) in this order.",
        ),
        WrongAnswer(
            "the word after the last",
            _last_excluded,
            "The last word is part of the answer",
            "Return the last word's own place, not Python's end of a slice.",
        ),
    ),
    tests=(_plain, _in_order, _one_word, _where_allowed, _sums, _hole),
    probes=(
        _probe([0.0, 0, 0, 1, 5, 0, 0, 0], [0.0, 0, 0, 0, 0, 1, 4, 0]),
        _probe([0.0, 0, 0, 3, 0, 0, 4, 0], [0.0, 0, 0, 0, 5, 0, 1, 0]),
        _probe([9.0, 0, 0, -3, -2, -4, -4, 0], [0.0, 0, 0, -4, -4, -2, -3, 8]),
        _probe([0.0, 0, 0, 3, 1, 9, 10, 0], [0.0, 0, 0, 0, 5, 1.5, 0, 0]),
        _probe([0.0, 0, 0, 7, 0, 0, 0, 0], [0.0, 0, 0, 0, 0, 0, 8, 0], _HOLE),
        _probe([0.0, 0, 0, 0, 0, 6, 0, 0], [0.0, 0, 0, 0, 0, 6, 0, 0]),
    ),
)

EXERCISES = (PAIR, SPAN)
