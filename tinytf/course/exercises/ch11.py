"""Chapter 11: a step of beam search, its stop, clipped counts, brevity, and a cache."""

import math

import torch

from tinytf.course.expect import expect, same, short
from tinytf.course.grading import Exercise

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


def _three(answer, *arguments, where):
    got = answer(*arguments)
    fits = isinstance(got, tuple | list) and len(got) == 3
    expect(fits, f"{where}, you return {type(got).__name__}, expected (totals, beams, tokens)")
    return got


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


STEP = Exercise(
    id="11.1",
    title="a step of beam search",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_beam_step(alive, log_probs)` for one sentence. `alive` `(K,)` holds the "
        "log-probabilities of K prefixes, `log_probs` `(K, V)` those of every next token after "
        "each. Return `(totals, beams, tokens)`, each `(K,)`, best first: the log-probabilities of "
        "the K best longer prefixes, which prefix each continues, and by which token."
    ),
    hint="Add up into (K, V), flatten, `topk`. Entry i of the flat tensor is row `i // V`.",
    function=my_beam_step,
    tests=(_totals, _parents, _tokens, _one_parent),
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


def _still_above(answer):
    """with alpha = 0 what is above may go on"""
    _says(answer, (-2.0, 5, -3.0, 0.0, 25), True, "it is still above")


def _late(answer):
    """a long prefix has little left to gain"""
    _says(answer, (-12.0, 20, -2.0, 1.0, 25), False, "at 25 tokens the divisor is 5")


STOP = Exercise(
    id="11.2",
    title="when to stop",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_can_overtake(log_prob, length, worst, alpha, max_len)`: may a living prefix of "
        "`length` tokens still end with a score above `worst`, that of the worst finished "
        "hypothesis? A finished sentence of n tokens scores its log-probability / "
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
        _still_above,
        _late,
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
    expect(fits, f"{where}, you return {type(got).__name__}, expected (matches, total)")
    same(torch.as_tensor([float(part) for part in got]), [float(e) for e in expected], where,
         note=note)  # fmt: skip


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


def _too_short(answer):
    """a translation shorter than n has no n-grams"""
    _pair(answer, (["the"], CATS, 2), (0, 0), "for `the` and n = 2", "There is no pair of words.")


def _second_reference(answer):
    """a word of the second reference counts"""
    _pair(answer, (["a"], CATS, 1), (1, 1), "for `a` against the same two", "It has `a`.")


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
    tests=(_clipping, _either_reference, _bigrams, _words_in_order, _too_short, _second_reference),
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
    tests=(_too_brief, _not_rewarded, _of_the_corpus),
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


def _two(answer, *arguments, where):
    got = answer(*arguments)
    fits = isinstance(got, tuple | list) and len(got) == 2
    expect(fits, f"{where}, you return {type(got).__name__}, expected (k, v)")
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
    tests=(_begins, _keys, _values, _several, _grows),
)


EXERCISES = (STEP, STOP, CLIPPED, BREVITY, CACHE)
