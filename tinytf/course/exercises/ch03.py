"""Chapter 03: merging a pair, an encoder to repair, and texts for a test."""

import re

import torch

from tinytf.course.expect import (
    expect,
    given,
    record,
    short,
)
from tinytf.course.grading import Exercise


def ids_of(got, where):
    """What the answer returned as a list of ints; expect it to be one."""
    got = got.tolist() if isinstance(got, torch.Tensor) else got
    expect(isinstance(got, list | tuple), f"{where}, you return {got!r}, expected a list of ids")
    got = [one.tolist() if isinstance(one, torch.Tensor) else one for one in got]
    whole = all(type(one) is int for one in got)
    expect(whole, f"{where}, you return {short(got)}, expected whole numbers: ids")
    return got


def gives_ids(answer, arguments, expected, note=""):
    """Expect these ids for these arguments."""
    where = given(answer, arguments)
    got = ids_of(answer(*arguments), where)
    note = f" {note}" if note else ""
    expect(got == expected, f"{where}, you get {short(got)}, expected {short(expected)}.{note}")


def _replaced(ids, pair, new_id):
    """Text's own way: `str.replace` on one character an id, from left to right, in one pass."""
    text = "".join(map(chr, ids)).replace("".join(map(chr, pair)), chr(new_id))
    return [ord(one) for one in text]


def _drawn(count, kinds, seed):
    """Ids drawn at random, 1 to `kinds`."""
    draws = torch.Generator().manual_seed(seed)
    return torch.randint(1, kinds + 1, (count,), generator=draws).tolist()


# 03.1 merge a pair


def my_merge_pair(ids, pair, new_id):
    """The ids with new_id wherever the pair stands, from left to right.

    ids is a list of ints, pair a tuple of two; the result is a new list.
    """
    raise NotImplementedError


def _one(answer):
    """a pair becomes one id"""
    gives_ids(answer, ([1, 2], (1, 2), 9), [9])
    gives_ids(answer, ([5, 1, 2], (1, 2), 9), [5, 9])


def _equal_ids(answer):
    """equal ids are equal, whichever int objects they are"""
    ids = [int(one) for one in ("1000", "1001", "7")]  # Python makes each of these anew
    note = "Large ints that are equal need not be one object."
    gives_ids(answer, (ids, (int("1000"), int("1001")), 2000), [2000, 7], note)


def _every(answer):
    """every one of them does"""
    note = "The pair stands there twice."
    gives_ids(answer, ([1, 2, 5, 1, 2], (1, 2), 9), [9, 5, 9], note)


def _run(answer):
    """three in a row make one pair, and the left one is taken"""
    note = "An id is used up by the merge it is in."
    gives_ids(answer, ([1, 1, 1], (1, 1), 9), [9, 1], note)


def _runs(answer):
    """longer rows, too"""
    gives_ids(answer, ([1, 1, 1, 1], (1, 1), 9), [9, 9])
    gives_ids(answer, ([2, 1, 1, 1, 1, 1], (1, 1), 9), [2, 9, 9, 1])


def _keeps_the_rest(answer):
    """what is no such pair stays, the last id too"""
    gives_ids(answer, ([2, 1, 3], (1, 2), 9), [2, 1, 3], "Order matters: 2, 1 is another pair.")


def _nothing(answer):
    """no ids, and one, are left as they are"""
    gives_ids(answer, ([], (1, 2), 9), [])
    gives_ids(answer, ([1], (1, 1), 9), [1])


def _whole_ids(answer):
    """an id of two digits is one id"""
    gives_ids(answer, ([11, 2, 1, 2], (1, 2), 9), [11, 2, 9], "11 is not 1.")
    gives_ids(answer, ([2_000_000, 1, 2], (1, 2), 9), [2_000_000, 9], "An id may be large.")


def _one_pass(answer):
    """what a merge has made is not merged again"""
    note = "The pair is looked for among the ids given, not in the result."
    gives_ids(answer, ([1, 2, 2], (1, 2), 1), [1, 2], note)


def _by_replacing(answer):
    """in 200 ids, a pair and a pair of two equal ids"""
    ids = _drawn(200, 3, seed=1)
    for pair in ((1, 2), (3, 3), (2, 1)):
        gives_ids(answer, (ids, pair, 300), _replaced(ids, pair, 300))


MERGE = Exercise(
    id="03.1",
    title="merge a pair",
    difficulty=1,
    minutes=6,
    statement=(
        "Counting is done; now the pair is to be replaced. Write `my_merge_pair(ids, pair, "
        "new_id)`: a new list in which `new_id` stands wherever the two ids of `pair` stood next "
        "to each other, taken from left to right. An id belongs to one merge only: of `a a a` the "
        "pair `a a` takes the first two."
    ),
    hint="A `for` loop can't skip the second id of a pair. Which loop lets you move the index?",
    function=my_merge_pair,
    tests=(
        _one,
        _every,
        _run,
        _runs,
        _keeps_the_rest,
        _nothing,
        _whole_ids,
        _equal_ids,
        _one_pass,
        _by_replacing,
    ),
)


# 03.2 repair the encoder


def my_encode(ids, merges):
    """The ids after all merges, in the order in which they were learned.

    ids is a list of ints; merges is a dict from pair to new id, and the new ids rise in the order
    of learning.
    """
    raise NotImplementedError


def _by_rank(ids, merges):
    """Merge after merge, each by `str.replace`."""
    for new_id, pair in sorted((new_id, pair) for pair, new_id in merges.items()):
        ids = _replaced(ids, pair, new_id)
    return list(ids)


def _ladder(answer):
    """a merge can use what an earlier one made"""
    gives_ids(answer, ([1, 2, 3], {(1, 2): 10, (10, 3): 11}), [11], "10 is what (1, 2) became.")


def _ranked(answer):
    """the merge learned first goes first, wherever it stands"""
    note = "10 was learned before 11."
    gives_ids(answer, ([1, 2, 3], {(2, 3): 10, (1, 2): 11}), [1, 10], note)


def _shuffled(answer):
    """whatever the order of the dict"""
    note = "The ids tell the order, not the dict."
    gives_ids(answer, ([1, 2, 3], {(1, 2): 11, (2, 3): 10}), [1, 10], note)


def _deep(answer):
    """a longer token that training would not have made here is not made"""
    merges = {(2, 3): 10, (1, 2): 11, (11, 4): 12, (10, 4): 13}
    gives_ids(answer, ([1, 2, 3, 4], merges), [1, 13], "(2, 3) came first, so (1, 2) never meets.")


def _ids_in_order(answer):
    """pairs are taken by rank, not by the order of their ids"""
    gives_ids(answer, ([3, 1, 2], {(3, 1): 10, (1, 2): 11}), [10, 2], "10 was learned first.")
    gives_ids(answer, ([1, 2, 3], {(2, 3): 9, (1, 2): 10}), [1, 9], "9 was learned before 10.")


def _again(answer):
    """a pair that stands there three times is merged three times"""
    note = "Each (1, 2) is a 10."
    gives_ids(answer, ([1, 2, 1, 2, 5, 1, 2], {(1, 2): 10}), [10, 10, 5, 10], note)


def _left_to_right(answer):
    """a row of equal ids is merged from the left"""
    gives_ids(answer, ([1, 1, 1], {(1, 1): 10}), [10, 1])
    gives_ids(answer, ([1] * 7, {(1, 1): 10, (10, 10): 11}), [11, 10, 1])


def _as_it_is(answer):
    """where nothing is known, nothing is merged"""
    gives_ids(answer, ([], {(1, 2): 10}), [])
    gives_ids(answer, ([5], {(1, 2): 10}), [5])
    gives_ids(answer, ([2, 1, 3], {(1, 2): 10}), [2, 1, 3])


def _learned(answer):
    """200 ids and twelve merges, as training would have done it"""
    pairs = [(1, 2), (2, 3), (3, 3), (10, 1), (11, 12), (2, 2), (13, 3), (10, 10), (1, 11),
             (15, 1), (12, 12), (3, 1)]  # fmt: skip
    merges = {pair: 10 + i for i, pair in enumerate(pairs)}
    ids = _drawn(200, 3, seed=2)
    gives_ids(answer, (ids, merges), _by_rank(ids, merges))


ENCODE = Exercise(
    id="03.2",
    title="repair the encoder",
    difficulty=2,
    minutes=10,
    statement=(
        "`hasty_encode`, above, merges whatever known pair stands furthest to the left. Repair it: "
        "write `my_encode(ids, merges)`, which merges as training did. `merges` maps a pair to its "
        "new id; a smaller new id was learned earlier, and the dict may be in any order. You may "
        "call `merge_pair`."
    ),
    hint="Of the known pairs that stand in the ids now, which one did training merge first? Merge "
    "it everywhere, then look again: there are new pairs.",
    function=my_encode,
    tests=(
        _ladder,
        _ranked,
        _shuffled,
        _deep,
        _ids_in_order,
        _again,
        _left_to_right,
        _as_it_is,
        _learned,
    ),
)


# 03.3 texts that find a fault


def my_texts():
    """A dict {fault: text}: a short text for each fault, which that tokenizer does not give back.

    The faults: "ends", "spaces", "lines", "capitals", "bytes", "special".
    """
    raise NotImplementedError


# fault -> what such a tokenizer gives back of a text after encoding and decoding
FAULTS = {
    "ends": str.strip,
    "spaces": lambda text: re.sub(" +", " ", text),
    "lines": lambda text: text.replace("\r\n", "\n"),
    "capitals": str.lower,
    "bytes": lambda text: "".join(chr(byte) if byte < 128 else "�" for byte in text.encode()),
    "special": lambda text: text.replace("<|endoftext|>", ""),
}
_FAULTY = "for the tokenizer of the fault {fault!r} and your text {text!r}"


def _texts(answer):
    """What the answer returned; expect a text for each fault."""
    texts = answer()
    expect(isinstance(texts, dict), f"you return {texts!r}, expected a dict {{fault: text}}")
    missing = [fault for fault in FAULTS if fault not in texts]
    expect(not missing, f"there is no text for {', '.join(map(repr, missing))}")
    extra = [fault for fault in texts if fault not in FAULTS]
    expect(not extra, f"{', '.join(map(repr, extra))} is not one of the faults")
    return texts


def _are_texts(answer):
    """there is a text for each of the six faults, of at most 40 characters"""
    for fault, text in _texts(answer).items():
        kind = f"the text for {fault!r} is {text!r}"
        expect(isinstance(text, str), f"{kind}, expected a string")
        expect(len(text) <= 40, f"the text for {fault!r} has {len(text)} characters, at most 40")
        try:
            text.encode()
        except UnicodeEncodeError:
            expect(False, f"{kind}: half a surrogate pair, which no UTF-8 can say")


def _finds(fault):
    """A test that the text finds its own fault, and no other tokenizer stumbles over it."""

    def finds(answer):
        text = _texts(answer)[fault]
        expect(isinstance(text, str), f"the text for {fault!r} is {text!r}, expected a string")
        back = FAULTS[fault](text)
        record([fault, back == text])
        where = _FAULTY.format(fault=fault, text=text)
        expect(back != text, f"{where}, what comes back is the same: the fault is not found")
        for other, returns in FAULTS.items():
            alone = other == fault or returns(text) == text
            record([other, alone])
            expect(alone, f"for your text {text!r} the tokenizer of the fault {other!r} fails, "
                   f"too: if it fails, one would not know that it is {fault!r}")  # fmt: skip

    finds.__doc__ = f"the text for {fault!r} finds this fault, and no other"
    return finds


TEXTS = Exercise(
    id="03.3",
    title="texts that find a fault",
    difficulty=2,
    minutes=8,
    statement=(
        "A tokenizer has to give every text back. Here are six that don't, each with one fault: "
        "`ends` drops white space at both ends, tabs and line ends too; `spaces` makes one space "
        "of several, and leaves tabs alone; `lines` turns "
        "the line end `\\r\\n` into `\\n`; `capitals` makes all letters small; `bytes` decodes one "
        "byte at a time, so that a character of several bytes becomes �s; `special` takes the "
        "characters `<|endoftext|>` for a special token, which decoding leaves out. Design the "
        "test: write `my_texts()`, which returns a dict with a text of at most 40 characters for "
        "each fault, such that this tokenizer fails on it and the five others do not. Then a text "
        "that fails says which fault it is."
    ),
    hint="A text for `spaces` must not begin or end with one. Which characters take more than one "
    "byte, and are not capitals?",
    function=my_texts,
    tests=(_are_texts, *map(_finds, FAULTS)),
)


EXERCISES = (MERGE, ENCODE, TEXTS)
