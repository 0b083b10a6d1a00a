"""Attention masks: boolean, True = may attend, the convention of `F.scaled_dot_product_attention`.

`nn.MultiheadAttention` and many tutorials mean the opposite (True = hide). Masks are combined with
`&` and applied in one place, `tinytf.attention`.
"""

import torch
from torch import Tensor

__all__ = ["CAUSAL", "causal_mask", "check_mask", "padding_mask", "written_out"]

CAUSAL = "causal"  # goes where a mask goes: the causal one, left to the kernel to know


def padding_mask(ids: Tensor, pad_id: int = 0) -> Tensor:
    """Mark the real tokens of a batch: (B, S) ids -> (B, 1, 1, S), False at padding.

    The two axes of size 1 are those of heads and queries: every head and every query of a sentence
    may attend to the same keys. Raises ValueError if `ids` is not of rank 2.
    """
    if ids.dim() != 2:
        raise ValueError(f"ids must be of shape (B, S), got {tuple(ids.shape)}")
    return (ids != pad_id)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Let position t attend to positions 0..t: (1, 1, T, T), lower triangle with its diagonal.

    Source: Vaswani et al. 2017, section 3.2.3.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def written_out(mask: Tensor | str | None, length: int, keys: int, device=None) -> Tensor | None:
    """Write `CAUSAL` out for `length` queries, the last of `keys` positions: (1, 1, T, S), or None.

    None where there is nothing to hide: a single new position may see all before it. Any other mask
    is returned as it is. Raises ValueError for more queries than keys.
    """
    if mask is not CAUSAL:
        return mask
    if length > keys:
        raise ValueError(f"{length} queries can't be the last of {keys} positions: causal is more")
    if length == 1:
        return None
    return torch.ones(length, keys, dtype=torch.bool, device=device).tril(keys - length)[None, None]


def check_mask(mask: Tensor | None, q: Tensor, k: Tensor) -> None:
    """Refuse a mask that is not boolean or does not fit scores of shape (..., T, S).

    A mask must have the rank of the scores, so that it can't line up with the wrong axis: a
    (B, T, S) mask would meet the heads of (B, H, T, S) scores whenever B or T happens to equal H.
    Raises TypeError for the dtype and ValueError for the shape.
    """
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = mask.dtype if isinstance(mask, Tensor) else repr(mask)
        raise TypeError(f"mask must be boolean (True = may attend), got {kind}")
    scores = (*q.shape[:-1], k.size(-2))
    fits = mask.dim() == len(scores) and all(
        m in (1, s) for m, s in zip(mask.shape, scores, strict=True)
    )
    if not fits:
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} does not fit scores of shape {scores}: "
            f"it needs {len(scores)} axes, each 1 or equal"
        )
