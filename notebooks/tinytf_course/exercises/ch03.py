"""Chapter 03: what a merge saves, ids that no text is encoded as, and texts for a test."""

import re

import torch

from tinytf_course.expect import (
    agrees,
    expect,
    record,
)
from tinytf_course.grading import Exercise


def _replaced(ids, pair, new_id):
    """Text's own way: `str.replace` on one character an id, from left to right, in one pass."""
    text = "".join(map(chr, ids)).replace("".join(map(chr, pair)), chr(new_id))
    return [ord(one) for one in text]


def _drawn(count, kinds, seed):
    """Ids drawn at random, 1 to `kinds`."""
    draws = torch.Generator().manual_seed(seed)
    return torch.randint(1, kinds + 1, (count,), generator=draws).tolist()


# 03.1 what does a merge save?


def my_saved(words, pair):
    """By how many ids a corpus gets shorter when one new id replaces a pair.

    words maps each word, a tuple of ids, to the number of times it occurs; pair is a tuple of two
    ids. Pairs are replaced from left to right within a word, and no id is part of two of them.
    """
    raise NotImplementedError


def _saves(answer, words, pair, note=""):
    """Expect what `str.count` finds, which counts without overlap: one character an id."""
    sought = "".join(map(chr, pair))
    found = sum("".join(map(chr, word)).count(sought) * times for word, times in words.items())
    agrees(answer, found, words, pair, note=note)


def _saved_once(answer):
    """a pair saves one id"""
    _saves(answer, {(1, 2): 1}, (1, 2))
    _saves(answer, {(5, 1, 2, 5): 1}, (1, 2))


def _saved_often(answer):
    """it saves one id wherever it occurs, in every word, as often as the word occurs"""
    _saves(answer, {(1, 2, 5, 1, 2): 1}, (1, 2), "The pair occurs twice in this word.")
    _saves(answer, {(1, 2, 5): 3}, (1, 2), "The word occurs three times.")
    _saves(answer, {(1, 2): 2, (5, 1, 2): 3, (5,): 9}, (1, 2), "Two times, and three times.")


def _saved_run(answer):
    """in a run of three equal ids, two make a pair and one is left"""
    note = "1, 1, 1 becomes two ids: the one in the middle can't be in two pairs."
    _saves(answer, {(1, 1, 1): 1}, (1, 1), note)
    _saves(answer, {(1, 1, 1, 1): 1}, (1, 1), "1, 1, 1, 1 becomes two ids.")


def _saved_runs(answer):
    """each run of equal ids is counted separately"""
    note = "There are two runs of three ids, and one id of each is left."
    _saves(answer, {(1, 1, 1, 2, 1, 1, 1): 1}, (1, 1), note)
    note = "There are no pairs across words, and a word of three leaves one id."
    _saves(answer, {(1, 1, 1): 2, (2, 1, 1, 1, 1, 1): 3, (1,): 4}, (1, 1), note)
    note = "The pair is 1, 1; runs of 2 and of 3 save nothing."
    _saves(answer, {(2, 2, 2, 1, 1, 3, 3): 1}, (1, 1), note)


def _saved_nothing(answer):
    """a pair that does not occur saves nothing"""
    _saves(answer, {(2, 1, 2): 1}, (1, 3), "The pair does not occur.")
    _saves(answer, {(2, 1): 4}, (1, 2), "Order matters: 2, 1 is another pair.")
    _saves(answer, {(1,): 2, (2,): 1}, (1, 1))
    _saves(answer, {}, (1, 2))


def _saved_ids(answer):
    """an id is a number of any size"""
    _saves(answer, {(11, 2): 1}, (1, 2), "11 is not 1.")
    big = [int(digits) for digits in ("300", "300", "301", "300")]  # each an object of its own
    _saves(answer, {tuple(big): 1}, (int("300"), int("301")), "An id may be larger than 255.")
    _saves(answer, {tuple(big): 1}, (int("300"), int("300")), "An id may be larger than 255.")


def _saved_drawn(answer):
    """in words drawn at random, for every pair of three ids"""
    drawn = [tuple(_drawn(4 + 3 * i, 3, seed=i)) for i in range(8)]
    words = {word: 2 + 3 * i for i, word in enumerate(drawn)}
    for pair in ((1, 2), (2, 1), (3, 3), (1, 1)):
        _saves(answer, words, pair)


SAVED = Exercise(
    id="03.1",
    title="what does a merge save?",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_saved(words, pair)`, which returns by how many ids a corpus gets shorter when "
        "one new id replaces `pair`. The corpus `words` is a dict like `counted`. Pairs are "
        "replaced from left to right within a word, and no id can be part of two of them, so "
        "`a a a` becomes `aa a`. For most pairs, the answer is the count that `count_pairs` "
        "returns. Find out for which pairs it is not, and compute the answer for them without "
        "merging anything."
    ),
    hint="In `a a a`, `count_pairs` finds two pairs, because the two ids of the pair are equal. "
    "If you go through a run of equal ids, the second one completes a pair. Which is the next one "
    "that does?",
    function=my_saved,
    tests=(
        _saved_once,
        _saved_often,
        _saved_run,
        _saved_runs,
        _saved_nothing,
        _saved_ids,
        _saved_drawn,
    ),
)


# 03.2 could the encoder have produced these ids?


def my_possible(ids, merges):
    """Whether some text is encoded as exactly these ids: True or False.

    ids is a list of ints. merges maps each pair to its new id, in any order; a smaller new id was
    learned earlier. An id that no merge makes is a byte or a letter.
    """
    raise NotImplementedError


def _spelt(one, merges):
    """The letters of an id, one after the other."""
    pair = next((pair for pair, new in merges.items() if new == one), None)
    return [one] if pair is None else _spelt(pair[0], merges) + _spelt(pair[1], merges)


def _by_rank(ids, merges):
    """Merge after merge, each by `str.replace`."""
    for new_id, pair in sorted((new_id, pair) for pair, new_id in merges.items()):
        ids = _replaced(ids, pair, new_id)
    return list(ids)


def _judged(answer, ids, merges, note=""):
    """Expect the verdict: True if the letters of the ids, merged anew, are the ids again."""
    letters = [letter for one in ids for letter in _spelt(one, merges)]
    agrees(answer, _by_rank(letters, merges) == ids, ids, merges, note=note)


_EST = {(2, 3): 10, (1, 2): 11}  # with e=1, s=2, t=3: `st` was learned before `es`


def _possible_one(answer):
    """with one merge, a pair that was not merged is impossible"""
    _judged(answer, [10], {(1, 2): 10}, "10 is what 1, 2 become.")
    _judged(answer, [1, 2], {(1, 2): 10}, "The encoder would have merged 1, 2.")
    _judged(answer, [2, 1, 10], {(1, 2): 10}, "2, 1 is another pair, and stays.")


def _possible_order(answer):
    """a merge is impossible where an earlier one has taken one of its ids"""
    note = "10 was learned before 11: 1, 2, 3 becomes 1, 10."
    _judged(answer, [1, 10], _EST, note)
    _judged(answer, [11, 3], _EST, note)
    _judged(answer, [11, 4], _EST, "Before another letter 1, 2 becomes 11.")


def _possible_shuffled(answer):
    """the order of the dict makes no difference"""
    shuffled, note = {(1, 2): 11, (2, 3): 10}, "The new ids give the order, not the dict."
    _judged(answer, [1, 10], shuffled, note)
    _judged(answer, [11, 3], shuffled, note)
    tens = {(1, 2): 10, (2, 3): 9}
    _judged(answer, [1, 9], tens, "9 was learned before 10.")
    _judged(answer, [10, 3], tens, "9 was learned before 10.")
    upside_down = {(11, 4): 12, (2, 4): 10, (1, 2): 11}
    _judged(answer, [12], upside_down, "12 is 1, 2, 4, and they become 1, 10: 12 is never made.")


def _possible_bytes(answer):
    """ids of bytes work in the same way"""
    later = {(115, 116): 256, (101, 115): 257}  # s t, e s
    _judged(answer, [101, 256], later, "256 was learned before 257: `est` becomes 101, 256.")
    _judged(answer, [257, 116], later, "256 was learned before 257: `est` becomes 101, 256.")


def _possible_deep(answer):
    """merges of merges are undone down to the letters"""
    ladder = {(1, 2): 10, (10, 3): 11, (11, 11): 12}
    _judged(answer, [12], ladder, "12 is 11, 11; and 11 is 10, 3; and 10 is 1, 2.")
    _judged(answer, [11, 10, 3], ladder, "10, 3 becomes 11.")
    never = {(1, 2): 10, (2, 3): 11, (1, 11): 12}
    _judged(answer, [10, 3], never, "1, 2, 3 becomes 10, 3; 12 would need 11, which came later.")
    deep = {(2, 3): 10, (1, 2): 11, (11, 4): 12, (10, 4): 13}
    note = "12 is 1, 2, 4, which are encoded as 11, 4 and then as 12."
    _judged(answer, [12], deep, note)
    deep = {(2, 4): 10, (1, 2): 11, (11, 4): 12}
    _judged(answer, [12], deep, "12 is 1, 2, 4, and they become 1, 10: 12 is never made.")


def _possible_rows(answer):
    """runs of equal ids are merged from the left"""
    rows = {(1, 1): 10}
    _judged(answer, [10, 1], rows, "1, 1, 1 becomes 10, 1.")
    _judged(answer, [1, 10], rows, "1, 1, 1 becomes 10, 1.")
    _judged(answer, [10, 10, 1], rows)
    _judged(answer, [10, 1, 10], rows)


def _possible_plain(answer):
    """where there is nothing to merge, all ids are possible"""
    _judged(answer, [], {(1, 2): 10})
    _judged(answer, [1], {(1, 2): 10})
    _judged(answer, [1, 2, 1], {})


def _possible_drawn(answer):
    """forty sequences of ids, with twelve merges"""
    pairs = [(1, 2), (2, 3), (3, 3), (10, 1), (11, 12), (2, 2), (13, 3), (10, 10), (1, 11),
             (15, 1), (12, 12), (3, 1)]  # fmt: skip
    merges = {pair: 10 + i for i, pair in enumerate(pairs)}
    for seed in range(20):
        ids = _by_rank(_drawn(6, 3, seed=seed), merges)
        _judged(answer, ids, merges)
        where = seed % len(ids)
        parts = next((list(pair) for pair, new in merges.items() if new == ids[where]), ids[:1])
        _judged(answer, ids[:where] + parts + ids[where + 1 :], merges)
    for i in range(12):
        _judged(answer, [10 + i, 10 + (5 * i + 3) % 12], merges)


POSSIBLE = Exercise(
    id="03.2",
    title="could the encoder have produced these ids?",
    difficulty=2,
    minutes=10,
    statement=(
        "A model that generates ids one by one may produce `es|t`. Decoded, that is `est`, but "
        "with the merges of `later` no text is ever encoded that way. Write "
        "`my_possible(ids, merges)`, which returns True if `apply_merges` gives exactly these "
        "`ids` for some text, and False if it does not. `merges` maps pairs to new ids as above, "
        "but the dict may be in any order: a smaller new id was learned earlier. An id that no "
        "merge makes is a byte or a letter. The text is not cut into words first."
    ),
    hint=(
        "It is not enough to check that no known pair is left, because `es|t` has none. Which "
        "text do the ids decode to, and how would the encoder cut it?",
        "Reverse `merges`, so that it leads from a new id to its pair. Replace new ids by their "
        "pairs until only letters are left, then encode these and compare.",
    ),
    function=my_possible,
    tests=(
        _possible_one,
        _possible_order,
        _possible_shuffled,
        _possible_bytes,
        _possible_deep,
        _possible_rows,
        _possible_plain,
        _possible_drawn,
    ),
)


# 03.3 texts that find a fault


def my_texts():
    """A dict {fault: text}: for each fault a short text that only its tokenizer changes.

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
_FAULTY = "for the tokenizer with the fault {fault!r} and your text {text!r}"


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
            expect(False, f"{kind}: half a surrogate pair, which UTF-8 cannot represent")


def _finds(fault):
    """A test that the text finds its own fault, and no other tokenizer stumbles over it."""

    def finds(answer):
        text = _texts(answer)[fault]
        expect(isinstance(text, str), f"the text for {fault!r} is {text!r}, expected a string")
        back = FAULTS[fault](text)
        record([fault, back == text])
        where = _FAULTY.format(fault=fault, text=text)
        expect(back != text, f"{where}, the text comes back unchanged: the fault is not found")
        for other, returns in FAULTS.items():
            alone = other == fault or returns(text) == text
            record([other, alone])
            expect(alone, f"your text {text!r} is also changed by the tokenizer with the fault "
                   f"{other!r}, so it would not tell you that the fault is {fault!r}")  # fmt: skip

    finds.__doc__ = f"the text for {fault!r} finds this fault and no other"
    return finds


TEXTS = Exercise(
    id="03.3",
    title="texts that find a fault",
    difficulty=2,
    minutes=8,
    statement=(
        "A tokenizer has to give back every text unchanged. Here are six tokenizers that don't, "
        "each with one fault. `ends` drops the white space at both ends, including tabs and line "
        "ends. `spaces` turns several spaces in a row into one, but leaves tabs alone. `lines` "
        "turns the line end `\\r\\n` into `\\n`. `capitals` converts all letters to lower case. "
        "`bytes` decodes one byte at a time, so that a character of several bytes becomes several "
        "�s. `special` mistakes the characters `<|endoftext|>` for a special token, which decoding "
        "leaves out. Write `my_texts()`, which returns a dict with one text of at most 40 "
        "characters for each fault. The text must be changed by the tokenizer with that fault and "
        "given back by the five others, so that a text that fails tells you which fault it is."
    ),
    hint="The text for `spaces` must not begin or end with a space. Which characters take more "
    "than one byte and are not capital letters?",
    function=my_texts,
    tests=(_are_texts, *map(_finds, FAULTS)),
)


EXERCISES = (SAVED, POSSIBLE, TEXTS)
