"""Chapter 00: read an attention map, and grade translations and attention."""

import torch

from tinytf_course.expect import agrees, expect, numbers, same, short, tensor
from tinytf_course.grading import Exercise
from tinytf_course.phrasebook import pinyin

# 00.1 where each word looks


def most_attended(weights):
    """For each target word, the index of the source word with the largest weight.

    weights is (..., T, S): a row per target word, a column per source word. Returns (..., T).
    """
    raise NotImplementedError


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


def _any_map(answer):
    """one word, one source word, flat rows and rows that differ by a hair"""
    agrees(answer, torch.tensor([0]), torch.tensor([[1.0]]))
    agrees(answer, torch.tensor([2]), torch.tensor([[0.3, 0.3, 0.4]]))
    hair = torch.tensor([[0.5 - 1e-12, 0.5 + 1e-12]], dtype=torch.float64)
    agrees(answer, torch.tensor([1]), hair, where="for a row that differs by 2e-12, in float64")
    many = numbers(2, 3, 4, 5, seed=1).softmax(-1)
    expected = [
        [[max(range(5), key=row.__getitem__) for row in one] for one in heads]
        for heads in many.tolist()
    ]
    agrees(answer, torch.tensor(expected), many)


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
    function=most_attended,
    tests=(_one_each, _are_indexes, _largest, _ends, _each_head, _any_map),
)


# 00.2 the share that is exact


def exact_share(outputs, gold):
    """The share of sentences translated exactly: every word right, in order, and no word more.

    outputs and gold are lists of sentences, each a list of words. Returns a share in 0..1.
    """
    raise NotImplementedError


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


def _words_are_words(answer):
    """words are compared one by one, not as one text"""
    gold = [["ab", "c"], ["d"], ["e", "e"], []]
    outputs = [["a", "bc"], ["d"], ["e"], []]
    same(answer(outputs, gold), 0.5, f"for outputs={outputs}, gold={gold}")
    same(answer(gold[:1], gold[:1]), 1.0, "for one sentence that is right")
    note = "A capital makes it another word."
    same(answer([["He"]], [["he"]]), 0.0, "for outputs=[['He']], gold=[['he']]", note=note)


def _said_twice(answer):
    """sentences count by their place, also where one is said twice"""
    cases = (
        ([["a"], ["a"]], [["b"], ["a"]], 1 / 2),
        ([["a"], ["a"], ["b"]], [["a"], ["a"], ["c"]], 2 / 3),
    )
    for outputs, gold, expected in cases:
        same(answer(outputs, gold), expected, f"for outputs={outputs}, gold={gold}")


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
    function=exact_share,
    tests=(
        _all_right,
        _one_of_two,
        _cut_short,
        _goes_on,
        _order_counts,
        _its_own_gold,
        _words_are_words,
        _said_twice,
    ),
)


# 00.3 attention, graded


def alignment_accuracy(weights, links):
    """The share of aligned target words whose largest weight is on one of their gold links.

    weights is (T, S); links is a list of (source index, target index). Target words with no link
    do not count. Returns a number in 0..1.
    """
    raise NotImplementedError


# the cat sat on the mat <eos>  ->  cat sit at mat on <eos>; `on` has two links, <eos> has none
SITS = torch.full((6, 7), 0.05)
SITS[range(6), [1, 2, 3, 4, 3, 6]] = 0.7
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


def _graded(weights, links):
    """The same by loops."""
    right = []
    for t in {target for _, target in links}:
        row = weights[t].tolist()
        right.append((row.index(max(row)), t) in links)
    return sum(right) / len(right)


def _any_links(answer):
    """rows without a large weight, one word, words that share a source word"""
    agrees(answer, 1.0, torch.tensor([[0.4, 0.3, 0.3]]), [(0, 0)])
    agrees(answer, 0.0, torch.tensor([[0.4, 0.3, 0.3]]), [(1, 0), (2, 0)])
    weights = numbers(7, 4, seed=3).softmax(-1)
    best = weights.argmax(-1).tolist()
    links = [(s if t != 4 else (s + 1) % 4, t) for t, s in enumerate(best) if t != 2]
    agrees(answer, 5 / 6, weights, links)
    agrees(answer, _graded(weights, links[2:5]), weights, links[2:5])
    links += [((s + 1) % 4, s) for s in range(4)]
    agrees(answer, _graded(weights, links), weights, links)
    square = torch.tensor([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.7, 0.1, 0.2]])
    agrees(answer, 1 / 3, square, [(0, 0), (1, 1), (2, 2)], note="Each row has one choice.")
    hair = torch.tensor([[0.5 - 1e-12, 0.5 + 1e-12]], dtype=torch.float64)
    agrees(answer, 1.0, hair, [(1, 0)], where="for a row that differs by 2e-12, in float64")


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
    function=alignment_accuracy,
    tests=(_four_of_five, _any_link, _any_links),
)


EXERCISES = (MOST_ATTENDED, EXACT_SHARE, ALIGNMENT)
