"""Answers to chapter 03: references and mistakes."""

from itertools import pairwise

from tinytf.course.grading import Answers, WrongAnswer
from tinytf.text.merges import merge_pair

# 03.1 merge a pair


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


# 03.2 repair the encoder


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


def _by_text(ids, merges):
    for pair, new_id in sorted(merges.items(), key=lambda item: str(item[1])):
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
            "new ids sorted as text",
            _by_text,
            "9 was learned before 10",
            "As text “10” comes before “9”. Ids are numbers: compare them as such.",
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


# 03.3 texts that find a fault


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


ANSWERS = {
    "03.1": MERGE,
    "03.2": ENCODE,
    "03.3": TEXTS,
}
