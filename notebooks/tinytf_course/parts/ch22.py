"""Chapter 22: what T5's and BART's noises leave of a text, and T5's put back."""

import functools
import itertools
import math
from collections import Counter

import torch

from tinytf.training import denoising
from tinytf_course.draws import by_its_generator, calling, drawn, outcome, poisson
from tinytf_course.parts import Part

WORDS = torch.tensor([11, 12, 13, 14, 15, 16, 17, 18, 19])
MARKS = [99, 40, 98, 3, 77]  # in no order: a sentinel is looked up, not computed
LONG = torch.arange(100, 160)


def _draws(seed):
    return torch.Generator().manual_seed(seed)


def _tensors(*parts):
    return {"tensors": [isinstance(part, torch.Tensor) for part in parts]}


def _a_tensor(*given, **named):
    """A script: whether the result is a tensor."""
    return lambda f: _tensors(f(WORDS, *given, generator=_draws(0), **named))


AS_MANY = "there are as many of both"
READ_ALIKE = "a number in a tensor is read as one"
ONE_DEVICE = "all is on one device here"
NEVER = "a draw is hardly ever the share itself"


def _noise(*places, length=9):
    """True at these places."""
    noise = torch.zeros(length, dtype=torch.bool)
    noise[list(places)] = True
    return noise


def _both(pair):
    return [pair.corrupted, pair.target]


def _drop(f, *places, ids=WORDS):
    return _both(f(ids, _noise(*places, length=len(ids)), MARKS))


def _put_back(f, corrupted, target):
    return f(torch.tensor(corrupted), torch.tensor(target), MARKS)


def _results(f, *given, seeds=range(40), **named):
    """What is given for each of these seeds, where nothing is left to chance."""
    return [torch.as_tensor(f(*given, generator=_draws(seed), **named)) for seed in seeds]


def _often(chances, *given, times=1200, **named):
    """A script: how often outcomes of a call with these arguments come."""
    return lambda f: drawn(calling(f, *given, **named), chances, times)


def _its_own(*given, **named):
    """A script: what is drawn depends on the generator alone."""
    return lambda f: by_its_generator(calling(f, *given, **named))


def _cuts(total, parts):
    """All ways to cut, each a tuple of lengths."""
    edges = ([0, *cut, total] for cut in itertools.combinations(range(1, total), parts - 1))
    return [tuple(end - start for start, end in itertools.pairwise(edge)) for edge in edges]


def _alike(outcomes):
    """The same chance for each."""
    return {one: count / len(outcomes) for one, count in Counter(outcomes).items()}


def _noises(kept, dropped, spans, roll=False):
    """The chance of each pattern of noise."""
    rows = []
    for keep, drop in itertools.product(_cuts(kept, spans), _cuts(dropped, spans)):
        pairs = zip(keep, drop, strict=True)
        row = [part for k, d in pairs for part in [False] * k + [True] * d]
        shifts = range(len(row)) if roll else (0,)
        rows += [tuple(row[shift:] + row[:shift]) for shift in shifts]
    return _alike(rows)


def _corrupted_chances(ids, noises):
    chances = Counter()
    for noise, chance in noises.items():
        pair = denoising.drop_spans(ids, torch.tensor(noise), MARKS)
        chances[outcome(pair)] += chance
    return dict(chances)


def _each_alone(ids, share, change):
    """The chance of each row where every token is changed on its own; None leaves it out."""
    chances = Counter()
    for hit in itertools.product((True, False), repeat=len(ids)):
        row = [change if it else token for it, token in zip(hit, ids, strict=True)]
        row = tuple(token for token in row if token is not None)
        chance = math.prod(share if it else 1 - share for it in hit)
        for one in [row] if row else [(token,) for token in ids]:
            chances[one] += chance if row else chance / len(ids)
    return dict(chances)


@functools.cache
def _infilled_chances(ids, left, mean):
    """The chance of each row, of those that are not too rare."""
    chances = Counter()

    def arrange(lengths, chance):
        items = len(ids) - sum(lengths) + len(lengths)
        orders = list(itertools.permutations(range(items), len(lengths)))
        for places in orders:
            spans, row, at = dict(zip(places, lengths, strict=True)), [], 0
            for item in range(items):
                row.append(50 if item in spans else ids[at])
                at += spans.get(item, 1)
            chances[tuple(row)] += chance / len(orders)

    def grow(lengths, left, chance):
        if left == 0:
            arrange(lengths, chance)
        elif chance > 1e-3:
            for length in range(left):
                grow([*lengths, length], left - length, chance * poisson(mean, length))
            last = 1 - sum(poisson(mean, length) for length in range(left))
            grow([*lengths, left], 0, chance * last)

    grow([], left, 1.0)
    return dict(chances)


def _shaped(f, length, *shares):
    """What is fixed of a pattern of noise: its length and dtype, how many go, and in how many."""
    found = []
    for seed in range(12):
        noise = f(length, _draws(seed), *shares)
        starts = noise & ~noise.roll(1)
        found += [
            torch.tensor([len(noise), noise.sum(), starts.sum(), noise[0], noise[-1]]),
            noise.dtype.is_signed,
        ]
    return found


@functools.cache
def _span_counts(left, mean):
    """The chance of each number of spans that it takes to use up so many tokens."""
    open_, chances = {left: 1.0}, {}
    for count in range(1, 40):
        after = Counter()
        for rest, chance in open_.items():
            for length in range(rest):
                after[rest - length] += chance * poisson(mean, length)
        chances[count] = sum(open_.values()) - sum(after.values())
        open_ = after
    return chances


def _lengths(f):
    """How long both parts are, which is fixed."""
    pairs = [f(LONG, MARKS, _draws(seed)) for seed in range(8)]
    return [torch.tensor([len(part) for part in pair]) for pair in pairs]


def _left_of(f, ids, share, mean_length):
    """What is fixed of an infilled text: the words kept, which stay in order."""
    found = []
    for seed in range(12):
        row = f(ids, 50, _draws(seed), share, mean_length)
        kept = row[row != 50]
        found += [torch.tensor([len(kept), int((kept.diff() > 0).all())]), len(kept) < len(row)]
    return found


THREE = torch.tensor([11, 12, 13])
FOUR = torch.tensor([11, 12, 13, 14])
SENTENCES = {
    "there are three sentences": ([[11, 5], [12, 13, 5], [14, 15, 16, 5]], [5]),
    "the last one has no end": ([[11, 5], [12, 6], [13, 14]], [5, 6]),
    "the last one has one word": ([[11, 12, 5], [13]], [5]),
    "there are four sentences": ([[11, 5], [12, 5], [13, 5], [14, 5]], [5]),
}


def _shuffled(sentences, ends):
    ids = torch.tensor(list(itertools.chain(*sentences)))
    rows = [tuple(itertools.chain(*order)) for order in itertools.permutations(sentences)]
    return _often(_alike(rows), ids, ends, times=max(1200, 170 * len(rows)))


PARTS = (
    Part(
        "tinytf.training.denoising.drop_spans",
        {
            "one token is dropped": lambda f: _drop(f, 1),
            "a span has two tokens": lambda f: _drop(f, 1, 2),
            "there are spans of several lengths": lambda f: _drop(f, 0, 2, 3, 4, 8),
            "nothing is dropped": lambda f: _drop(f),
            "everything is dropped": lambda f: _drop(f, *range(9)),
            "ids are 32 bits long": lambda f: _drop(f, 3, 4, ids=WORDS.int()),
            "sentinels come from a range": lambda f: _both(
                f(WORDS, _noise(2, 5), range(90, 80, -1))
            ),
            "both are to be tensors": lambda f: _tensors(*f(WORDS, _noise(2, 5), MARKS)),
        },
        equivalent={
            "… => …zip(ids.tolist(), noise.tolist()):": AS_MANY,
            "… => …strict=False):": AS_MANY,
            "… => …zip(ids, noise.tolist(), …": READ_ALIKE,
            "… => …zip(ids.tolist(), noise, …": READ_ALIKE,
        },
    ),
    Part(
        "tinytf.training.denoising.restore_spans",
        {
            "one span goes back": lambda f: _put_back(f, [11, 99, 13], [99, 12, 40]),
            "spans go back in any order": lambda f: _put_back(
                f, [40, 13, 99], [99, 14, 15, 40, 11, 12, 98]
            ),
            "a sentinel has no span": lambda f: _put_back(f, [11, 99, 13, 40], [40, 14, 98]),
            "words come before the first sentinel": lambda f: _put_back(
                f, [11, 99, 13], [55, 56, 99, 12]
            ),
            "a sentinel comes twice": lambda f: _put_back(f, [11, 99], [99, 12, 40, 5, 99, 13]),
            "nothing was written": lambda f: f(
                torch.tensor([11, 99, 13]), torch.tensor([], dtype=torch.long), MARKS
            ),
            "it is to be a tensor": lambda f: _tensors(_put_back(f, [11, 99, 13], [99, 12, 40])),
        },
        equivalent={
            "… => … ({mark: [] for mark in sentinels}, None)": "sentinels are whole numbers here",
            "… => return target.new_tensor(row)": "both are of one dtype here",
        },
    ),
    Part(
        "tinytf.training.denoising.cut_at_random",
        {
            "there is one piece": lambda f: _results(f, 5, 1),
            "every piece has length 1": lambda f: _results(f, 4, 4),
            "five things are cut into three": _often(_alike(_cuts(5, 3)), 5, 3),
            "nine things are cut into three": _often(_alike(_cuts(9, 3)), 9, 3),
            "six things are cut into two": _often(_alike(_cuts(6, 2)), 6, 2),
            "two generators draw": _its_own(9, 3),
            "lengths are to be whole numbers": lambda f: {
                "kinds": sorted({type(length).__name__ for length in f(9, 3, _draws(0))})
            },
        },
    ),
    Part(
        "tinytf.training.denoising.span_noise",
        {
            "a text has two tokens": lambda f: _results(f, 2),
            "a text has 5 tokens": lambda f: _results(f, 5),
            "a text has 13 tokens": lambda f: _shaped(f, 13),
            "a text has 55 tokens": lambda f: _shaped(f, 55),
            "a rolled pattern is drawn by two generators": _its_own(4, roll=True),
            "share and mean length are others": lambda f: _shaped(f, 30, 0.4, 2.8),
            "four of eight tokens go, in two spans": _often(
                _noises(4, 4, 2), 8, share=0.5, mean_length=2.0
            ),
            "three of eight go, in two spans": _often(
                _noises(5, 3, 2), 8, share=0.375, mean_length=1.5
            ),
            "the pattern is rolled": _often(
                _noises(3, 3, 2, roll=True), 6, share=0.5, mean_length=1.5, roll=True
            ),
            "all but one would go": lambda f: _results(f, 4, share=0.99, mean_length=9.0),
            "two generators draw": _its_own(30, share=0.4),
        },
        equivalent={
            "… => …zip(keep, drop):": AS_MANY,
            "… => …strict=False):": AS_MANY,
            "… => shift = torch.randint(…": READ_ALIKE,
        },
    ),
    Part(
        "tinytf.training.denoising.corrupt_spans",
        {
            "nothing is said but the text": _often(
                _corrupted_chances(WORDS, _noises(8, 1, 1)), WORDS, MARKS, times=300
            ),
            "share and mean length are others": _often(
                _corrupted_chances(WORDS[:8], _noises(4, 4, 2)),
                WORDS[:8],
                MARKS,
                share=0.5,
                mean_length=2.0,
            ),
            "the pattern is rolled": _often(
                _corrupted_chances(WORDS[:6], _noises(3, 3, 2, roll=True)),
                WORDS[:6],
                MARKS,
                share=0.5,
                mean_length=1.5,
                roll=True,
            ),
            "a text is longer": _lengths,
            "a rolled pattern is drawn by two generators": _its_own(WORDS[:4], MARKS, roll=True),
            "two generators draw": _its_own(LONG, MARKS, share=0.1, mean_length=2.0),
        },
    ),
    Part(
        "tinytf.training.denoising.mask_words",
        {
            "nothing is said but the mask": _often(_each_alone((11, 12, 13), 0.3, 50), THREE, 50),
            "the share is another": _often(
                _each_alone((11, 12, 13, 14), 0.6, 7), FOUR, 7, share=0.6
            ),
            "a word comes twice, and the share is no tenth": _often(
                _each_alone((11, 11, 12), 0.15, 50), torch.tensor([11, 11, 12]), 50, share=0.15
            ),
            "two generators draw": _its_own(LONG, 7),
            "it is to be a tensor": _a_tensor(50),
            "none or all are hidden": lambda f: [
                f(WORDS, 50, _draws(0), 0.0),
                f(WORDS, 50, _draws(0), 1.0),
            ],
        },
        equivalent={
            "… => drawn = torch.rand(len(ids), generator=generator)": ONE_DEVICE,
            "… => drawn = torch.rand(len(ids), generator=generator).to()": ONE_DEVICE,
            "… => drawn = ….to(generator.device)": ONE_DEVICE,
            "… => …drawn <= share…": NEVER,
        },
    ),
    Part(
        "tinytf.training.denoising.delete_words",
        {
            "nothing is said but the text": _often(_each_alone((11, 12, 13), 0.3, None), THREE),
            "the share is another": _often(
                _each_alone((11, 12, 13, 14), 0.6, None), FOUR, share=0.6
            ),
            "one alone is left": _often(_each_alone((11, 12, 13), 0.85, None), THREE, share=0.85),
            "all would go": _often(_each_alone((11, 12, 13), 1.0, None), THREE, share=1.0),
            "none would go": lambda f: _results(f, WORDS, share=0.0),
            "all would go, and two generators draw": _its_own(WORDS, share=1.0),
            "it is to be a tensor": _a_tensor(),
            "two generators draw": _its_own(LONG),
        },
        equivalent={
            "… => kept = … > share": NEVER,
            "… => return ids[kept]": ONE_DEVICE,
            "… => return ids[kept.to()]": ONE_DEVICE,
            "… => return ids[kept.to(generator.device)]": ONE_DEVICE,
        },
    ),
    Part(
        "tinytf.training.denoising.permute_sentences",
        {
            "there is one sentence": lambda f: _results(f, WORDS, [5]),
            **{words: _shuffled(*text) for words, text in SENTENCES.items()},
            "two generators draw": _its_own(torch.arange(20), [3, 6, 9, 12, 15]),
            "it is to be a tensor": _a_tensor([13, 16]),
        },
        equivalent={
            "… => …if token in ends and …": "ends are listed here",
            "… => cuts = …if token in stops…": "an empty sentence more leaves all orders as likely",
            "… => return torch.cat([sentences[i - 1] for i in order])": "it is as random",
            "… => order = torch.randperm(len(sentences), generator=generator)": READ_ALIKE,
        },
    ),
    Part(
        "tinytf.training.denoising.rotate_document",
        {
            "a text is rotated": _often(
                _alike([tuple(WORDS.roll(-n).tolist()) for n in range(9)]), WORDS
            ),
            "a text has one token": lambda f: _results(f, WORDS[:1]),
            "two generators draw": _its_own(LONG),
            "it is to be a tensor": _a_tensor(),
        },
        equivalent={
            "… => first = torch.randint(…": READ_ALIKE,
        },
    ),
    Part(
        "tinytf.training.denoising.infill_spans",
        {
            "nothing is said but the mask": lambda f: _left_of(f, WORDS, 0.3, 3.0),
            "share and mean length are others": lambda f: _left_of(f, LONG, 0.5, 1.0),
            "nothing is to go": lambda f: _results(f, WORDS, 50, share=0.0),
            "half of four tokens go": _often(
                _infilled_chances((11, 12, 13, 14), 2, 1.5),
                FOUR,
                50,
                share=0.5,
                mean_length=1.5,
            ),
            "the mean length is a whole number": _often(
                _infilled_chances((11, 12, 13), 2, 2.0), THREE, 50, share=0.67, mean_length=2
            ),
            "no mean length is named": lambda f: drawn(
                lambda g: int((calling(f, LONG, 50)(g) == 50).sum()), _span_counts(18, 3.0)
            ),
            "two generators draw": _its_own(LONG, 50),
            "it is to be a tensor": lambda f: _tensors(f(WORDS, 50, _draws(0))),
        },
        equivalent={
            "… => …else ids[at])": READ_ALIKE,
            "… => …zip(places, lengths)), [], 0)": AS_MANY,
            "… => …strict=False)), [], 0)": AS_MANY,
        },
    ),
)
