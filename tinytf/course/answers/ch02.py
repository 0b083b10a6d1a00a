"""Answers to chapter 02: references and mistakes."""

from itertools import pairwise

import torch
import torch.nn.functional as F

from tinytf.course.grading import Answers, WrongAnswer
from tinytf.text.merges import merge_pair

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


def _not_at_the_end(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        found = i < len(ids) - 2 and tuple(ids[i : i + 2]) == tuple(pair)
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


def _over_and_over(ids, pair, new_id):
    ids, i = list(ids), 0
    while i + 1 < len(ids):
        if tuple(ids[i : i + 2]) == tuple(pair):
            ids[i : i + 2] = [new_id]
            i = 0
        else:
            i += 1
    return ids


def _in_the_list_given(ids, pair, new_id):
    i = 0
    while i + 1 < len(ids):
        if tuple(ids[i : i + 2]) == tuple(pair):
            ids[i : i + 2] = [new_id]
        i += 1
    return ids


def _as_text(ids, pair, new_id):
    text = " ".join(map(str, ids)).replace(" ".join(map(str, pair)), str(new_id))
    return [int(part) for part in text.split()]


def _same_objects(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        found = i + 1 < len(ids) and ids[i] is pair[0] and ids[i + 1] is pair[1]
        merged.append(new_id if found else ids[i])
        i += 2 if found else 1
    return merged


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
            "for ids=[1, 2]",
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
            "the pair at the end is missed",
            _not_at_the_end,
            "for ids=[1, 2]",
            "A pair may begin at `len(ids) - 2`, the last place but one: `i + 1 < len(ids)`.",
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
        WrongAnswer(
            "merged until nothing is left to merge",
            _over_and_over,
            "not in the result",
            "What this merge makes may look like half of the pair again. One pass over the ids "
            "given is one merge.",
        ),
        WrongAnswer(
            "merges in the list that it was given",
            _in_the_list_given,
            "your code changes the caller's `ids`",
            "The result is right, but the caller's own list is shorter afterwards. Training counts "
            "on the old one: build a new list.",
        ),
        WrongAnswer(
            "`is` for `==`",
            _same_objects,
            "need not be one object",
            "`is` asks whether two names stand for one object. Python keeps one object for each "
            "small int, up to 256, so it seems to work until the ids grow. `==` compares numbers.",
        ),
    ),
    equivalent={
        "… => if tuple(ids[i:i + 2]) == pair:": "a pair is a tuple already",
    },
)


# 02.2 repair the encoder


def my_encode(ids, merges):
    """The ids after all merges, in the order in which they were learned.

    ids is a list of ints; merges is a dict from pair to new id, and the new ids rise in the order
    of learning.
    """
    while known := [pair for pair in pairwise(ids) if pair in merges]:
        first = min(known, key=merges.get)
        ids = merge_pair(ids, first, merges[first])
    return ids


def _as_listed(ids, merges):
    for pair, new_id in merges.items():
        ids = merge_pair(ids, pair, new_id)
    return ids


def _by_pair(ids, merges):
    for pair, new_id in sorted(merges.items()):
        ids = merge_pair(ids, pair, new_id)
    return ids


def _reversed(ids, merges):
    for pair, new_id in sorted(merges.items(), key=lambda item: -item[1]):
        ids = merge_pair(ids, pair, new_id)
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
        ids = merge_pair(ids, pair, merges[pair])
    return ids


def _one_pass(ids, merges):
    out, i = [], 0
    while i < len(ids):
        pair = tuple(ids[i : i + 2])
        out.append(merges.get(pair, ids[i]))
        i += 2 if pair in merges else 1
    return out


def _each_once(ids, merges):
    ids = list(ids)
    for pair, new_id in sorted(merges.items(), key=lambda item: item[1]):
        ids = _first_only(ids, pair, new_id)
    return ids


def _rank_from_the_right(ids, merges):
    ids = list(ids)
    for pair, new_id in sorted(merges.items(), key=lambda item: item[1]):
        ids = _from_the_right(ids, pair, new_id)
    return ids


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
        WrongAnswer(
            "each merge once",
            _each_once,
            "Each (1, 2) is a 10",
            "A merge is done wherever its pair stands, not only at the first place.",
        ),
        WrongAnswer(
            "merged from the right",
            _rank_from_the_right,
            "[1, 1, 1]",
            "`a a a` becomes `aa a`: training merged from left to right.",
        ),
        WrongAnswer(
            "nothing for nothing",
            lambda ids, merges: my_encode(ids, merges) if len(ids) > 1 else [0],
            "for ids=[]",
            "A text may be empty, or of one byte: it has no pair, and comes back as it is.",
        ),
    ),
    equivalent={},
)


# 02.3 texts that find a fault


def my_texts():
    """A dict {fault: text}: a short text for each fault, which that tokenizer does not give back.

    The faults: "ends", "spaces", "lines", "capitals", "bytes", "special".
    """
    return {
        "ends": " a",
        "spaces": "a  b",
        "lines": "a\r\nb",
        "capitals": "A",
        "bytes": "é",
        "special": "a<|endoftext|>b",
    }


def _with(**texts):
    """The right texts, some of them others."""
    return lambda: my_texts() | texts


TEXTS = Answers(
    reference=my_texts,
    wrong=(
        WrongAnswer(
            "one text for all",
            lambda: dict.fromkeys(my_texts(), "  É<|endoftext|>\r\n"),
            "one would not know",
            "It finds every fault and tells none apart. Give each text one property only.",
        ),
        WrongAnswer(
            "spaces at the ends",
            _with(spaces="  a"),
            "the tokenizer of the fault 'ends' fails",
            "Two spaces at the beginning go by two faults. Put them between two letters.",
        ),
        WrongAnswer(
            "the end of a text is a space inside",
            _with(ends="a b"),
            "for the tokenizer of the fault 'ends' and your text 'a b'",
            "Both ends of `a b` are letters: nothing is dropped.",
        ),
        WrongAnswer(
            "a plain line end",
            _with(lines="a\nb"),
            "for the tokenizer of the fault 'lines' and your text",
            "`\\n` alone stays as it is; the fault needs `\\r\\n`, Windows' line end.",
        ),
        WrongAnswer(
            "the line end at the end",
            _with(lines="a\r\n"),
            "the tokenizer of the fault 'ends' fails",
            "A line end is white space, too, and at the end of the text it is dropped by `ends`.",
        ),
        WrongAnswer(
            "a capital with an accent",
            _with(capitals="É"),
            "the tokenizer of the fault 'bytes' fails",
            "É is a capital, and it is two bytes. Take a capital of ASCII.",
        ),
        WrongAnswer(
            "ASCII for bytes",
            _with(bytes="a"),
            "for the tokenizer of the fault 'bytes' and your text 'a'",
            "A character of ASCII is a single byte: decoded alone, it is right.",
        ),
        WrongAnswer(
            "another special token",
            _with(special="<eos>"),
            "for the tokenizer of the fault 'special' and your text '<eos>'",
            "Those are five harmless characters for this tokenizer. Its special token is spelled "
            "`<|endoftext|>`.",
        ),
        WrongAnswer(
            "too long",
            _with(capitals="A" * 41),
            "has 41 characters",
            "A text that fails should be read at a glance: 40 characters are plenty.",
        ),
    ),
    equivalent={},
)


# 02.4 the gradient of a lookup


def my_lookup_gradient(ids, grad, vocab_size):
    """The gradient of the loss in the table (V, C), from that in the vectors looked up.

    ids is (B, T), grad (B, T, C): how the loss changes with each number that the lookup gave. The
    result has the dtype of grad.
    """
    one_hot = F.one_hot(ids.long(), vocab_size).to(grad.dtype)  # (B, T) -> (B, T, V)
    return one_hot.flatten(0, 1).T @ grad.flatten(0, 1)  # (V, B T) @ (B T, C) -> (V, C)


def _zeros(grad, vocab_size):
    return grad.new_zeros(vocab_size, grad.size(-1))


def _overwritten(ids, grad, vocab_size):
    table = _zeros(grad, vocab_size)
    table[ids.long()] += grad
    return table


def _averaged(ids, grad, vocab_size):
    times = ids.flatten().bincount(minlength=vocab_size).clamp(min=1)
    return my_lookup_gradient(ids, grad, vocab_size) / times[:, None].to(grad.dtype)


def _as_long_as_needed(ids, grad, vocab_size):
    return my_lookup_gradient(ids, grad, int(ids.max()) + 1)


def _loops_in_float32(ids, grad, vocab_size):
    table = torch.zeros(vocab_size, grad.size(-1))
    for sentence, rows in zip(ids.tolist(), grad, strict=True):
        for i, row in zip(sentence, rows, strict=True):
            table[i] += row.float()
    return table


GRADIENT = Answers(
    reference=my_lookup_gradient,
    wrong=(
        WrongAnswer(
            "the last one counts",
            _overwritten,
            "Row 1 was used twice",
            "`table[ids] += grad` reads all rows first, adds, and writes them back: of two uses of "
            "a row one is lost, just as with `table[ids] = grad`. `index_add` adds them up.",
        ),
        WrongAnswer(
            "the mean of the uses",
            _averaged,
            "Row 1 was used twice",
            "The loss changes through every use of the row. Their gradients are added, not "
            "averaged.",
        ),
        WrongAnswer(
            "only the rows up to the largest id",
            _as_long_as_needed,
            "expected (3, 2)",
            "The gradient has the shape of the table, rows that were not used included.",
        ),
        WrongAnswer(
            "columns for rows",
            lambda ids, grad, vocab_size: my_lookup_gradient(ids, grad, vocab_size).T,
            "the shape is (2, 3)",
            "A token is a row of the table, (V, C).",
        ),
        WrongAnswer(
            "the first sentence",
            lambda ids, grad, vocab_size: my_lookup_gradient(ids[:1], grad[:1], vocab_size),
            "for ids=[[0], [1]]",
            "All sentences of the batch use the one table. Flatten batch and positions together.",
        ),
        WrongAnswer(
            "counted, not weighed",
            lambda ids, grad, vocab_size: my_lookup_gradient(
                ids, torch.ones_like(grad), vocab_size
            ),
            "for ids=[[1]]",
            "That is how often each row was used. Each use counts with its own gradient, `grad`.",
        ),
        WrongAnswer(
            "float32 whatever comes",
            _loops_in_float32,
            "the dtype is float32, expected float64",
            "`torch.zeros` makes float32. `grad.new_zeros` has the dtype and device of grad.",
        ),
        WrongAnswer(
            "cut off",
            lambda ids, grad, vocab_size: my_lookup_gradient(ids, grad.detach(), vocab_size),
            "no gradient reaches `grad`",
            "The result is linear in grad, and may be differentiated once more. `detach`, `.data` "
            "or `no_grad` cuts that off.",
        ),
        WrongAnswer(
            "grad taken to lie in order",
            lambda ids, grad, vocab_size: grad.new_zeros(vocab_size, grad.size(-1)).index_add(
                0, ids.flatten(), grad.view(-1, grad.size(-1))
            ),
            "view size is not compatible",
            "`view` needs numbers that lie in memory in the order of the axes, and a gradient that "
            "comes back through a transpose does not. `reshape` copies where it must.",
        ),
    ),
    equivalent={
        "… => ….detach()…": "ids and one-hots carry no gradient; that to grad is asked for",
        "… => …ids.float().long()…": "ids below 16 million are whole numbers of float32",
    },
)


# 02.5 nearest words


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


def _minus_one_for_itself(vectors, query, k):
    cosines = _cosine(vectors, vectors[query])
    cosines[query] = -1.0
    return cosines.topk(k).indices


def _rounded(vectors, query, k):
    cosines = _cosine(vectors, vectors[query])
    cosines[query] = -2.0
    return cosines.round(decimals=2).topk(k).indices


def _without_the_first(vectors, query, k):
    return _cosine(vectors, vectors[query]).topk(k + 1).indices[1:]


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
            "the best comes last",
            lambda vectors, query, k: my_nearest(vectors, query, k).flip(0),
            "you get [1, 2], expected [2, 1]",
            "These are the right words in the wrong order: the largest cosine comes first.",
        ),
        WrongAnswer(
            "in the order of the ids",
            lambda vectors, query, k: my_nearest(vectors, query, k).sort().values,
            "you get [1, 2, 3, 4, 5]",
            "These are the right words, but sorted by id: the largest cosine comes first.",
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
        WrongAnswer(
            "minus one for itself",
            _minus_one_for_itself,
            "Row 1 points the other way",
            "-1 is a cosine, too, that of the opposite direction. Take a number below it.",
        ),
        WrongAnswer(
            "rounded to two digits",
            _rounded,
            "almost as near",
            "Neighbours may differ in the fifth digit: sort by the cosines themselves.",
        ),
        WrongAnswer(
            "the first is dropped",
            _without_the_first,
            "Rows 0 and 2 point the same way",
            "`topk(k + 1)[1:]` trusts that the query comes first. A word that points the same way "
            "may stand before it; then the query stays, and the neighbour goes.",
        ),
    ),
    equivalent={
        "… => ….detach()…": "ids carry no gradient",
        "… => ….double()…": "more digits than asked for",
        "… => cosines[query] = -3.0": "-3, too, is below every cosine",
        "… => cosines[query] = -4.0": "-4, too, is below every cosine",
        "… => unit = vectors / vectors.norm(dim=1, keepdim=True)": "of two axes, 1 is the last",
    },
)

ANSWERS = {
    "02.1": MERGE,
    "02.2": ENCODE,
    "02.3": TEXTS,
    "02.4": GRADIENT,
    "02.5": NEAREST,
}
