"""18.1 causal and padded (★★☆, 6 minutes)

Write `my_gpt_mask(length, attention_mask=None)`, which returns the boolean mask (`True` = may
attend) that a GPT needs for a batch in which some tokens are padding. `attention_mask` is `(B, T)`
with 1 for a real token and 0 for padding, as Hugging Face's tokenizers return it, or None if all
tokens are real. Return the mask on the device of `attention_mask`. A query that is padding may be
left with nothing to attend to.

Hint: Both conditions must hold: `causal & real`, with axes for the heads and the queries.
"""

import torch

from tinytf_course.expect import agrees, expect, numbers, tensor, travels
from tinytf_course.words import short


def my_gpt_mask(length, attention_mask=None):
    """Which keys each query may attend to: boolean, (1, 1, T, T), or (B, 1, T, T) with a mask.

    attention_mask is (B, T), 1 for a real token and 0 for padding, or None if all are real. True =
    may attend: the key is real and not later than the query.
    """
    device = None if attention_mask is None else attention_mask.device
    causal = torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]
    if attention_mask is None:
        return causal
    return causal & attention_mask.bool()[:, None, None, :]


_REAL = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 1]])
_ONES = torch.ones(2, 4, dtype=torch.int64)
_SAID = f"for length=4, attention_mask={short(_REAL)}"


def _four_axes(got, where, shape):
    got = tensor(got, where)
    expect(got.dtype == torch.bool, f"{where}, the dtype is {got.dtype}, expected torch.bool")
    message = f"{where}, the shape is {tuple(got.shape)}, expected {shape}: it meets (B, H, T, T)"
    expect(got.shape == shape, message)
    return got


def test_none(answer):
    """without an attention mask it is the causal mask"""
    where = "for length=3, no attention mask"
    got = _four_axes(answer(3), where, (1, 1, 3, 3))
    expect(not got.triu(1).any(), f"{where}, some query may attend to a later key")
    note = "a query may attend to itself and to every key before it"
    expect(bool(got.tril().sum() == 6), f"{where}, {int(got.sum())} of 9 are True: {note}")


def test_ones(answer):
    """a mask of ones changes nothing"""
    where = "for length=4, attention_mask all ones"
    got = _four_axes(answer(4, _ONES), where, (2, 1, 4, 4))
    leaks = int(got.triu(1).sum())
    message = f"{where}, {leaks} pairs see the future: what is real may still lie ahead"
    expect(leaks == 0, message)
    expect(bool(got.tril().sum() == 20), f"{where}, {int(got.sum())} of 32 are True, expected 20")


def test_padded(answer):
    """padding is hidden as a key, for every query"""
    got = _four_axes(answer(4, _REAL), _SAID, (2, 1, 4, 4))
    for b, t, s in ((1, 1, 0), (1, 3, 0), (0, 3, 3)):
        message = f"{_SAID}, row {b}, query {t}, key {s}: True, but that key is padding"
        expect(not got[b, 0, t, s], message)
    for b, t, s in ((0, 3, 0), (1, 3, 1), (0, 2, 2)):
        message = f"{_SAID}, row {b}, query {t}, key {s}: False, but that key is real and not later"
        expect(bool(got[b, 0, t, s]), message)


def _pair_by_pair(length, attention_mask=None):
    """Query by query, key by key."""
    rows = [[1] * length] if attention_mask is None else attention_mask.tolist()
    pairs = [
        [[[s <= t and bool(row[s]) for s in range(length)] for t in range(length)]] for row in rows
    ]
    return torch.tensor(pairs)


def test_any_batch(answer):
    """for any length and batch, padding on either side or in between, as numbers or booleans"""
    agrees(answer, _pair_by_pair, 1)
    agrees(answer, _pair_by_pair, 5)
    agrees(answer, _pair_by_pair, 1, torch.tensor([[1], [0]]))
    agrees(answer, _pair_by_pair, 2, torch.tensor([[0, 1]]), note="Padding on the left.")
    agrees(answer, _pair_by_pair, 3, torch.tensor([[1, 0, 1]]))
    real = numbers(3, 5, seed=1) > -0.5
    for mask in (real, real.long(), real.float()):
        agrees(answer, _pair_by_pair, 5, mask)


def test_mask_travels(answer):
    """the mask is on the device of the attention mask"""
    travels(answer, 4, _REAL, where=_SAID)


def _mask(join=lambda c, m: c & m[:, None, None, :], none=lambda c: c, diagonal=0):
    def mask(length, attention_mask=None):
        device = None if attention_mask is None else attention_mask.device
        ones = torch.ones(length, length, dtype=torch.bool, device=device)
        causal = ones.tril(diagonal)[None, None]
        return none(causal) if attention_mask is None else join(causal, attention_mask.bool())

    return mask


MISTAKES = r"""
the mask given replaces the causal one
    … =>
        return _mask(lambda c, m: m[:, None, None, :].expand(-1, 1, m.size(1), -1))(length, attention_mask)
    says: 12 pairs see the future
    `if attention_mask is None: mask = causal` is found in a published tutorial. With a mask of
    ones, as Hugging Face's tokenizers return it, every position then sees the future.
either will do
    … =>
        return _mask(lambda c, m: c | m[:, None, None, :])(length, attention_mask)
    says: pairs see the future
    A key must be real and not later: `&`, not `|`.
padding hides queries
    … =>
        return _mask(lambda c, m: c & m[:, None, :, None])(length, attention_mask)
    says: but that key is padding
    Padding has to be hidden as a key, along the last axis.
padding hidden as a query too
    … =>
        return _mask(lambda c, m: c & m[:, None, None, :] & m[:, None, :, None])(length, attention_mask)
    says: query 3, key 0: False, but that key is real and not later
    The output at a padded position is not used, so its query need not be hidden. A row without
    any key gives 0 / 0 in many implementations.
True = blocked
    … =>
        return ~my_gpt_mask(length, attention_mask)
    says: some query may attend to a later key
    `masked_fill` wants it so; here, as everywhere in tinytf, True = may attend.
padding ignored
    … =>
        return _mask(lambda c, m: c.expand(len(m), 1, -1, -1))(length, attention_mask)
    says: but that key is padding
    Padding on the right happens to lie in the future; padding on the left does not, and prompts
    of different length are padded on the left.
no mask where none is given
    … =>
        return _mask(none=lambda c: torch.ones_like(c))(length, attention_mask)
    says: some query may attend to a later key
    No attention mask means that all tokens are real, not that all may be seen.
made on the CPU
    … =>
        causal = torch.ones(length, length, dtype=torch.bool).tril()[None, None]
        return causal if attention_mask is None else causal & attention_mask.bool()[:, None, None, :]
    says: on another device than the CPU it fails
    A GPU's mask meets a triangle on the CPU: give that `device=attention_mask.device`.
no axis for the heads
    … =>
        return _mask(lambda c, m: c[0] & m[:, None, :])(length, attention_mask)
    says: the shape is (2, 4, 4)
    (B, T, T) meets the scores (B, H, T, T) as (1, B, T, T): the batch lines up with the heads.
a token does not see itself
    … =>
        return _mask(diagonal=-1)(length, attention_mask)
    says: 3 of 9 are True
    The targets are shifted by one: a position may see its own token, because it predicts the
    next one.
only padding on the right
    … =>
        return _mask( lambda c, m: c & (torch.arange(m.size(1)) < m.sum(1, keepdim=True))[:, None, None] )(length, attention_mask)
    says: Padding on the left
    The number of real tokens does not tell where they are: prompts are padded on the left.
"""

HARMLESS = r"""
… => ….detach()…
    a mask carries no gradient
return … => …attention_mask.float().bool()…
    as a boolean 0 stays 0
if attention_mask is None: => if device is None:
    a tensor has a device
"""
