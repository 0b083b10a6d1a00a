"""20.3 rows that end, each on its own (★★☆, 8 minutes)

A batch was generated without stopping. Write `my_finish(ids, end_id)`: in each row of `ids` (B, T),
everything after the first `end_id` becomes `end_id`, too, and the batch is cut off after the first
`end_id` of the row that ends last. If some row never ends, nothing is cut off.

Hint: `(ids == end_id).cumsum(dim=1) > 0` is True from each row's first end on.
"""

import torch

from tinytf_course.expect import agrees, expect, numbers, same, tensor
from tinytf_course.words import short


def my_finish(ids, end_id):
    """End each row of a batch on its own: ids (B, T), drawn without stopping -> (B, N), N <= T.

    What comes after a row's first end_id becomes end_id. N is where the last row has ended, or T
    if some row never does.
    """
    ended = (ids == end_id).cumsum(dim=1) > 0  # from the first end on
    steps = int((~ended).sum(dim=1).max()) + 1  # the longest row, and its end
    return ids.masked_fill(ended, end_id)[:, :steps]


DRAWN = torch.tensor([[5, 9, 3, 9, 4, 4], [5, 6, 7, 9, 8, 8], [9, 1, 2, 3, 3, 3]])
LONG = torch.tensor([[5, 6, 7], [9, 1, 2]])
_DRAWN = f"for ids={short(DRAWN)}, end_id=9"


def _row_after_row(ids, end_id):
    """Each row up to its first end, then filled to the longest."""
    rows = []
    for row in ids.tolist():
        rows.append(row[: row.index(end_id) + 1] if end_id in row else row)
    width = max(map(len, rows))
    return torch.tensor([row + [end_id] * (width - len(row)) for row in rows])


def test_f_filled(answer):
    """after its end a row holds end tokens only"""
    got = answer(DRAWN, 9)
    expect(not isinstance(got, list), f"{_DRAWN}, you return a list, expected a tensor")
    got = tensor(got, _DRAWN)
    expect(got.dim() == 2 and len(got) == 3, f"{_DRAWN}, the shape is {tuple(got.shape)}")
    for row, begin in enumerate([1, 3, 0]):
        rest = got[row, begin:].tolist()
        expect(rest, f"{_DRAWN}, row {row} is cut off before its end")
        expect(
            rest == [9] * len(rest),
            f"{_DRAWN}, row {row} goes on with {rest} from its end on, expected end tokens only",
        )


def test_f_kept(answer):
    """a row that runs on keeps its tokens"""
    got = tensor(answer(DRAWN, 9), _DRAWN)
    note = "Row 1 ends with its fourth token, wherever the others end."
    same(got[1], [5, 6, 7, 9], f"{_DRAWN}, row 1", note=note)


def test_f_never(answer):
    """a row that never ends keeps all it has"""
    where = f"for ids={short(LONG)}, end_id=9"
    same(answer(LONG, 9), [[5, 6, 7], [9, 9, 9]], where, note="Row 0 has not ended.")


def test_f_edges(answer):
    """also where all end at once, at the first token or the last, or end_id is 0"""
    agrees(answer, _row_after_row, torch.tensor([[9]]), 9)
    agrees(answer, _row_after_row, torch.tensor([[4]]), 9)
    agrees(answer, _row_after_row, torch.tensor([[9, 4], [9, 9]]), 9, note="All end at once.")
    agrees(answer, _row_after_row, torch.tensor([[4, 9], [5, 9]]), 9)
    agrees(answer, _row_after_row, torch.tensor([[7, 0, 3, 2], [0, 7, 3, 3]]), 0)


def test_f_many(answer):
    """in larger batches"""
    for seed in range(4):
        drawn = numbers(5, 13, seed=seed).abs().mul(3).long()
        agrees(answer, _row_after_row, drawn, 3)


MISTAKES = r"""
the first row that ends, ends all
    .max() => .min()
    says: wherever the others end
    `(token == end_id).any()` stops the whole batch. It takes `all` rows to have ended.
row 0 decides
    .sum(dim=1).max() => .sum(dim=1)[0]
    says: wherever the others end
    `token[0] == end_id` looks at one row: what `.item()` on a batch crashes over.
rows talk on
    ids.masked_fill(ended, end_id) => ids
    says: expected end tokens only
    The batch stops in time, but a row that ended early goes on into another text.
never cut off
    [:, :steps] =>
    says: the shape is (6,), expected (4,)
    The batch keeps its full length. Once all rows have ended, only end tokens follow: cut them
    off.
the end itself is lost
    masked_fill(ended, end_id) => masked_fill(ended, 0)
    says: expected end tokens only
    Filling with 0 turns the end into whatever token 0 is, and nobody can tell where a row
    stopped.
cut before the last end
    .max()) + 1 => .max())
    says: the shape is (3,), expected (4,)
    The longest row lost its end token: it looks as if it had been cut off.
an end for those that never end
    return ids => return torch.nn.functional.pad(ids
    end_id)[ => end_id), (0, 1), value=end_id)[
    says: the shape is (2, 4), expected (2, 3)
    A row that has not ended keeps what it has: nothing is added.
"""

HARMLESS = r"""
steps = … => steps = (~ended).sum(dim=1).max() + 1
    a slice takes a tensor of one
"""
