"""04.2 nearest words (★☆☆, 6 minutes)

Write `my_nearest(vectors, query, k)`, which returns the ids of the `k` rows of `vectors` with the
largest cosine similarity to row number `query`, best first and without that row itself. A row of
zeros, as padding may have, has a cosine similarity of 0 with every other row.

Hint: The cosine similarity of two vectors of length 1 is their dot product. `topk` sorts. Which
value keeps the query itself out of the result?
"""

import torch
import torch.nn.functional as F

from tinytf_course.expect import expect, given, numbers, short
from tinytf_course.tensors import plain


def my_nearest(vectors, query, k):
    """Return the ids of the k rows most similar to row `query` by cosine, best first.

    vectors is (V, C) and query an int. The result has k ids; the query itself is left out.
    """
    unit = F.normalize(vectors, dim=-1)  # a row of zeros stays zeros
    cosines = unit @ unit[query]
    cosines[query] = -2.0  # below every cosine
    return cosines.topk(k).indices


def _ids_of(got, where):
    """Return the answer as a list of ints; expect it to be one."""
    got = plain(got)
    expect(isinstance(got, list), f"{where}, you return {got!r}, expected a list of ids")
    whole = all(type(one) is int for one in got)
    expect(whole, f"{where}, you return {short(got)}, expected whole numbers: ids")
    return got


def _gives_ids(answer, arguments, expected, note=""):
    """Expect these ids for these arguments."""
    where = given(answer, arguments)
    got = _ids_of(answer(*arguments), where)
    note = f" {note}" if note else ""
    expect(got == expected, f"{where}, you get {short(got)}, expected {short(expected)}.{note}")


WORDS = torch.tensor([[1.0, 0.0], [9.0, 4.0], [0.2, 0.02], [0.0, 1.0], [-1.0, 0.1], [1.0, 1.0]])


def _by_angle(vectors, query, k):
    """One cosine after the other in float64, sorted."""
    rows = vectors.double().tolist()

    def cosine(i):
        dot = sum(a * b for a, b in zip(rows[i], rows[query], strict=True))
        squares = sum(a * a for a in rows[i]) * sum(b * b for b in rows[query])
        return dot / squares**0.5 if squares else 0.0

    others = [i for i in range(len(rows)) if i != query]
    return sorted(others, key=cosine, reverse=True)[:k]


def _is_nearest(answer, vectors, query, k, note=""):
    _gives_ids(answer, (vectors, query, k), _by_angle(vectors, query, k), note)


def test_nearest_two(answer):
    """small angles win, whatever the lengths"""
    _is_nearest(answer, WORDS, 0, 2, "Row 1 is long, row 2 short; the angle counts.")


def test_not_itself(answer):
    """a word is not its own neighbour"""
    where = given(answer, (WORDS, 3, 1))
    got = _ids_of(answer(WORDS, 3, 1), where)
    expect(got != [3], f"{where}, you get {got}: that is the query itself")
    _is_nearest(answer, WORDS, 3, 1)


def test_all_in_order(answer):
    """the best comes first, of as many as there are"""
    _is_nearest(answer, WORDS, 0, 5, "Row 4 is opposite.")


def test_lengths(answer):
    """neither the length of a row nor that of a column counts"""
    vectors = torch.tensor([[1.0, 1.0], [10.0, 0.0], [1.0, 3.0]])
    _is_nearest(answer, vectors, 0, 2, "The cosines are 0.71 and 0.89.")


def test_same_direction(answer):
    """a vector with the same direction is a neighbour, whichever row it is"""
    vectors = torch.tensor([[2.0, 0.0], [0.0, 3.0], [4.0, 0.0], [1.0, 1.0]])
    note = "Rows 0 and 2 point the same way."
    _gives_ids(answer, (vectors, 0, 2), [2, 3], note)
    _gives_ids(answer, (vectors, 2, 2), [0, 3], note)


def test_opposite(answer):
    """a vector with the opposite direction is still a candidate"""
    vectors = torch.tensor([[2.0, 0.0], [-1.0, 0.0], [-1.0, 1.0]])
    note = "Rows 0 and 1 point in opposite directions."
    _gives_ids(answer, (vectors, 0, 2), [2, 1], note)
    _gives_ids(answer, (vectors, 1, 2), [2, 0], note)


def test_close(answer):
    """words that are almost equally near are told apart, as far as the dtype can"""
    for dtype, near, nearer in ((torch.float32, 0.012, 0.01), (torch.float64, 2e-5, 1e-5)):
        for angles in ((0.0, near, nearer), (0.0, nearer, near)):
            turn = torch.tensor(angles, dtype=dtype)
            lengths = torch.tensor([[1.0], [3.1], [0.7]], dtype=dtype)
            vectors = torch.stack([turn.cos(), turn.sin()], dim=1) * lengths
            note = f"Rows 1 and 2 are turned by {angles[1]:g} and {angles[2]:g}: almost as near."
            _is_nearest(answer, vectors, 0, 2, note)


def test_zeros(answer):
    """a row of zeros points nowhere: its cosine is 0"""
    vectors = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [-1.0, 0.5]])
    note = "Row 2 is zeros, as padding is: behind row 1, and before row 3."
    _is_nearest(answer, vectors, 0, 3, note)


def test_in_a_crowd(answer):
    """of 40 words in 7 dimensions, whatever the size of the numbers, in float64 too"""
    vectors = numbers(40, 7, seed=1, shift=0.3)
    for query, k in ((0, 5), (17, 39), (39, 1)):
        _is_nearest(answer, vectors, query, k)
    for scale in (1e-4, 1e4):
        _is_nearest(answer, numbers(30, 5, seed=2, scale=scale), 11, 4)
    _is_nearest(answer, numbers(6, 9, seed=3, dtype=torch.float64), 2, 5)


MISTAKES = r"""
dot product
    F.normalize(vectors, dim=-1) => vectors
    -2.0 => -torch.inf
    says: Row 1 is long
    Without dividing by the norms long vectors win, and frequent words have long vectors.
opposite is near
    unit @ unit[query] => (unit @ unit[query]).abs()
    says: Row 4 is opposite
    A cosine of −1 is the farthest there is: leave its sign.
cosines for ids
    .indices => .values
    says: for vectors=
    The result should be the ids of the rows: `topk` returns `values` and `indices`.
includes the query
    cosines[query] = -2.0 =>
    says: that is the query itself
    Every word is nearest to itself; leave its row out.
farthest first
    -2.0 => 2.0
    topk(k) => topk(k, largest=False)
    says: Row 4 is opposite
    A cosine is a similarity: large is near. A distance would be the other way round.
distance in space
    F.normalize(vectors, dim=-1) => vectors
    unit @ unit[query] => -(unit - unit[query]).norm(dim=-1)
    -2.0 => -torch.inf
    says: the angle counts
    Euclidean distance mixes in the lengths. Among vectors of length 1 the two agree.
norms of the columns
    dim=-1 => dim=0
    says: the angle counts
    `dim=0` divides each column by its norm. A word is a row: `dim=-1`, and `keepdim=True` so
    that the shapes meet.
the best comes last
    .indices => .indices.flip(0)
    says: you get [1, 2], expected [2, 1]
    These are the right words in the wrong order: the largest cosine comes first.
in the order of the ids
    .indices => .indices.sort().values
    says: you get [1, 2, 3, 4, 5]
    These are the right words, but sorted by id: the largest cosine comes first.
zero for itself
    -2.0 => 0.0
    says: Row 4 is opposite
    A cosine can be negative: 0 puts the query before every word with a negative cosine. Take a
    number below -1.
the row is dropped, and the ids move up
    unit @ unit[query] => torch.cat([unit[:query], unit[query + 1 :]]) @ unit[query]
    cosines[query] = -2.0 =>
    says: the angle counts
    Without the query's row the ids after it are one too small. Keep the row, and give it a
    cosine that can't win.
minus one for itself
    -2.0 => -1.0
    says: in opposite directions
    -1 is a cosine, too, that of the opposite direction. Take a number below it.
0 divided by 0
    F.normalize(vectors, dim=-1) => vectors / vectors.norm(dim=-1, keepdim=True)
    says: Row 2 is zeros
    A row of zeros has length 0, and 0/0 is NaN, which `topk` takes for the largest number, so
    padding would be the nearest neighbour of every word. `F.normalize` leaves zeros 0.
rounded to two digits
    unit @ unit[query] => (unit @ unit[query]).round(decimals=2)
    says: almost as near
    Neighbours may differ in the fifth digit: sort by the cosines themselves.
the first is dropped
    cosines[query] = -2.0 =>
    topk(k).indices => topk(k + 1).indices[1:]
    says: Rows 0 and 2 point the same way
    `topk(k + 1)[1:]` assumes that the query comes first. A vector with the same direction may
    precede it, and then the query stays and the neighbour is dropped.
"""

HARMLESS = r"""
… => cosines[query] = -3.0
    -3, too, is below every cosine
… => cosines[query] = -4.0
    -4, too, is below every cosine
… => unit = F.normalize(vectors)
    of two axes, 1 is the last
… => unit = F.normalize(vectors, dim=1)
    of two axes, 1 is the last
"""
