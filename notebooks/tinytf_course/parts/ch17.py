"""Chapter 17: the cache, and what BLEU counts."""

import torch

from tinytf.attention import KeyValueCache
from tinytf_course.parts import Part, arrived
from tinytf_course.parts.ch05 import learned, wide

CATS = [["the", "cat", "is", "on", "the", "mat"], ["there", "is", "a", "cat", "on", "the", "mat"]]


def _filled(cache):
    first = cache.append(wide(2, 3, 1, 4, seed=1), wide(2, 3, 1, 4, seed=2))
    second = cache.append(wide(2, 3, 4, 4, seed=3), wide(2, 3, 4, 4, seed=4))
    names = ("first, all keys", "first, all values", "second, all keys", "second, all values")
    found = dict(zip(names, (*first, *second), strict=True))
    return found | {"len(cache)": torch.tensor(len(cache))}


def _new(cache):
    mine = cache()
    told = {f"cache.{name} is None": getattr(mine, name) is None for name in ("k", "v", "padding")}
    return {"len(cache)": torch.tensor(len(mine))} | told


def _gradients(cache):
    mine, parts = cache(), [learned(2, 3, n, 4, seed=n + s) for n in (1, 2) for s in (1, 5)]
    mine.append(*parts[:2])
    return arrived(torch.cat(mine.append(*parts[2:])), *parts)


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
    mine.padding = torch.tensor([[True] * 5, [False] * 2 + [True] * 3])[:, None, None]
    mine.select(torch.tensor([1, 0, 1]))
    return mine.padding


def _empty(cache):
    mine = cache()
    mine.select(torch.tensor([0]))
    return {"len(cache)": torch.tensor(len(mine)), "cache.k is None": torch.tensor(mine.k is None)}


def _kept(length=2, seed=1):
    """A cache that holds `length` positions of three sentences."""
    cache = KeyValueCache()
    cache.append(wide(3, 2, length, 4, seed=seed), wide(3, 2, length, 4, seed=seed + 1))
    return cache


def _named(pair):
    own, cross = _kept(2), _kept(3, seed=5)
    made = pair(own, cross)
    names = [made.self_attention is own, made.cross_attention is cross, list(made) == [own, cross]]
    return [torch.tensor(names), torch.tensor([len(part) for part in made])]


def _pair_selected(pair, *rows):
    own, cross = _kept(2), _kept(3, seed=5)
    pair(own, cross).select(torch.tensor(rows))
    return [own.k, own.v, cross.k, cross.v]


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
            "it is new": _new,
            "positions are added one after another": lambda cache: _filled(cache()),
            "rows of the batch are kept": _selected,
            "rows are kept, and padding was noted": _noted,
            "rows are kept before anything is there": _empty,
            "gradients go back to what was added, old and new": _gradients,
        },
        tolerance=1e-9,
    ),
    Part(
        "tinytf.blocks.LayerCache",
        {
            "it holds two caches, by name and in order": _named,
            "rows are selected: only those of self-attention": lambda pair: _pair_selected(
                pair, 2, 0
            ),
            "a row is selected twice": lambda pair: _pair_selected(pair, 1, 1, 0),
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
            "each reference has some of it": lambda f: list(
                f(["the", "cat", "the", "cat", "is", "on", "a", "mat"], CATS, 1)
            ),
            "there is one reference": lambda f: list(f(CATS[0], CATS[1:], 3)),
            "the translation is shorter than n": lambda f: list(f(["the"], CATS, 2)),
            "a reference is shorter than n": lambda f: list(
                f(["the", "cat", "sat"], [["cat"], [], ["the", "cat"]], 2)
            ),
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
        equivalent={"… => …(abs(length - other), other))": "a distance has no direction"},
    ),
    Part(
        "tinytf.metrics.bleu.brevity_penalty",
        {
            "there are too few words": lambda f: torch.tensor(f(10, 16)),
            "there are as many, or more": lambda f: torch.tensor([f(16, 16), f(20, 16)]),
            "there are none": lambda f: torch.tensor(f(0, 3)),
        },
        equivalent={"… => if length > reference_length:": "for as many it is e to the 0, 1"},
    ),
    Part(
        "tinytf.metrics.bleu.ngram_precisions",
        {
            "all match somewhere": lambda f: torch.tensor(f([5, 3, 1], [6, 5, 4])),
            "some do not": lambda f: torch.tensor(f([5, 0, 0, 0], [6, 5, 4, 0])),
            "those are smoothed": lambda f: torch.tensor(f([5, 0, 0, 0], [6, 5, 4, 0], "exp")),
            "nothing matches, smoothed": lambda f: torch.tensor(f([0, 0], [6, 5], "exp")),
        },
        equivalent={
            "… => …zip(matches, totals):": "there are as many of both",
            "… => …strict=False):": "there are as many of both",
            "… => …and credit and…": "what has no n-gram at all comes last",
            "… => …if matched else 0.0)": "without a match it is 0 too",
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
            "few of many words match": lambda f: _scored(
                f, [list("abcd") + ["x"] * 150], [[list("abcd")]]
            ),
        },
        equivalent={
            "… => …zip(translations, references):": "there are as many of both",
            "… => …strict=False):": "there are as many of both",
            "… => return BLEU(…)": "a list says what a tuple says",
        },
    ),
)
