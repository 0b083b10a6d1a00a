"""22.2 could it have been this text? (★★☆, 10 minutes)

A model that is to undo BART's infilling has to know what a mask can stand for. Write
`my_could_be(damaged, text, mask_id)`, which returns whether infilling could have turned `text` into
`damaged`, two lists of ids: True or False.

<details><summary>The rule in detail</summary>

Each mask replaces a span of any length, also of length 0. Spans don't overlap, but they may touch,
and there may be none. All other ids stay as they are. The text itself has no mask in it.

</details>

Hint: Let `_` be the mask. Which of the texts `a b`, `a c b`, `a b c b` and `b a b` could have
become `a _ b`? In the third of them, which `b` was kept?

Hint: Go through `damaged` from left to right, and remember *all* positions of the text that you may
have reached. To where does a word lead from each of them, and to where a mask?
"""

import random
import re

from tinytf_course.expect import agrees


def my_could_be(damaged, text, mask_id):
    """Whether infilling could have turned a text into a damaged one, both lists of ids.

    Each mask_id in damaged replaces a span of the text, of any length, also of length 0.
    """
    reached = {0}  # how many of the text's ids may be behind us
    for token in damaged:
        if token == mask_id:
            reached = {n for n in range(len(text) + 1) if any(m <= n for m in reached)}
        else:
            reached = {n + 1 for n in reached if text[n : n + 1] == [token]}
    return len(text) in reached


_MASK = 50


def _by_pattern(damaged, text, mask_id):
    """A mask is the `.*` of a regular expression, and an id a character."""
    pattern = "".join(".*" if i == mask_id else re.escape(chr(i + 100)) for i in damaged)
    return bool(re.fullmatch(pattern, "".join(chr(i + 100) for i in text)))


def _judges(answer, damaged, *texts, note=""):
    for text in texts:
        agrees(answer, _by_pattern, damaged, text, _MASK, note=note)


def test_no_mask(answer):
    """without a mask it is the text itself"""
    _judges(answer, [11, 12], [11, 12])
    _judges(answer, [11, 12], [11, 13], [12, 11], note="No word was replaced, and none moved.")
    _judges(answer, [11], [11, 12], [12, 11], [], note="Nothing is hidden without a mask.")
    _judges(answer, [], [], [11])
    note = "Ids are numbers, and 1, 12 are others than 11, 2."
    _judges(answer, [1, 12], [11, 2], [112], note=note)


def test_some_words(answer):
    """a mask may have replaced one word or several"""
    _judges(answer, [11, _MASK, 12], [11, 13, 12])
    _judges(answer, [11, _MASK, 12], [11, 13, 14, 12], note="A mask hides how many are missing.")
    _judges(answer, [_MASK], [11], [11, 12, 13], note="All words may be gone.")
    long = "A span may have any length, 30 ids for example."
    _judges(answer, [11, _MASK, 12], [11, *range(13, 43), 12], note=long)


def test_nothing_missing(answer):
    """a mask may have replaced nothing"""
    note = "A span of length 0 puts a mask where no word was dropped."
    _judges(answer, [11, _MASK, 12], [11, 12], note=note)
    _judges(answer, [11, _MASK], [11], note=note)
    _judges(answer, [_MASK], [], note=note)


def test_both_ends(answer):
    """before the first mask and after the last one nothing is missing"""
    _judges(answer, [11, _MASK], [11, 12], [12, 11], note="The text has to begin with 11.")
    _judges(answer, [_MASK, 12], [11, 12], [12, 11], note="The text has to end with 12.")
    _judges(answer, [_MASK, 2], [12], [1, 2], note="12 is one id, and not 2.")


def test_between(answer):
    """between two words without a mask nothing is missing"""
    note = "12 and 13 are neighbours in what is left, so they were in the text."
    _judges(answer, [_MASK, 12, 13], [11, 12, 13], [12, 11, 13], note=note)
    _judges(answer, [12, 13, _MASK], [12, 13, 11], [12, 11, 13], note=note)


def test_in_order(answer):
    """words that are kept stay in order"""
    around = [_MASK, 12, _MASK, 13, _MASK]
    _judges(answer, around, [11, 12, 14, 13], [12, 13])
    _judges(answer, around, [13, 12], [12, 14], note="First 12, then 13.")


def test_touching(answer):
    """two masks may be neighbours"""
    _judges(answer, [11, _MASK, _MASK, 12], [11, 12], [11, 13, 12], [11, 13, 14, 15, 12], [12, 11])


def test_repeats(answer):
    """a word that occurs twice may have been kept at either place"""
    note = "The first 12 may be in the span, and the second one kept."
    _judges(answer, [11, _MASK, 12], [11, 12, 13, 12], note=note)
    _judges(answer, [_MASK, 12, 13], [12, 12, 13], note=note)
    note = "One word can't be kept twice."
    _judges(answer, [11, _MASK, 11], [11], [11, 11], note=note)


def test_any_texts(answer):
    """for any text and any row"""
    rng = random.Random(0)
    for _ in range(40):
        text = rng.choices([11, 12, 13], k=rng.randrange(9))
        a, b, c, d = sorted(rng.choices(range(len(text) + 1), k=4))
        damaged = [*text[:a], _MASK, *text[b:c], _MASK, *text[d:]]
        _judges(answer, damaged, text, rng.choices([11, 12, 13], k=len(text)), text[1:])


MISTAKES = r"""
a mask for one word
    m <= n => m + 1 == n
    says: A mask hides how many are missing
    That is token masking. An infilling mask replaces a span of any length.
one word at least
    m <= n => m < n
    says: A span of length 0
    A mask may also have replaced nothing.
words missing without a mask
    for n in reached if => for m in reached for n in range(m, len(text)) if
    says: Nothing is hidden without a mask
    That is token deletion, which leaves no trace. Here a word can only be missing at a mask.
the end of the text not looked at
    len(text) in reached => bool(reached)
    says: Nothing is hidden without a mask
    After the last word of `damaged` the text must be at its end, too.
the text may begin earlier
    {0} => set(range(len(text) + 1))
    says: The text has to begin with 11
    What comes before the first word of `damaged` is missing, and there is no mask.
only the first place that fits
    reached = {n + 1 => reached = set(sorted(n + 1
    == [token]} => == [token])[:1])
    says: The first 12 may be in the span
    The first place where the word occurs is one possibility. If the rest doesn't fit there, a
    later one may.
ids joined without a space
    … =>
        pattern = "".join(".*" if token == mask_id else str(token) for token in damaged)
        return bool(re.fullmatch(pattern, "".join(map(str, text))))
    says: 1, 12 are others than 11, 2
    Joined without a space, 1 and 12 are the same digits as 11 and 2. Put something between the ids,
    or compare numbers.
the order forgotten
    … =>
        kept = [token for token in damaged if token != mask_id]
        enough = all(kept.count(token) <= text.count(token) for token in kept)
        return enough and (mask_id in damaged or len(kept) == len(text))
    says: none moved
    Counting words is not enough: those that are kept stay in order.
"""

HARMLESS = r"""
… => …range(len(text) + 1 + 1)…
    nothing lies behind the end of the text
… => …range(len(text) + 2)…
    nothing lies behind the end of the text
"""
