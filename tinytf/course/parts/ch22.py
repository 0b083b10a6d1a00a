"""Chapter 22: what T5's and BART's noises leave of a text, and T5's put back."""

import torch

from tinytf.course.parts import Part

WORDS = torch.tensor([11, 12, 13, 14, 15, 16, 17, 18, 19])
MARKS = [99, 40, 98, 3, 77]  # in no order: a sentinel is looked up, not computed
LONG = torch.arange(100, 160)


def _draws(seed):
    return torch.Generator().manual_seed(seed)


def _tensors(*parts):
    return {"tensors": [isinstance(part, torch.Tensor) for part in parts]}


WHOLE = "ids and choices carry no gradient"
EXACT = "float32 has every id of a vocabulary"
AS_MANY = "there are as many of both"
READ_ALIKE = "a number in a tensor is read as one"
ONE_DEVICE = "all is on one device here"
NEVER = "a draw is hardly ever the share itself"
ROUNDED = "float32 is what is drawn; rounding it changes hardly a draw"
LENGTH = "a dtype changes no length"


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


def _drawn(f, *given, seeds=range(12), **named):
    """What is drawn by each of these seeds, and by one generator several times."""
    g = _draws(50)
    again = [f(*given, generator=g, **named) for _ in range(3)]
    rows = [f(*given, generator=_draws(seed), **named) for seed in seeds] + again
    return [torch.as_tensor(row) for row in rows]


def _corrupted(f, **named):
    pairs = [f(LONG, MARKS, _draws(seed), **named) for seed in range(8)]
    return [part for pair in pairs for part in pair]


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
            "… => …detach()…": WHOLE,
            "… => …zip(ids.tolist(), noise.tolist()):": AS_MANY,
            "… => …strict=False):": AS_MANY,
            "… => …zip(ids, noise.tolist(), …": READ_ALIKE,
            "… => …zip(ids.tolist(), noise, …": READ_ALIKE,
            "… => …ids.float().tolist()…": EXACT,
            "… => …noise.float().tolist()…": "a number is true where it is not 0",
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
            "… => …detach()…": WHOLE,
            "… => … ({mark: [] for mark in sentinels}, None)": "sentinels are whole numbers here",
            "… => …float().tolist():": EXACT,
            "… => return target.new_tensor(row)": "both are of one dtype here",
        },
    ),
    Part(
        "tinytf.training.denoising.cut_at_random",
        {
            "there is one piece": lambda f: _drawn(f, 5, 1),
            "every piece has length 1": lambda f: _drawn(f, 4, 4),
            "nine things are cut into three": lambda f: _drawn(f, 9, 3),
            "lengths are to be whole numbers": lambda f: {
                "kinds": sorted({type(length).__name__ for length in f(9, 3, _draws(0))})
            },
        },
        equivalent={"… => …detach()…": WHOLE},
    ),
    Part(
        "tinytf.training.denoising.span_noise",
        {
            "a text has two tokens": lambda f: _drawn(f, 2),
            "a text has 5 tokens": lambda f: _drawn(f, 5),
            "a text has 13 tokens": lambda f: _drawn(f, 13),
            "a text has 55 tokens": lambda f: _drawn(f, 55),
            "share and mean length are others": lambda f: _drawn(f, 30, share=0.4, mean_length=2.8),
            "the pattern is rolled": lambda f: _drawn(f, 30, share=0.4, roll=True),
            "all but one would go": lambda f: _drawn(f, 4, share=0.99, mean_length=9.0),
        },
        equivalent={
            "… => …detach()": WHOLE,
            "… => …zip(keep, drop):": AS_MANY,
            "… => …strict=False):": AS_MANY,
            "… => shift = torch.randint(…": READ_ALIKE,
        },
    ),
    Part(
        "tinytf.training.denoising.corrupt_spans",
        {
            "nothing is said but the text": lambda f: _corrupted(f),
            "share and mean length are others": lambda f: _corrupted(f, share=0.1, mean_length=2.0),
            "the pattern is rolled": lambda f: _corrupted(f, share=0.1, roll=True),
        },
        equivalent={"… => …detach()…": WHOLE, "… => …len(ids.float())…": LENGTH},
    ),
    Part(
        "tinytf.training.denoising.mask_words",
        {
            "nothing is said but the mask": lambda f: _drawn(f, WORDS, 50),
            "the share is another": lambda f: _drawn(f, LONG, 7, share=0.6),
            "none or all are hidden": lambda f: [
                f(WORDS, 50, _draws(0), 0.0),
                f(WORDS, 50, _draws(0), 1.0),
            ],
        },
        equivalent={
            "… => …detach()…": WHOLE,
            "… => …len(ids.float())…": LENGTH,
            "… => drawn = torch.rand(…).to(ids.device).…()": ROUNDED,
            "… => drawn = torch.rand(len(ids), generator=generator)": ONE_DEVICE,
            "… => drawn = torch.rand(len(ids), generator=generator).to()": ONE_DEVICE,
            "… => drawn = ….to(generator.device)": ONE_DEVICE,
            "… => …drawn <= share…": NEVER,
            "… => …drawn.float() < share…": ROUNDED,
        },
    ),
    Part(
        "tinytf.training.denoising.delete_words",
        {
            "nothing is said but the text": lambda f: _drawn(f, WORDS),
            "the share is another": lambda f: _drawn(f, LONG, share=0.6),
            "one alone is left": lambda f: _drawn(f, WORDS, share=0.85),
            "all would go": lambda f: _drawn(f, WORDS, share=1.0),
        },
        equivalent={
            "… => …detach()…": WHOLE,
            "… => …len(ids.float())…": LENGTH,
            "… => …kept.float().any():": "a number is true where it is not 0",
            "… => kept = … > share": NEVER,
            "… => return ids[kept]": ONE_DEVICE,
            "… => return ids[kept.to()]": ONE_DEVICE,
            "… => return ids[kept.to(generator.device)]": ONE_DEVICE,
        },
    ),
    Part(
        "tinytf.training.denoising.permute_sentences",
        {
            "there are three sentences": lambda f: _drawn(
                f, torch.tensor([11, 5, 12, 13, 5, 14, 15, 16, 5]), [5]
            ),
            "the last one has no end": lambda f: _drawn(
                f, torch.tensor([11, 5, 12, 6, 13, 14]), [5, 6]
            ),
            "there is one sentence": lambda f: _drawn(f, WORDS, [5]),
            "the last one has one word": lambda f: _drawn(f, torch.tensor([11, 12, 5, 13]), [5]),
        },
        equivalent={
            "… => …detach()…": WHOLE,
            "… => …len(ids.float())…": LENGTH,
            "… => …ids.float().tolist()…": EXACT,
            "… => …if token in ends and …": "ends are listed here",
            "… => order = torch.randperm(len(sentences), generator=generator)": READ_ALIKE,
        },
    ),
    Part(
        "tinytf.training.denoising.rotate_document",
        {"a text is rotated": lambda f: _drawn(f, WORDS)},
        equivalent={
            "… => …detach()…": WHOLE,
            "… => …len(ids.float())…": LENGTH,
            "… => first = torch.randint(…": READ_ALIKE,
        },
    ),
    Part(
        "tinytf.training.denoising.infill_spans",
        {
            "nothing is said but the mask": lambda f: _drawn(f, WORDS, 50),
            "share and mean length are others": lambda f: _drawn(
                f, LONG, 50, share=0.5, mean_length=1.0
            ),
            "nothing is to go": lambda f: _drawn(f, WORDS, 50, share=0.0),
            "the mean length is a whole number": lambda f: _drawn(
                f, WORDS, 50, share=0.25, mean_length=2
            ),
            "it is to be a tensor": lambda f: _tensors(f(WORDS, 50, _draws(0))),
        },
        equivalent={
            "… => …detach()…": WHOLE,
            "… => …len(ids.float())…": LENGTH,
            "… => …int(ids.float()[at]))": EXACT,
            "… => …else ids[at])": READ_ALIKE,
            "… => …zip(places, lengths)), [], 0)": AS_MANY,
            "… => …strict=False)), [], 0)": AS_MANY,
        },
    ),
)
