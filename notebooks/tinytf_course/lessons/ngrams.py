"""What n-gram models make of a text: bits of every id, counted from a training text.

A model that gives a token probability p could store it in -log2 p bits (Shannon 1948, section 9).
Everything is fitted to training text and measured on another.
"""

import torch
from torch import Tensor

__all__ = [
    "bigram_bits",
    "unigram_bits",
]


def unigram_bits(train: Tensor, text: Tensor, vocab_size: int) -> Tensor:
    """Bits of every id of `text` (N,), each predicted from how often it stands in `train`.

    Add-one smoothing: every id counts once more than it was seen, so that none is impossible.
    Returns (N,) in float64. Raises ValueError if a text is empty, not of one axis, or holds an id
    outside the vocabulary.
    """
    _check_ids(train, vocab_size, "train")
    _check_ids(text, vocab_size, "text")
    return -_unigram(train, vocab_size)[text].log2()


def bigram_bits(train: Tensor, text: Tensor, vocab_size: int) -> Tensor:
    """Bits of every id of `text` (N,), each predicted from the one before it.

    p(b | a) = (count(a b) + kinds(a) · p(b)) / (count(a) + kinds(a)): what was never seen after `a`
    is left a share that grows with the number of different ids that followed `a`, and is spread as
    `unigram_bits` does, which also predicts the first id. Source: Witten and Bell 1991, method C.
    Returns (N,) in float64 and raises as `unigram_bits`.
    """
    _check_ids(train, vocab_size, "train")
    _check_ids(text, vocab_size, "text")
    single = _unigram(train, vocab_size)
    pairs, seen = (train[:-1] * vocab_size + train[1:]).unique(return_counts=True)
    before = train[:-1].bincount(minlength=vocab_size)  # how often an id is followed at all
    kinds = (pairs // vocab_size).bincount(minlength=vocab_size)
    a, b = text[:-1], text[1:]
    count = _look_up(pairs, seen, a * vocab_size + b)
    given = (count + kinds[a] * single[b]) / (before[a] + kinds[a])
    given = torch.where(before[a] > 0, given, single[b])  # nothing is known of what follows a
    return -torch.cat([single[text[:1]], given]).log2()


def _unigram(train: Tensor, vocab_size: int) -> Tensor:
    counts = train.bincount(minlength=vocab_size).double() + 1
    return counts / counts.sum()


def _look_up(keys: Tensor, values: Tensor, asked: Tensor) -> Tensor:
    """Give the value of each key that is asked for, 0 where there is none; `keys` is sorted."""
    if not len(keys):
        return torch.zeros_like(asked)
    at = torch.searchsorted(keys, asked).clamp(max=len(keys) - 1)
    return torch.where(keys[at] == asked, values[at], 0)


def _check_ids(ids: Tensor, vocab_size: int, name: str) -> None:
    if ids.dim() != 1 or not len(ids):
        raise ValueError(f"{name} must be ids of shape (N,), N ≥ 1, got {tuple(ids.shape)}")
    if int(ids.min()) < 0 or int(ids.max()) >= vocab_size:
        bad = int(ids.max()) if int(ids.max()) >= vocab_size else int(ids.min())
        raise ValueError(f"id {bad} of {name} is outside the vocabulary 0..{vocab_size - 1}")
