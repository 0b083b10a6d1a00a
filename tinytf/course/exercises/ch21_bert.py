"""Chapter 21: how a pair of sentences is written for BERT, its loss, and where an answer is."""

import torch
import torch.nn.functional as F

from tinytf.course.expect import agrees, expect, gradients, numbers, same
from tinytf.course.grading import Exercise, hint
from tinytf.course.words import described, given, short

# 21.1 write a pair for BERT


def my_pair(first, second, cls_id=1, sep_id=2):
    """Two lists of ids as BERT reads them: (ids, segments), two lists of one length.

    [CLS] first [SEP] second [SEP]; the segment is 0 up to the first [SEP], it included, then 1.
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
    """one [CLS] begins, and a [SEP] ends each sentence"""
    for sentences in (([7], [8]), ([7, 8, 9], [11, 12, 13, 14, 15])):
        (ids, _), (expected, _), where = _pair(answer, *sentences)
        note = f"expected {expected}: [CLS] is 1, [SEP] is 2"
        expect(ids == expected, f"{where}, the ids are {ids}, {note}")


def _marks(answer):
    """the marks have the ids that are given"""
    got, expected, where = _pair(answer, [4], [5, 6], 101, 102)
    for mine, right, name in zip(got, expected, ("ids", "segments"), strict=True):
        expect(mine == right, f"{where}, the {name} are {mine}, expected {right}")


def _segments(answer):
    """the first [SEP] belongs to the first sentence, the last one to the second"""
    for sentences in (([7], [8]), ([7, 8, 9], [11, 12, 13, 14, 15])):
        (ids, got), (_, expected), where = _pair(answer, *sentences)
        message = f"{where}, there are {len(got)} segments for {len(ids)} ids: every id has one, "
        expect(len(got) == len(ids), message + "the marks too")
        expect(got == expected, f"{where}, the segments are {got}, expected {expected}")


def _any_sentences(answer):
    """a word may stand in both, twice in one, and a sentence may be the longer one"""
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
        "Write `my_pair(first, second, cls_id=1, sep_id=2)`: put two lists of ids together as BERT "
        "reads them, [CLS] first [SEP] second [SEP], and say which segment each id belongs to. "
        "Return two lists, `(ids, segments)`."
    ),
    hint="Two lists of equal length: how many ids come before the second sentence begins?",
    function=my_pair,
    tests=(_ids, _marks, _segments, _any_sentences),
)


# 21.3 find the answer


def my_best_span(start, end, allowed):
    """Where the answer is: (first, last), two whole numbers, the last word included.

    start and end are scores (S,), allowed (S,) is True where an answer may begin or end. Of all
    spans that do not end before they begin, the one whose start[first] + end[last] is largest.
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
    expect(inside, f"{says}, but places are 0 to {len(start) - 1}. {note}")
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
    """the best start and the best end, where these fit"""
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
    """both ends stand where an answer may be"""
    note = "Of 1 and 2, the places that are allowed, all scores are negative."
    text = torch.tensor([False, True, True, False])
    _spans(answer, _row(9, -2, -4, 0), _row(-4, -4, -3, 8), text, note)
    _spans(answer, _row(9, -2, -4, 0), _row(9, -4, -3, 0), text, note)


_LOW = torch.tensor([-7e4, -6e4, 0.0])
_NOT_LAST = torch.tensor([True, True, False])


@hint("Which number is below every score there may be?")
def _far_below(answer):
    """scores may be far below 0"""
    note = "A place that is not allowed loses to any score: -10,000 is not low enough."
    _spans(answer, _LOW, _LOW, _NOT_LAST, note)


def _far_apart(answer):
    """the best start and the best end may be far above the best span"""
    note = "From 1 to 1 is -1100 - 1100 = -2200: as probabilities, exp(-1100) is 0."
    _spans(answer, _row(-300, -110, 0), _row(0, -110, -300), note="From 1 to 1 is -220.")
    _spans(answer, _row(-3000, -1100, 0), _row(0, -1100, -3000), note=note)


@hint("Which number is below every score there may be?")
def _any_numbers(answer):
    """however far below 0, and however close, in float64"""
    low, note = _LOW.double() * 1e7, "-1,000,000,000 is not low enough."
    _spans(answer, low, low, _NOT_LAST, note)
    one, more = torch.tensor([[1, 1], [1, 1 + 1e-9]], dtype=torch.float64)
    note = "The second score is larger by 1e-9, which float64 can tell."
    _spans(answer, more, one, note=note, where="for start=[1, 1 + 1e-9] and end=[1, 1]")
    _spans(answer, one, more, note=note, where="for start=[1, 1] and end=[1, 1 + 1e-9]")
    where = "for start=[1 + 1e-9, 1] and end=[1, 1 + 1e-9]"
    _spans(answer, more.flip(0), more, note="From 0 to 1 is 2 + 2e-9.", where=where)


def _sums(answer):
    """scores are added"""
    note = "From 2 to 2 is 9 + 1.5 = 10.5, from 3 to 3 is 10, from 0 to 1 is 8."
    _spans(answer, _row(3, 1, 9, 10), _row(0, 5, 1.5, 0), note=note)


def _hole(answer):
    """between its ends an answer may hold a word that can't be an end"""
    hole = torch.tensor([True, False, True])
    note = "From 0 to 2 is 7 + 8 = 15. Only the two ends have to be allowed."
    _spans(answer, _row(7, 0, 0), _row(0, 0, 8), hole, note)


def _long(answer):
    """an answer may be long"""
    for size in (6, 40, 200):
        start, end = torch.zeros(2, size)
        start[0], end[-1] = 3.0, 2.0
        note = f"From 0 to {size - 1} is 3 + 2 = 5: nothing was said about how long it may be."
        where = f"for {size} words, start[0] = 3, end[{size - 1}] = 2, and 0 everywhere else"
        _spans(answer, start, end, note=note, where=where)


def _crossed(answer):
    """good starts may stand behind all good ends"""
    _spans(answer, _row(0, 2, 3), _row(3, 2, 0), note="From 1 to 1 is 2 + 2 = 4.")
    start = torch.arange(60.0)
    start[30] += 0.5
    where = "for 60 words, starts 0, 1, 2, … 59, but 30.5 at 30, and ends 0, -1, -2, … -59"
    _spans(answer, start, -torch.arange(60.0), note="From 30 to 30 is 0.5.", where=where)


def _any_scores(answer):
    """for any scores, drawn at random, and any text"""
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
        "Write `my_best_span(start, end, allowed)`: from a score per token for the answer's first "
        "word and one for its last, the span with the largest sum that does not end before it "
        "begins and whose ends are both allowed. It may be as long as it likes, and scores may be "
        "any numbers. Return `(first, last)`; of several that are best, any one."
    ),
    hint=(
        "A table of all sums, `start[:, None] + end[None, :]`; cells below the diagonal and cells "
        "not allowed become -inf. `argmax` of a table counts row by row."
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


# 21.2 a masked-word loss to repair


def my_masked_loss(logits, ids, read, chosen):
    """The mean cross-entropy in nats at the chosen words; a 0 to call backward on if none is.

    logits (B, S, V); ids (B, S) are the words that stood there, read (B, S) what the model was
    given, chosen (B, S) is True where it was asked.
    """
    raise NotImplementedError


_LOGITS = torch.tensor(
    [
        [[1.0, 2.0, 0.0, 0.0], [0.0, 1.0, 3.0, 1.0], [0.0, 0.0, 1.0, 2.0]],
        [[1.0, 0.0, 0.0, 2.0], [4.0, 0.0, 0.0, 0.0], [3.0, 0.0, 1.0, 0.0]],
    ]
)
_STOOD = torch.tensor([[1, 2, 0], [2, 1, 1]])
_READ = torch.tensor([[3, 2, 0], [0, 1, 1]])  # hidden behind 3, kept, not asked; swapped, and not
_ASKED = torch.tensor([[True, True, False], [True, False, False]])
_CASE = "for ids=[[1, 2, 0], [2, 1, 1]], read=[[3, 2, 0], [0, 1, 1]] and three words chosen"


def _by_torch(logits, ids, read, chosen):
    """The mean over the chosen words, by torch's own way to leave some out."""
    if not bool(chosen.any()):
        return logits.sum() * 0
    wanted = ids.masked_fill(~chosen, -100)
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten())


def _batch(rows, length, words, seed, dtype=torch.float32, scale=1.0):
    """A batch drawn at random, with words hidden, swapped and kept."""
    draws = torch.Generator().manual_seed(seed)
    logits = numbers(rows, length, words, seed=seed, dtype=dtype, scale=scale)
    ids = torch.randint(words, (rows, length), generator=draws)
    other = torch.randint(words, (rows, length), generator=draws)
    chosen = torch.rand(rows, length, generator=draws) < 0.5
    chosen[0, 0] = True
    return logits, ids, torch.where(chosen, other, ids), chosen


def _one_hidden(answer):
    """one word is hidden: the loss is what its right word costs"""
    asked = torch.tensor([[True, False, False], [False, False, False]])
    note = "Only place 0 of the first text is asked, where a 1 stood."
    where = "for one chosen word of six"
    expected = _by_torch(_LOGITS, _STOOD, _READ, asked)
    same(answer(_LOGITS, _STOOD, _READ, asked), expected, where, note=note)


def _kept_too(answer):
    """chosen words count whether they are hidden, swapped or kept, and no others"""
    got = answer(_LOGITS, _STOOD, _READ, _ASKED)
    note = "Place 1 of the first text was chosen and kept: read and ids agree there."
    same(got, _by_torch(_LOGITS, _STOOD, _READ, _ASKED), _CASE, note=note)


def _others_do_not_count(answer):
    """what is said at the other places does not count"""
    loud = _LOGITS.masked_fill(~_ASKED[..., None], 0.0)
    loud[~_ASKED] += torch.tensor([9.0, -50.0, 0.0, 2.0])
    note = "Only logits at places that nobody asked for were changed."
    same(answer(loud, _STOOD, _READ, _ASKED), _by_torch(_LOGITS, _STOOD, _READ, _ASKED), _CASE,
         note=note)  # fmt: skip


@hint("A mean over no words is 0/0.")
def _none_chosen(answer):
    """if no word is chosen it is a 0 that hangs on the logits"""
    none = _ASKED & False
    same(answer(_LOGITS, _STOOD, _READ, none), 0.0, "where no word is chosen")
    gradients(answer, _by_torch, _LOGITS, _STOOD, _READ, none)
    for logits in (_LOGITS, _LOGITS.double()):
        agrees(answer, _by_torch, logits, _STOOD, _READ, none)
    where = "where no word is chosen and logits are in the thousands"
    same(answer(1e4 * _LOGITS, _STOOD, _READ, none), 0.0, where)


def _any_words(answer):
    """any batch, of any sizes, and large logits"""
    for sizes in ((1, 1, 2), (3, 1, 5), (1, 4, 3), (3, 5, 7)):
        for seed in (1, 2):
            agrees(answer, _by_torch, *_batch(*sizes, seed=seed))
    agrees(answer, _by_torch, *_batch(2, 3, 5, seed=3, scale=1e4))


def _masked_gradients(answer):
    """the gradient goes to the chosen places"""
    for seed in (4, 5):
        gradients(answer, _by_torch, *_batch(2, 3, 5, seed=seed))


def _masked_in_float64(answer):
    """float64 stays float64"""
    agrees(answer, _by_torch, *_batch(2, 4, 5, seed=6, dtype=torch.float64))


MASKED = Exercise(
    id="21.2",
    title="a masked-word loss to repair",
    difficulty=2,
    minutes=10,
    statement=(
        "Somebody wrote the loss of the masked words. It runs, its number falls in training, and "
        "four things in it are wrong:\n\n"
        "```python\n"
        "def my_masked_loss(logits, ids, read, chosen):\n"
        "    hidden = read != ids\n"
        '    loss = F.cross_entropy(logits.flatten(0, 1), read.flatten(), reduction="none")\n'
        "    return (loss * hidden.flatten()).mean()\n"
        "```\n\n"
        "`logits` are (B, S, V), one row for each place; `ids` (B, S) are the words that stood "
        "there, `read` (B, S) is what the model was given, and `chosen` (B, S) is True at the "
        "words that were chosen, be they hidden, swapped or kept. Write it right: the mean "
        "cross-entropy of the chosen words of the whole batch, as a tensor to call `backward` on. "
        "If no word was chosen it is 0, and `backward` can be called on it all the same, with a "
        "gradient of 0. Logits may be of any size; float64 stays float64."
    ),
    hint=(
        "Which of the two, `ids` or `read`, is the right answer? A kept word was chosen, too. By "
        "how many words has the sum to be divided?"
    ),
    function=my_masked_loss,
    tests=(
        _one_hidden,
        _kept_too,
        _others_do_not_count,
        _none_chosen,
        _any_words,
        _masked_gradients,
        _masked_in_float64,
    ),
)


EXERCISES = (PAIR, MASKED, SPAN)
