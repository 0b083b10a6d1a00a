"""Hide some words of a sentence, for an encoder to predict (BERT's masked words)."""

from typing import NamedTuple

import torch
from torch import Tensor

from tinytf.text.words import SPECIALS

__all__ = ["Masked", "mask_tokens"]


class Masked(NamedTuple):
    """A batch with some of its words chosen, and most of those hidden."""

    ids: Tensor  # (B, S), the encoder's input
    chosen: Tensor  # (B, S), True where it has to predict the word


def mask_tokens(
    ids: Tensor,
    mask_id: int,
    generator: torch.Generator,
    share: float = 0.15,
    masked: float = 0.8,
    swapped: float = 0.1,
) -> Masked:
    """Choose each word with probability `share`; hide, swap or keep the chosen ones.

    ids is (B, S). Of the chosen, a share `masked` becomes `mask_id`, a share `swapped` a word drawn
    at random, and the rest stays as it is, so that the encoder can't trust a word it reads. Words
    are the ids from 3 up to mask_id - 1: <pad>, <bos> and <eos> are never chosen and never drawn,
    and a drawn word may be the original one. A sentence may have no chosen word. What is drawn
    depends on the generator alone, not on the device of `ids`, which are left as they are; the
    returned ids have their dtype.
    Raises ValueError for shares outside [0, 1] or that sum to more than 1, for ids not of rank 2
    and for ids from `mask_id` on. Source: Devlin et al. 2019 (BERT), section 3.1, appendix A.1.
    """
    _check(ids, mask_id, share, masked, swapped)
    first = len(SPECIALS)
    where = generator.device
    drawn, fate = torch.rand(2, *ids.shape, generator=generator, device=where).to(ids.device)
    words = torch.randint(first, mask_id, ids.shape, generator=generator, device=where)
    chosen = (drawn < share) & (ids >= first)
    read = ids.masked_fill(chosen & (fate < masked), mask_id)
    swap = chosen & (fate >= masked) & (fate < masked + swapped)
    return Masked(torch.where(swap, words.to(ids), read), chosen)


def _check(ids: Tensor, mask_id: int, share: float, masked: float, swapped: float) -> None:
    for name, value in (("share", share), ("masked", masked), ("swapped", swapped)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must lie in [0, 1], got {value}")
    if masked + swapped > 1:
        raise ValueError(f"masked={masked} and swapped={swapped} sum to more than 1")
    if ids.dim() != 2:
        raise ValueError(f"ids must be of shape (B, S), got {tuple(ids.shape)}")
    if mask_id <= len(SPECIALS):
        raise ValueError(f"mask_id={mask_id} leaves no word: words are 3..mask_id - 1")
    if ids.numel() and int(ids.max()) >= mask_id:
        raise ValueError(f"id {int(ids.max())} is not below mask_id={mask_id}: give unmasked ids")
