"""05.2 causal and padding mask together (★★☆, 10 minutes)

Write `my_decoder_mask(ids, pad_id=0)`, which returns the mask of a decoder's self-attention for a
batch of token ids of shape `(B, T)`. The mask is boolean, of shape `(B, 1, T, T)`, and `True` where
the key is neither later than the query nor padding.

Hint: Combine two masks that broadcast against each other: one has an axis of size 1 for the
sentences, the other for the queries. Both have to be on the device of `ids`.
"""

import itertools

import torch

from tinytf_course.expect import agrees, expect, same, short, tensor, travels


def my_decoder_mask(ids, pad_id=0):
    """Which positions each position of a batch may attend to, (B, T) -> (B, 1, T, T).

    True where the key is not padding and not later than the query.
    """
    T = ids.size(1)
    causal = torch.ones(T, T, dtype=torch.bool, device=ids.device).tril()
    return causal & (ids != pad_id)[:, None, None, :]


IDS = torch.tensor([[5, 6, 7, 0], [0, 0, 8, 9]])
REAL = (IDS != 0).tolist()
_IDS = f"for ids={short(IDS)}"


def test_mask_shape(answer):
    """the mask is boolean, with an axis for the heads"""
    got = tensor(answer(IDS), _IDS)
    expect(got.dtype == torch.bool, f"{_IDS}, the dtype is {got.dtype}, expected torch.bool")
    why = "a row for each query and a column for each key"
    if got.dim() == 3:
        why = "scores have four axes, and a mask of three lines its batch up with their heads"
    message = f"{_IDS}, the shape is {tuple(got.shape)}, expected (2, 1, 4, 4): {why}"
    expect(got.shape == (2, 1, 4, 4), message)


def _cells(answer, wanted, note):
    """Cell by cell: what it should be is wanted(b, t, s), or None for whatever it is."""
    got = tensor(answer(IDS), _IDS)
    got = got[:, None] if got.dim() == 3 else got  # the shape has a test of its own
    fits = got.dim() <= 4 and all(
        size in (1, full) for size, full in zip(got.shape[::-1], (4, 4, 1, 2), strict=False)
    )
    expect(fits, f"{_IDS}, the shape is {tuple(got.shape)}, expected (2, 1, 4, 4)")
    if not fits:
        return
    got = got.expand(2, 1, 4, 4)[:, 0]
    for b, t, s in itertools.product(range(2), range(4), range(4)):
        value, right = bool(got[b, t, s]), wanted(b, t, s)
        message = f"{_IDS}, sentence {b}, query {t} and key {s}: {value}; {note}"
        expect(right is None or value == right, message)


def test_no_future(answer):
    """no position attends to a later one"""
    _cells(answer, lambda b, t, s: False if s > t else None, "a later key is hidden, so False")


def test_sees_itself(answer):
    """a real position attends to itself"""
    note = "a position may attend to itself, so True"
    _cells(answer, lambda b, t, s: True if s == t and REAL[b][t] else None, note)


def test_sees_past(answer):
    """a position attends to the real positions before it"""
    note = "an earlier word may be attended to, so True"
    _cells(answer, lambda b, t, s: True if s < t and REAL[b][s] else None, note)


def test_no_padding(answer):
    """no position attends to padding"""
    note = "padding is never attended to, so False"
    _cells(answer, lambda b, t, s: None if REAL[b][s] else False, note)


def test_other_pad(answer):
    """the padding id is the argument"""
    got = tensor(answer(torch.tensor([[0, 9]]), 9), "for ids=[[0, 9]], pad_id=9")
    where, note = "for ids=[[0, 9]], pad_id=9, the four cells", "Here 9 is padding and 0 is a word."
    same(got.reshape(-1), [True, False, True, False], where, note=note)


def test_any_length(answer):
    """any number of sentences of any length, down to a single word"""
    for ids in (torch.tensor([[4]]), torch.tensor([[3, 0], [0, 3], [3, 4]]), IDS[:, :3]):
        wanted = [
            [[[s <= t and row[s] != 0 for s in range(len(row))] for t in range(len(row))]]
            for row in ids.tolist()
        ]
        agrees(answer, torch.tensor(wanted), ids)


def test_mask_elsewhere(answer):
    """the mask is made where the ids are"""
    travels(answer, IDS)


MISTAKES = r"""
look-ahead inverted
    return causal => return ~causal
    says: a later key is hidden
    `triu(1)` marks the future, which has to be hidden. A model with your mask sees nothing but
    the future: training looks perfect, generation gets nothing right.
padding forgotten
    causal & (ids != pad_id)[:, None, None, :] => causal.expand(len(ids), 1, -1, -1)
    says: padding is never attended to
    Padding on the right lies in the future of every word, so the causal mask happens to hide
    it. Padding on the left, or in the middle, is attended to.
diagonal excluded
    tril() => tril(-1)
    says: a position may attend to itself
    `tril(-1)` hides the diagonal too. The input is already shifted by one, so a position may
    see itself; otherwise the first one has nothing to see.
no axis for the heads
    [:, None, None, :] => [:, None, :]
    says: lines its batch up with their heads
    Broadcasting aligns shapes from the right, so (B, T, T) meets (B, H, T, T) as (1, B, T, T).
    It crashes, unless B equals H: then head h silently gets the mask of sentence h.
True means hide
    causal & (ids != pad_id) => ~causal | (ids == pad_id)
    says: a later key is hidden
    This is the opposite convention, that of `nn.MultiheadAttention`. In this course True means
    “may attend”.
the future in place of the past
    tril() => triu()
    says: a later key is hidden
    `triu` keeps what is above the diagonal, where the key is later than the query. What may be
    seen lies below: `tril`.
padding hides queries, not keys
    [:, None, None, :] => [:, None, :, None]
    says: padding is never attended to
    Padding has to be hidden as a key, along the last axis, where the softmax runs.
padding hides queries too
    return causal => return causal & (ids != pad_id)[:, None, :, None]
    says: an earlier word may be attended to
    Hiding padding as a key is enough. What a padded query finds is never read, and a row
    without a visible key may give NaN.
a triangle on the CPU
    , device=ids.device =>
    says: on another device
    `torch.ones` is on the CPU unless it is told otherwise: give it `device=ids.device`.
"""
