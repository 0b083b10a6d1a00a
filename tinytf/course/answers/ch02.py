"""Answers to chapter 02: references and mistakes."""

import math
from itertools import pairwise

import torch

from tinytf.course.grading import Answers, WrongAnswer

# 02.1 merge a pair


def my_merge_pair(ids, pair, new_id):
    """The ids with new_id wherever the pair stands, from left to right.

    ids is a list of ints, pair a tuple of two; the result is a new list.
    """
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == tuple(pair):
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


def _first_only(ids, pair, new_id):
    for i in range(len(ids) - 1):
        if tuple(ids[i : i + 2]) == tuple(pair):
            return [*ids[:i], new_id, *ids[i + 2 :]]
    return ids


def _overlapping(ids, pair, new_id):
    merged = []
    for i, one in enumerate(ids):
        if tuple(ids[i : i + 2]) == tuple(pair):
            merged.append(new_id)
        elif tuple(ids[max(0, i - 1) : i + 1]) != tuple(pair):
            merged.append(one)
    return merged


def _from_the_right(ids, pair, new_id):
    return my_merge_pair(ids[::-1], tuple(pair)[::-1], new_id)[::-1]


def _loses_the_last(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids) - 1:
        found = tuple(ids[i : i + 2]) == tuple(pair)
        merged.append(new_id if found else ids[i])
        i += 2 if found else 1
    return merged


def _second_stays(ids, pair, new_id):
    return [new_id if tuple(ids[i : i + 2]) == tuple(pair) else one for i, one in enumerate(ids)]


def _either_order(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        found = i + 1 < len(ids) and set(ids[i : i + 2]) == set(pair)
        merged.append(new_id if found else ids[i])
        i += 2 if found else 1
    return merged


def _as_text(ids, pair, new_id):
    text = " ".join(map(str, ids)).replace(" ".join(map(str, pair)), str(new_id))
    return [int(part) for part in text.split()]


MERGE = Answers(
    reference=my_merge_pair,
    wrong=(
        WrongAnswer(
            "only the first",
            _first_only,
            "The pair stands there twice",
            "The loop returns after its first find. Training counts a pair wherever it stands, so "
            "it has to be merged wherever it stands.",
        ),
        WrongAnswer(
            "the second id stays",
            _second_stays,
            "for ids=[5, 1, 2]",
            "The new id stands for both: move on by two after a merge, or the second one is "
            "written once more.",
        ),
        WrongAnswer(
            "one id in two merges",
            _overlapping,
            "An id is used up",
            "In `a a a` the middle a can't be the end of one merge and the start of the next: "
            "after a merge move on by two.",
        ),
        WrongAnswer(
            "from right to left",
            _from_the_right,
            "An id is used up",
            "`a a a` gives `aa a`, not `a aa`. Both are shorter, but encoder and trainer have to "
            "agree, and everybody takes the left one.",
        ),
        WrongAnswer(
            "the last id is lost",
            _loses_the_last,
            "for ids=[2, 1, 3]",
            "A loop that stops one short of the end never copies the last id. Text would lose its "
            "ending.",
        ),
        WrongAnswer(
            "in either order",
            _either_order,
            "Order matters",
            "A pair is ordered: `th` is not `ht`.",
        ),
        WrongAnswer(
            "ids as text",
            _as_text,
            "11 is not 1",
            "Written in digits, the end of one id can look like another. Compare numbers.",
        ),
    ),
)


# 02.2 encode by rank


def my_encode(ids, merges):
    """The ids after all merges, in the order in which they were learned.

    ids is a list of ints; merges is a dict from pair to new id, and the new ids rise in the order
    of learning.
    """
    for pair, new_id in sorted(merges.items(), key=lambda item: item[1]):
        ids = my_merge_pair(ids, pair, new_id)
    return ids


def _as_listed(ids, merges):
    for pair, new_id in merges.items():
        ids = my_merge_pair(ids, pair, new_id)
    return ids


def _by_pair(ids, merges):
    for pair, new_id in sorted(merges.items()):
        ids = my_merge_pair(ids, pair, new_id)
    return ids


def _reversed(ids, merges):
    for pair, new_id in sorted(merges.items(), key=lambda item: -item[1]):
        ids = my_merge_pair(ids, pair, new_id)
    return ids


def _leftmost(ids, merges):
    ids = list(ids)
    i = 0
    while i < len(ids) - 1:
        if tuple(ids[i : i + 2]) in merges:
            ids[i : i + 2] = [merges[tuple(ids[i : i + 2])]]
            i = 0
        else:
            i += 1
    return ids


def _greedy_longest(ids, merges):
    parts = {}
    for (a, b), new in sorted(merges.items(), key=lambda item: item[1]):
        parts[new] = parts.get(a, (a,)) + parts.get(b, (b,))
    out, i = [], 0
    while i < len(ids):
        fits = [(len(p), new) for new, p in parts.items() if tuple(ids[i : i + len(p)]) == p]
        size, new = max(fits, default=(1, ids[i]))
        out.append(new)
        i += size
    return out


def _latest_first(ids, merges):
    while found := [pair for pair in pairwise(ids) if pair in merges]:
        pair = max(found, key=merges.get)
        ids = my_merge_pair(ids, pair, merges[pair])
    return ids


def _one_pass(ids, merges):
    out, i = [], 0
    while i < len(ids):
        pair = tuple(ids[i : i + 2])
        out.append(merges.get(pair, ids[i]))
        i += 2 if pair in merges else 1
    return out


ENCODE = Answers(
    reference=my_encode,
    wrong=(
        WrongAnswer(
            "leftmost first",
            _leftmost,
            "10 was learned before 11",
            "You take the first pair that can be merged, reading from the left. Training took the "
            "most frequent one first, so a word would be cut otherwise than the model saw it.",
        ),
        WrongAnswer(
            "sorted by the pairs",
            _by_pair,
            "10 was learned before 11",
            "`sorted(merges.items())` sorts by the pairs' ids. What tells the order of learning is "
            "the new id: `key=lambda item: item[1]`.",
        ),
        WrongAnswer(
            "from the last merge to the first",
            _reversed,
            "10 is what (1, 2) became",
            "Your order is that of learning, turned round. A late merge needs what the early ones "
            "made.",
        ),
        WrongAnswer(
            "longest match",
            _greedy_longest,
            "10 was learned before 11",
            "Taking the longest token that fits is WordPiece's way. BPE replays its merges, "
            "and the two do not agree.",
        ),
        WrongAnswer(
            "in the order of the dict",
            _as_listed,
            "The ids tell the order",
            "It works as long as the dict happens to be in order. A file read from disk, or a "
            "copy, need not be.",
        ),
        WrongAnswer(
            "latest merge first",
            _latest_first,
            "10 was learned before 11",
            "`max` where `min` belongs: the merge with the smallest new id was learned first.",
        ),
        WrongAnswer(
            "one pass",
            _one_pass,
            "10 is what (1, 2) became",
            "After a merge there are new pairs, with the new id in them: go on until none is left.",
        ),
    ),
)


# 02.3 a scaled embedding


def my_scaled_embedding(ids, noise):
    """The table, and the vectors of ids, scaled as in the paper.

    ids is (T,), noise (V, C) with numbers of variance 1. The table (V, C) is noise with standard
    deviation C^-0.5; the vectors (T, C) are its rows times √C.
    """
    width = noise.size(-1)
    table = noise / math.sqrt(width)
    return table, table[ids] * math.sqrt(width)


def _scaled(table_by, vectors_by):
    """An answer that scales the table and the vectors like this."""

    def scaled(ids, noise):
        table = noise * table_by(noise)
        return table, table[ids] * vectors_by(noise)

    return scaled


def _table_by_root(noise):
    return noise.size(-1) ** -0.5


EMBEDDING = Answers(
    reference=my_scaled_embedding,
    wrong=(
        WrongAnswer(
            "nn.Embedding as it comes",
            _scaled(lambda noise: 1.0, lambda noise: noise.size(-1) ** 0.5),
            "√16 is 4",
            "A table of variance 1, times √C: 22.6 times as loud at width 512. PyTorch's default "
            "and the paper's factor do not go together.",
        ),
        WrongAnswer(
            "no factor",
            _scaled(_table_by_root, lambda noise: 1.0),
            "C^-0.5 times √C is 1",
            "The table is right, but the factor √C is missing: the vectors are too quiet beside "
            "the positions.",
        ),
        WrongAnswer(
            "the table divided by the width",
            _scaled(lambda noise: 1 / noise.size(-1), lambda noise: noise.size(-1) ** 0.5),
            "√16 is 4",
            "Divided by C, the standard deviation is C^-1. It is to be C^-0.5: take the root.",
        ),
        WrongAnswer(
            "the noise itself",
            _scaled(lambda noise: 1.0, lambda noise: 1.0),
            "√16 is 4",
            "The vectors are right, as the two factors cancel; but the table is what is trained "
            "and what the optimizer's steps move, and it has to be the small one.",
        ),
        WrongAnswer(
            "scaled by the vocabulary",
            _scaled(_table_by_root, lambda noise: noise.size(0) ** 0.5),
            "C^-0.5 times √C is 1",
            "The factor is the root of the width, `noise.size(-1)`, not of the number of rows.",
        ),
        WrongAnswer(
            "gradient cut off",
            lambda ids, noise: my_scaled_embedding(ids, noise.detach()),
            "carry no gradient",
            "The table went through `detach`, `tolist` or `.data`. It would never be trained.",
        ),
        WrongAnswer(
            "columns instead of rows",
            lambda ids, noise: (noise * _table_by_root(noise), noise[:, ids]),
            "the vectors have shape (3, 3)",
            "A token's vector is a row of the table.",
        ),
    ),
)


# 02.4 nearest words


def my_nearest(vectors, query, k):
    """The ids of the k rows with the largest cosine to row `query`, best first, without itself.

    vectors is (V, C), query an int, the result k ids.
    """
    unit = vectors / vectors.norm(dim=-1, keepdim=True)
    cosines = unit @ unit[query]
    cosines[query] = -2.0  # below every cosine
    return cosines.topk(k).indices


def _variant(similarity, largest=True, itself=False):
    def nearest(vectors, query, k):
        scores = similarity(vectors, vectors[query])
        if not itself:
            scores[query] = -torch.inf if largest else torch.inf
        return scores.topk(k, largest=largest).indices

    return nearest


def _zero_for_itself(vectors, query, k):
    cosines = _cosine(vectors, vectors[query])
    cosines[query] = 0.0
    return cosines.topk(k).indices


def _row_dropped(vectors, query, k):
    others = torch.cat([vectors[:query], vectors[query + 1 :]])
    return _cosine(others, vectors[query]).topk(k).indices


def _norm_of_columns(vectors, query, k):
    unit = vectors / vectors.norm(dim=0, keepdim=True)
    cosines = unit @ unit[query]
    cosines[query] = -2.0
    return cosines.topk(k).indices


def _cosine(vectors, q):
    return vectors @ q / (vectors.norm(dim=-1) * q.norm())


NEAREST = Answers(
    reference=my_nearest,
    wrong=(
        WrongAnswer(
            "dot product",
            _variant(lambda v, q: v @ q),
            "Row 1 is long",
            "Without dividing by the norms long vectors win, and frequent words have long vectors.",
        ),
        WrongAnswer(
            "includes the query",
            _variant(_cosine, itself=True),
            "that is the query itself",
            "Every word is nearest to itself; leave its row out.",
        ),
        WrongAnswer(
            "farthest first",
            _variant(_cosine, largest=False),
            "Row 4 is opposite",
            "A cosine is a similarity: large is near. A distance would be the other way round.",
        ),
        WrongAnswer(
            "distance in space",
            _variant(lambda v, q: -(v - q).norm(dim=-1)),
            "the angle counts",
            "Euclidean distance mixes in the lengths. Among vectors of length 1 the two agree.",
        ),
        WrongAnswer(
            "norms of the columns",
            _norm_of_columns,
            "the angle counts",
            "`dim=0` divides each column by its norm. A word is a row: `dim=-1`, and "
            "`keepdim=True` so that the shapes meet.",
        ),
        WrongAnswer(
            "zero for itself",
            _zero_for_itself,
            "Row 4 is opposite",
            "A cosine can be negative: 0 puts the query before every word that points away. "
            "Take a number below -1.",
        ),
        WrongAnswer(
            "the row is dropped, and the ids move up",
            _row_dropped,
            "the angle counts",
            "Without the query's row the ids after it are one too small. Keep the row, and give "
            "it a cosine that can't win.",
        ),
    ),
)

ANSWERS = {
    "02.1": MERGE,
    "02.2": ENCODE,
    "02.3": EMBEDDING,
    "02.4": NEAREST,
}
