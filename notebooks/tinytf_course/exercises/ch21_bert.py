"""Chapter 21: how a pair is written for BERT, how likely a sentence is, and where an answer is."""

import torch

from tinytf_course.expect import expect, numbers, same
from tinytf_course.grading import Exercise, hint
from tinytf_course.words import described, given, short

# 21.1 write a pair for BERT


def my_pair(first, second, cls_id=1, sep_id=2):
    """Join two lists of ids into one input for BERT: (ids, segments), two lists of equal length.

    The ids are [CLS] first [SEP] second [SEP]. The segment is 0 up to and including the first
    [SEP], and 1 after it.
    """
    raise NotImplementedError


def whole_numbers(part, where):
    """A list, tuple or tensor of whole numbers as a list of them, or a Mismatch."""
    row = isinstance(part, list | tuple) or (isinstance(part, torch.Tensor) and part.dim() == 1)
    expect(row, f"{where} you return {described(part)}, expected a list of whole numbers")
    found = [x.item() if isinstance(x, torch.Tensor) and x.numel() == 1 else x for x in part]
    for x in found:
        whole = isinstance(x, int) and not isinstance(x, bool)
        expect(whole, f"{where} you return a list that holds {short(x)}, expected whole numbers")
    return found


def two_lists(got, names, where):
    """A pair of lists of whole numbers, or a Mismatch."""
    pair = isinstance(got, list | tuple | torch.Tensor) and len(got) == 2
    expect(pair, f"{where}, you return {described(got)}, expected two lists: {' and '.join(names)}")
    return [whole_numbers(part, f"{where}, for {name}") for part, name in zip(got, names)]


def _written(first, second, cls_id=1, sep_id=2):
    """Token by token, each with its segment."""
    pairs = [(cls_id, 0)]
    for segment, sentence in enumerate((first, second)):
        for token in (*sentence, sep_id):
            pairs.append((token, segment))
    return [id for id, _ in pairs], [segment for _, segment in pairs]


def _pair(answer, *arguments):
    """The two lists of the answer, the two expected, and for what."""
    where = given(my_pair, arguments)
    return two_lists(answer(*arguments), ("ids", "segments"), where), _written(*arguments), where


def _ids(answer):
    """the input begins with one [CLS], and each sentence ends with a [SEP]"""
    for sentences in (([7], [8]), ([7, 8, 9], [11, 12, 13, 14, 15])):
        (ids, _), (expected, _), where = _pair(answer, *sentences)
        note = f"expected {expected}: [CLS] is 1, [SEP] is 2"
        expect(ids == expected, f"{where}, the ids are {ids}, {note}")


def _marks(answer):
    """[CLS] and [SEP] get the ids that are passed in"""
    got, expected, where = _pair(answer, [4], [5, 6], 101, 102)
    for mine, right, name in zip(got, expected, ("ids", "segments"), strict=True):
        expect(mine == right, f"{where}, the {name} are {mine}, expected {right}")


def _segments(answer):
    """the first [SEP] belongs to the first sentence, the last one to the second"""
    for sentences in (([7], [8]), ([7, 8, 9], [11, 12, 13, 14, 15])):
        (ids, got), (_, expected), where = _pair(answer, *sentences)
        message = f"{where}, there are {len(got)} segments for {len(ids)} ids: every id has one, "
        expect(len(got) == len(ids), message + "[CLS] and [SEP] included")
        expect(got == expected, f"{where}, the segments are {got}, expected {expected}")


def _any_sentences(answer):
    """a word may occur in both sentences or twice in one, and either may be the longer one"""
    for sentences in (([7, 8], [8]), ([5, 9, 5, 5], [5, 9]), ([3], []), ([6] * 30, [6] * 20)):
        got, expected, where = _pair(answer, *sentences)
        for mine, right, name in zip(got, expected, ("ids", "segments"), strict=True):
            expect(mine == right, f"{where}, the {name} are {short(mine)}, expected {short(right)}")


PAIR = Exercise(
    id="21.1",
    title="write a pair for BERT",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_pair(first, second, cls_id=1, sep_id=2)`, which joins two lists of ids into one "
        "input for BERT, in the order `[CLS]`, `first`, `[SEP]`, `second`, `[SEP]`, and gives each "
        "id its segment. Return two lists, `(ids, segments)`."
    ),
    hint="The two lists are equally long. How many ids come before the second sentence begins?",
    function=my_pair,
    tests=(_ids, _marks, _segments, _any_sentences),
)


# 21.3 find the answer


def my_best_span(start, end, allowed):
    """Find the answer: (first, last), two whole numbers, the last word included.

    start and end are scores (S,), and allowed (S,) is True where an answer may begin or end. Of
    all spans that do not end before they begin, return one with the largest start[first] +
    end[last].
    """
    raise NotImplementedError


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
    pair = isinstance(got, list | tuple | torch.Tensor) and len(got) == 2
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


def _both_fit(answer):
    """the best start and the best end, where they form a span"""
    _spans(answer, _row(0, 5, 0), _row(0, 0, 4), note="The last word is part of the answer.")
    _spans(answer, _row(5, 0, 1, 0), _row(0, 0, 0, 4))


def _in_order(answer):
    """an answer does not end before it begins"""
    note = "From 0 to 1 is 3 + 5 = 8; from 2 to 2 is 4 + 1 = 5."
    _spans(answer, _row(3, 0, 4), _row(0, 5, 1), note=note)


def _one_word(answer):
    """an answer may be one word"""
    _spans(answer, _row(0, 6, 0), _row(0, 6, 0), note="From 1 to 1 is 6 + 6 = 12.")
    _spans(answer, _row(-2), _row(-3), note="There is only one.")


def _where_allowed(answer):
    """both ends are at allowed positions"""
    note = "At 1 and 2, the allowed positions, all scores are negative."
    text = torch.tensor([False, True, True, False])
    _spans(answer, _row(9, -2, -4, 0), _row(-4, -4, -3, 8), text, note)
    _spans(answer, _row(9, -2, -4, 0), _row(9, -4, -3, 0), text, note)


_LOW = torch.tensor([-7e4, -6e4, 0.0])
_NOT_LAST = torch.tensor([True, True, False])


@hint("Which number is below every possible score?")
def _far_below(answer):
    """scores may be far below 0"""
    note = "A position that is not allowed must lose to any score: -10,000 is not low enough."
    _spans(answer, _LOW, _LOW, _NOT_LAST, note)


def _far_apart(answer):
    """the best start and the best end may be far above the best span"""
    note = "From 1 to 1 is -1100 - 1100 = -2200: as probabilities, exp(-1100) is 0."
    _spans(answer, _row(-300, -110, 0), _row(0, -110, -300), note="From 1 to 1 is -220.")
    _spans(answer, _row(-3000, -1100, 0), _row(0, -1100, -3000), note=note)


@hint("Which number is below every possible score?")
def _any_numbers(answer):
    """scores in float64 may be far below 0, or very close together"""
    low, note = _LOW.double() * 1e7, "-1,000,000,000 is not low enough."
    _spans(answer, low, low, _NOT_LAST, note)
    one, more = torch.tensor([[1, 1], [1, 1 + 1e-9]], dtype=torch.float64)
    note = "The second score is larger by 1e-9, which float64 can represent."
    _spans(answer, more, one, note=note, where="for start=[1, 1 + 1e-9] and end=[1, 1]")
    _spans(answer, one, more, note=note, where="for start=[1, 1] and end=[1, 1 + 1e-9]")
    where = "for start=[1 + 1e-9, 1] and end=[1, 1 + 1e-9]"
    _spans(answer, more.flip(0), more, note="From 0 to 1 is 2 + 2e-9.", where=where)


def _sums(answer):
    """scores are added"""
    note = "From 2 to 2 is 9 + 1.5 = 10.5, from 3 to 3 is 10, from 0 to 1 is 8."
    _spans(answer, _row(3, 1, 9, 10), _row(0, 5, 1.5, 0), note=note)


def _hole(answer):
    """between its ends, an answer may contain a word that can't be an end"""
    hole = torch.tensor([True, False, True])
    note = "From 0 to 2 is 7 + 8 = 15. Only the two ends have to be allowed."
    _spans(answer, _row(7, 0, 0), _row(0, 0, 8), hole, note)


def _long(answer):
    """an answer may be long"""
    for size in (6, 40, 200):
        start, end = torch.zeros(2, size)
        start[0], end[-1] = 3.0, 2.0
        note = f"From 0 to {size - 1} is 3 + 2 = 5: the length of an answer is not limited."
        where = f"for {size} words, start[0] = 3, end[{size - 1}] = 2, and 0 everywhere else"
        _spans(answer, start, end, note=note, where=where)


def _crossed(answer):
    """all good starts may come after all good ends"""
    _spans(answer, _row(0, 2, 3), _row(3, 2, 0), note="From 1 to 1 is 2 + 2 = 4.")
    start = torch.arange(60.0)
    start[30] += 0.5
    where = "for 60 words, starts 0, 1, 2, … 59, but 30.5 at 30, and ends 0, -1, -2, … -59"
    _spans(answer, start, -torch.arange(60.0), note="From 30 to 30 is 0.5.", where=where)


def _any_scores(answer):
    """for random scores and any allowed positions"""
    for size, seed in ((2, 1), (5, 2), (11, 3), (30, 4)):
        for shift in (0.0, -20.0):
            start, end = numbers(2, size, seed=seed, scale=3.0, shift=shift)
            allowed = numbers(size, seed=seed + 10) > -0.5
            allowed[size // 2] = True
            where = f"for {size} scores drawn at random" + " and all negative" * (shift < 0)
            _spans(answer, start, end, allowed, where=where)


SPAN = Exercise(
    id="21.3",
    title="find the answer",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_best_span(start, end, allowed)`. From each token's score as the answer's first "
        "word and its score as the last, find the span with the largest sum that does not end "
        "before it begins and whose two ends are both allowed. Return `(first, last)`."
    ),
    hint=(
        "The rule in detail: a span may have any length, and scores may be any numbers. If several "
        "spans are best, return any of them.",
        "Make a table of all sums, `start[:, None] + end[None, :]`. Cells below the diagonal and "
        "cells that are not allowed become -inf. The `argmax` of a table counts row by row.",
    ),
    function=my_best_span,
    tests=(
        _both_fit,
        _in_order,
        _one_word,
        _where_allowed,
        _sums,
        _hole,
        _long,
        _crossed,
        _far_below,
        _far_apart,
        _any_numbers,
        _any_scores,
    ),
)


# 21.2 how likely is a sentence?


def my_sentence_score(logits_of, ids, mask_id, asked):
    """Return a sentence's pseudo-log-likelihood under a masked language model, in nats.

    Each word where asked (S,) is True is predicted with only this word masked by mask_id and all
    other ids (S,) left as they are. logits_of maps ids (B, S) to logits (B, S, V).
    """
    raise NotImplementedError


_VOCABULARY = 7  # the words; the mask has the next id


class _Reader:
    """A model in which every word moves the logits at every position, as in BERT."""

    __name__ = "logits_of"

    def __init__(self, length, seed=0, scale=1.0, dtype=torch.float32):
        self.said = scale * numbers(_VOCABULARY + 1, _VOCABULARY, seed=seed, dtype=dtype)
        self.reach = numbers(length, length, seed=seed + 50, dtype=dtype)
        self.sizes = []

    def __call__(self, ids):
        """Logits (B, S, V) for ids (B, S)."""
        self.sizes.append(tuple(ids.shape))
        return self.reach @ self.said[ids]


def _one_by_one(model, ids, asked):
    """Predict one word after the other, in float64."""
    said, reach = model.said.double(), model.reach.double()
    total = torch.zeros((), dtype=torch.float64)
    for place in asked.nonzero().flatten().tolist():
        read = ids.clone()
        read[place] = _VOCABULARY
        logits = (reach @ said[read])[place]
        total = total + logits[ids[place]] - logits.logsumexp(dim=0)
    return total.to(model.said.dtype)


def _scored(answer, ids, asked, note="", **how):
    """Expect the sum for these words; returns the case in words and the model that was called."""
    ids, asked = torch.tensor(ids), torch.tensor(asked, dtype=torch.bool)
    model, reading = _Reader(len(ids), **how), _Reader(len(ids), **how)
    where = f"for ids={short(ids)}, asked={short(asked.long())} and mask_id={_VOCABULARY}"
    if how.get("scale", 1.0) > 1:
        where += " and logits in the thousands"
    got = answer(reading, ids, _VOCABULARY, asked)
    tensor = isinstance(got, torch.Tensor)
    expect(tensor, f"{where}, you return {described(got)}, expected a tensor")
    same(got, _one_by_one(model, ids, asked), where, note=note, dtype=True)
    return where, reading


def _one_word(answer):
    """one word is masked, and its log-probability is returned"""
    note = "Only position 1 is predicted: its word is 4, and the model's input has the mask there."
    _scored(answer, [1, 4, 2], [0, 1, 0], note)


def _others_in_sight(answer):
    """all other words are visible, including those that other rows predict"""
    note = "While position 1 is predicted, position 2 shows its word, and the other way round."
    _scored(answer, [1, 4, 3, 2], [0, 1, 1, 0], note)


def _sum_of_all(answer):
    """every word to be predicted counts once, even if the same word occurs twice"""
    note = "The 4 occurs at two positions, and each is predicted by itself."
    _scored(answer, [1, 4, 3, 4, 2], [0, 1, 1, 1, 0], note)
    _scored(answer, [1, 4, 3, 4, 5, 2], [0, 0, 1, 1, 0, 0])
    _scored(answer, [5, 5], [1, 1])


def _one_call(answer):
    """the model is called once, with a row for each word to be predicted"""
    where, reading = _scored(answer, [1, 4, 3, 5, 2], [0, 1, 1, 1, 0])
    calls = [f"{rows} rows" if rows > 1 else "one row" for rows, *_ in reading.sizes]
    message = f"{where}, the model is called {len(calls)} times, with {', '.join(calls)}"
    expect(len(calls) == 1, f"{message}; expected one call, with 3 rows")
    rows = reading.sizes[0][0]
    expect(rows == 3, f"{where}, the model gets {rows} rows, expected 3: a row for each word")


@hint("`log_softmax` never computes a probability, so none can be rounded to 0.")
def _large(answer):
    """logits may be of any size"""
    for seed in (1, 2):
        _scored(answer, [1, 4, 3, 2], [0, 1, 1, 0], "No probability is 0.", seed=seed, scale=3e3)


def _any_sentence(answer):
    """any sentence and any words to be predicted, also in float64"""
    for size, seed in ((1, 3), (3, 4), (8, 5), (15, 6)):
        draws = torch.Generator().manual_seed(seed)
        ids = torch.randint(_VOCABULARY, (size,), generator=draws)
        asked = torch.rand(size, generator=draws) < 0.6
        asked[-1] = True
        _scored(answer, ids.tolist(), asked.tolist(), seed=seed)
        _scored(answer, ids.tolist(), asked.tolist(), seed=seed, dtype=torch.float64)


SCORE = Exercise(
    id="21.2",
    title="how likely is a sentence?",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_sentence_score(logits_of, ids, mask_id, asked)`, which returns the "
        "pseudo-log-likelihood of one sentence in nats, as a tensor. `ids` (S,) is the sentence "
        "with its special tokens, `asked` (S,) is True at the words to be predicted, each of them "
        "masked by itself, and `logits_of` maps ids (B, S) to logits (B, S, V). Call `logits_of` "
        "once, on a batch with one row for each predicted word."
    ),
    hint=(
        "The rule in detail: `asked` is True at one word or more. Logits may be of any size, and "
        "the result has their dtype.",
        "Repeat the sentence once for each position in `asked.nonzero()`. In row i one position is "
        "masked. At which position do you read row i's logits, and for which word?",
    ),
    function=my_sentence_score,
    tests=(_one_word, _others_in_sight, _sum_of_all, _one_call, _large, _any_sentence),
)


EXERCISES = (PAIR, SCORE, SPAN)
