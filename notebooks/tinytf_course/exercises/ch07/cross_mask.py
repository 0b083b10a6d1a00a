"""07.2 the mask of cross-attention (★☆☆, 6 minutes)

Write `my_cross_mask(src_ids, tgt_ids, pad_id=0)`, the boolean mask of cross-attention from the
target tokens `(B, T)` to the source tokens `(B, S)`, where `True` means that a token may be
attended to. It has four axes, `(B, 1, T, S)`; a size of 1 in place of T is accepted, because the
mask is the same for all target tokens.

Hint: Which of the two sentences do the keys come from?
"""

import itertools

import torch

from tinytf_course.expect import expect, given, short, tensor


def my_cross_mask(src_ids, tgt_ids, pad_id=0):
    """What target tokens may attend to in the source, True = may: (B, 1, T, S), or T of size 1.

    src_ids is (B, S), tgt_ids (B, T). Hides the source's padding, and nothing else.
    """
    return (src_ids != pad_id)[:, None, None, :]


def _ids(*rows):
    return torch.tensor(rows)


SRC, TGT = _ids([5, 6, 7], [8, 9, 0]), _ids([3, 4], [3, 0])
_CROSS = f"for src_ids={short(SRC)}, tgt_ids={short(TGT)}"


def test_cross_fits(answer):
    """it is boolean and fits scores of shape (B, H, T, S)"""
    got = tensor(answer(SRC, TGT), _CROSS)
    expect(got.dtype == torch.bool, f"{_CROSS}, the dtype is {got.dtype}, expected torch.bool")
    shape = tuple(got.shape)
    message = f"{_CROSS}, the shape is {shape}, expected (2, 1, 2, 3), or (2, 1, 1, 3)"
    expect(shape in ((2, 1, 2, 3), (2, 1, 1, 3)), message)


def _cross_cells(answer, wanted, why, src=SRC, tgt=TGT, *pad_id):
    """Cell by cell: what it should be is `wanted`, a function of the source's id, or None."""
    where = given(answer, (src, tgt, *pad_id))
    got = tensor(answer(src, tgt, *pad_id), where)
    B, T, S = len(src), tgt.size(1), src.size(1)
    try:
        got = got.expand(B, 1, T, S)
    except RuntimeError:
        expect(False, f"{where}, the shape is {tuple(got.shape)}, expected {(B, 1, T, S)}")
    for b, t, s in itertools.product(range(B), range(T), range(S)):
        value, right = bool(got[b, 0, t, s]), wanted(src[b, s].item())
        message = f"{where}, sentence {b}, target {t}, source {s}: {value}; {why}"
        expect(right is None or value == right, message)


def test_cross_hides(answer):
    """the source's padding is hidden"""
    _cross_cells(answer, lambda id: False if id == 0 else None, "padding is never attended to")


def test_cross_shows(answer):
    """every real source word may be seen, also a later one"""
    why = "the whole source is known before the first target word is written"
    _cross_cells(answer, lambda id: True if id != 0 else None, why)


def test_cross_sizes(answer):
    """also where source and target are of one length, or of one word"""
    why = "the source's padding is hidden, and nothing else"
    _cross_cells(answer, lambda id: id != 0, why, _ids([7], [0], [5]), _ids([3], [4], [0]))
    square = _ids([5, 0, 0], [1, 7, 0], [8, -1, 4]), _ids([3, 4, 0], [3, 0, 0], [3, 5, 0])
    _cross_cells(answer, lambda id: id != 0, why, *square)


def test_cross_anywhere(answer):
    """also padding at the beginning, or between words"""
    why = "a source word is real where its id is not `pad_id`, at any place"
    _cross_cells(answer, lambda id: id != 0, why, _ids([0, 0, 7, 8]), _ids([3]))
    _cross_cells(answer, lambda id: id != 0, why, _ids([6, 0, 7], [0, 8, 8]), _ids([3, 4], [3, 0]))


def test_cross_pad_id(answer):
    """the padding id is the argument"""
    _cross_cells(answer, lambda id: id != 9, "`pad_id` is 9", _ids([0, 9]), _ids([9]), 9)
    _cross_cells(answer, lambda id: id != -1, "`pad_id` is -1", _ids([0, -1, 5]), _ids([2]), -1)


MISTAKES = r"""
the target's padding
    src_ids != => tgt_ids !=
    says: the shape is (2, 1, 1, 2)
    The keys of cross-attention come from the source: it is the source's padding that must be
    hidden. With sentences of equal lengths this mistake is silent.
causal too
    None, :] => None, :] & torch.ones(tgt_ids.size(1), src_ids.size(1), dtype=torch.bool).tril()
    says: the whole source is known before
    The causal mask is for the target's own words. The source is there from the start, and
    translation reorders.
no mask
    src_ids != pad_id => torch.ones_like(src_ids, dtype=torch.bool)
    says: padding is never attended to
    The decoder then reads padding, and a translation depends on what else is in the batch.
    Nothing shows while all sentences are equally long.
True means hide
    != => ==
    says: padding is never attended to
    That is `key_padding_mask` of `nn.MultiheadAttention`. Here True means “may attend”.
counted from the left
    (src_ids != pad_id) => (torch.arange(src_ids.size(1)) < (src_ids != pad_id).sum(1)[:, None])
    says: at any place
    You count the real words and show the first so many. That holds only while padding comes
    last: compare the ids themselves.
everything after the first padding
    src_ids != pad_id => (src_ids == pad_id).cumsum(-1) == 0
    says: at any place
    Padding may come first, and then the words come after it. Compare each id by itself.
two axes
    [:, None, None, :] =>
    says: the shape is (2, 3)
    Against scores (B, H, T, S), a (B, S) mask lines its sentences up with the target words, and
    a (B, 1, S) one with the heads.
target padding hidden as well
    None, :] => None, :] & (tgt_ids != pad_id)[:, None, :, None]
    says: the whole source is known before
    A padded query's result is never read. Hiding everything from it only makes a row without a
    visible key.
pad_id ignored
    != pad_id => != 0
    says: `pad_id` is 9
    `pad_id` is an argument: vocabularies differ in it, and 0 may be a word.
ids above pad_id
    != => >
    says: `pad_id` is 9
    `>` holds only while padding has the smallest id: compare with `!=`.
"""
