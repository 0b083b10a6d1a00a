"""Exercises of chapter 22, Three families: corrupted texts, and both sides of a blank."""

import itertools

import torch

from tinytf_course.exercises.ch21_bert import two_lists, whole_numbers
from tinytf_course.expect import expect, numbers, same
from tinytf_course.grading import Exercise, hint
from tinytf_course.words import described, given, short

# 22.1 what T5 reads and what it writes


def my_drop_spans(ids, noise, sentinels):
    """Turn ids (N,) into the input of T5's encoder and the target of its decoder.

    noise (N,) is True at the tokens to drop, and sentinels is a list of ids in the order of use.
    Returns the pair (corrupted, target), two lists of ids.
    """
    raise NotImplementedError


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


def _reads(answer):
    """the encoder's input has one sentinel for each span"""
    for case in _CASES:
        (got, _), (expected, _), where = _both(answer, *case)
        expect(got == expected, f"{where}, corrupted is {got}, expected {expected}")


def _writes(answer):
    """the target has each span after its sentinel, and one more sentinel at the end"""
    for case in _CASES:
        (_, got), (_, expected), where = _both(answer, *case)
        expect(got == expected, f"{where}, the target is {got}, expected {expected}")


def _lists(answer, ids, noise, sentinels=MARKS):
    got, expected, where = _both(answer, ids, noise, sentinels)
    for mine, right, name in zip(got, expected, ("corrupted", "target"), strict=True):
        expect(mine == right, f"{where}, {name} is {short(mine)}, expected {short(right)}")


def _edges(answer):
    """spans may be at either end of the text"""
    _lists(answer, [11, 12], [1, 0])
    _lists(answer, [11, 12], [0, 1])
    _lists(answer, IDS, [1, 0, 1, 1, 0, 1, 1])


def _all_or_none(answer):
    """everything may be dropped, or nothing"""
    _lists(answer, [11], [1])
    _lists(answer, [11], [0])
    _lists(answer, [11, 12, 13], [1, 1, 1])
    _lists(answer, [11, 12, 13], [0, 0, 0])


def _repeats(answer):
    """a token may occur twice, dropped at one position and kept at another"""
    _lists(answer, [5, 5, 5], [0, 1, 0])
    _lists(answer, [5, 6, 5, 6, 6, 5], [1, 0, 0, 0, 1, 1])


def _no_more_sentinels(answer):
    """there may be exactly as many sentinels as needed"""
    _lists(answer, [11, 12, 13, 14], [0, 1, 0, 1], [30, 20, 10])


def _any_noise(answer):
    """for any row and any noise"""
    for seed in range(6):
        row = numbers(3, 25, seed=seed)
        _lists(answer, (row[0].abs() * 5).long(), row[1] > 0, list(range(50, 90, 2)))


DROP_SPANS = Exercise(
    id="22.1",
    title="what T5 reads and what it writes",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_drop_spans(ids, noise, sentinels)`, which drops the tokens where `noise` is "
        "True. Each span of neighbouring dropped tokens is replaced by the next sentinel of the "
        "list. Return `(corrupted, target)`, two lists of ids; the target holds each sentinel "
        "followed by its span, and one more sentinel at the end."
    ),
    hint=(
        "Go through the tokens and remember whether the previous one was dropped, because a new "
        "span begins only where this changes. A dropped token goes to the target, and a kept one "
        "to the corrupted text."
    ),
    function=my_drop_spans,
    tests=(_reads, _writes, _edges, _all_or_none, _repeats, _no_more_sentinels, _any_noise),
)


# 22.2 BART's infilling, with spans of nothing


def my_infill(ids, spans, mask_id):
    """Replace each span of ids (N,) by one mask.

    spans is a list of (start, length) from left to right, which do not overlap. A length of 0
    inserts a mask before the token at start. Returns a list of ids.
    """
    raise NotImplementedError


def _from_the_right(ids, spans, mask_id):
    """Cut and insert from the last span to the first, so that no position shifts."""
    row = ids.tolist()
    for start, length in reversed(spans):
        del row[start : start + length]
        row.insert(start, mask_id)
    return row


def _infills(answer, ids, spans, mask_id=50, note=""):
    ids = torch.as_tensor(ids)
    where = given(my_infill, (ids, spans, mask_id))
    got = answer(ids, spans, mask_id)
    expect(isinstance(got, list), f"{where}, you return {described(got)}, expected a list")
    got = whole_numbers(got, f"{where},")
    expected = _from_the_right(ids, spans, mask_id)
    words = f"{where}, you get {short(got)}, expected {short(expected)}. {note}"
    expect(got == expected, words.strip())


def _any_length(answer):
    """a span of any length becomes one mask"""
    _infills(answer, [11, 12, 13], [(1, 1)])
    _infills(answer, [11, 12, 13, 14], [(1, 2)])
    _infills(answer, IDS, [(1, 3), (5, 1)])


def _empty(answer):
    """a span of length 0 inserts a mask where nothing was dropped"""
    _infills(answer, [11, 12], [(1, 0)])
    _infills(answer, IDS, [(1, 2), (4, 0), (5, 1)])


def _ends(answer):
    """masks may come first and last"""
    _infills(answer, [11], [(0, 0)])
    _infills(answer, [11], [(1, 0)], note="Position 1 is after the last token.")
    _infills(answer, [11, 12], [(0, 2)], note="All that is left is a mask.")
    _infills(answer, IDS, [(0, 2), (4, 3)])


def _no_span(answer):
    """without a span the row stays unchanged"""
    _infills(answer, [11, 12], [])


def _touching(answer):
    """spans that touch get a mask each"""
    _infills(answer, [11, 12], [(0, 1), (1, 1)])
    _infills(answer, IDS, [(1, 2), (3, 0), (3, 1)])
    _infills(answer, [11, 12], [(1, 0), (1, 0)], note="Two masks go in before 12.")


def _masked_before(answer):
    """the row may already contain masks, and a word may occur twice"""
    _infills(answer, [50, 11, 50, 11], [(1, 1)])
    _infills(answer, [4, 4, 5, 4, 5, 5], [(1, 2), (4, 1)], 5)


INFILL = Exercise(
    id="22.2",
    title="BART's infilling, with spans of nothing",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_infill(ids, spans, mask_id)`, which replaces each span of `ids` by one "
        "`mask_id` and returns a list. `spans` holds pairs `(start, length)`, from left to right "
        "and in positions of the original text. A span of length 0 inserts a mask before the token "
        "at `start`."
    ),
    hint=(
        "The rule in detail: spans may touch each other, but they don't overlap.",
        "Build a new list. For each span, append what lies between the end of the previous span "
        "and this start, and then a mask.",
    ),
    function=my_infill,
    tests=(_any_length, _empty, _ends, _no_span, _touching, _masked_before),
)


# 22.3 both sides of a blank, from a model that sees one


def my_fill(log_probs, ids, at):
    """Return the probability of each word at position `at` of ids (T,), given all other words.

    log_probs(ids) of a decoder-only model has shape (T, V): row t is the log-probability of each
    word after ids[: t + 1]. The id at `at` (1 or more) is to be ignored. Returns (V,).
    """
    raise NotImplementedError


class Language:
    """A little language: what comes next depends on all words before it, the last one most."""

    def __init__(self, words, seed, dtype=torch.float32, strength=2.0):
        self.words, self.__name__ = words, f"a model of {words} words"
        self.tables = numbers(2, words, words, seed=seed, scale=strength, dtype=dtype)

    def __call__(self, ids):
        """The log-probability of each word after each part of the row: (T,) -> (T, V)."""
        expect(isinstance(ids, torch.Tensor) and not ids.is_floating_point() and ids.dim() > 0,
               f"log_probs gets {short(ids)}, expected a row of ids, a tensor (T,)")  # fmt: skip
        last, earlier = self.tables
        said = last[ids] + earlier[ids].cumsum(-2).sin()
        return said.log_softmax(-1)


def _by_bayes(log_probs, ids, at):
    """The share of each row among all rows with another word at `at`, in float64."""
    wholes = []
    for word in range(log_probs.words):
        row = torch.cat([ids[:at], torch.tensor([word]), ids[at + 1 :]])
        said = log_probs(row).double()
        wholes.append(said[:-1].gather(1, row[1:, None]).sum())  # the first word is in every row
    wholes = torch.stack(wholes)
    return (wholes - wholes.logsumexp(0)).exp()


_TWO, _FIVE = Language(2, seed=1), Language(5, seed=2)
ROW = torch.tensor([0, 3, 1, 4, 2, 2, 1])


def _fills(answer, model, ids, at, note="", where=None):
    ids = torch.as_tensor(ids)
    where = where or f"for {model.__name__}, ids={short(ids)}, at={at}"
    got = answer(model, ids, at)
    tolerance = 1e-3 if len(ids) > 100 else 1e-5
    same(got, _by_bayes(model, ids, at).float(), where, tolerance, note)


def _last(answer):
    """at the end of the row there is only the left side"""
    _fills(answer, _TWO, [0, 1], 1, "Nothing follows, so this is the model's prediction after [0].")
    _fills(answer, _FIVE, ROW, 6)


_SUM = "Sum log P(word | words before it) over the blank and all that follows; then normalise."


def _in_the_middle(answer):
    """in the middle both sides count"""
    _fills(answer, _TWO, [0, 1, 0], 1, _SUM)
    _fills(answer, _FIVE, ROW, 5, _SUM)


def _early(answer):
    """everything that follows counts, not only the next word"""
    _fills(answer, _TWO, [0, 1, 0, 0], 1, _SUM)
    _fills(answer, _FIVE, ROW, 1, _SUM)


def _unseen(answer):
    """the id at the blank does not matter"""
    for word in (1, 0, 4):
        row = torch.tensor([0, 3, word, 4, 2, 2, 1])
        note = f"The {word} at the blank is to be predicted, so it must not be used."
        _fills(answer, _FIVE, row, 2, note)


def _any_sizes(answer):
    """for a vocabulary larger than the row, for a vocabulary of one word, and in float64"""
    _fills(answer, Language(11, seed=3), [7, 3, 2], 1)
    _fills(answer, Language(1, seed=4), [0, 0, 0], 1, "The only word has probability 1.")
    _fills(answer, Language(6, seed=5, dtype=torch.float64), [5, 1, 0, 3], 2)


@hint("How large is a product of 400 probabilities?")
def _long_row(answer):
    """a long row loses no precision"""
    for length in (60, 400):
        row = (numbers(length, seed=6).abs() * 2.5).long().clamp_max(4)
        words = "The whole row's probability is below the smallest float32."
        note = f"{words} Add logarithms until the softmax."
        where = f"for {_SURE.__name__} and a row of {length} tokens, at=3"
        _fills(answer, _SURE, row, 3, note, where)


_SURE = Language(5, seed=7, strength=6.0)  # and often surprised: some words cost it 20 nats


FILL = Exercise(
    id="22.3",
    title="both sides of a blank, from a model that sees one",
    difficulty=3,
    minutes=15,
    statement=(
        "Write `my_fill(log_probs, ids, at)`, which returns the probability of every word at "
        "position `at`, given all other words of the row, from a decoder-only model. "
        "`log_probs(ids)` has shape (T, V), and its row t holds the log-probability of each word "
        "after `ids[: t + 1]`. Return a tensor (V,) that sums to 1."
    ),
    hint=(
        "By Bayes' rule, P(word | left, right) is proportional to P(word | left) · "
        "P(right | left, word), which is the model's probability of the whole row with that word "
        "in it, up to a factor that all words share. Score V rows. The log-probability of "
        "`row[t]` is in row `t - 1` of `log_probs(row)`; at which t does the sum begin?"
    ),
    function=my_fill,
    tests=(_last, _in_the_middle, _early, _unseen, _any_sizes, _long_row),
)


EXERCISES = (DROP_SPANS, INFILL, FILL)
