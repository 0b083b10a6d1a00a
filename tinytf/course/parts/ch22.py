"""Chapter 22: what T5's and BART's noises leave of a text, and T5's put back."""

import torch

from tinytf.course.parts import Part

WORDS = torch.tensor([11, 12, 13, 14, 15, 16, 17, 18, 19])
MARKS = [99, 40, 98, 3, 77]  # in no order: a sentinel is looked up, not computed
LONG = torch.arange(100, 160)


def _draws(seed):
    return torch.Generator().manual_seed(seed)


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
        },
    ),
    Part(
        "tinytf.training.denoising.cut_at_random",
        {
            "there is one piece": lambda f: _drawn(f, 5, 1),
            "every piece has length 1": lambda f: _drawn(f, 4, 4),
            "nine things are cut into three": lambda f: _drawn(f, 9, 3),
        },
    ),
    Part(
        "tinytf.training.denoising.span_noise",
        {
            "a text has two tokens": lambda f: _drawn(f, 2),
            "a text has 13 tokens": lambda f: _drawn(f, 13),
            "a text has 60 tokens": lambda f: _drawn(f, 60),
            "share and mean length are others": lambda f: _drawn(f, 30, share=0.4, mean_length=1.5),
            "the pattern is rolled": lambda f: _drawn(f, 30, share=0.4, roll=True),
            "all but one would go": lambda f: _drawn(f, 4, share=0.99, mean_length=9.0),
        },
    ),
    Part(
        "tinytf.training.denoising.corrupt_spans",
        {
            "nothing is said but the text": lambda f: _corrupted(f),
            "share and mean length are others": lambda f: _corrupted(f, share=0.1, mean_length=2.0),
            "the pattern is rolled": lambda f: _corrupted(f, share=0.1, roll=True),
        },
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
    ),
    Part(
        "tinytf.training.denoising.delete_words",
        {
            "nothing is said but the text": lambda f: _drawn(f, WORDS),
            "the share is another": lambda f: _drawn(f, LONG, share=0.6),
            "all would go": lambda f: _drawn(f, WORDS, share=1.0),
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
        },
    ),
    Part(
        "tinytf.training.denoising.rotate_document",
        {"a text is rotated": lambda f: _drawn(f, WORDS)},
    ),
    Part(
        "tinytf.training.denoising.infill_spans",
        {
            "nothing is said but the mask": lambda f: _drawn(f, WORDS, 50),
            "share and mean length are others": lambda f: _drawn(
                f, LONG, 50, share=0.5, mean_length=1.0
            ),
            "nothing is to go": lambda f: _drawn(f, WORDS, 50, share=0.0),
        },
    ),
)
