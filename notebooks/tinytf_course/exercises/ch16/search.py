"""16.3 a beam search to repair (★★☆, 15 minutes)

This beam search over dictionaries is like `beam_by_hand`, but with a length penalty. It runs, and
`my_search(toy, 2, 0.6, 6)` finds the sentence that it should, but with a score of 0, as if the
sentence were certain:

```python
def my_search(follow, beam, alpha, max_len):
    alive, finished = {(): 0.0}, {}
    for _ in range(max_len):
        grown = {}
        for prefix in alive:
            for word, log_p in follow(prefix).items():
                grown[(*prefix, word)] = log_p
        best = sorted(grown, key=grown.get, reverse=True)[:beam]
        finished |= {p: grown[p] for p in best if p[-1] == "<eos>"}
        alive = {p: grown[p] for p in best}
    winner = max(finished, key=finished.get)
    return winner, finished[winner]
```

Repair it.

<details><summary>The rule in detail</summary>

`follow(prefix)` returns `{word: log-probability}` for the words that may follow a prefix, a tuple
of words. In each of `max_len` steps, every living prefix grows by every word. Of the 2 · `beam`
likeliest results, those that end in `"<eos>"` are finished, and of the others the `beam` likeliest
live on. A prefix that still lives after `max_len` steps is finished as it is. The result is the
finished sentence with the highest score, and that score: its log-probability / ((5 + n) / 6)^α,
where n is its number of words, `"<eos>"` included.

</details>

Hint: A score of 0 is a probability of 1. Which log-probabilities belong to a whole sentence?

Hint: Five things are wrong. Check what is added up, how many candidates are looked at, which of
them live on, which are forgotten at the end, and what is compared.
"""

import math

from tinytf_course.expect import expect, numbers, same
from tinytf_course.words import described


def my_search(follow, beam, alpha, max_len):
    """The best sentence that a beam finds, and its score: (tuple of words, float).

    follow(prefix) gives {word: log-probability} for the words after a tuple of words. A score is
    the log-probability / ((5 + n) / 6) ** alpha, with n words, "<eos>" included. What still lives
    after max_len steps counts as it is.
    """
    alive, finished = {(): 0.0}, {}
    for _ in range(max_len):
        grown = {}
        for prefix, total in alive.items():
            for word, log_p in follow(prefix).items():
                grown[(*prefix, word)] = total + log_p
        best = sorted(grown, key=grown.get, reverse=True)[: 2 * beam]
        finished |= {p: grown[p] for p in best if p[-1] == "<eos>"}
        going = [p for p in best if p[-1] != "<eos>"][:beam]
        alive = {p: grown[p] for p in going}
    finished |= alive
    scores = {p: total / ((5 + len(p)) / 6) ** alpha for p, total in finished.items()}
    winner = max(scores, key=scores.get)
    return winner, scores[winner]


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
THEN = {"b": 0.2, "c": 0.19, "d": 0.18, "e": 0.17, "f": 0.16, "g": 0.1}
THIRD = {(): {"a": 0.4, "the": 0.3, END: 0.2, "one": 0.1}, ("a",): THEN}
FOURTH = {(): {"a": 0.4, "the": 0.3, "one": 0.2, END: 0.1}, ("a",): THEN}
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


def test_past_counts(answer):
    """a beam of 2 sees through the trap: all words of a prefix count"""
    note = "The log-probability of a prefix is the sum over all of its words."
    _finds(answer, _language(CATS_AND_DOGS), 2, 0.0, 6, note)
    logs = {prefix: _language(CATS_AND_DOGS)(prefix) for prefix in CATS_AND_DOGS}
    before = {prefix: dict(row) for prefix, row in logs.items()}
    answer(lambda prefix: logs.get(prefix, {END: 0.0}), 2, 0.0, 6)
    changed = [prefix for prefix, row in logs.items() if row != before[prefix]]
    message = f"you change the dictionary that `follow` gives for {changed}, which is not yours"
    expect(not changed, message)


def test_one_beam(answer):
    """with one beam the trap is not seen through"""
    note = "One prefix lives; of two candidates each step."
    _finds(answer, _language(CATS_AND_DOGS), 1, 0.0, 6, note)


def test_ended_take_no_place(answer):
    """what has ended takes no place in the beam, and is finished"""
    note = "Of the 2 * beam best, those that end leave the beam, and the next ones move up."
    _finds(answer, _language(ENDING), 1, 2.0, 6, note)
    _finds(answer, _language(ENDING), 2, 1.0, 6, note)
    _finds(answer, _language(ENDING), 2, 0.0, 6, note)
    for language in (FOURTH, THIRD):
        _finds(answer, _language(language), 1, 0.0, 6, "Of two candidates none is <eos>.")


def test_penalised(answer):
    """the score decides, not the log-probability"""
    for alpha in (0.0, 0.6, 1.0, 3.0):
        _finds(answer, _language(SEVEN), 2, alpha, 12, "Compare scores, divided by the penalty.")
    _finds(answer, _language({(): {"so": 1.0}}), 1, 1.0, 3, "A certain sentence scores 0.")


def test_cut_off(answer):
    """what still lives after max_len steps is finished as it is"""
    note = "max_len words, and no <eos>: it counts all the same."
    _finds(answer, _language(LONG), 1, 0.0, 4, note)
    _finds(answer, _language(CATS_AND_DOGS), 3, 0.0, 2, note)
    _finds(answer, _language(CATS_AND_DOGS), 2, 0.0, 1, note)


def test_any_language(answer):
    """in languages that were drawn, with beams of all widths"""
    for seed in range(12):
        for beam, alpha in ((1, 0.0), (2, 0.7), (3, 1.5), (5, 1.0)):
            _finds(answer, _drawn(1000 * seed), beam, alpha, 5)


MISTAKES = r"""
the past forgotten
    total + log_p => log_p
    says: of 'the cat sat <eos>', you get 0, expected -1.532
    A likely word after an unlikely beginning is still unlikely: a prefix grows by adding,
    `total + log_p`.
written into what `follow` gives
    for word, log_p in follow(prefix).items(): =>
        found = follow(prefix)
        for word, log_p in found.items():
    grown[(*prefix, word)] = => grown[(*prefix, word)] = found[word] =
    says: which is not yours
    A `follow` that looks things up gives the same dictionary again next time. Put the sums into
    one of your own.
only K looked at
    [: 2 * beam] => [:beam]
    says: you get 'we <eos>', expected 'we sat down <eos>'
    What ends takes a place among the K best, and too few are left to live on: look at 2 * beam.
3K looked at
    [: 2 * beam] => [: 3 * beam]
    says: Of two candidates none is <eos>
    Only the 2 * beam best are candidates: a third one of each beam is not looked at.
all that ends is finished
    for p in best if p[-1] == => for p in grown if p[-1] ==
    says: expected
    Only the 2 * beam best are candidates, and of these some end.
what has ended lives on
    [p for p in best if p[-1] != "<eos>"] => best
    says: you get 'we <eos> <eos>
    After <eos> nothing follows: what has ended leaves the beam.
stops at the first that ends
    alive = {p: grown[p] for p in going} =>
        alive = {p: grown[p] for p in going}
        if finished:
            break
    finished |= alive => finished = finished or alive
    says: expected
    A sentence that ends later may have a higher score: the others are still alive.
what max_len cuts is forgotten
    finished |= alive =>
    says: you get '<eos>', expected 'so so so so'
    After the last step the living are finished as they are; otherwise a language that seldom
    ends has no sentence at all.
the likeliest wins
    max(scores, key=scores.get) => max(finished, key=finished.get)
    says: you get '<eos>', expected 'so so so so so so <eos>'
    Compare the scores: log-probabilities divided by the length penalty.
the penalty left out
    total / ((5 + len(p)) / 6) ** alpha => total
    says: you get '<eos>', expected 'so so so so so so <eos>'
    Both what is compared and what is returned is the score, after the penalty.
the log-probability returned
    return winner, scores[winner] => return winner, finished[winner]
    says: the score of 'we sat down <eos>', you get -1.715
    The winner is right. Return its score, which is what was compared.
divided by the length
    ((5 + len(p)) / 6) ** alpha => len(p) ** alpha
    says: the score of 'we sat down <eos>', you get -0.1072
    The penalty is ((5 + n) / 6)^alpha, which makes less of a first word than n does.
multiplied by the penalty
    total / ((5 + len(p)) => total * ((5 + len(p))
    says: you get '<eos>', expected 'we sat down <eos>'
    Log-probabilities are negative: multiplying makes long sentences worse still.
<eos> not counted
    5 + len(p) => 4 + len(p)
    says: the score of 'we sat down <eos>', you get -0.9646
    n counts all words of the sentence, <eos> included.
a step too few
    range(max_len) => range(max_len - 1)
    says: you get 'so so so', expected 'so so so so'
    A sentence may have max_len words: as many steps.
"""

HARMLESS = r"""
finished |= alive => finished |= grown
    the best of the last step is looked at anyway
winner = max(scores, … => winner = max(finished, …
    both have the same keys
"""
