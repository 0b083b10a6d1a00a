"""08.3 repair: positions are added (★★☆, 10 minutes)

`suspect`, above, is right for its square input, and fails for three sentences of two words. Write
`my_add_positions(x, table, start=0)`, which is right for all: it adds to each word of `x`, of shape
`(B, T, C)`, the row of `table`, `(max_len, C)`, for its position, counted from `start`.

<details><summary>The rule in detail</summary>

The result is a new tensor, and gradients reach `x` and `table`. A `ValueError` is raised if the
table has no row for the last word.

</details>

Hint: Which axis of `x` counts the words of a sentence? Try other values of `start`, too, and a
table that is too short.

Hint: Four things are wrong: the axis whose length is taken, the end of the slice, what happens past
the end of the table, and what becomes of the caller's `x`.
"""

import torch

from tinytf_course.expect import agrees, gradients, numbers, refuses, travels
from tinytf_course.grading import hint


def my_add_positions(x, table, start=0):
    """Add to each word of x (B, T, C) its row of the table (max_len, C): a new tensor.

    The first word of each sentence is at position `start`. Gradients reach x and the table, which
    may be learned. Raises ValueError if it has no row for the last word.
    """
    end = start + x.size(1)
    if end > table.size(0):
        raise ValueError(f"position {end - 1} is past a table of {table.size(0)} rows")
    return x + table[start:end]


def _added(x, table, start=0):
    """A position at a time."""
    return torch.stack([x[:, t] + table[start + t] for t in range(x.size(1))], dim=1)


def test_one_row(answer):
    """a single word gets row 0"""
    agrees(answer, _added, torch.tensor([[[1.0, 2.0]]]), torch.tensor([[10.0, 20.0]]))


@hint("Which axis of x counts the words of a sentence?")
def test_rows_by_place(answer):
    """every sentence gets the same rows, one for each of its words"""
    note = "Word t of every sentence gets row t."
    agrees(answer, _added, numbers(1, 2, 2, seed=21), numbers(4, 2, seed=22), note=note)
    agrees(answer, _added, numbers(3, 2, 4, seed=23), numbers(6, 4, seed=24), note=note)
    agrees(answer, _added, numbers(2, 5, 3, seed=25), numbers(5, 3, seed=26), note=note)
    agrees(answer, _added, numbers(4, 4, 2, seed=27), numbers(9, 2, seed=28), note=note)


@hint("At which row does a slice for T words end that begins at `start`?")
def test_from_start(answer):
    """words can begin at a later position"""
    note = "The first word is at position 2."
    agrees(answer, _added, numbers(1, 1, 2, seed=31), numbers(4, 2, seed=32), 2, note=note)
    agrees(answer, _added, numbers(2, 3, 2, seed=33), numbers(9, 2, seed=34), 2, note=note)
    note = "The last word has the last row."
    agrees(answer, _added, numbers(3, 2, 4, seed=35), numbers(6, 4, seed=36), 4, note=note)


def test_past_the_end(answer):
    """where the table has no row left, it refuses"""
    note = "A slice past the end is just shorter, and what is left broadcasts."
    cases = (3, 1, 0), (2, 1, 0), (2, 3, 2), (1, 3, 3), (3, 2, 0), (2, 4, 7)
    for words, rows, start in cases:
        x, table = numbers(1, words, 2, seed=41), numbers(rows, 2, seed=42)
        where = f"for x of shape {tuple(x.shape)}, table of shape {(rows, 2)}, start={start}"
        refuses(answer, x, table, start, note=note, where=where)


def test_other_dtypes(answer):
    """it works in float64, and where its arguments are"""
    wide = [numbers(*shape, seed=51, dtype=torch.float64) for shape in ((2, 3, 4), (5, 4))]
    agrees(answer, _added, *wide, 1)
    travels(answer, numbers(2, 3, 4, seed=52), numbers(5, 4, seed=53), 1)


def test_both_learn(answer):
    """gradients reach x, and the table, which may be learned"""
    gradients(answer, _added, numbers(1, 2, 2, seed=61), numbers(3, 2, seed=62))
    gradients(answer, _added, numbers(2, 3, 2, seed=63), numbers(6, 2, seed=64), 2)


MISTAKES = r"""
counted along the batch
    x.size(1) => x.size(0)
    table[start:end] => table[start:end][:, None]
    says: Word t of every sentence gets row t
    `x.size(0)` is the batch: all words of sentence 3 get position 3. Words are axis 1.
cut by the batch
    x.size(1) => x.size(0)
    says: for x of shape (1, 3, 2)
    `x.size(0)` is the number of sentences; words are axis 1.
a slice that ends at T
    table[start:end] => table[start : x.size(1)]
    says: The first word is at position 2
    T words from `start` end at start + T.
start ignored
    table[start:end] => table[: x.size(1)]
    says: The first word is at position 2
    With a cache the new word comes alone, and is not at position 0.
nothing refused
    raise ValueError(f"position {end - 1} is past a table of {table.size(0)} rows") => pass
    says: expected a ValueError
    One row that is left is added to both words, and no row makes the word disappear.
measured without start
    if end > => if x.size(1) >
    says: start=2, you return
    The last word is at position start + T - 1, and the table needs a row for it.
one row too many
    if end > => if end - 1 >
    says: start=0, you return
    Rows are counted from 0: the last of n rows is row n - 1.
the last row refused
    if end > => if end >=
    says: raises ValueError
    A sentence that ends with the table's last row fits.
added in place
    return x + table[start:end] =>
        x += table[start:end]
        return x
    says: your code changes the caller's `x`
    `+=` changes the caller's tensor, and the words without positions may still be needed.
a table that can't learn
    table[start:end] => table[start:end].detach()
    says: no gradient reaches `table`
    A learned table needs its gradient.
"""
