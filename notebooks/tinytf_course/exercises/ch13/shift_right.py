"""13.1 shift right (★☆☆, 8 minutes)

Write `my_shift_right(rows, bos, eos, pad)` for a list of lists of word ids. It returns two integer
tensors of the same shape `(B, T)`: the decoder's input, which is `bos` followed by the words, and
the labels, which are the words followed by `eos`.

<details><summary>The rule in detail</summary>

Rows have any lengths, also 0, and shorter ones are filled with `pad` on the right. The `eos` of a
row is never in the input. Two or all three of `bos`, `eos` and `pad` may have the same id.

</details>

Hint: The input gets `bos` in front, and the labels get `eos` after the last word. The padding comes
last.
"""

import torch

from tinytf_course.expect import agrees, expect, same, tensor
from tinytf_course.grading import hint
from tinytf_course.words import described


def my_shift_right(rows, bos, eos, pad):
    """The decoder's input and its labels: two integer tensors (B, T).

    rows is a list of lists of word ids, of any lengths. T is the longest of them plus 1.
    """
    width = max(map(len, rows)) + 1
    inputs = torch.full((len(rows), width), pad)
    labels = torch.full((len(rows), width), pad)
    for b, row in enumerate(rows):
        inputs[b, : len(row) + 1] = torch.tensor([bos, *row])
        labels[b, : len(row) + 1] = torch.tensor([*row, eos])
    return inputs, labels


ROWS = [[7, 8, 9, 8], [5, 6]]
BOS, EOS, PAD = 1, 2, 0
_ROWS = f"for rows={ROWS}, bos=1, eos=2, pad=0"


def _both(answer, rows=ROWS, bos=BOS, eos=EOS, pad=PAD):
    got = answer(rows, bos, eos, pad)
    where = f"for rows={rows}"
    expect(
        isinstance(got, list | tuple) and len(got) == 2,
        f"{where}, you return a {type(got).__name__}, expected two tensors: (input, labels)",
    )
    return [tensor(part, where) for part in got]


def test_two_of_a_shape(answer):
    """it returns two integer tensors of one shape"""
    parts = _both(answer)
    lists = [described(part) for part in answer(ROWS, BOS, EOS, PAD) if isinstance(part, list)]
    expect(not lists, f"{_ROWS}, you return {' and '.join(lists)}, expected two tensors")
    shapes = [tuple(part.shape) for part in parts]
    kinds = {part.dtype for part in parts if part.is_floating_point() or part.is_complex()}
    expect(not kinds, f"{_ROWS}, the dtype is {kinds}, expected integers: they are ids of words")
    expect(
        shapes == [(2, 5), (2, 5)],
        f"{_ROWS}, the shapes are {shapes[0]} and {shapes[1]}, expected (2, 5) for both: the "
        "longest row has 4 words, and <bos> or <eos>",
    )


def test_reads(answer):
    """the input is <bos>, then the words"""
    same(_both(answer)[0], [[1, 7, 8, 9, 8], [1, 5, 6, 0, 0]], f"{_ROWS}, as the input")


def test_says(answer):
    """the labels are the words, then <eos>"""
    same(_both(answer)[1], [[7, 8, 9, 8, 2], [5, 6, 2, 0, 0]], f"{_ROWS}, as the labels")


def test_never_the_answer(answer):
    """the input at a position is the label of the position before"""
    reads, says = _both(answer, [[5, 6, 7]], 1, 2, 0)
    expect(reads.shape == says.shape and reads.dim() == 2, "the two shapes differ")
    same(
        reads[:, 1:], says[:, :-1], "for rows=[[5, 6, 7]], the input[:, 1:]",
        note="It has to be labels[:, :-1], or the decoder reads its answer, or a word too old.",
    )  # fmt: skip


@hint("Use the arguments `bos`, `eos` and `pad`, which are other numbers here.")
def test_own_ids(answer):
    """the special ids are the arguments"""
    where = "for rows=[[3], [4, 0]], bos=8, eos=9, pad=5"
    note = "Here 0 is a word and 5 padding."
    reads, says = _both(answer, [[3], [4, 0]], 8, 9, 5)
    same(reads, [[8, 3, 5], [8, 4, 0]], f"{where}, as the input", note=note)
    same(says, [[3, 9, 5], [4, 0, 9]], f"{where}, as the labels", note=note)


def _place_by_place(rows, bos, eos, pad):
    """What is at each position of each row."""
    reads, says = [], []
    for row in rows:
        places = range(max(len(other) for other in rows) + 1)
        reads.append([bos if t == 0 else row[t - 1] if t <= len(row) else pad for t in places])
        says.append([row[t] if t < len(row) else eos if t == len(row) else pad for t in places])
    return torch.tensor(reads), torch.tensor(says)


def test_any_rows(answer):
    """rows of any lengths, of no word too"""
    cases = (
        ([[]], 1, 2, 0), ([[5]], 1, 2, 0), ([[5], [6], [7]], 1, 2, 0), ([[], [5, 5]], 1, 2, 0),
        ([[4], [4, 5, 6, 7, 8, 9], [], [4, 4, 4]], 1, 2, 0),
    )  # fmt: skip
    for case in cases:
        agrees(answer, _place_by_place, *case, dtype=False)


def test_one_id_for_all(answer):
    """one id may have several jobs"""
    note = "Here <eos> is the padding, too, as in GPT-2."
    agrees(answer, _place_by_place, [[3, 4], [5]], 1, 2, 2, dtype=False, note=note)
    note = "Here one id is <bos>, <eos> and padding, as in GPT-2."
    agrees(answer, _place_by_place, [[3, 4], [5]], 2, 2, 2, dtype=False, note=note)


def test_begin_is_end(answer):
    """<bos> and <eos> may be one id"""
    note = "Here 2 is <bos> and <eos>: first in the input, and last in the labels."
    agrees(answer, _place_by_place, [[3]], 2, 2, 0, dtype=False, note=note)
    agrees(answer, _place_by_place, [[3, 4], [5]], 2, 2, 0, dtype=False, note=note)


def test_large_ids(answer):
    """a large id is not rounded"""
    agrees(answer, _place_by_place, [[16777217, 50001], [33333]], 70001, 70003, 70005, dtype=False)


def _filled(rows, pad):
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows])


MISTAKES = r"""
<eos> in the input of the shorter rows
    return inputs, labels =>
        inputs = torch.cat([torch.full_like(labels[:, :1], bos), labels[:, :-1]], 1)
        return inputs, labels
    says: as the input, you get [[1, 7, 8, 9, 8], [1, 5, 6, 2, 0]]
    The labels, shifted by one, have an <eos> in all rows but the longest. After <eos> nothing
    is left to predict, so it is never in the input.
<eos> in the input as well, and both filled up
    rows)) + 1 => rows)) + 2
    inputs[b, : len(row) + 1] => inputs[b, : len(row) + 2]
    [bos, *row] => [bos, *row, eos]
    says: the shapes are (2, 6) and (2, 6)
    After <eos> nothing is left to predict, so it is never in the input: T is the longest row
    plus 1, not plus 2.
the caller's rows changed
    labels[b, : len(row) + 1] = torch.tensor([*row, eos]) =>
        row.append(eos)
        labels[b, : len(row)] = torch.tensor(row)
    says: changes the caller's `rows
    `row.append` writes into the list that was given; the next epoch finds another <eos> in it.
    `[*row, eos]` is a new list.
not shifted
    [bos, *row] => [*row, eos]
    says: as the input, you get [[7, 8, 9, 8, 2]
    Each position reads the word that it has to predict. The loss falls to almost 0 by copying,
    no mask prevents it, and at inference the model has nothing to copy.
shifted the wrong way
    return inputs, labels => return labels, inputs
    says: as the labels, you get [[1, 7, 8, 9, 8]
    This trains the model to predict the word before the one it reads: to write backwards.
<eos> behind the padding
    [*row, eos] => [*row, pad]
    return inputs, labels =>
        labels[:, -1] = eos
        return inputs, labels
    says: as the labels, you get
    The end comes right after the last word of each row. Otherwise short sentences never learn
    to stop.
no <eos>
    [*row, eos] => [*row, pad]
    says: as the labels, you get
    Nothing teaches the model to end, so on its own it writes until it is cut off.
<eos> in the input as well
    inputs = torch.full((len(rows), width), pad) => inputs = torch.full((len(rows), width + 1), pad)
    inputs[b, : len(row) + 1] => inputs[b, : len(row) + 2]
    [bos, *row] => [bos, *row, eos]
    says: the shapes are (2, 6) and (2, 5)
    After <eos> nothing is left to predict, so it is never in the input. A mask made from the
    longer one does not fit the shorter: one tutorial crashes here.
one position too far
    [bos, *row] => [bos, bos, *row][: len(row) + 1]
    says: or a word too old
    Each position reads the word before the last one, never the last: shift by one, once.
not integers
    return inputs, labels => return inputs.float(), labels.float()
    says: expected integers
    An embedding looks up ids, and takes integers only. `torch.zeros` makes floats unless it is
    given a dtype.
lists, not tensors
    return inputs, labels => return inputs.tolist(), labels.tolist()
    says: expected two tensors
    All rows have the same length now, and the model takes tensors: `torch.tensor(rows)`.
ids fixed
    width = =>
        bos, eos, pad = 1, 2, 0
        width =
    says: Here 0 is a word and 5 padding
    The special ids belong to the tokenizer: use the arguments.
every <eos> made padding
    [bos, *row] => [pad if id == eos else id for id in [bos, *row]]
    says: Here 2 is <bos> and <eos>
    Where <bos> has the same id, it is replaced, too. Leave <eos> out when the rows are made:
    the input is <bos> and the words.
"""
