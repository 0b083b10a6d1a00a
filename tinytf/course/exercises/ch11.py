"""Chapter 11: a step of beam search, its stop, clipped counts, brevity, and a cache."""

import math

import torch

from tinytf.course.expect import agrees, expect, gradients, numbers, same, tensor, travels
from tinytf.course.grading import Exercise
from tinytf.course.words import described, given, short

# 11.1 a step of beam search


def my_beam_step(alive, log_probs):
    """The K best ways to continue K prefixes by one token: (totals, beams, tokens), each (K,).

    alive (K,) holds the prefixes' log-probabilities, log_probs (K, V) those of the next token.
    Best first; `beams` says which prefix is continued, `tokens` by which token.
    """
    raise NotImplementedError


ALIVE = torch.tensor([-1.0, -1.5, -3.0])
NEXT = torch.tensor(
    [
        [-4.0, -3.0, -0.2, -2.5, -5.0],
        [-0.3, -6.0, -2.0, -0.9, -4.0],
        [-5.0, -0.1, -4.0, -6.0, -2.6],
    ]
)
_STEP = f"for alive={short(ALIVE)} and log_probs={short(NEXT)}"
ONE_PARENT = torch.tensor([[-1.5, -1.2, -4.0, -1.3], [-0.1, -3.0, -3.0, -4.0]])
_FAR = "for alive=[-1, -9] (the second prefix is far behind)"


def _all_pairs(alive, log_probs):
    """Every prefix with every token, one by one, sorted: (total, beam, token), the K best."""
    rows = log_probs.double().tolist()
    found = [
        (before + after, beam, token)
        for beam, (before, row) in enumerate(zip(alive.double().tolist(), rows, strict=True))
        for token, after in enumerate(row)
    ]
    return sorted(found, reverse=True)[: len(rows)]


def _three(answer, *arguments, where):
    got = answer(*arguments)
    fits = isinstance(got, tuple | list) and len(got) == 3
    expect(fits, f"{where}, you return {described(got)}, expected (totals, beams, tokens)")
    return got


def _step(answer, alive, log_probs, note=""):
    """All three, against every pair one by one."""
    where = given(answer, (alive, log_probs))
    totals, beams, tokens = zip(*_all_pairs(alive, log_probs), strict=True)
    got = _three(answer, alive, log_probs, where=where)
    exact = isinstance(got[0], torch.Tensor)  # a list of numbers has no dtype
    totals = torch.tensor(totals, dtype=alive.dtype)
    same(got[0], totals, f"{where}, totals", None if exact else 1e-6, note, dtype=exact)
    for name, one, other in (("beams", got[1], beams), ("tokens", got[2], tokens)):
        same(one, list(other), f"{where}, {name}", note=note)
        kind = tensor(one, where).dtype
        message = f"{where}, {name} are of {kind}: they are places, and must be whole numbers"
        expect(not kind.is_floating_point, message)


def _totals(answer):
    """the totals are those of the longer prefixes, best first"""
    got = _three(answer, ALIVE, NEXT, where=_STEP)[0]
    same(got, [-1.2, -1.8, -2.4], f"{_STEP}, totals", note="log p(prefix) + log p(token).")


def _parents(answer):
    """beams says which prefix is continued"""
    same(_three(answer, ALIVE, NEXT, where=_STEP)[1], [0, 1, 1], f"{_STEP}, beams")


def _tokens(answer):
    """tokens says by which token"""
    same(_three(answer, ALIVE, NEXT, where=_STEP)[2], [2, 0, 3], f"{_STEP}, tokens")


def _one_parent(answer):
    """all continuations may come from one prefix"""
    got = _three(answer, torch.tensor([-1.0, -9.0]), ONE_PARENT, where=_FAR)
    same(got[1], [0, 0], f"{_FAR}, beams", note="Both of the best continue prefix 0.")


def _first_step(answer):
    """one prefix lives at first, and the others are at minus infinity"""
    _step(answer, torch.tensor([-0.5]), torch.tensor([[-3.0, -0.1, -2.0]]))
    nothing = torch.tensor([[-0.1, -0.2, -0.3], [-3.0, -1.0, -2.0]])
    note = "Prefix 0 is no sentence (probability 0), and what continues it is none."
    _step(answer, torch.tensor([-math.inf, 0.0]), nothing, note=note)


def _sizes(answer):
    """with any number of prefixes and tokens, however unlikely"""
    _step(answer, numbers(4, seed=1), numbers(4, 3, seed=2), note="More prefixes than tokens.")
    _step(answer, numbers(5, seed=3, scale=3), numbers(5, 40, seed=4))
    double = torch.float64
    _step(answer, numbers(2, seed=5, dtype=double), numbers(2, 3, seed=6, dtype=double))
    alive = torch.tensor([-2000.02, -2000.01, -2000.03], dtype=double)
    near = torch.tensor([[-3.0, -1.0], [-1.02, -4.0], [-5.0, -6.0]], dtype=double)
    note = "Long prefixes that are nearly equally likely: float64 goes in, and has to stay."
    _step(answer, alive, near, note)


STEP = Exercise(
    id="11.1",
    title="a step of beam search",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_beam_step(alive, log_probs)` for one sentence. `alive` `(K,)` holds the "
        "log-probabilities of K prefixes, `log_probs` `(K, V)` those of every next token after "
        "each. Return `(totals, beams, tokens)`, each `(K,)`, best first: the log-probabilities of "
        "the K best longer prefixes, in the dtype of `alive`, which prefix each continues, and by "
        "which token."
    ),
    hint="Add up into (K, V), flatten, `topk`. Entry i of the flat tensor is row `i // V`.",
    function=my_beam_step,
    tests=(_totals, _parents, _tokens, _one_parent, _first_step, _sizes),
)


# 11.2 when to stop


def my_can_overtake(log_prob, length, worst, alpha, max_len):
    """Whether a living prefix may still end with a score above `worst`.

    The prefix has `length` tokens and this log-probability in nats; a sentence of n tokens is
    scored by its log-probability / ((5 + n) / 6) ** alpha, and has at most max_len tokens.
    """
    raise NotImplementedError


def _says(answer, arguments, expected, note):
    named = ("log_prob", "length", "worst", "alpha", "max_len")
    where = "for " + ", ".join(f"{n}={v}" for n, v in zip(named, arguments, strict=True))
    got = answer(*arguments)
    kind = type(got).__name__
    yes_or_no = isinstance(got, torch.Tensor) or kind in ("bool", "bool_")
    expect(yes_or_no, f"{where}, you return a {kind}, expected True or False")
    expect(bool(got) == expected, f"{where}, you get {bool(got)}, expected {expected}: {note}")


def _without_penalty(answer):
    """with alpha = 0 the log-probability itself is the bound"""
    _says(answer, (-4.0, 5, -3.0, 0.0, 25), False, "it is below already and can only fall")
    _says(answer, (-2.0, 5, -3.0, 0.0, 25), True, "it is still above")


def _can_grow(answer):
    """a sentence that grows to max_len has the largest divisor"""
    note = "at 25 tokens the divisor is 5, and -6 / 5 = -1.2"
    _says(answer, (-6.0, 3, -2.0, 1.0, 25), True, note)
    note = "at 40 tokens the divisor is 7.5, and -9 / 7.5 = -1.2"
    _says(answer, (-9.0, 20, -2.0, 1.0, 40), True, note)


def _gives_up(answer):
    """what even that divisor does not save is given up"""
    note = "at 25 tokens the divisor is 5, and -12 / 5 = -2.4"
    _says(answer, (-12.0, 3, -2.0, 1.0, 25), False, note)
    _says(answer, (-12.0, 20, -2.0, 1.0, 25), False, note)


def _barely(answer):
    """so is one that a longer sentence would lift just enough"""
    _says(answer, (-4.2, 3, -3.0, 1.0, 25), True, "-4.2 / 5 = -0.84")


def _above(answer):
    """and one that is above the worst as it stands"""
    _says(answer, (-3.5, 3, -3.0, 1.0, 25), True, "-3.5 / 5 = -0.7")


def _far_above(answer):
    """with or without a divisor"""
    _says(answer, (-2.0, 3, -3.0, 1.0, 25), True, "-2 / 5 = -0.4")


def _not_too_short(answer):
    """the longest sentence has max_len tokens, all of them"""
    note = "the best that can come has n = 25 tokens, divisor 30 / 6, and -9.9 / 5 = -1.98"
    _says(answer, (-9.9, 3, -2.0, 1.0, 25), True, note)
    note = "with n = 1 the divisor is 1, and a sentence of one token is one"
    _says(answer, (-2.9, 0, -3.0, 1.0, 1), True, note)
    note = "the best that can come has n = 25 tokens, divisor 30 / 6, and -9.9 / 5 = -1.98"
    _says(answer, (-9.9, 24, -2.0, 1.0, 25), True, note)
    _says(answer, (-5.2, 7, -2.0, 0.6, 25), True, "-5.2 / 5^0.6 = -1.98")


def _not_too_long(answer):
    """and no more than that"""
    note = "the best that can come has n = 25 tokens, divisor 30 / 6, and -10.1 / 5 = -2.02"
    _says(answer, (-10.1, 3, -2.0, 1.0, 25), False, note)
    _says(answer, (-3.05, 0, -3.0, 1.0, 1), False, "with n = 1 the divisor is 1")
    _says(answer, (-10.1, 24, -2.0, 1.0, 25), False, note)
    _says(answer, (-5.3, 7, -2.0, 0.6, 25), False, "-5.3 / 5^0.6 = -2.02")


def _a_tie(answer):
    """as good as the worst is not above it"""
    note = "at best it comes to -2 as well, and that is not above"
    _says(answer, (-2.0, 3, -2.0, 0.0, 25), False, note)
    _says(answer, (-10.0, 3, -2.0, 1.0, 25), False, "-10 / 5 is -2, and that is not above")
    _says(answer, (0.0, 3, 0.0, 1.0, 25), False, "a certain sentence scores 0, at any length")


def _strong_penalty(answer):
    """an alpha above 1 or below it, and a prefix that is certain"""
    _says(answer, (-49.0, 3, -2.0, 2.0, 25), True, "the divisor is 5² = 25, and -49 / 25 > -2")
    _says(answer, (-51.0, 3, -2.0, 2.0, 25), False, "the divisor is 5² = 25, and -51 / 25 < -2")
    _says(answer, (-4.4, 3, -2.0, 0.5, 25), True, "the divisor is √5, and -4.4 / √5 = -1.97")
    _says(answer, (-4.5, 3, -2.0, 0.5, 25), False, "the divisor is √5, and -4.5 / √5 = -2.01")
    _says(answer, (0.0, 3, -1e-6, 1.0, 25), True, "0 is above every negative score")
    _says(answer, (-math.inf, 3, -9.0, 1.0, 25), False, "what is impossible stays impossible")


STOP = Exercise(
    id="11.2",
    title="when to stop",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_can_overtake(log_prob, length, worst, alpha, max_len)`: may a living prefix of "
        "`length` tokens (fewer than `max_len`) still end with a score above `worst`, that of the "
        "worst finished hypothesis? A finished sentence of n tokens scores its log-probability / "
        "((5 + n) / 6)^α, with n at most `max_len`; log-probabilities are at most 0, α at least 0. "
        "Return `True` where some continuation could, else `False`."
    ),
    hint="At best its log-probability stays as it is. Which n makes the quotient largest then?",
    function=my_can_overtake,
    tests=(
        _without_penalty,
        _can_grow,
        _gives_up,
        _barely,
        _above,
        _far_above,
        _not_too_short,
        _not_too_long,
        _a_tie,
        _strong_penalty,
    ),
)


# 11.3 clipped counts


def my_clipped_matches(translation, references, n):
    """How many n-grams of the translation a reference holds, clipped, and how many there are.

    translation is a list of words, references a list of such lists. Each n-gram counts at most as
    often as it stands in the one reference that has it most often.
    """
    raise NotImplementedError


THE = ["the"] * 7
CATS = [["the", "cat", "is", "on", "the", "mat"], ["there", "is", "a", "cat", "on", "the", "mat"]]
MIXED = ["the", "cat", "the", "cat", "is", "on", "a", "mat"]
_THE = "for seven times `the` against `the cat is on the mat` and `there is a cat on the mat`"
_MIXED = "for `the cat the cat is on a mat` against the same two"


def _pair(answer, arguments, expected, where, note):
    got = answer(*arguments)
    fits = isinstance(got, tuple | list) and len(got) == 2
    fits = fits and all(isinstance(part, int | float | torch.Tensor) for part in got)
    expect(fits, f"{where}, you return {described(got)}, expected (matches, total)")
    same(torch.as_tensor([float(part) for part in got]), [float(e) for e in expected], where,
         note=note)  # fmt: skip


def _one_by_one(translation, references, n):
    """Each run of n words looked up in every reference, with no Counter."""

    def runs(words):
        return [words[i : i + n] for i in range(len(words)) if i + n <= len(words)]

    def times(run, words):
        return sum(run == other for other in runs(words))

    here = runs(translation)
    different = [run for i, run in enumerate(here) if run not in here[:i]]
    found = sum(
        min(times(run, translation), max(times(run, words) for words in references))
        for run in different
    )
    return found, len(here)


def _clipping(answer):
    """a word counts no more often than in a reference"""
    _pair(answer, (THE, CATS, 1), (2, 7), _THE, "The first reference has `the` twice.")


def _either_reference(answer):
    """each reference may contribute what it has"""
    where = f"{_MIXED}, n = 1"
    _pair(answer, (MIXED, CATS, 1), (7, 8), where, "`a` stands in the second reference; "
          "of `cat` each has one.")  # fmt: skip


def _bigrams(answer):
    """pairs of words overlap"""
    where = f"{_MIXED}, n = 2"
    _pair(answer, (MIXED, CATS, 2), (3, 7), where, "`the cat`, `cat is`, `is on`.")


def _words_in_order(answer):
    """an n-gram is a run of whole words in their order"""
    where = "for `cat the` against `the cat` and n = 2"
    _pair(answer, (["cat", "the"], [["the", "cat"]], 2), (0, 1), where, "The order counts.")
    where = "for `in to` against `int o` and n = 2"
    _pair(answer, (["in", "to"], [["int", "o"]], 2), (0, 1), where, "These are other words.")


def _same_word(answer):
    """also runs of one word, and runs that have the same ends"""
    where = "for `a a a` against `a a` and n = 2"
    _pair(answer, (["a"] * 3, [["a"] * 2], 2), (1, 2), where, "`a a` is there twice, and once.")
    where = "for `a b c` against `a x c` and n = 3"
    note = "The words between the first and the last count."
    _pair(answer, (list("abc"), [list("axc")], 3), (0, 1), where, note)


def _too_short(answer):
    """a translation shorter than n has no n-grams"""
    _pair(answer, (["the"], CATS, 2), (0, 0), "for `the` and n = 2", "There is no pair of words.")
    _pair(answer, (["the"], CATS, 4), (0, 0), "for `the` and n = 4", "No count is below 0.")
    _pair(answer, ([], CATS, 1), (0, 0), "for a translation without words, n = 1", "")
    _pair(answer, ([], CATS, 3), (0, 0), "for a translation without words, n = 3", "")


def _short_reference(answer):
    """and a reference shorter than n has none"""
    cat = [["cat"], [], ["the", "cat"]]
    where = "for `the cat sat` against `cat`, an empty text, and `the cat`, n = 2"
    _pair(answer, (["the", "cat", "sat"], cat, 2), (1, 2), where, "The third has `the cat`.")
    where = "for `cat` against `cat` and n = 1"
    _pair(answer, (["cat"], [["cat"]], 1), (1, 1), where, "")


def _second_reference(answer):
    """a word of the second reference counts"""
    _pair(answer, (["a"], CATS, 1), (1, 1), "for `a` against the same two", "It has `a`.")


def _long_texts(answer):
    """in longer texts, for every n from 1 to 4 and 1 to 3 references"""
    chosen = numbers(4, 60, seed=3).abs().mul(2).long().clamp(max=3).tolist()
    texts = [["".join("abcd"[i]) for i in row] for row in chosen]
    for many in (1, 3):
        for n in (1, 2, 3, 4):
            references = [text[: 40 + 5 * i] for i, text in enumerate(texts[1 : 1 + many])]
            where = f"for 60 words of 4 kinds against {many} such texts, n = {n}"
            _pair(answer, (texts[0], references, n), _one_by_one(texts[0], references, n), where,
                  "")  # fmt: skip


CLIPPED = Exercise(
    id="11.3",
    title="clipped counts",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_clipped_matches(translation, references, n)`, which returns `(matches, total)`: "
        "how many n-grams of the translation a reference holds, each counted at most as often as "
        "it stands in the one reference that has it most often, and how many n-grams the "
        "translation has. Words are in lists; there may be several references."
    ),
    hint="`Counter`: `a & b` takes the smaller count of each key, `a | b` the larger.",
    function=my_clipped_matches,
    tests=(
        _clipping,
        _either_reference,
        _bigrams,
        _words_in_order,
        _same_word,
        _too_short,
        _short_reference,
        _second_reference,
        _long_texts,
    ),
)


# 11.4 the brevity penalty


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
    id="11.4",
    title="the brevity penalty",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_brevity_penalty(lengths, reference_lengths)`, two lists of word counts, one "
        "entry a sentence. With c words in all translations and r in all references: $e^{1 - r/c}$ "
        "where c < r, else 1."
    ),
    hint="Sum first, divide once.",
    function=my_brevity_penalty,
    tests=(_too_brief, _not_rewarded, _of_the_corpus, _any_corpus),
)


# 11.5 a cache that grows


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
    id="11.5",
    title="a cache that grows",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_append(cache, k, v)`. `cache` is `None` or a pair of earlier keys and values; "
        "`k` and `v` are the new ones, `(B, H, new, D)`. Return the pair of all keys and all "
        "values so far, oldest first."
    ),
    hint="Positions are axis 2 of (B, H, T, D).",
    function=my_append,
    tests=(_begins, _keys, _values, _several, _grows, _any_kind),
)


EXERCISES = (STEP, STOP, CLIPPED, BREVITY, CACHE)
