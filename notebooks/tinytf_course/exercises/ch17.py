"""Chapter 17: a cache that grows, attention with a cache, what was left out, brevity, new words."""

import math

import torch

from tinytf_course.expect import (
    agrees,
    expect,
    gradients,
    numbers,
    same,
    short,
    tensor,
    travels,
)
from tinytf_course.grading import Exercise
from tinytf_course.words import described

# 17.1 a cache that grows


def my_append(cache, k, v):
    """Add new keys and values after the cached ones; return all of them, as (k, v).

    cache is None, or the pair that the last call returned. k and v are (B, H, new, D).
    """
    raise NotImplementedError


OLD_K = torch.arange(24.0).reshape(2, 2, 3, 2)
OLD_V = OLD_K + 100
NEW_K, NEW_V = (100 * torch.ones(2, 2, 1, 2) * sign for sign in (-1.0, -2.0))
WIDE_K = -torch.arange(24.0).reshape(2, 2, 3, 2) - 50
_FIRST = "for an empty cache"
_ONE = "for 3 positions in the cache and 1 new, B=2, H=2, D=2"
_THREE = "for 3 positions in the cache and 3 new"
_NINE = "after 9 positions, one by one"


def _joined(cache, k, v):
    """Position by position."""
    old_k, old_v = cache if cache is not None else (k[:, :, :0], v[:, :, :0])
    return tuple(torch.stack([*x.unbind(2), *y.unbind(2)], 2) for x, y in ((old_k, k), (old_v, v)))


def _two(answer, *arguments, where):
    got = answer(*arguments)
    fits = isinstance(got, tuple | list) and len(got) == 2
    expect(fits, f"{where}, you return {described(got)}, expected (k, v)")
    return got


def _begins(answer):
    """the first keys and values are the cache"""
    got = _two(answer, None, NEW_K, NEW_V, where=_FIRST)
    same(got[0], NEW_K, f"{_FIRST}, k")
    same(got[1], NEW_V, f"{_FIRST}, v")


def _keys(answer):
    """new keys stand after the old ones"""
    got = _two(answer, (OLD_K, OLD_V), NEW_K, NEW_V, where=_ONE)[0]
    same(got[0, 0], [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [-100.0, -100.0]], f"{_ONE}, k[0, 0]")
    same(got, torch.cat([OLD_K, NEW_K], 2), f"{_ONE}, k")


def _values(answer):
    """and new values after the old values"""
    got = _two(answer, (OLD_K, OLD_V), NEW_K, NEW_V, where=_ONE)[1]
    same(got, torch.cat([OLD_V, NEW_V], 2), f"{_ONE}, v")


def _several(answer):
    """several positions may come at once"""
    got = _two(answer, (OLD_K, OLD_V), WIDE_K, WIDE_K, where=_THREE)[0]
    same(got, torch.cat([OLD_K, WIDE_K], 2), f"{_THREE}, k")


def _grows(answer):
    """nothing is forgotten, however many come"""
    cache = None
    for t in range(9):
        cache = _two(answer, cache, NEW_K + t, NEW_V - t, where=f"{_NINE}, at number {t + 1}")
    for name, got, new, way in (("k", cache[0], NEW_K, 1), ("v", cache[1], NEW_V, -1)):
        same(got, torch.cat([new + way * t for t in range(9)], 2), f"{_NINE}, {name}")


def _any_kind(answer):
    """in every dtype, on every device, with gradients and numbers of heads and widths of its own"""
    for dtype in (torch.float32, torch.float64, torch.float16):
        k, v, old = (numbers(3, 2, n, 5, seed=n, dtype=dtype) for n in (1, 1, 4))
        where = f"for k, v of shape (3, 2, 1, 5) ({str(dtype).removeprefix('torch.')})"
        agrees(answer, _joined, None, k, v, where=f"{where} and an empty cache")
        agrees(answer, _joined, (old, old + 1), k, v + 2, where=f"{where} and 4 positions cached")
    long = numbers(1, 2, 70, 3, seed=5)
    agrees(answer, _joined, (long, long + 1), long[:, :, :5] + 2, long[:, :, :5] + 3)
    gradients(answer, _joined, None, k, v)
    gradients(answer, _joined, (old, old + 1), k, v)
    travels(answer, None, k, v)
    travels(answer, (old, old + 1), k, v)


CACHE = Exercise(
    id="17.1",
    title="a cache that grows",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_append(cache, k, v)`, which adds new keys and values to a cache. `cache` is "
        "`None` or a pair of earlier keys and values; `k` and `v` are the new ones, "
        "`(B, H, new, D)`. Return the pair of all keys and all values so far, oldest first."
    ),
    hint="Positions are axis 2 of (B, H, T, D).",
    function=my_append,
    tests=(_begins, _keys, _values, _several, _grows, _any_kind),
)


# 17.2 attention with a cache


def my_cached_attention(x, w_q, w_k, w_v, cache=None):
    """Causal attention of the newest positions x (B, T, C): (y, (k, v)).

    Each w is (C, D) and multiplies from the right. cache is None, or the keys and values of the S
    positions before, each (B, S, D). y is (B, T, D), k and v are (B, S + T, D), oldest first.
    """
    raise NotImplementedError


EYE = torch.eye(2)
LEAN = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
PAST = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]]])
_ALONE = "for one position and no cache"
_PROMPT = "for 3 positions at once and no cache"
_NEXT = "for 1 new position after 3 in the cache"
_CHUNK = "for 2 new positions after 3 in the cache"
_KEPT = f"{_CHUNK}, what is returned as the cache"


def _attended(x, w_q, w_k, w_v, cache=None):
    """Query by query, key by key."""
    keys = [] if cache is None else list(cache[0].unbind(1))
    values = [] if cache is None else list(cache[1].unbind(1))
    rows = []
    for new in x.unbind(1):  # (B, C)
        keys.append(torch.einsum("bc,cd->bd", new, w_k))
        values.append(torch.einsum("bc,cd->bd", new, w_v))
        query = torch.einsum("bc,cd->bd", new, w_q)
        scores = torch.stack([(query * key).sum(-1) for key in keys]) / w_q.size(1) ** 0.5
        shares = torch.softmax(scores, 0)
        rows.append(sum(s[:, None] * value for s, value in zip(shares, values, strict=True)))
    return torch.stack(rows, 1), (torch.stack(keys, 1), torch.stack(values, 1))


def _answered(answer, *arguments, where):
    """What it returns, taken apart: y, k, v."""
    got = answer(*arguments)
    fits = isinstance(got, tuple | list) and len(got) == 2
    expect(fits, f"{where}, you return {described(got)}, expected (y, (k, v))")
    fits = isinstance(got[1], tuple | list) and len(got[1]) == 2
    expect(fits, f"{where}, the second is {described(got[1])}, expected (k, v)")
    return got[0], *got[1]


def _whole(answer, *arguments, where=None, tolerance=None):
    """y, k and v against the oracle's."""
    where = where or f"for x of shape {tuple(arguments[0].shape)}"
    y, k, v = _answered(answer, *arguments, where=where)
    theirs, (keys, values) = _attended(*arguments)
    for name, one, other in (("y", y, theirs), ("k", k, keys), ("v", v, values)):
        same(one, other, f"{where}, {name}", tolerance, dtype=True)


def _past(x, w_k, w_v):
    return x @ w_k, x @ w_v


def _first_position(answer):
    """the first position of all sees itself"""
    x = torch.tensor([[[3.0, 4.0]]])
    y, k, v = _answered(answer, x, EYE, EYE, LEAN, where=_ALONE)
    same(y, [[[3.0, 8.0]]], f"{_ALONE}, y", note="There is nothing else to mix.")
    same(k, [[[3.0, 4.0]]], f"{_ALONE}, k")
    same(v, [[[3.0, 8.0]]], f"{_ALONE}, v")


def _the_prompt(answer):
    """several positions at once: each sees itself and those before it"""
    y, *_ = _answered(answer, PAST, LEAN, EYE, LEAN, where=_PROMPT)
    expected = _attended(PAST, LEAN, EYE, LEAN)[0]
    same(y[0, 0], expected[0, 0], f"{_PROMPT}, y of the first",
         note="The first position sees itself only.")  # fmt: skip
    same(y, expected, f"{_PROMPT}, y")


def _the_next(answer):
    """a single new position sees all of the cache and itself"""
    x = torch.tensor([[[0.5, -1.0]]])
    cache = _past(PAST, EYE, LEAN)
    y, *_ = _answered(answer, x, LEAN, EYE, LEAN, cache, where=_NEXT)
    same(y, _attended(x, LEAN, EYE, LEAN, cache)[0], f"{_NEXT}, y")


def _the_chunk(answer):
    """of two new positions the first sees the cache and itself, and not the second"""
    x = torch.tensor([[[0.5, -1.0], [3.0, 2.0]]])
    cache = _past(PAST, EYE, LEAN)
    y, *_ = _answered(answer, x, LEAN, EYE, LEAN, cache, where=_CHUNK)
    expected = _attended(x, LEAN, EYE, LEAN, cache)[0]
    same(y[0, 0], expected[0, 0], f"{_CHUNK}, y of the first",
         note="It sees four positions: three of the cache, and itself.")  # fmt: skip
    same(y, expected, f"{_CHUNK}, y")


def _what_is_kept(answer):
    """all keys and all values come back, oldest first"""
    x = torch.tensor([[[0.5, -1.0], [3.0, 2.0]]])
    cache = _past(PAST, EYE, LEAN)
    _, k, v = _answered(answer, x, LEAN, EYE, LEAN, cache, where=_KEPT)
    same(k, torch.cat([PAST, x], 1), f"{_KEPT}, k")
    same(v, torch.cat([PAST, x], 1) * torch.tensor([1.0, 2.0]), f"{_KEPT}, v")


def _in_pieces(answer):
    """in pieces of 3, 1 and 2 it gives what it gives all at once"""
    x, maps = numbers(2, 6, 5, seed=1), [numbers(5, 4, seed=seed) for seed in (2, 3, 4)]
    cache, rows = None, []
    for piece in x.split([3, 1, 2], dim=1):
        where = f"for a piece of {piece.size(1)} positions of two sentences"
        y, *cache = _answered(answer, piece, *maps, cache, where=where)
        rows.append(y)
    same(torch.cat(rows, 1), _attended(x, *maps)[0], "for 6 positions in pieces, y")


def _any_sizes(answer):
    """whatever the sizes, the dtype and the scores, with gradients"""
    for dtype in (torch.float32, torch.float64):
        x, *maps = (numbers(*shape, seed=i, dtype=dtype) for i, shape in
                    enumerate(((3, 2, 7), (7, 5), (7, 5), (7, 5))))  # fmt: skip
        cache = tuple(numbers(3, 4, 5, seed=seed, dtype=dtype) for seed in (8, 9))
        _whole(answer, x, *maps)
        _whole(answer, x, *maps, cache, where=f"for 2 new after 4 ({str(dtype)[6:]})")
        _whole(answer, x[:, :1], *maps, cache)
        _whole(answer, 40 * x, *maps, cache, where="for scores in the hundreds", tolerance=1e-4)
    low = 20 * PAST
    where = "for scores that are all below -10,000"
    _whole(answer, low, -200 * EYE, EYE, LEAN, where=where, tolerance=1e-4)
    flat = _flat(answer)
    gradients(flat, _flat(_attended), x, *maps, *cache)
    travels(flat, x, *maps, *cache)


def _flat(answer):
    """The same with the cache's two tensors as arguments, and all three results in one."""

    def flat(x, w_q, w_k, w_v, k, v):
        y, (keys, values) = answer(x, w_q, w_k, w_v, (k, v))
        return torch.cat([y, keys, values], dim=1)

    return flat


ATTENTION = Exercise(
    id="17.2",
    title="attention with a cache",
    difficulty=3,
    minutes=15,
    statement=(
        "Write `my_cached_attention(x, w_q, w_k, w_v, cache=None)`: causal attention with one "
        "head, for the newest positions only. `x` `(B, T, C)` holds T new positions, one or "
        "several. Each projection is `(C, D)`, multiplies from the right and has no bias. `cache` "
        "is `None` or a pair `(k, v)`, each `(B, S, D)`: the keys and values of the S positions "
        "before. A new position attends to everything in the cache, to itself, and to the new "
        "positions before it; scores are divided by √D. Return `(y, (k, v))`: the outputs of the "
        "new positions, `(B, T, D)`, and all keys and values so far, each `(B, S + T, D)`, oldest "
        "first, in the dtype and on the device of `x`. The scores may be very large."
    ),
    hint=(
        "Only the new positions are multiplied by the projections. For the mask, ask how far the "
        "triangle has to move: the last query attends to all S + T keys."
    ),
    function=my_cached_attention,
    tests=(
        _first_position,
        _the_prompt,
        _the_next,
        _the_chunk,
        _what_is_kept,
        _in_pieces,
        _any_sizes,
    ),
)

# 17.3 what was left out


def my_recall(translation, references, n):
    """How much of a reference the translation says: a share of its n-grams, from 0 to 1.

    Each n-gram of a reference counts at most as often as the translation says it. Of several
    references the one counts of which most is said; one without n-grams gives 0.
    """
    raise NotImplementedError


SAT = ["the", "cat", "sat", "on", "the", "mat"]
CATS = [["the", "cat", "is", "on", "the", "mat"], ["there", "is", "a", "cat", "on", "the", "mat"]]
_SAT = "for `the cat` against `the cat sat on the mat`"
_CATS = "against `the cat is on the mat` and `there is a cat on the mat`"


def _share(answer, arguments, expected, where, note=""):
    same(answer(*arguments), expected, where, note=note)


def _one_by_one(translation, references, n):
    """Each run of n words of a reference is struck out of the translation's, with no Counter."""

    def runs(words):
        return [words[i : i + n] for i in range(len(words)) if i + n <= len(words)]

    shares = [0.0]
    for reference in references:
        left, found = runs(translation), 0
        for run in runs(reference):
            if run in left:
                left.remove(run)
                found += 1
        shares.append(found / max(len(runs(reference)), 1))
    return max(shares)


def _of_the_reference(answer):
    """a share of the reference's n-grams, each found at most as often as it was said"""
    note = "Of six words two are said: `cat`, and one `the` for one of two."
    _share(answer, (["the", "cat"], [SAT], 1), 2 / 6, f"{_SAT}, n = 1", note)


def _pairs(answer):
    """of pairs as of words"""
    _share(answer, (["the", "cat"], [SAT], 2), 1 / 5, f"{_SAT}, n = 2", "It has five pairs.")


def _said_twice(answer):
    """what is said twice and stands there twice counts twice"""
    where = "for `the mat the` against `the cat sat on the mat`, n = 1"
    _share(answer, (["the", "mat", "the"], [SAT], 1), 3 / 6, where, "It says both `the`.")


def _too_much(answer):
    """words too many do no harm"""
    where = "for `the the the the` against `the cat`, n = 1"
    _share(answer, (["the"] * 4, [["the", "cat"]], 1), 1 / 2, where, "One of two words is said.")
    where = "for `well the cat sat down` against `the cat`, n = 2"
    said = ["well", "the", "cat", "sat", "down"]
    _share(answer, (said, [["the", "cat"]], 2), 1.0, where, "All of it is said.")


def _best_of_two(answer):
    """of several references the one of which most is said, by itself"""
    note = "Of the second six words of seven are said, of the first four of six."
    said = ["there", "is", "a", "cat", "on", "mat"]
    _share(answer, (said, CATS, 1), 6 / 7, f"for `there is a cat on mat` {_CATS}, n = 1", note)


def _whichever_is_first(answer):
    """the order of the references does not matter"""
    said = ["there", "is", "a", "cat", "on", "mat"]
    where = "for the same translation, and the same two references exchanged"
    _share(answer, (said, CATS[::-1], 1), 6 / 7, where, "It is the first now.")


def _nothing_there(answer):
    """where there is no n-gram, nothing is said"""
    where = "for `cat` against `cat`, n = 2"
    _share(answer, (["cat"], [["cat"]], 2), 0.0, where, "The reference has no pair.")
    where = "for `the cat` against `cat` and `the cat sat`, n = 2"
    two = [["cat"], ["the", "cat", "sat"]]
    _share(answer, (["the", "cat"], two, 2), 1 / 2, where, "Half of the second is said.")
    _share(answer, ([], [SAT], 1), 0.0, "for a translation without words, n = 1")


def _long_texts(answer):
    """in longer texts, for every n from 1 to 4 and 1 to 3 references"""
    chosen = numbers(4, 60, seed=3).abs().mul(2).long().clamp(max=3).tolist()
    texts = [["".join("abcd"[i]) for i in row] for row in chosen]
    for many in (1, 3):
        for n in (1, 2, 3, 4):
            references = [text[: 55 - 5 * i] for i, text in enumerate(texts[1 : 1 + many])]
            where = f"for 60 words of 4 kinds against {many} such texts, n = {n}"
            _share(answer, (texts[0], references, n), _one_by_one(texts[0], references, n), where)


RECALL = Exercise(
    id="17.3",
    title="what was left out",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_recall(translation, references, n)`: the share of a reference's n-grams that "
        "occur in the translation, from 0 to 1, each counted at most as often as it occurs there. "
        "If there are several references, take the one with the highest share; a reference "
        "without n-grams gives 0. `clipped_matches` does the counting if you call it in the right "
        "way."
    ),
    hint="Precision counts the translation's n-grams in the reference. Exchange the two.",
    function=my_recall,
    tests=(
        _of_the_reference,
        _pairs,
        _said_twice,
        _too_much,
        _best_of_two,
        _whichever_is_first,
        _nothing_there,
        _long_texts,
    ),
)


# 17.4 the brevity penalty


def my_brevity_penalty(lengths, reference_lengths):
    """BLEU's brevity penalty of a corpus: e^(1 - r/c) if c < r, else 1.

    lengths holds the number of words of each translation, reference_lengths those of the
    references; c and r are their sums.
    """
    raise NotImplementedError


_SHORT = "for lengths=[4, 6] and reference_lengths=[8, 8]"
_EVEN = "for lengths=[4, 12] and reference_lengths=[8, 8]"
_LONG = "for lengths=[9, 11] and reference_lengths=[8, 8]"


def _too_brief(answer):
    """a corpus that is too short is punished"""
    note = "10 words for 16: e^(1 - 1.6)."
    same(answer([4, 6], [8, 8]), math.exp(-0.6), _SHORT, note=note)


def _not_rewarded(answer):
    """words too many earn nothing"""
    same(answer([9, 11], [8, 8]), 1.0, _LONG, note="Precision has punished them already.")


def _of_the_corpus(answer):
    """only the corpus as a whole has to be long enough"""
    same(answer([4, 12], [8, 8]), 1.0, _EVEN, note="16 words for 16.")


def _any_corpus(answer):
    """of one sentence or of many, a word short or far too short"""
    for lengths, reference_lengths, expected in (
        ([9], [10], math.exp(-1 / 9)),
        ([3, 1, 5], [4, 2, 4], math.exp(-1 / 9)),
        ([1], [6], math.exp(-5)),
        ([999_999], [1_000_000], math.exp(-1 / 999_999)),
        ([0, 7, 0], [1, 5, 1], 1.0),
    ):
        where = f"for lengths={lengths} and reference_lengths={reference_lengths}"
        same(answer(lengths, reference_lengths), expected, where, tolerance=1e-7)


BREVITY = Exercise(
    id="17.4",
    title="the brevity penalty",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_brevity_penalty(lengths, reference_lengths)`, BLEU's brevity penalty of a "
        "corpus. The arguments are two lists of word counts with one entry per sentence. With c "
        "words in all translations and r in all references, the result is $e^{1 - r/c}$ if c < r, "
        "and otherwise 1."
    ),
    hint="Sum first, divide once.",
    function=my_brevity_penalty,
    tests=(_too_brief, _not_rewarded, _of_the_corpus, _any_corpus),
)


# 17.5 the mask of the newest tokens


def my_newest_mask(ids, new, pad_id=0):
    """What the last `new` of the tokens ids (B, S) may attend to: boolean (B, 1, new, S).

    True where the key is not padding and not later than the query.
    """
    raise NotImplementedError


IDS = torch.tensor([[0, 5, 6, 7, 8], [4, 5, 0, 7, 8]])
_IDS = f"for ids={short(IDS)}, new=2"


def _mask_shape(answer):
    """a row for each new token, a column for every token, an axis for heads"""
    got = tensor(answer(IDS, 2), _IDS)
    expect(
        got.shape == (2, 1, 2, 5),
        f"{_IDS}, the shape is {tuple(got.shape)}, expected (2, 1, 2, 5): sentences, an axis of 1 "
        "for the heads, new tokens, all tokens",
    )
    expect(got.dtype == torch.bool, f"{_IDS}, the dtype is {got.dtype}, expected torch.bool")


def _cell(answer, b, query, key, wanted, note, new=2):
    got = tensor(answer(IDS, new), _IDS)
    got = got.expand(2, 1, new, 5)[b, 0, query, key]
    where = f"for ids={short(IDS)}, new={new}, sentence {b}, new token {query}, key {key}"
    expect(bool(got) == wanted, f"{where}: {bool(got)}; {note}")


def _no_future(answer):
    """a new token does not see a newer one"""
    _cell(answer, 0, 0, 4, False, "token 3 may not see token 4")


def _sees_itself(answer):
    """a new token sees itself"""
    _cell(answer, 0, 0, 3, True, "new token 0 is token 3, and sees itself")
    _cell(answer, 0, 1, 4, True, "new token 1 is token 4, and sees itself")


def _sees_old(answer):
    """a new token sees the old ones, which are cached"""
    for key in (1, 2):
        _cell(answer, 0, 0, key, True, "it is an earlier word")
    _cell(answer, 1, 1, 3, True, "it is an earlier word")


def _no_padding(answer):
    """no token sees padding"""
    _cell(answer, 0, 0, 0, False, "key 0 is padding")
    _cell(answer, 1, 1, 2, False, "key 2 is padding")


def _padded_query(answer):
    """a sentence that has ended keeps its rows"""
    where = "for ids=[[5, 6, 7, 0, 0]], new=2"
    got = tensor(answer(torch.tensor([[5, 6, 7, 0, 0]]), 2), where)
    wanted = [[[[True, True, True, False, False]] * 2]]
    same(got, wanted, where, note="Padding is hidden as a key; as a query it has the same rule.")


def _all_new(answer):
    """with every token new it is the mask of training"""
    got = tensor(answer(torch.tensor([[3, 4, 5]]), 3), "for ids=[[3, 4, 5]], new=3")
    wanted = torch.ones(3, 3, dtype=torch.bool).tril()[None, None]
    same(got, wanted, "for ids=[[3, 4, 5]], new=3")


def _other_pad(answer):
    """the padding id is the argument"""
    where = "for ids=[[9, 0, 3]], new=1, pad_id=9"
    got = tensor(answer(torch.tensor([[9, 0, 3]]), 1, 9), where).reshape(-1)
    same(got, [False, True, True], where, note="Here 9 is padding and 0 is a word.")


def _pair_by_pair(ids, new, pad_id=0):
    """Each new token and each token."""
    batch, length = ids.shape
    mask = torch.zeros(batch, 1, new, length, dtype=torch.bool)
    for b in range(batch):
        for i in range(new):
            for key in range(length - new + i + 1):
                mask[b, 0, i, key] = ids[b, key].item() != pad_id
    return mask


def _any_ids(answer):
    """any batch, any number of new tokens"""
    for case in (((1, 1), 1), ((2, 1), 1), ((1, 6), 1), ((3, 4), 2), ((2, 5), 4), ((3, 4), 4)):
        (shape, new), made = case, torch.Generator().manual_seed(sum(case[0]))
        ids = torch.randint(0, 4, shape, generator=made)
        agrees(answer, _pair_by_pair, ids, new)
        agrees(answer, _pair_by_pair, ids, new, 2)


def _mask_travels(answer):
    """the mask is on the device of the ids"""
    travels(answer, IDS, 2)


NEWEST = Exercise(
    id="17.5",
    title="the mask of the newest tokens",
    difficulty=2,
    minutes=15,
    statement=(
        "With a cache the decoder receives only the new tokens, while its keys are all tokens. "
        "Write `my_newest_mask(ids, new, pad_id=0)`, where `ids` `(B, S)` are all tokens so far: "
        "the boolean mask `(B, 1, new, S)` for the last `new` of them as queries. A query may "
        "attend to a key that is not later than itself and is not padding. (A query that is "
        "padding follows the same rule, since its output is not used.)"
    ),
    hint="The rows you want are the last `new` of the whole causal mask.",
    function=my_newest_mask,
    tests=(
        _mask_shape,
        _no_future,
        _sees_itself,
        _sees_old,
        _no_padding,
        _padded_query,
        _all_new,
        _other_pad,
        _any_ids,
        _mask_travels,
    ),
)


EXERCISES = (CACHE, ATTENTION, RECALL, BREVITY, NEWEST)
