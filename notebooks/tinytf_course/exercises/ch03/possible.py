"""03.2 could the encoder have produced these ids? (★★☆, 10 minutes)

A model that generates ids one by one may produce `es|t`. Decoded, that is `est`, but with the
merges of `later` no text is ever encoded that way. Write `my_possible(ids, merges)`, which returns
True if `apply_merges` gives exactly these `ids` for some text, and False if it does not.

<details><summary>The rule in detail</summary>

`merges` maps pairs to new ids as above, but the dict may be in any order: a smaller new id was
learned earlier. An id that no merge makes is a byte or a letter, and any sequence of these counts
as a text. The text is not cut into words first.

</details>

Hint: It is not enough to check that no known pair is left, because `es|t` has none. Which text do
the ids decode to, and how would the encoder cut it?

Hint: Reverse `merges`, so that it leads from a new id to its pair. Replace new ids by their pairs
until only letters are left, then encode these and compare.
"""

from random import Random

from tinytf.text.merges import apply_merges
from tinytf_course.expect import same
from tinytf_course.words import given


def my_possible(ids, merges):
    """Whether some text is encoded as exactly these ids: True or False.

    ids is a list of ints. merges maps each pair to its new id, in any order; a smaller new id was
    learned earlier. An id that no merge makes is a byte or a letter.
    """
    pair_of = {new_id: pair for pair, new_id in merges.items()}
    letters, todo = [], list(reversed(ids))
    while todo:
        one = todo.pop()
        if one in pair_of:
            todo += reversed(pair_of[one])
        else:
            letters.append(one)
    return apply_merges(letters, merges) == list(ids)


def _replaced(ids, pair, new_id):
    """By `str.replace` on one character an id: from left to right, in one pass."""
    text = "".join(map(chr, ids)).replace("".join(map(chr, pair)), chr(new_id))
    return [ord(one) for one in text]


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
    where, got = given(answer, (ids, merges)), answer(ids, merges)
    same(got, _by_rank(letters, merges) == ids, where, note=note)


_EST = {(2, 3): 10, (1, 2): 11}  # with e=1, s=2, t=3: `st` was learned before `es`


def test_possible_one(answer):
    """with one merge, a pair that was not merged is impossible"""
    _judged(answer, [10], {(1, 2): 10}, "10 is what 1, 2 become.")
    _judged(answer, [1, 2], {(1, 2): 10}, "The encoder would have merged 1, 2.")
    _judged(answer, [2, 1, 10], {(1, 2): 10}, "2, 1 is another pair, and stays.")


def test_possible_order(answer):
    """a merge is impossible where an earlier one has taken one of its ids"""
    note = "10 was learned before 11: 1, 2, 3 becomes 1, 10."
    _judged(answer, [1, 10], _EST, note)
    _judged(answer, [11, 3], _EST, note)
    _judged(answer, [11, 4], _EST, "Before another letter 1, 2 becomes 11.")
    _judged(answer, [1, 2, 4], _EST, "Before another letter 1, 2 becomes 11.")


def test_possible_shuffled(answer):
    """the order of the dict makes no difference"""
    shuffled, note = {(1, 2): 11, (2, 3): 10}, "The new ids give the order, not the dict."
    _judged(answer, [1, 10], shuffled, note)
    _judged(answer, [11, 3], shuffled, note)
    _judged(answer, [1, 2], shuffled, "The encoder would have merged 1, 2.")
    tens = {(1, 2): 10, (2, 3): 9}
    _judged(answer, [1, 9], tens, "9 was learned before 10.")
    _judged(answer, [10, 3], tens, "9 was learned before 10.")
    upside_down = {(11, 4): 12, (2, 4): 10, (1, 2): 11}
    _judged(answer, [12], upside_down, "12 is 1, 2, 4, and they become 1, 10: 12 is never made.")


def test_possible_bytes(answer):
    """ids of bytes work in the same way"""
    later = {(115, 116): 256, (101, 115): 257}  # s t, e s
    _judged(answer, [101, 256], later, "256 was learned before 257: `est` becomes 101, 256.")
    _judged(answer, [257, 116], later, "256 was learned before 257: `est` becomes 101, 256.")
    _judged(answer, [101, 115], later, "The encoder would have merged 101, 115.")


def test_possible_deep(answer):
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


def test_possible_rows(answer):
    """runs of equal ids are merged from the left"""
    rows = {(1, 1): 10}
    _judged(answer, [10, 1], rows, "1, 1, 1 becomes 10, 1.")
    _judged(answer, [1, 10], rows, "1, 1, 1 becomes 10, 1.")
    _judged(answer, [10, 10, 1], rows)
    _judged(answer, [10, 1, 10], rows)


def test_possible_plain(answer):
    """where there is nothing to merge, all ids are possible"""
    _judged(answer, [], {(1, 2): 10})
    _judged(answer, [1], {(1, 2): 10})
    _judged(answer, [1, 2, 1], {})


def test_possible_any(answer):
    """any sequence of bytes or letters is a text"""
    note = "No merge makes this id, so it is a byte or a letter."
    _judged(answer, [200], {}, note)
    _judged(answer, [300], {}, note)
    _judged(answer, [200, 300], {(200, 300): 400}, "The encoder would have merged 200, 300.")
    _judged(answer, [300, 200], {(200, 300): 400}, "300, 200 is another pair, and stays.")


def test_possible_drawn(answer):
    """forty sequences of ids, with twelve merges"""
    pairs = [(1, 2), (2, 3), (3, 3), (10, 1), (11, 12), (2, 2), (13, 3), (10, 10), (1, 11),
             (15, 1), (12, 12), (3, 1)]  # fmt: skip
    merges = {pair: 10 + i for i, pair in enumerate(pairs)}
    for seed in range(20):
        ids = _by_rank(Random(seed).choices((1, 2, 3), k=6), merges)
        _judged(answer, ids, merges)
        where = seed % len(ids)
        parts = next((list(pair) for pair, new in merges.items() if new == ids[where]), ids[:1])
        _judged(answer, [*ids[:where], *parts, *ids[where + 1 :]], merges)
    for i in range(12):
        _judged(answer, [10 + i, 10 + (5 * i + 3) % 12], merges)


MISTAKES = r"""
no known pair is left
    apply_merges(letters, merges) => apply_merges(ids, merges)
    says: 10 was learned before 11
    That is needed, but not enough: in `es|t` no pair is left to merge, so `apply_merges` leaves
    it as it is; and yet `s t` was merged first. Undo what was merged, down to the letters, and
    encode those.
one step back
    todo += reversed(pair_of[one]) => letters += pair_of[one]
    says: they become 1, 10
    A merge may be made of merges: go on undoing until only letters are left.
undone in the dict's order
    … =>
        letters = list(ids)
        for pair, new_id in reversed(merges.items()):
            letters = [part for one in letters for part in (pair if one == new_id else (one,))]
        return apply_merges(letters, merges) == list(ids)
    says: 12 is never made
    One pass over the dict, backwards, undoes everything only where it is in the order of
    learning. It may be in any order.
only ids from 256 are undone
    one in pair_of: => one in pair_of and one > 255:
    says: 10 was learned before 11
    A new id is any id that `merges` makes, whatever its size. Here these are 10, 11, 12.
encoded from the left
    return apply_merges(letters, merges) == =>
        i = 0
        while i < len(letters) - 1:
            if (pair := tuple(letters[i : i + 2])) in merges:
                letters[i : i + 2], i = [merges[pair]], -1
            i += 1
        return letters ==
    says: 10 was learned before 11
    `hasty_encode` works like this. The encoder merges what was learned first.
encoded by the longest
    return apply_merges(letters, merges) == =>
        tokens = [(_spelt(one, merges), one) for one in pair_of]
        out = []
        while letters:
            fits = [(len(parts), one) for parts, one in tokens if letters[: len(parts)] == parts]
            size, one = max(fits, default=(1, letters[0]))
            letters, out = letters[size:], [*out, one]
        return out ==
    says: 10 was learned before 11
    WordPiece takes the longest token that fits. BPE repeats its merges in order, and the two
    methods don't agree.
in the order of the dict
    return apply_merges(letters, merges) == =>
        for pair, new_id in merges.items():
            letters = _replaced(letters, pair, new_id)
        return letters ==
    says: The new ids give the order
    It works as long as the dict happens to be in order. A file read from disk, or a copy, need
    not be.
sorted by the pairs
    return apply_merges(letters, merges) == =>
        for pair, new_id in sorted(merges.items()):
            letters = _replaced(letters, pair, new_id)
        return letters ==
    says: 10 was learned before 11
    `sorted(merges.items())` sorts by the pairs' ids. The order of learning is that of the new
    ids.
new ids sorted as text
    return apply_merges(letters, merges) == =>
        for pair, new_id in sorted(merges.items(), key=lambda item: str(item[1])):
            letters = _replaced(letters, pair, new_id)
        return letters ==
    says: 9 was learned before 10
    As text “10” comes before “9”. Ids are numbers: compare them as such.
merged from the right
    return apply_merges(letters, merges) == =>
        for new_id, pair in sorted(pair_of.items()):
            letters = _replaced(letters[::-1], pair[::-1], new_id)[::-1]
        return letters ==
    says: 1, 1, 1 becomes 10, 1
    `a a a` becomes `aa a`: training merged from left to right.
a text is UTF-8
    return apply_merges(letters, merges) == =>
        try:
            bytes(letters).decode()
        except ValueError:
            return False
        return apply_merges(letters, merges) ==
    says: No merge makes this id
    `apply_merges` takes any ids. Here a letter may have any number, and the bytes need not be
    valid UTF-8.
a text has letters
    == list(ids) => == list(ids) and len(ids) > 0
    says: for ids=[]
    The empty text is a text: it is encoded as an empty list.
the other way round
    == list(ids) => != list(ids)
    says: 10 is what 1, 2 become
    True means that the encoder can produce these ids.
"""

HARMLESS = r"""
… => return apply_merges(letters, merges) == ids
    ids are a list already
"""
