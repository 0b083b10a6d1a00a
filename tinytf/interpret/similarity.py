"""How alike: the tokens of one sequence, or one token before and after a layer.

"Collapse" is said of both, and they are different things. Each function maps (B, T, C) to one
number per sequence, (B,), computed at least in float32. A mask says which tokens are real, True =
real: (B, T), or (B, 1, 1, T) as `padding_mask` makes it.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["layer_similarity", "rank_one_residual", "token_similarity"]


def token_similarity(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean cosine over all pairs of distinct real tokens of x (B, T, C): 1 if they are parallel.

    Raises ValueError where a sequence has fewer than two real tokens, or the mask does not fit.
    """
    real = _real_tokens(x, mask, at_least=2)
    u = F.normalize(_wide(x).where(real, 0.0), dim=-1)
    # |sum of u|^2 counts every pair twice and every token once with itself
    pairs = u.sum(dim=1).square().sum(dim=-1) - u.square().sum(dim=(1, 2))
    n = real.sum(dim=(1, 2))
    return pairs / (n * (n - 1))


def layer_similarity(a: Tensor, b: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean over real tokens of the cosine of a token in a and the same token in b, both (B, T, C).

    With a and b before and after a layer: 1 if the layer changed no direction. Raises ValueError
    where the shapes differ, a sequence has no real token, or the mask does not fit.
    """
    if a.shape != b.shape:
        raise ValueError(f"a is of shape {tuple(a.shape)}, b of {tuple(b.shape)}: one state each")
    real = _real_tokens(a, mask)
    cosine = F.cosine_similarity(_wide(a).where(real, 0.0), _wide(b).where(real, 0.0), dim=-1)
    return cosine.sum(dim=1) / real.sum(dim=(1, 2))


def rank_one_residual(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """Share of x (B, T, C) that is not the same vector at every real token: 0 if all are equal.

    ||x - 1 m||_F / ||x||_F with m the mean token, the best single vector in the Frobenius norm; at
    most 1. Dong et al. 2021, section 2, measure the same residual in sqrt(||.||_1 ||.||_inf), which
    their proof needs: the numbers differ, the meaning of 0 does not. Raises ValueError where a
    sequence has no real token, or the mask does not fit.
    """
    real = _real_tokens(x, mask)
    x = _wide(x).where(real, 0.0)
    mean = x.sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True)
    left, whole = ((t.where(real, 0.0)).flatten(1).norm(dim=1) for t in (x - mean, x))
    return left / whole.clamp_min(torch.finfo(whole.dtype).tiny)


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _real_tokens(x: Tensor, mask: Tensor | None, at_least: int = 1) -> Tensor:
    """The mask as (B, T, 1), checked."""
    if x.dim() != 3:
        raise ValueError(f"expected states of shape (B, T, C), got {tuple(x.shape)}")
    b, t, _ = x.shape
    if mask is None:
        mask = torch.ones(b, t, dtype=torch.bool, device=x.device)
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean (True = real), got {mask.dtype}")
    if tuple(mask.shape) not in ((b, t), (b, 1, 1, t)):
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} does not fit states of shape {tuple(x.shape)}: "
            f"it needs ({b}, {t}) or ({b}, 1, 1, {t})"
        )
    real = mask.reshape(b, t, 1)
    short = real.sum(dim=(1, 2)) < at_least
    if short.any():
        row = int(short.int().argmax())
        raise ValueError(
            f"sequence {row} has {int(real[row].sum())} real tokens, needed are {at_least}"
        )
    return real
