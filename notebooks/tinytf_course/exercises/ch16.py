"""Chapter 16: a step of beam search, its stop, and a search to repair."""

import math

import torch

from tinytf_course.expect import expect, numbers, same, tensor
from tinytf_course.grading import Exercise
from tinytf_course.words import described, given, short

# 16.1 a step of beam search


def my_beam_step(alive, log_probs):
    """The K best ways to continue K prefixes by one token: (totals, beams, tokens), each (K,).

    alive (K,) holds the prefixes' log-probabilities, log_probs (K, V) those of the next token.
    Best first; `beams` holds the index of the continued prefix, `tokens` the token.
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
        message = f"{where}, {name} are of {kind}: they are indices, and must be whole numbers"
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
    note = "Prefix 0 has probability 0, and so has everything that continues it."
    _step(answer, torch.tensor([-math.inf, 0.0]), nothing, note=note)


def _sizes(answer):
    """with any number of prefixes and tokens, however unlikely"""
    _step(answer, numbers(4, seed=1), numbers(4, 3, seed=2), note="More prefixes than tokens.")
    _step(answer, numbers(3, seed=7), numbers(3, 3, seed=8), note="As many prefixes as tokens.")
    _step(answer, numbers(5, seed=3, scale=3), numbers(5, 40, seed=4))
    double = torch.float64
    _step(answer, numbers(2, seed=5, dtype=double), numbers(2, 3, seed=6, dtype=double))
    alive = torch.tensor([-2000.02, -2000.01, -2000.03], dtype=double)
    near = torch.tensor([[-3.0, -1.0], [-1.02, -4.0], [-5.0, -6.0]], dtype=double)
    note = "Long prefixes that are nearly equally likely: float64 goes in, and has to stay."
    _step(answer, alive, near, note)


STEP = Exercise(
    id="16.1",
    title="a step of beam search",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_beam_step(alive, log_probs)`, one step of beam search for a single sentence. "
        "`alive` `(K,)` holds the log-probabilities of K prefixes, and `log_probs` `(K, V)` those "
        "of every possible next token after each prefix. Return `(totals, beams, tokens)`, each "
        "`(K,)` and best "
        "first: the log-probabilities of the K best longer prefixes (in the dtype of `alive`), the "
        "index of the prefix that each continues, and its new token."
    ),
    hint="Add to get (K, V), flatten, and use `topk`. Entry i of the flat tensor is row `i // V`.",
    function=my_beam_step,
    tests=(_totals, _parents, _tokens, _one_parent, _first_step, _sizes),
)


# 16.2 when to stop


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
    one = isinstance(got, torch.Tensor) and got.dim() == 0 and got.dtype == torch.bool
    yes_or_no = one or type(got).__name__ in ("bool", "bool_")
    expect(yes_or_no, f"{where}, you return {described(got)}, expected True or False")
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
    note = "the divisor is 25 / 6, no whole number, and -9 / (25 / 6) = -2.16"
    _says(answer, (-9.0, 3, -2.2, 1.0, 20), True, note)
    note = "the best that can come has n = 25 tokens, divisor 30 / 6, and -9.9 / 5 = -1.98"
    _says(answer, (-9.9, 24, -2.0, 1.0, 25), True, note)
    _says(answer, (-5.2, 7, -2.0, 0.6, 25), True, "-5.2 / 5^0.6 = -1.98")


def _not_too_long(answer):
    """and no more than that"""
    note = "the best that can come has n = 25 tokens, divisor 30 / 6, and -10.1 / 5 = -2.02"
    _says(answer, (-10.1, 3, -2.0, 1.0, 25), False, note)
    _says(answer, (-3.05, 0, -3.0, 1.0, 1), False, "with n = 1 the divisor is 1")
    note = "the divisor is 25 / 6, no whole number, and -9.3 / (25 / 6) = -2.23"
    _says(answer, (-9.3, 3, -2.2, 1.0, 20), False, note)
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
    id="16.2",
    title="when to stop",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_can_overtake(log_prob, length, worst, alpha, max_len)`: can a living prefix of "
        "`length` tokens (fewer than `max_len`) still end with a score above `worst`, the score of "
        "the worst finished hypothesis? The score of a finished sentence of n tokens is its "
        "log-probability / ((5 + n) / 6)^α, with n at most `max_len`; log-probabilities are at "
        "most 0, and α is at least 0. Return `True` if some continuation could, else `False`."
    ),
    hint="At best the log-probability stays as it is. Which n then makes the quotient largest?",
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


# 16.3 a beam search to repair


def my_search(follow, beam, alpha, max_len):
    """The best sentence that a beam finds, and its score: (tuple of words, float).

    follow(prefix) gives {word: log-probability} for the words after a tuple of words. A score is
    the log-probability / ((5 + n) / 6) ** alpha, with n words, "<eos>" included. What still lives
    after max_len steps counts as it is.
    """
    raise NotImplementedError


END = "<eos>"
CATS_AND_DOGS = {
    (): {"a": 0.6, "the": 0.4},
    ("a",): {"cat": 0.4, "dog": 0.35, "hat": 0.25},
    ("the",): {"cat": 0.9, "dog": 0.05, "hat": 0.05},
    ("the", "cat"): {END: 0.3, "sat": 0.6, "slept": 0.1},
    ("a", "cat"): {END: 0.5, "sat": 0.3, "slept": 0.2},
    ("a", "dog"): {END: 0.15, "sat": 0.05, "barked": 0.8},
}
ENDING = {  # what ends comes first at each step, and the sentence is what does not
    (): {END: 0.3, "we": 0.5, "they": 0.2},
    ("we",): {END: 0.6, "sat": 0.4},
    ("they",): {END: 0.45, "sat": 0.55},
    ("we", "sat"): {END: 0.1, "down": 0.9},
    ("they", "sat"): {END: 0.7, "down": 0.3},
}
LONG = {(): {END: 0.4, "so": 0.6}, **{("so",) * n: {END: 0.1, "so": 0.9} for n in range(1, 20)}}
SEVEN = {prefix: LONG[prefix] for prefix in list(LONG)[:6]}  # at most seven words with <eos>


def _language(table):
    """A `follow` of a table of probabilities; what is not listed can only end."""

    def follow(prefix):
        return {word: math.log(p) for word, p in table.get(prefix, {END: 1.0}).items()}

    return follow


def _drawn(seed, words=4, longest=5):
    """A language whose probabilities are drawn for each prefix."""
    names = [END, *"abcdefgh"[:words]]

    def follow(prefix):
        places = [names.index(word) + 1 for word in prefix]
        draw = seed + sum(place * 11**i for i, place in enumerate(places)) % 10_007
        logs = numbers(words + 1, seed=draw, scale=1.5).double().log_softmax(dim=0).tolist()
        if len(prefix) >= longest:
            logs[0] = -0.01
        return dict(zip(names, logs, strict=True))

    return follow


def _beam_slowly(follow, beam, alpha, max_len):
    """The same search with lists: (sentence, score)."""
    alive, finished = [(0.0, ())], []
    for _ in range(max_len):
        grown = [(t + p, (*old, w)) for t, old in alive for w, p in follow(old).items()]
        grown.sort(reverse=True)
        looked_at = grown[: 2 * beam]
        finished += [found for found in looked_at if found[1][-1] == END]
        alive = [found for found in looked_at if found[1][-1] != END][:beam]
    scored = [(t / ((5 + len(s)) / 6) ** alpha, s) for t, s in finished + alive]
    score, sentence = max(scored)
    return sentence, score


def _finds(answer, follow, beam, alpha, max_len, note=""):
    expected, score = _beam_slowly(follow, beam, alpha, max_len)
    where = f"for beam={beam}, alpha={alpha}, max_len={max_len}"
    got = answer(follow, beam, alpha, max_len)
    fits = isinstance(got, tuple | list) and len(got) == 2 and isinstance(got[0], tuple | list)
    expect(fits, f"{where}, you return {described(got)}, expected (tuple of words, score)")
    kind = f"{where}, you return the words in a list, expected a tuple of words"
    expect(isinstance(got[0], tuple), kind)
    said, wanted = (" ".join(map(str, words)) for words in (got[0], expected))
    right = tuple(got[0]) == expected
    expect(right, f"{where}, you get {said!r}, expected {wanted!r}. {note}".rstrip())
    same(got[1], score, f"{where}, the score of {wanted!r}", 1e-6, note)


def _past_counts(answer):
    """a beam of 2 sees through the trap: all words of a prefix count"""
    note = "The log-probability of a prefix is the sum over all of its words."
    _finds(answer, _language(CATS_AND_DOGS), 2, 0.0, 6, note)
    logs = {prefix: _language(CATS_AND_DOGS)(prefix) for prefix in CATS_AND_DOGS}
    before = {prefix: dict(row) for prefix, row in logs.items()}
    answer(lambda prefix: logs.get(prefix, {END: 0.0}), 2, 0.0, 6)
    changed = [prefix for prefix, row in logs.items() if row != before[prefix]]
    message = f"you change the dictionary that `follow` gives for {changed}, which is not yours"
    expect(not changed, message)


def _one_beam(answer):
    """with one beam the trap is not seen through"""
    note = "One prefix lives; of two candidates each step."
    _finds(answer, _language(CATS_AND_DOGS), 1, 0.0, 6, note)


def _ended_take_no_place(answer):
    """what has ended takes no place in the beam, and is finished"""
    note = "Of the 2 * beam best, those that end leave the beam, and the next ones move up."
    _finds(answer, _language(ENDING), 1, 2.0, 6, note)
    _finds(answer, _language(ENDING), 2, 1.0, 6, note)
    _finds(answer, _language(ENDING), 2, 0.0, 6, note)


def _penalised(answer):
    """the score decides, not the log-probability"""
    for alpha in (0.0, 0.6, 1.0, 3.0):
        _finds(answer, _language(SEVEN), 2, alpha, 12, "Compare scores, divided by the penalty.")
    _finds(answer, _language({(): {"so": 1.0}}), 1, 1.0, 3, "A certain sentence scores 0.")


def _cut_off(answer):
    """what still lives after max_len steps is finished as it is"""
    note = "max_len words, and no <eos>: it counts all the same."
    _finds(answer, _language(LONG), 1, 0.0, 4, note)
    _finds(answer, _language(CATS_AND_DOGS), 3, 0.0, 2, note)
    _finds(answer, _language(CATS_AND_DOGS), 2, 0.0, 1, note)


def _any_language(answer):
    """in languages that were drawn, with beams of all widths"""
    for seed in range(12):
        for beam, alpha in ((1, 0.0), (2, 0.7), (3, 1.5), (5, 1.0)):
            _finds(answer, _drawn(1000 * seed), beam, alpha, 5)


REPAIR = Exercise(
    id="16.3",
    title="a beam search to repair",
    difficulty=2,
    minutes=15,
    statement=(
        "This beam search over dictionaries, like `beam_by_hand` but with a length penalty, runs, "
        "and it has five faults:\n\n"
        "```python\n"
        "def my_search(follow, beam, alpha, max_len):\n"
        "    alive, finished = {(): 0.0}, {}\n"
        "    for _ in range(max_len):\n"
        "        grown = {}\n"
        "        for prefix in alive:\n"
        "            for word, log_p in follow(prefix).items():\n"
        "                grown[(*prefix, word)] = log_p\n"
        "        best = sorted(grown, key=grown.get, reverse=True)[:beam]\n"
        '        finished |= {p: grown[p] for p in best if p[-1] == "<eos>"}\n'
        "        alive = {p: grown[p] for p in best}\n"
        "    winner = max(finished, key=finished.get)\n"
        "    return winner, finished[winner]\n"
        "```\n\n"
        "Write a corrected `my_search(follow, beam, alpha, max_len)`. `follow(prefix)` returns "
        "`{word: log-probability}` for the words that may follow a prefix, a tuple of words. In "
        "each of `max_len` steps, every living prefix grows by every word. Of the 2 · `beam` "
        'likeliest results, those that end in `"<eos>"` are finished, and of the others the `beam` '
        "likeliest live on. A prefix that still lives after `max_len` steps is finished as it is. "
        "Return the finished sentence with the highest score, and that score: its log-probability "
        '/ ((5 + n) / 6)^α, where n is its number of words, `"<eos>"` included.'
    ),
    hint=(
        "Check what is added up, how many candidates are looked at, which of them live on, which "
        "are forgotten at the end, and what is compared."
    ),
    function=my_search,
    tests=(_past_counts, _one_beam, _ended_take_no_place, _penalised, _cut_off, _any_language),
)

EXERCISES = (STEP, STOP, REPAIR)
