"""Answers to chapter 03: references and mistakes."""

from itertools import groupby, pairwise

from tinytf.text.merges import apply_merges, count_pairs, merge_pair
from tinytf_course.grading import Answers, WrongAnswer

# 03.1 what does a merge save?


def my_saved(words, pair):
    """By how many ids a corpus gets shorter when one new id replaces a pair.

    words maps each word, a tuple of ids, to the number of times it occurs; pair is a tuple of two
    ids. Pairs are replaced from left to right within a word, and no id is part of two of them.
    """
    first, second = pair
    if first != second:  # two such pairs share no id
        return count_pairs(words)[pair]
    saved = 0
    for word, times in words.items():
        row = 0  # the length of the run of this id so far
        for one in word:
            row = row + 1 if one == first else 0
            if row > 0 and row % 2 == 0:  # every second one completes a pair
                saved += times
    return saved


def _places(word, pair):
    return [i for i in range(len(word) - 1) if word[i : i + 2] == pair]


def _each_word(count, times=True):
    """A `my_saved` that counts so many in a word."""

    def saved(words, pair):
        return sum(count(word, pair) * (often if times else 1) for word, often in words.items())

    return saved


def _count(word, pair):
    return my_saved({word: 1}, pair)


def _in_rows(per_row):
    """How many pairs a word has, with so many in a row of equal ids."""

    def count(word, pair):
        if pair[0] != pair[1]:
            return _count(word, pair)
        return sum(per_row(len(list(row))) for one, row in groupby(word) if one == pair[0])

    return count


def _whole_corpus(words, pair):
    if pair[0] != pair[1]:
        return my_saved(words, pair)
    return sum(word.count(pair[0]) * times for word, times in words.items()) // 2


def _any_row(word, pair):
    if pair[0] != pair[1]:
        return _count(word, pair)
    return sum(len(list(row)) // 2 for _, row in groupby(word))


def _either_order(word, pair):
    return _count(word, pair) + (pair[0] != pair[1]) * _count(word, pair[::-1])


def _digits(word, pair):
    return " ".join(map(str, word)).count(" ".join(map(str, pair)))


def _one_row(words, pair):
    return _each_word(_count)({sum((word * times for word, times in words.items()), ()): 1}, pair)


SAVED = Answers(
    reference=my_saved,
    wrong=(
        WrongAnswer(
            "as count_pairs counts",
            _each_word(lambda word, pair: len(_places(word, pair))),
            "can't be in two pairs",
            "`count_pairs` looks at every position, so it finds two pairs in three equal ids. A "
            "merge uses each id once. (BPE still counts as `count_pairs` does, because the counts "
            "only decide which pair comes next.)",
        ),
        WrongAnswer(
            "both ids of a pair saved",
            _each_word(lambda word, pair: 2 * _count(word, pair)),
            "for words={(1, 2): 1}",
            "Two ids go and one comes: a merge saves one.",
        ),
        WrongAnswer(
            "words counted once",
            _each_word(_count, times=False),
            "The word occurs three times",
            "The dict gives the number of times each word occurs: count its pairs as often.",
        ),
        WrongAnswer(
            "one pair a word",
            _each_word(lambda word, pair: bool(_places(word, pair))),
            "The pair occurs twice in this word",
            "A word may have the pair more than once.",
        ),
        WrongAnswer(
            "in either order",
            _each_word(
                lambda word, pair: (
                    _count(word, pair) + (pair[0] != pair[1]) * _count(word, pair[::-1])
                )
            ),
            "Order matters",
            "A pair is ordered: `th` is not `ht`.",
        ),
        WrongAnswer(
            "one pair a row",
            _each_word(_in_rows(lambda length: length > 1)),
            "1, 1, 1, 1 becomes two ids",
            "A row of four has two pairs, which share no id.",
        ),
        WrongAnswer(
            "half of all such ids",
            _whole_corpus,
            "one id of each is left",
            "What is left over of one row can't make a pair with what is left of another. Round "
            "down row by row, and then add up.",
        ),
        WrongAnswer(
            "rows of any id",
            _each_word(_any_row),
            "runs of 2 and of 3 save nothing",
            "Only rows of the pair's own id become shorter.",
        ),
        WrongAnswer(
            "a row rounded up",
            _each_word(_in_rows(lambda length: (length + 1) // 2)),
            "can't be in two pairs",
            "Of a row of odd length one id is left alone, and saves nothing: `// 2` rounds down.",
        ),
        WrongAnswer(
            "ids as text",
            _each_word(_digits),
            "11 is not 1",
            "Written in digits, the end of one id can look like another. Compare numbers.",
        ),
        WrongAnswer(
            "ids as bytes",
            _each_word(lambda word, pair: bytes(word).count(bytes(pair))),
            "raises ValueError",
            "A good idea while all ids are bytes: `bytes.count` counts without overlap. But merges "
            "make ids of 256 and more.",
        ),
        WrongAnswer(
            "the corpus as one row",
            _one_row,
            "for words",
            "Words don't touch: the end of one and the beginning of the next don't form a pair.",
        ),
    ),
    equivalent={
        "… == second else 0": "the two are equal here",
        "… => if row > 1 and row % 2 == 0:": "a row of one is odd",
    },
)


# 03.2 could the encoder have produced these ids?


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


def _letters(ids, merges, depth=99):
    """The ids with new ids undone, at most so many times."""
    pair_of = {new_id: pair for pair, new_id in merges.items()}
    for _ in range(depth):
        ids = [part for one in ids for part in pair_of.get(one, (one,))]
    return ids


def _undone_once(ids, merges):
    for pair, new_id in reversed(merges.items()):
        ids = [part for one in ids for part in (pair if one == new_id else (one,))]
    return ids


def _encoded(encode, depth=99):
    """A `my_possible` that encodes in this way."""
    return lambda ids, merges: encode(_letters(ids, merges, depth), merges) == ids


def _merged(ids, merges, key):
    for pair, new_id in sorted(merges.items(), key=key):
        ids = merge_pair(ids, pair, new_id)
    return ids


def _as_listed(ids, merges):
    return _merged(ids, merges, key=lambda item: 0)


def _by_text(ids, merges):
    return _merged(ids, merges, key=lambda item: str(item[1]))


def _by_pair(ids, merges):
    return _merged(ids, merges, key=lambda item: item[0])


def _from_the_right(ids, merges):
    for pair, new_id in sorted(merges.items(), key=lambda item: item[1]):
        ids = merge_pair(ids[::-1], pair[::-1], new_id)[::-1]
    return ids


def _leftmost(ids, merges):
    ids, i = list(ids), 0
    while i < len(ids) - 1:
        if tuple(ids[i : i + 2]) in merges:
            ids[i : i + 2] = [merges[tuple(ids[i : i + 2])]]
            i = 0
        else:
            i += 1
    return ids


def _longest(ids, merges):
    parts = {new_id: tuple(_letters([new_id], merges)) for new_id in merges.values()}
    out, i = [], 0
    while i < len(ids):
        fits = [(len(p), new) for new, p in parts.items() if tuple(ids[i : i + len(p)]) == p]
        size, new = max(fits, default=(1, ids[i]))
        out.append(new)
        i += size
    return out


POSSIBLE = Answers(
    reference=my_possible,
    wrong=(
        WrongAnswer(
            "no known pair is left",
            lambda ids, merges: not any(pair in merges for pair in pairwise(ids)),
            "10 was learned before 11",
            "That is needed, but not enough: in `es|t` no pair is left to merge, so `apply_merges` "
            "leaves it as it is; and yet `s t` was merged first. Undo what was merged, down to the "
            "letters, and encode those.",
        ),
        WrongAnswer(
            "whatever can be read",
            lambda ids, merges: True,
            "The encoder would have merged 1, 2",
            "Any ids can be decoded. The question is whether encoding gives them back.",
        ),
        WrongAnswer(
            "one step back",
            _encoded(apply_merges, depth=1),
            "they become 1, 10",
            "A merge may be made of merges: go on undoing until only letters are left.",
        ),
        WrongAnswer(
            "undone in the dict's order",
            lambda ids, merges: apply_merges(_undone_once(ids, merges), merges) == ids,
            "12 is never made",
            "One pass over the dict, backwards, undoes everything only where it is in the order of "
            "learning. It may be in any order.",
        ),
        WrongAnswer(
            "only ids from 256 are undone",
            lambda ids, merges: (
                apply_merges(
                    _letters(ids, {pair: new for pair, new in merges.items() if new > 255}), merges
                )
                == ids
            ),
            "10 was learned before 11",
            "A new id is any id that `merges` makes, whatever its size. Here these are 10, 11, 12.",
        ),
        WrongAnswer(
            "encoded from the left",
            _encoded(_leftmost),
            "10 was learned before 11",
            "`hasty_encode` works like this. The encoder merges what was learned first.",
        ),
        WrongAnswer(
            "encoded by the longest",
            _encoded(_longest),
            "10 was learned before 11",
            "WordPiece takes the longest token that fits. BPE repeats its merges in order, and the "
            "two methods don't agree.",
        ),
        WrongAnswer(
            "in the order of the dict",
            _encoded(_as_listed),
            "The new ids give the order",
            "It works as long as the dict happens to be in order. A file read from disk, or a "
            "copy, need not be.",
        ),
        WrongAnswer(
            "sorted by the pairs",
            _encoded(_by_pair),
            "10 was learned before 11",
            "`sorted(merges.items())` sorts by the pairs' ids. The order of learning is "
            "that of the new ids.",
        ),
        WrongAnswer(
            "new ids sorted as text",
            _encoded(_by_text),
            "9 was learned before 10",
            "As text “10” comes before “9”. Ids are numbers: compare them as such.",
        ),
        WrongAnswer(
            "merged from the right",
            _encoded(_from_the_right),
            "1, 1, 1 becomes 10, 1",
            "`a a a` becomes `aa a`: training merged from left to right.",
        ),
        WrongAnswer(
            "a text has letters",
            lambda ids, merges: bool(ids) and my_possible(ids, merges),
            "for ids=[]",
            "The empty text is a text: it is encoded as an empty list.",
        ),
        WrongAnswer(
            "the other way round",
            lambda ids, merges: not my_possible(ids, merges),
            "10 is what 1, 2 become",
            "True means that the encoder can produce these ids.",
        ),
    ),
    equivalent={
        "… => return apply_merges(letters, merges) == ids": "ids are a list already",
    },
)


# 03.3 texts that find a fault


def my_texts():
    """A dict {fault: text}: for each fault a short text that only its tokenizer changes.

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
            "it would not tell you",
            "It finds every fault but can't tell them apart. Give each text a single property.",
        ),
        WrongAnswer(
            "spaces at the ends",
            _with(spaces="  a"),
            "changed by the tokenizer with the fault 'ends'",
            "Two spaces at the beginning are changed by two tokenizers. Put them between letters.",
        ),
        WrongAnswer(
            "the end of a text is a space inside",
            _with(ends="a b"),
            "for the tokenizer with the fault 'ends' and your text 'a b'",
            "Both ends of `a b` are letters: nothing is dropped.",
        ),
        WrongAnswer(
            "a plain line end",
            _with(lines="a\nb"),
            "for the tokenizer with the fault 'lines' and your text",
            "`\\n` alone stays as it is; the fault needs `\\r\\n`, Windows' line end.",
        ),
        WrongAnswer(
            "the line end at the end",
            _with(lines="a\r\n"),
            "changed by the tokenizer with the fault 'ends'",
            "A line end is white space, too, and at the end of the text it is dropped by `ends`.",
        ),
        WrongAnswer(
            "a capital with an accent",
            _with(capitals="É"),
            "changed by the tokenizer with the fault 'bytes'",
            "É is a capital, and it is two bytes. Take a capital of ASCII.",
        ),
        WrongAnswer(
            "ASCII for bytes",
            _with(bytes="a"),
            "for the tokenizer with the fault 'bytes' and your text 'a'",
            "A character of ASCII is a single byte: decoded alone, it is right.",
        ),
        WrongAnswer(
            "another special token",
            _with(special="<eos>"),
            "for the tokenizer with the fault 'special' and your text '<eos>'",
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
    "03.1": SAVED,
    "03.2": POSSIBLE,
    "03.3": TEXTS,
}
