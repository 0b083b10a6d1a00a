"""Chapter 17: the cache, and what BLEU counts."""

import torch

from tinytf.course.parts import Part
from tinytf.course.parts.ch05 import wide

CATS = [["the", "cat", "is", "on", "the", "mat"], ["there", "is", "a", "cat", "on", "the", "mat"]]


def _filled(cache):
    first = cache.append(wide(2, 3, 1, 4, seed=1), wide(2, 3, 1, 4, seed=2))
    second = cache.append(wide(2, 3, 2, 4, seed=3), wide(2, 3, 2, 4, seed=4))
    names = ("first, all keys", "first, all values", "second, all keys", "second, all values")
    return dict(zip(names, (*first, *second), strict=True))


def _selected(cache):
    mine = cache()
    _filled(mine)
    mine.select(torch.tensor([1, 1, 0]))
    found = {"cache.k": mine.k, "cache.v": mine.v, "len(cache)": torch.tensor(len(mine))}
    return found | {"cache.padding is None": torch.tensor(mine.padding is None)}


def _noted(cache):
    """The rows of what a decoder has noted about padding."""
    mine = cache()
    _filled(mine)
    mine.padding = torch.tensor([[True, True, True], [False, True, True]])[:, None, None]
    mine.select(torch.tensor([1, 0, 1]))
    return mine.padding


def _empty(cache):
    mine = cache()
    mine.select(torch.tensor([0]))
    return {"len(cache)": torch.tensor(len(mine)), "cache.k is None": torch.tensor(mine.k is None)}


def _scored(f, translations, references, **named):
    """Every number that a score is made of."""
    bleu = f(translations, references, **named)
    return {
        "score": torch.tensor(bleu.score),
        "precisions": torch.tensor(bleu.precisions),
        "brevity penalty": torch.tensor(bleu.brevity_penalty),
        "matches": list(bleu.matches),
        "totals": list(bleu.totals),
        "lengths": [bleu.length, bleu.reference_length],
    }


PARTS = (
    Part(
        "tinytf.attention.KeyValueCache",
        {
            "it is new": lambda cache: torch.tensor(len(cache())),
            "positions are added one after another": lambda cache: _filled(cache()),
            "rows of the batch are kept": _selected,
            "rows are kept, and padding was noted": _noted,
            "rows are kept before anything is there": _empty,
        },
    ),
    Part(
        "tinytf.metrics.bleu.ngrams",
        {
            "words repeat": lambda f: dict(f(["the", "cat", "the", "cat", "sat"], 2)),
            "there are fewer words than n": lambda f: dict(f(["a", "b"], 3)),
            "n is 1": lambda f: dict(f(["a", "b", "a"], 1)),
        },
    ),
    Part(
        "tinytf.metrics.bleu.clipped_matches",
        {
            "one word is said over and over": lambda f: list(f(["the"] * 7, CATS, 1)),
            "pairs of words are counted": lambda f: list(
                f(["the", "cat", "the", "cat", "is", "on", "a", "mat"], CATS, 2)
            ),
            "there is one reference": lambda f: list(f(CATS[0], CATS[1:], 3)),
            "the translation is shorter than n": lambda f: list(f(["the"], CATS, 2)),
        },
    ),
    Part(
        "tinytf.metrics.bleu.closest_length",
        {
            "the shorter of two is nearer": lambda f: torch.tensor(f(5, CATS)),
            "the longer of two is nearer": lambda f: torch.tensor(f(8, CATS)),
            "two are equally near": lambda f: torch.tensor(f(4, [list("abcde"), list("abc")])),
            "there is one": lambda f: torch.tensor(f(9, [list("abc")])),
        },
    ),
    Part(
        "tinytf.metrics.bleu.brevity_penalty",
        {
            "there are too few words": lambda f: torch.tensor(f(10, 16)),
            "there are as many, or more": lambda f: torch.tensor([f(16, 16), f(20, 16)]),
            "there are none": lambda f: torch.tensor(f(0, 3)),
        },
    ),
    Part(
        "tinytf.metrics.bleu.ngram_precisions",
        {
            "all match somewhere": lambda f: torch.tensor(f([5, 3, 1], [6, 5, 4])),
            "some do not": lambda f: torch.tensor(f([5, 0, 0, 0], [6, 5, 4, 0])),
            "those are smoothed": lambda f: torch.tensor(f([5, 0, 0, 0], [6, 5, 4, 0], "exp")),
            "nothing matches, smoothed": lambda f: torch.tensor(f([0, 0], [6, 5], "exp")),
        },
    ),
    Part(
        "tinytf.metrics.bleu.corpus_bleu",
        {
            "one sentence has two references": lambda f: _scored(
                f, [["the", "cat", "is", "on", "a", "mat"]], [CATS]
            ),
            "three sentences are scored together": lambda f: _scored(
                f,
                [list("abcdex"), list("ab"), list("aabc")],
                [[list("abcdef")], [list("abc")], [list("abca"), list("bc")]],
            ),
            "the second reference is nearer in length": lambda f: _scored(
                f, [list("abcde"), list("ab")], [[list("abcdefg"), list("abcdf")], [list("abc")]]
            ),
            "words are counted one by one and in pairs": lambda f: _scored(
                f, [["the", "cat", "is", "on", "a", "mat"]], [CATS], max_n=2
            ),
            "nothing longer matches": lambda f: _scored(f, [list("abxcd")], [[list("abcdef")]]),
            "that is smoothed": lambda f: _scored(
                f, [list("abxcd")], [[list("abcdef")]], smoothing="exp"
            ),
            "a translation is empty": lambda f: _scored(
                f, [[], list("abcd")], [[list("ab")], [list("abcde")]]
            ),
        },
    ),
)
