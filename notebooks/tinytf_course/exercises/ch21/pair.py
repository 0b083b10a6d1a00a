"""21.1 write a pair for BERT (★☆☆, 6 minutes)

Write `my_pair(first, second, cls_id=1, sep_id=2)`, which joins two lists of ids into one input for
BERT, in the order `[CLS]`, `first`, `[SEP]`, `second`, `[SEP]`, and gives each id its segment.
Return two lists, `(ids, segments)`.

Hint: The two lists are equally long. How many ids come before the second sentence begins?
"""

import torch

from tinytf_course.expect import expect
from tinytf_course.words import described, given, short


def my_pair(first, second, cls_id=1, sep_id=2):
    """Join two lists of ids into one input for BERT: (ids, segments), two lists of equal length.

    The ids are [CLS] first [SEP] second [SEP]. The segment is 0 up to and including the first
    [SEP], and 1 after it.
    """
    ids = [cls_id, *first, sep_id, *second, sep_id]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    return ids, segments


def whole_numbers(part, where):
    """A list, tuple or tensor of whole numbers as a list of them, or a Mismatch."""
    row = isinstance(part, list | tuple) or (isinstance(part, torch.Tensor) and part.dim() == 1)
    expect(row, f"{where} you return {described(part)}, expected a list of whole numbers")
    found = [x.item() if isinstance(x, torch.Tensor) and x.numel() == 1 else x for x in part]
    for x in found:
        whole = isinstance(x, int) and not isinstance(x, bool)
        expect(whole, f"{where} you return a list that holds {short(x)}, expected whole numbers")
    return found


def two_lists(got, names, where):
    """A pair of lists of whole numbers, or a Mismatch."""
    pair = isinstance(got, list | tuple | torch.Tensor) and len(got) == 2
    expect(pair, f"{where}, you return {described(got)}, expected two lists: {' and '.join(names)}")
    return [whole_numbers(part, f"{where}, for {name}") for part, name in zip(got, names)]


def _written(first, second, cls_id=1, sep_id=2):
    """Token by token, each with its segment."""
    pairs = [(cls_id, 0)]
    for segment, sentence in enumerate((first, second)):
        for token in (*sentence, sep_id):
            pairs.append((token, segment))
    return [id for id, _ in pairs], [segment for _, segment in pairs]


def _pair(answer, *arguments):
    """The two lists of the answer, the two expected, and for what."""
    where = given(my_pair, arguments)
    return two_lists(answer(*arguments), ("ids", "segments"), where), _written(*arguments), where


def test_ids(answer):
    """the input begins with one [CLS], and each sentence ends with a [SEP]"""
    for sentences in (([7], [8]), ([7, 8, 9], [11, 12, 13, 14, 15])):
        (ids, _), (expected, _), where = _pair(answer, *sentences)
        note = f"expected {expected}: [CLS] is 1, [SEP] is 2"
        expect(ids == expected, f"{where}, the ids are {ids}, {note}")


def test_marks(answer):
    """[CLS] and [SEP] get the ids that are passed in"""
    got, expected, where = _pair(answer, [4], [5, 6], 101, 102)
    for mine, right, name in zip(got, expected, ("ids", "segments"), strict=True):
        expect(mine == right, f"{where}, the {name} are {mine}, expected {right}")


def test_segments(answer):
    """the first [SEP] belongs to the first sentence, the last one to the second"""
    for sentences in (([7], [8]), ([7, 8, 9], [11, 12, 13, 14, 15])):
        (ids, got), (_, expected), where = _pair(answer, *sentences)
        message = f"{where}, there are {len(got)} segments for {len(ids)} ids: every id has one, "
        expect(len(got) == len(ids), message + "[CLS] and [SEP] included")
        expect(got == expected, f"{where}, the segments are {got}, expected {expected}")


def test_any_sentences(answer):
    """a word may occur in both sentences or twice in one, and either may be the longer one"""
    for sentences in (([7, 8], [8]), ([5, 9, 5, 5], [5, 9]), ([3], []), ([6] * 30, [6] * 20)):
        got, expected, where = _pair(answer, *sentences)
        for mine, right, name in zip(got, expected, ("ids", "segments"), strict=True):
            expect(mine == right, f"{where}, the {name} are {short(mine)}, expected {short(right)}")


def _paired(ids=None, segments=None):
    """A `my_pair` with one of its two lists made otherwise."""

    def pair(first, second, cls_id=1, sep_id=2):
        right = my_pair(first, second, cls_id, sep_id)
        f, s = list(first), list(second)
        return (
            ids(f, s, cls_id, sep_id) if ids else right[0],
            segments(len(f), len(s)) if segments else right[1],
        )

    return pair


MISTAKES = r"""
no [SEP] at the end
    … =>
        return _paired( lambda f, s, cls, sep: [cls, *f, sep, *s], lambda f, s: [0] * (f + 2) + [1] * s, )(first, second, cls_id, sep_id)
    says: the ids are [1, 7, 2, 8], expected [1, 7, 2, 8, 2]
    The second sentence ends in a [SEP] too.
a [CLS] for each
    … =>
        return _paired( lambda f, s, cls, sep: [cls, *f, sep, cls, *s, sep], lambda f, s: [0] * (f + 2) + [1] * (s + 2), )(first, second, cls_id, sep_id)
    says: the ids are [1, 7, 2, 1, 8, 2]
    There is one [CLS], which represents the whole input.
no [SEP] between
    … =>
        return _paired( lambda f, s, cls, sep: [cls, *f, *s, sep], lambda f, s: [0] * (f + 1) + [1] * (s + 1), )(first, second, cls_id, sep_id)
    says: the ids are [1, 7, 8, 2]
    A [SEP] separates the two.
marks swapped
    … =>
        return _paired(lambda f, s, cls, sep: [sep, *f, cls, *s, cls])(first, second, cls_id, sep_id)
    says: the ids are [2, 7, 1, 8, 1]
    [CLS] comes first, and a [SEP] ends each sentence.
marks typed in
    … =>
        return my_pair(first, second)
    says: cls_id=101, sep_id=102
    Use the arguments: BERT's own numbers are 101 and 102.
middle [SEP] in the second sentence
    … =>
        return _paired(segments=lambda f, s: [0] * (f + 1) + [1] * (s + 2))(first, second, cls_id, sep_id)
    says: the segments are [0, 0, 1, 1, 1]
    A [SEP] belongs to the sentence that it ends.
segments first
    … =>
        return (lambda *given: my_pair(*given)[::-1])(first, second, cls_id, sep_id)
    says: the ids are [0, 0, 0, 1, 1]
    Return the ids first, then the segments.
segments as floats
    … =>
        return (lambda *given: (my_pair(*given)[0], [float(x) for x in my_pair(*given)[1]]))(first, second, cls_id, sep_id)
    says: for segments you return a list that holds 0, expected whole numbers
    A table of embeddings looks rows up by whole numbers.
marks without a segment
    … =>
        return _paired(segments=lambda f, s: [0] * f + [1] * s)(first, second, cls_id, sep_id)
    says: 2 segments for 5 ids
    [CLS] and the two [SEP] have embeddings like any token, so they need a segment.
one segment for all
    … =>
        return _paired(segments=lambda f, s: [0] * (f + s + 3))(first, second, cls_id, sep_id)
    says: the segments are [0, 0, 0, 0, 0]
    Then only the [SEP] shows where the second sentence begins.
segments 1 and 2
    … =>
        return _paired(segments=lambda f, s: [1] * (f + 2) + [2] * (s + 1))(first, second, cls_id, sep_id)
    says: the segments are [1, 1, 1, 2, 2]
    BERT's table of segments has two rows, 0 and 1.
the segment looked up by the word
    … =>
        return (
                                                      (
                my_pair(first, second, cls_id, sep_id)[0],
                [0, *[0] * len(first), 0, *[int(t not in first) for t in second], 1],
            )
        )
    says: first=[7, 8], second=[8]
    A word may occur in both sentences: count positions instead of looking up words.
the caller's lists changed
    … =>
        first.insert(0, cls_id)
        first.append(sep_id)
        second.append(sep_id)
        return first + second, [0] * len(first) + [1] * len(second)
    says: your code changes the caller's `first`
    `append` and `insert` write into the caller's own sentences. Build a new list.
"""
