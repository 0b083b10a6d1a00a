"""02.3 where attention looks (★☆☆, 8 minutes)

Write `my_alignment_shares(weights, gold)`, which grades one attention map `(T, S)` by a list of
gold links `(source index, target index)`. Of the target words that have a link, which share has its
largest weight *on* a linked source word, else *beside* one (one position to the left or right of
any), or else *elsewhere*? Return the tuple `(on, beside, elsewhere)`.

Hint: Collect the linked source words of each target word first, then take an argmax for each.
"""

import torch

from tinytf_course.expect import numbers, same, short


def my_alignment_shares(weights, gold):
    """How often the largest weight is on a gold word, beside one, or elsewhere.

    weights is (T, S), gold a list of links (source index, target index). A target word with links
    counts once: "on" if its largest weight is on a linked source word, else "beside" if it is on
    a neighbour of one, else "elsewhere". Returns the three shares (on, beside, elsewhere).
    """
    linked = {}
    for source, target in gold:
        linked.setdefault(target, []).append(source)
    on = beside = 0
    for target, sources in linked.items():
        best = int(weights[target].argmax())
        distance = min(abs(best - source) for source in sources)
        on += distance == 0
        beside += distance == 1
    count = len(linked)
    return on / count, beside / count, (count - on - beside) / count


def _shares(answer, weights, gold, expected, note=""):
    shown = short(weights) if weights.numel() <= 12 else f"a map of {len(weights)} target words"
    same(answer(weights, gold), expected, f"for weights={shown} and gold={gold}", 1e-6, note)


def _row(*weights):
    return torch.tensor([weights])


def test_shares_one_word(answer):
    """one word: on its link, one place beside it on either side, or two away"""
    gold = [(2, 0)]
    _shares(answer, _row(0.1, 0.1, 0.5, 0.2, 0.1), gold, [1, 0, 0])
    _shares(answer, _row(0.1, 0.5, 0.1, 0.2, 0.1), gold, [0, 1, 0], "1 is beside 2.")
    _shares(answer, _row(0.1, 0.1, 0.2, 0.5, 0.1), gold, [0, 1, 0], "3 is beside 2.")
    _shares(answer, _row(0.5, 0.1, 0.2, 0.1, 0.1), gold, [0, 0, 1], "0 is two places from 2.")
    _shares(answer, _row(0.1, 0.1, 0.2, 0.1, 0.5), gold, [0, 0, 1], "4 is two places from 2.")


def test_shares_edges(answer):
    """there is nothing beside the ends: the last word is not next to the first"""
    _shares(answer, _row(0.1, 0.2, 0.7), [(0, 0)], [0, 0, 1], "2 is not beside 0.")
    _shares(answer, _row(0.7, 0.2, 0.1), [(2, 0)], [0, 0, 1], "0 is not beside 2.")


def test_shares_direction(answer):
    """a row is a target word, and a link is (source, target)"""
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.1, 0.2, 0.7], [0.1, 0.7, 0.2]])
    note = "Row t belongs to target word t; links are (source, target)."
    _shares(answer, weights, [(2, 0), (0, 1)], [0.5, 0, 0.5], note)
    weights = torch.tensor([[0.1, 0.1, 0.8, 0], [0.8, 0.1, 0, 0.1], [0.1, 0.2, 0.1, 0.6]])
    _shares(answer, weights, [(2, 0), (0, 1), (1, 2)], [2 / 3, 0, 1 / 3], note)


def test_shares_neighbours(answer):
    """of several linked words any is a hit, and a hit is nothing else"""
    note = "3 is linked, and a hit is not beside the other link as well."
    _shares(answer, _row(0.1, 0.1, 0.2, 0.6), [(2, 0), (3, 0)], [1, 0, 0], note)
    _shares(answer, _row(0.1, 0.1, 0.6, 0.2), [(0, 0), (3, 0)], [0, 1, 0], "2 is beside 3.")
    _shares(answer, _row(0.1, 0.1, 0.6, 0.2), [(3, 0), (0, 0)], [0, 1, 0], "2 is beside 3.")


def test_shares_counted(answer):
    """each linked target word counts once, a word without a link not at all"""
    weights = torch.tensor([[0.9, 0.1], [0.8, 0.2]])
    _shares(answer, weights, [(0, 1)], [1, 0, 0], "Target word 0 has no link: leave it out.")
    _shares(answer, weights, [(0, 0), (1, 0), (1, 1)], [0.5, 0.5, 0],
            "Two target words, though there are three links.")  # fmt: skip


def test_shares_mass(answer):
    """the largest weight decides, not how much lies there"""
    _shares(answer, _row(0.3, 0.25, 0.25, 0.2), [(0, 0)], [1, 0, 0],
            "0.3 is little, and the largest.")  # fmt: skip
    close = torch.tensor([[0.4, 0.4 + 1e-10, 0.2]], dtype=torch.float64)
    _shares(answer, close, [(1, 0)], [1, 0, 0], "The second weight is larger by 1e-10.")


def test_shares_many(answer):
    """it agrees with a count word by word"""
    for seed, (T, S) in enumerate([(5, 7), (9, 6), (12, 12)]):
        weights = numbers(T, S, seed=seed, dtype=torch.float64).softmax(dim=-1)
        pairs = [(source, target) for source in range(S) for target in range(T)]
        gold = [(s, t) for s, t in pairs if (3 * s + 5 * t + seed) % 7 == 0]
        near = []
        for t in {target for _, target in gold}:
            best = max(range(S), key=weights[t].tolist().__getitem__)
            near.append(min(abs(best - s) for s, target in gold if target == t))
        on, beside = near.count(0) / len(near), near.count(1) / len(near)
        _shares(answer, weights, gold, [on, beside, 1 - on - beside])


MISTAKES = r"""
counts links, not words
    linked.setdefault(target, []).append(source) => linked[source, target] = [source]
    for target, sources => for (_, target), sources
    says: Two target words, though there are three links
    A word with two links would count twice, and could never be right on both: collect the links
    of each target word.
counts unlinked words
    count = len(linked) => count = len(weights)
    says: Target word 0 has no link
    A target word with no gold link can be neither right nor wrong: leave it out.
a hit beside another link counted twice
    beside += distance == 1 => beside += any(abs(best - source) == 1 for source in sources)
    says: a hit is not beside the other link
    Where two linked words are neighbours, the largest weight on one is beside the other too.
    Count as `beside` only those that are not `on`.
only the first link
    for source in sources) => for source in sources[:1])
    says: 3 is linked
    A target word may come from several source words; any of them is a hit.
beside on the right only
    distance == 1 => distance == 1 and best - 1 in sources
    says: 1 is beside 2
    A word has a neighbour on its left as well.
beside on the left only
    distance == 1 => distance == 1 and best + 1 in sources
    says: 3 is beside 2
    A word has a neighbour on its right as well.
two places count as beside
    distance == 1 => distance in (1, 2)
    says: 0 is two places from 2
    Beside is one place to the left or right, no more.
round the corner
    distance == 1 => distance in (1, weights.size(1) - 1)
    says: 2 is not beside 0
    A sentence is no ring: `(best - source) % S` makes its ends neighbours.
links read backwards
    for source, target in gold => for target, source in gold
    says: links are (source, target)
    A link is (source index, target index), the order in which one reads and writes.
map read by columns
    weights[target] => weights[:, target]
    says: Row t belongs to target word t
    A row holds the weights of one target word and sums to 1; a column does not.
averages the weight
    int(weights[target].argmax()) => torch.arange(weights.size(1))
    min(abs(best - source) for source in sources) =>
        torch.stack([abs(best - source) for source in sources]).amin(dim=0)
    on += distance == 0 => on += weights[target, distance == 0].sum().item()
    beside += distance == 1 => beside += weights[target, distance == 1].sum().item()
    says: 0.3 is little, and the largest
    That is the mass on gold, a fine measure, but another one: a map can have its largest weight
    on gold and most of its mass elsewhere.
beside includes on
    beside / count, ( => (on + beside) / count, (
    says: 3 is linked
    “Within one” holds both cases. Here they are apart.
"""

HARMLESS = r"""
best = … => best = weights[target].argmax()
    a tensor of one number counts as it
distance = … => …abs(source - best)…
    a distance has no sign
"""
