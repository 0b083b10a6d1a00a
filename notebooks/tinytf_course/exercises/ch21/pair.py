"""21.1 write a pair for BERT (★☆☆, 6 minutes)

Write `my_pair(first, second, cls_id=1, sep_id=2)`, which joins two lists of ids into one input for
BERT, in the order `[CLS]`, `first`, `[SEP]`, `second`, `[SEP]`, and gives each id its segment.
Return two lists, `(ids, segments)`.

Hint: The two lists are equally long. How many ids come before the second sentence begins?
"""

from tinytf_course.exercises.ch21._shared import two_lists
from tinytf_course.expect import expect
from tinytf_course.words import given, short


def my_pair(first, second, cls_id=1, sep_id=2):
    """Join two lists of ids into one input for BERT: (ids, segments), two lists of equal length.

    The ids are [CLS] first [SEP] second [SEP]. The segment is 0 up to and including the first
    [SEP], and 1 after it.
    """
    ids = [cls_id, *first, sep_id, *second, sep_id]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    return ids, segments


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


MISTAKES = r"""
no [SEP] at the end
    *second, sep_id] => *second]
    (len(second) + 1) => len(second)
    says: the ids are [1, 7, 2, 8], expected [1, 7, 2, 8, 2]
    The second sentence ends in a [SEP] too.
a [CLS] for each
    *second, => cls_id, *second,
    (len(second) + 1) => (len(second) + 2)
    says: the ids are [1, 7, 2, 1, 8, 2]
    There is one [CLS], which represents the whole input.
no [SEP] between
    *first, sep_id, => *first,
    (len(first) + 2) => (len(first) + 1)
    says: the ids are [1, 7, 8, 2]
    A [SEP] separates the two.
marks swapped
    [cls_id, *first, sep_id, *second, sep_id] => [sep_id, *first, cls_id, *second, cls_id]
    says: the ids are [2, 7, 1, 8, 1]
    [CLS] comes first, and a [SEP] ends each sentence.
marks typed in
    [cls_id, *first, sep_id, *second, sep_id] => [1, *first, 2, *second, 2]
    says: cls_id=101, sep_id=102
    Use the arguments: BERT's own numbers are 101 and 102.
middle [SEP] in the second sentence
    (len(first) + 2) => (len(first) + 1)
    (len(second) + 1) => (len(second) + 2)
    says: the segments are [0, 0, 1, 1, 1]
    A [SEP] belongs to the sentence that it ends.
segments first
    return ids, segments => return segments, ids
    says: the ids are [0, 0, 0, 1, 1]
    Return the ids first, then the segments.
segments as floats
    [0] => [0.0]
    [1] => [1.0]
    says: for segments you return a list that holds 0.0, expected whole numbers
    A table of embeddings looks rows up by whole numbers.
marks without a segment
    (len(first) + 2) => len(first)
    (len(second) + 1) => len(second)
    says: 2 segments for 5 ids
    [CLS] and the two [SEP] have embeddings like any token, so they need a segment.
one segment for all
    [1] => [0]
    says: the segments are [0, 0, 0, 0, 0]
    Then only the [SEP] shows where the second sentence begins.
segments 1 and 2
    [1] => [2]
    [0] => [1]
    says: the segments are [1, 1, 1, 2, 2]
    BERT's table of segments has two rows, 0 and 1.
the segment looked up by the word
    [1] * (len(second) + 1) => [int(token not in first) for token in second] + [1]
    says: first=[7, 8], second=[8]
    A word may occur in both sentences: count positions instead of looking up words.
the caller's lists changed
    ids = [cls_id, *first, sep_id, *second, sep_id] =>
        first.insert(0, cls_id)
        first.append(sep_id)
        second.append(sep_id)
        ids = first + second
    (len(first) + 2) => len(first)
    (len(second) + 1) => len(second)
    says: your code changes the caller's `first`
    `append` and `insert` write into the caller's own sentences. Build a new list.
"""
