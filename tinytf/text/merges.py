"""Byte-pair merges: learn them from counted words, apply them to new ones.

Source: Sennrich et al. 2016, section 3.2 and its algorithm 1.
"""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

__all__ = [
    "Pair",
    "apply_merges",
    "apply_merges_by_heap",
    "apply_merges_by_rank",
    "count_pairs",
    "learn_merges",
    "learn_merges_by_queue",
    "merge_pair",
]

Pair = tuple[int, int]


def count_pairs(words: Mapping[Sequence[int], int]) -> Counter[Pair]:
    """Count pairs of neighbouring ids, each as often as its word occurs: a Counter."""
    pairs = Counter()
    for word, times in words.items():
        for pair in pairwise(word):
            pairs[pair] += times
    return pairs


def merge_pair(ids: Sequence[int], pair: Pair, new_id: int) -> list[int]:
    """Replace the pair by `new_id` wherever it occurs, from left to right: a a a becomes aa a."""
    merged, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and ids[i] == pair[0] and ids[i + 1] == pair[1]:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


def apply_merges(ids: Sequence[int], merges: Mapping[Pair, int]) -> list[int]:
    """Merge as in training: of all pairs that have a merge, always the one learned first.

    `merges` maps each pair to its new id, in any order; a smaller new id was learned earlier.
    `ids` may be bytes, a tuple or a list and is not changed; a new list is returned.
    """
    ids = list(ids)
    while known := [pair for pair in pairwise(ids) if pair in merges]:
        first = min(known, key=merges.__getitem__)
        ids = merge_pair(ids, first, merges[first])
    return ids


def apply_merges_by_rank(ids: Sequence[int], merges: Mapping[Pair, int]) -> list[int]:
    """Do what `apply_merges` does, for a short piece: each pair is looked up once, when it forms.

    n² steps, but small ones: up to some 60 ids this is the quicker way.
    """
    ids, never = list(ids), math.inf  # later than every merge
    ranks = [merges.get(pair, never) for pair in pairwise(ids)]
    while ranks and (new_id := min(ranks)) < never:
        i = ranks.index(new_id)  # the first of them
        ids[i : i + 2] = [new_id]
        del ranks[i]
        if i > 0:
            ranks[i - 1] = merges.get((ids[i - 1], new_id), never)
        if i < len(ranks):
            ranks[i] = merges.get((new_id, ids[i + 1]), never)
    return ids


def apply_merges_by_heap(ids: Sequence[int], merges: Mapping[Pair, int]) -> list[int]:
    """Do what `apply_merges` does, in n log n steps: a linked list, and a heap of its pairs.

    This is for long pieces: looking at every pair for every merge would take minutes for a page of
    text without a space.
    """
    ids = list(ids)
    after, before = list(range(1, len(ids) + 1)), list(range(-1, len(ids) - 1))
    found = [(merges[p], i) for i, p in enumerate(pairwise(ids)) if p in merges]
    heapq.heapify(found)
    while found:
        new_id, i = heapq.heappop(found)
        j = after[i]
        if ids[i] < 0 or j == len(ids) or merges.get((ids[i], ids[j])) != new_id:
            continue  # one of the two has been merged meanwhile
        ids[i], ids[j], after[i] = new_id, -1, after[j]
        if after[i] < len(ids):
            before[after[i]] = i
        for left in (before[i], i):
            if left >= 0 and after[left] < len(ids):
                pair = (ids[left], ids[after[left]])
                if pair in merges:
                    heapq.heappush(found, (merges[pair], left))
    return [i for i in ids if i >= 0]


def learn_merges(words: Mapping[Sequence[int], int], num_merges: int) -> list[Pair]:
    """Learn which pairs to merge: always the most frequent; in a tie, that with the smaller ids.

    `words` maps a word's ids to the number of times it occurs. The i-th merge makes the id
    256 + i. Stops early once no pair is left.
    """
    merges = []
    for new_id in range(256, 256 + num_merges):
        pairs = count_pairs(words)
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        words = {tuple(merge_pair(word, best, new_id)): times for word, times in words.items()}
    return merges


def learn_merges_by_queue(
    words: Mapping[Sequence[int], int], num_merges: int, bar: Any = None
) -> list[Pair]:
    """Do what `learn_merges` does, but count again only the words that hold the merged pair.

    The pairs wait in a queue, the most frequent first. `bar` is a tqdm bar to move.
    """
    merges: list[Pair] = []
    texts, times = [list(word) for word in words], list(words.values())
    counts, where = count_pairs(words), defaultdict(set)
    for index, word in enumerate(texts):
        for pair in pairwise(word):
            where[pair].add(index)
    queue = [(-count, pair) for pair, count in counts.items()]
    heapq.heapify(queue)
    while queue and len(merges) < num_merges:
        claimed, pair = heapq.heappop(queue)
        count = counts[pair]
        if count != -claimed:  # it has been merged away in part since it was queued
            if count:
                heapq.heappush(queue, (-count, pair))
            continue
        new_id = 256 + len(merges)
        merges.append(pair)
        change: defaultdict[Pair, int] = defaultdict(int)
        for index in where.pop(pair):
            old = texts[index]
            new = texts[index] = merge_pair(old, pair, new_id)
            for gone in pairwise(old):
                change[gone] -= times[index]
            for come in pairwise(new):
                change[come] += times[index]
                where[come].add(index)
        for changed, by in change.items():
            counts[changed] += by
            if by > 0:
                heapq.heappush(queue, (-counts[changed], changed))
        if bar is not None:
            bar.update(1)
    return merges
