"""Chapter 00: read an attention map, and grade translations and attention."""

import torch

from tinytf.course.grading import (
    Exercise,
    WrongAnswer,
    calls,
    expect,
    same,
    short,
    tensor,
)
from tinytf.data.phrasebook import pinyin

# 00.1 where each word looks


def most_attended(weights):
    """For each target word, the index of the source word with the largest weight.

    weights is (..., T, S): a row per target word, a column per source word. Returns (..., T).
    """
    return weights.argmax(dim=-1)


MAP = torch.tensor([[0.1, 0.6, 0.3], [0.0, 0.2, 0.8]])
HEADS = torch.stack([MAP, MAP.flip(-1)])
EDGE = torch.tensor([[0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.1, 0.6]])
_map = f"for weights={short(MAP)}"


def _one_each(answer):
    """there is one index for each target word"""
    got = tensor(answer(MAP), _map)
    message = f"{_map}, the answer has shape {tuple(got.shape)}, expected (2,): one per row"
    expect(got.shape == (2,), message)


def _are_indexes(answer):
    """the answer says where the largest weight is, not how large"""
    got = tensor(answer(MAP), _map)
    message = f"{_map}, you get {short(got)}; indexes are whole numbers"
    expect(not got.is_floating_point() and got.dtype != torch.bool, message)


def _largest(answer):
    """it is the largest weight of the row"""
    same(answer(MAP), [1, 2], _map)


def _ends(answer):
    """first and last source word count, `<eos>` too"""
    same(answer(EDGE), [0, 3], f"for weights={short(EDGE)}")


def _each_head(answer):
    """each head gets an answer of its own"""
    same(answer(HEADS), [[1, 2], [1, 0]], "for the weights of two heads, (H=2, T=2, S=3)")


MOST_ATTENDED = Exercise(
    id="00.1",
    title="where each word looks",
    difficulty=1,
    minutes=5,
    statement=(
        "Write `most_attended(weights)`: for each target word (a row), the index of the source "
        "word (a column) that it looks at most. It should work for one map, `(T, S)`, and for the "
        "maps of several heads at once, `(H, T, S)`."
    ),
    hint="`argmax` along the last axis, whichever axes stand in front of it.",
    reference=most_attended,
    wrong=(
        WrongAnswer(
            "argmax over the target words",
            lambda weights: weights.argmax(dim=-2),
            "the answer has shape (3,), expected (2,)",
            "Down a column we ask which target word looks here most. A row is one word's "
            "attention, and only rows sum to 1.",
        ),
        WrongAnswer(
            "the weight instead of the word",
            lambda weights: weights.max(dim=-1).values,
            "indexes are whole numbers",
            "`max` says how much; `argmax` says where.",
        ),
        WrongAnswer(
            "one answer for the whole map",
            lambda weights: weights.argmax(),
            "the answer has shape (), expected (2,)",
            "Without `dim`, `argmax` searches the flattened map and gives one number.",
        ),
        WrongAnswer(
            "the last column left out",
            lambda weights: weights[..., :-1].argmax(dim=-1),
            "you get [0, 1], expected [0, 3]",
            "The column of `<eos>` is a choice like any other. Leaving it out makes a head that "
            "rests on `<eos>` look as if it pointed at a word.",
        ),
        WrongAnswer(
            "axes counted from the front",
            lambda weights: weights.argmax(dim=1),
            "for the weights of two heads",
            "`dim=1` is the source axis of one map only. With a head axis in front it is the "
            "target axis; `dim=-1` is right for both.",
        ),
    ),
    tests=(_one_each, _are_indexes, _largest, _ends, _each_head),
    probes=(calls(MAP), calls(HEADS), calls(EDGE)),
)


# 00.2 the share of exact translations


def exact_share(outputs, gold):
    """The share of sentences translated exactly: every word right, in order, and no word more.

    outputs and gold are lists of sentences, each a list of words. Returns a share in 0..1.
    """
    return sum(list(o) == list(g) for o, g in zip(outputs, gold, strict=True)) / len(gold)


def _words_right(outputs, gold):
    pairs = [(a, b) for o, g in zip(outputs, gold) for a, b in zip(o, g)]
    return sum(a == b for a, b in pairs) / sum(map(len, gold))


GOLD = [["狗", "吃", "了", "鱼"], ["两", "只", "黑", "猫"]]
ONE_WRONG = [["狗", "吃", "了", "鱼"], ["两", "只", "白", "猫"]]
SHORT = [["狗", "吃", "了", "鱼"], ["两", "只"]]
LONG = [["狗", "吃", "了", "鱼"], ["两", "只", "黑", "猫", "猫"]]
SWAPPED = [["鱼", "吃", "了", "狗"], ["两", "只", "黑", "猫"]]
TRADED = [["两", "只", "黑", "猫"], ["狗", "吃", "了", "鱼"]]


def _said(sentences):
    return " / ".join(" ".join(map(pinyin, words)) for words in sentences)


def _scores(answer, outputs, expected, note):
    where = f"for outputs “{_said(outputs)}” and gold “{_said(GOLD)}”"
    got = tensor(answer(outputs, GOLD), where)
    expect(got.dtype != torch.bool, f"{where}, you get {short(got)}, expected a share in 0..1")
    same(got, expected, where, note=note)


def _all_right(answer):
    """all sentences right scores 1"""
    _scores(answer, GOLD, 1.0, "Both are right.")


def _one_of_two(answer):
    """a sentence with one wrong word is wrong"""
    _scores(answer, ONE_WRONG, 0.5, "One of two sentences is right.")


def _cut_short(answer):
    """a sentence that stops early is wrong"""
    _scores(answer, SHORT, 0.5, "The second sentence stops too early.")


def _goes_on(answer):
    """a sentence that goes on is wrong"""
    _scores(answer, LONG, 0.5, "The second sentence has a word too many.")


def _order_counts(answer):
    """the order of the words counts"""
    _scores(answer, SWAPPED, 0.5, "The fish did not eat the dog.")


def _its_own_gold(answer):
    """each sentence is compared with its own gold"""
    _scores(answer, TRADED, 0.0, "Each is the translation of the other sentence.")


EXACT_SHARE = Exercise(
    id="00.2",
    title="the share that is exact",
    difficulty=1,
    minutes=5,
    statement=(
        "Write `exact_share(outputs, gold)`: the share of sentences that are right in every word, "
        "in order, to the end. Both arguments are lists of sentences, each a list of words."
    ),
    hint="Python compares lists element by element, length included.",
    reference=exact_share,
    wrong=(
        WrongAnswer(
            "share of words",
            _words_right,
            "One of two sentences is right",
            "A sentence with one wrong word can be a wrong translation. Sharing out the credit by "
            "words makes a model look better than its sentences are.",
        ),
        WrongAnswer(
            "compares as far as the shorter one",
            lambda outputs, gold: (
                sum(all(a == b for a, b in zip(o, g)) for o, g in zip(outputs, gold)) / len(gold)
            ),
            "The second sentence stops too early",
            "`zip` stops at the shorter list, so a translation that stops too early, or never "
            "stops, is counted as right.",
        ),
        WrongAnswer(
            "compares sets of words",
            lambda outputs, gold: sum(set(o) == set(g) for o, g in zip(outputs, gold)) / len(gold),
            "The fish did not eat the dog",
            "The words are all there, and the fish eats the dog. A set forgets order and "
            "repetition.",
        ),
        WrongAnswer(
            "all or nothing",
            lambda outputs, gold: float(
                all(list(o) == list(g) for o, g in zip(outputs, gold, strict=True))
            ),
            "One of two sentences is right",
            "This asks whether the whole list is right. The score is a share of the sentences.",
        ),
        WrongAnswer(
            "a count, not a share",
            lambda outputs, gold: sum(
                list(o) == list(g) for o, g in zip(outputs, gold, strict=True)
            ),
            "Both are right",
            "Divide by the number of sentences, or the score depends on how many were asked.",
        ),
        WrongAnswer(
            "found anywhere in the gold",
            lambda outputs, gold: sum(o in gold for o in outputs) / len(gold),
            "Each is the translation of the other sentence",
            "`in` asks whether some sentence has this translation. Go through both lists side by "
            "side, and compare each output with its own gold.",
        ),
    ),
    tests=(_all_right, _one_of_two, _cut_short, _goes_on, _order_counts, _its_own_gold),
    probes=tuple(
        calls(outputs, GOLD) for outputs in (ONE_WRONG, SHORT, LONG, SWAPPED, GOLD, TRADED)
    ),
)


# 00.3 attention against the gold alignment


def alignment_accuracy(weights, links):
    """The share of aligned target words whose largest weight is on one of their gold links.

    weights is (T, S); links is a list of (source index, target index). Target words with no link
    do not count. Returns a number in 0..1.
    """
    best = weights.argmax(dim=-1).tolist()
    aligned = {t for _, t in links}
    return sum((best[t], t) in links for t in aligned) / len(aligned)


def _accuracy(hit=None, count=None, flip=False):
    """An `alignment_accuracy` with one thing wrong."""

    def accuracy(weights, links):
        links = [(t, s) for s, t in links] if flip else list(links)
        best = weights.argmax(dim=-1).tolist()
        aligned = {t for _, t in links}
        hits = hit(weights, links) if hit else sum((best[t], t) in links for t in aligned)
        return hits / (count(weights, links) if count else len(aligned))

    return accuracy


def _mass(weights, links):
    return sum(weights[t, s].item() for s, t in links)


def _one_link(weights, links):
    best = weights.argmax(dim=-1).tolist()
    return sum(best[t] == s for t, s in {t: s for s, t in links}.items())


def _found_links(weights, links):
    best = weights.argmax(dim=0).tolist()
    return sum(best[s] == t for s, t in links)


# the cat sat on the mat <eos>  ->  cat sit at mat on <eos>; `on` has two links, <eos> has none
SITS = torch.full((6, 7), 0.05)
for _t, _s in enumerate((1, 2, 3, 4, 3, 6)):
    SITS[_t, _s] = 0.7
SITS_LINKS = [(1, 0), (2, 1), (3, 2), (5, 3), (3, 4)]
# target words with two, no and three gold source words
TWO = torch.tensor([[0.6, 0.2, 0.1, 0.1], [0.1, 0.2, 0.1, 0.6], [0.1, 0.2, 0.6, 0.1]])
TWO_LINKS = [(0, 0), (1, 0), (0, 2), (1, 2), (2, 2)]


def _four_of_five(answer):
    """the cat sat on the mat: four of five aligned words are right"""
    where = (
        "for the cat sat on the mat, 6 target by 7 source words, where diànzi, mat, looks at `the`"
    )
    note = "Links are (source, target), and weights[t, s] is row target, column source."
    same(answer(SITS, SITS_LINKS), 0.8, where, note=note)


def _any_link(answer):
    """a word with several gold links is right on any, and a word without links does not count"""
    where = f"for weights={short(TWO)} and links={TWO_LINKS}"
    note = "Target words 0 and 2 look at one of their own source words; word 1 has no link."
    same(answer(TWO, TWO_LINKS), 1.0, where, note=note)


ALIGNMENT = Exercise(
    id="00.3",
    title="attention, graded",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `alignment_accuracy(weights, links)` for one map `(T, S)` and the gold links, a "
        "list of `(source index, target index)`. Among the target words that have a link, count "
        "those whose largest weight is on one of their links."
    ),
    hint="First the set of target words that have a link, then `most_attended` for each of those.",
    reference=alignment_accuracy,
    wrong=(
        WrongAnswer(
            "source and target swapped",
            _accuracy(flip=True),
            "Links are (source, target)",
            "A link names the source word first; the map has the target word first. Read each "
            "link as (s, t) and look up weights[t, s].",
        ),
        WrongAnswer(
            "divides by all target words",
            _accuracy(count=lambda weights, links: weights.size(0)),
            "word 1 has no link",
            "A word without a gold link, `<eos>` for one, cannot be right. Counting it caps the "
            "score below 1 for every head.",
        ),
        WrongAnswer(
            "divides by the number of links",
            _accuracy(count=lambda weights, links: len(links)),
            "Target words 0 and 2 look at one of their own source words",
            "A word with two links has one largest weight, so it can hit only one of them. Count "
            "target words, not links.",
        ),
        WrongAnswer(
            "one link per word",
            _accuracy(hit=_one_link),
            "Target words 0 and 2 look at one of their own source words",
            "A dictionary by target word keeps one link of each word and forgets the others. The "
            "word is right on any of its links.",
        ),
        WrongAnswer(
            "weight on the links",
            _accuracy(hit=_mass),
            "Links are (source, target)",
            "This is the share of attention that lies on gold links, a fine score too, but not the "
            "one asked for: a word counts as a whole or not at all.",
        ),
        WrongAnswer(
            "asks the source words",
            _accuracy(hit=_found_links, count=lambda weights, links: len(links)),
            "Links are (source, target)",
            "The largest weight is searched down a column. Each target word makes one choice, "
            "along its row.",
        ),
    ),
    tests=(_four_of_five, _any_link),
    probes=(calls(SITS, SITS_LINKS), calls(TWO, TWO_LINKS)),
)

EXERCISES = (MOST_ATTENDED, EXACT_SHARE, ALIGNMENT)
