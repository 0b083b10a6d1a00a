"""19.2 bits per byte (★☆☆, 8 minutes)

Write `my_bits_per_byte(losses, text)`, which turns the losses of a text's tokens, in nats, into
bits per byte, so that models with different tokenizers can be compared.

Hint: A bit is ln 2 nats. Add up the tokens; divide by the bytes of `text.encode()`.
"""

import math

import torch

from tinytf_course.expect import numbers, same, tensor
from tinytf_course.words import short


def my_bits_per_byte(losses, text):
    """How many bits a model needs for each byte of a text, a float.

    losses (N,) is the cross-entropy of each of the text's N tokens, in nats; text is the string.
    """
    return losses.sum().item() / math.log(2) / len(text.encode())


_PLAIN, _CHINESE = "a mat and a cat", "\u732b\u5750\u5728\u57ab\u5b50\u4e0a"  # 6 characters
_LOSSES = torch.tensor([1.0, 2.0, 0.5, 4.0])
_PER_TEXT = f"for losses={short(_LOSSES)} nats"


def test_in_bits(answer):
    """four tokens that cost 7.5 nats are 10.82 bits"""
    expected = 7.5 / math.log(2) / 15
    note = "All four tokens together, in bits, for the text's 15 bytes."
    same(answer(_LOSSES, _PLAIN), expected, f"{_PER_TEXT} and a text of 15 bytes", note=note)


def test_in_bytes(answer):
    """a Chinese character is three bytes"""
    expected = 7.5 / math.log(2) / 18
    note = "Six characters are 18 bytes in UTF-8."
    same(answer(_LOSSES, _CHINESE), expected, f"{_PER_TEXT} and six Chinese characters", note=note)


def test_cut_otherwise(answer):
    """a tokenizer with more tokens is measured by the same rule"""
    losses = torch.tensor([1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 2.0, 2.0])
    note = "The same nats for the same text are the same bits per byte, however it is cut."
    where = f"for losses={short(losses)} nats and a text of 15 bytes"
    same(answer(losses, _PLAIN), 7.5 / math.log(2) / 15, where, note=note)


def _in_float64(got):
    return torch.tensor(got, dtype=torch.float64) if isinstance(got, float) else got


def test_any_losses(answer):
    """for one token, for many, and in float64"""
    one = torch.tensor([math.log(2)])
    same(answer(one, "a"), 1.0, f"for losses={short(one)} nats and the text `a`", note="1 bit.")
    text = "\u00e9\U0001f431 caf\u00e9\n"  # 1 to 4 bytes a character
    for dtype in (torch.float32, torch.float64):
        losses = numbers(100, seed=1, dtype=dtype).abs()
        expected = sum(losses.tolist()) / math.log(2) / 13
        where = f"for 100 losses ({str(dtype).removeprefix('torch.')}) and a text of 13 bytes"
        exact = 1e-12 if dtype == torch.float64 else 1e-5
        got = tensor(_in_float64(answer(losses, text)), where)
        same(got, torch.tensor(expected, dtype=torch.float64), where, exact)
    many = torch.full((1000,), 5.001, dtype=torch.float64)
    where = "for 1000 losses of 5.001 nats and a text of 4000 bytes"
    expected = torch.tensor(5.001 / math.log(2) / 4, dtype=torch.float64)
    same(_in_float64(answer(many, "text" * 1000)), expected, where, 1e-12)


MISTAKES = r"""
nats
     / math.log(2) =>
    says: in bits, for the text's 15 bytes
    These are nats per byte: one bit is ln 2, about 0.69, nats.
multiplied by ln 2
    / math.log(2) => * math.log(2)
    says: in bits, for the text's 15 bytes
    A nat is more than a bit, so the number must grow: divide by ln 2.
bits per token
    sum() => mean()
     / len(text.encode()) =>
    says: in bits, for the text's 15 bytes
    Longer tokens cost more each, and there are fewer of them: per token, a larger vocabulary
    looks worse than it is.
bits per character
    text.encode() => text
    says: Six characters are 18 bytes
    That is a number too, but compressors and byte models count bytes.
the mean over tokens, by bytes
    sum() => mean()
    says: in bits, for the text's 15 bytes
    The bits of the whole text are the sum over its tokens, not their mean.
a byte taken for 8 bits of loss
    len(text.encode()) => (8 * len(text.encode()))
    says: in bits, for the text's 15 bytes
    That is the share of the file's size, between 0 and 1: a compression ratio.
rounded
    return losses => return round(losses
    .encode()) => .encode()), 4)
    says: for 100 losses
    Round where a number is printed, not where it is computed.
"""

HARMLESS = r"""
return … => return losses.sum() / …
    a tensor of one is a number, too
"""
