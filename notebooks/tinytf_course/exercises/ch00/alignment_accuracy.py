"""00.3 attention, graded (★★☆, 10 minutes)

Write `alignment_accuracy(weights, links)` for one map `(T, S)` and the gold links, a list of
`(source index, target index)`. Return the share of target words whose largest weight is on one of
their links; target words without a link don't count.

Hint: First the set of target words that have a link, then `most_attended` for each of those.
"""

import torch

from tinytf_course.expect import agrees, numbers, same, short


def alignment_accuracy(weights, links):
    """The share of aligned target words whose largest weight is on one of their gold links.

    weights is (T, S); links is a list of (source index, target index). Target words with no link
    do not count. Returns a number in 0..1.
    """
    best = weights.argmax(dim=-1).tolist()
    aligned = {t for _, t in links}
    return sum((best[t], t) in links for t in aligned) / len(aligned)


SITS = torch.full((6, 7), 0.05)
SITS[range(6), [1, 2, 3, 4, 3, 6]] = 0.7
SITS_LINKS = [(1, 0), (2, 1), (3, 2), (5, 3), (3, 4)]
TWO = torch.tensor([[0.6, 0.2, 0.1, 0.1], [0.1, 0.2, 0.1, 0.6], [0.1, 0.2, 0.6, 0.1]])
TWO_LINKS = [(0, 0), (1, 0), (0, 2), (1, 2), (2, 2)]


def test_four_of_five(answer):
    """the cat sat on the mat: four of five aligned words are right"""
    where = "for the cat sat on the mat, 6 target by 7 source words, diànzi (mat) looks at `the`"
    note = "Links are (source, target), and weights[t, s] is row target, column source."
    same(answer(SITS, SITS_LINKS), 0.8, where, note=note)


def test_any_link(answer):
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


def test_any_links(answer):
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


MISTAKES = r"""
source and target swapped
    for _, t in links => for t, _ in links
    (best[t], t) in links => (t, best[t]) in links
    says: Links are (source, target)
    A link names the source word first; the map has the target word first. Read each link as
    (s, t) and look up weights[t, s].
divides by all target words
    / len(aligned) => / len(weights)
    says: word 1 has no link
    A word without a gold link, `<eos>` for one, cannot be right. Counting it keeps the score of
    every head below 1.
divides by the number of links
    / len(aligned) => / len(links)
    says: Target words 0 and 2 look at one of their own source words
    A word with two links has one largest weight, so it can hit only one of them. Count target
    words, not links.
one link per word
    {t for _, t in links} => {t: s for s, t in links}
    (best[t], t) in links => best[t] == aligned[t]
    says: Target words 0 and 2 look at one of their own source words
    A dictionary by target word keeps one link of each word and forgets the others. The word is
    right on any of its links.
weight on the links
    sum((best[t], t) in links for t in aligned) => sum(weights[t, s].item() for s, t in links)
    says: Links are (source, target)
    This is the share of attention that lies on gold links, a fine score too, but not the one
    asked for: a word counts as a whole or not at all.
asks the source words
    dim=-1 => dim=0
    (best[t], t) in links for t in aligned => best[s] == t for s, t in links
    / len(aligned) => / len(links)
    says: Links are (source, target)
    The largest weight is searched for down a column. Each target word makes one choice, along
    its row.
the largest weight of the whole map
    (best[t], t) in links => (best[t], t) in links and weights[t].max() == weights.max()
    says: you get 0, expected 0.8333
    Each target word has a row, and its row has a largest weight.
"""

HARMLESS = r"""
best = … => best = weights.argmax(dim=-1)
    a tensor of one number is equal to it
best = … => …argmax(dim=1).tolist()
    a map has two axes
"""
