"""Attention that costs less: tile by tile, in windows, and by maps that need no softmax.

Source: Milakov and Gimelshein 2018 and Dao et al. 2022 (tiles), Beltagy et al. 2020 (Longformer),
Zaheer et al. 2020 (BigBird), Katharopoulos et al. 2020.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytf.masks import causal_mask

__all__ = [
    "add_tile",
    "feature_map",
    "global_and_window_mask",
    "linear_attention",
    "linear_attention_weights",
    "tiled_attention",
    "window_attention",
    "window_mask",
]


State = tuple[Tensor, Tensor, Tensor]


def add_tile(state: State, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> State:
    """Add one tile of keys (..., S, D) and values to the state of queries (..., T, D).

    `state` is the largest score q·k/√D so far and the sum of exp(score - largest), each
    (..., T, 1), and the sum of the values with those weights. Returns a new state in the dtype of
    the old one. mask (..., T, S) is True where a query may attend to a key. Source: Milakov and
    Gimelshein 2018, algorithm 3.
    """
    largest, total, mix = state
    scores = (q @ k.mT / math.sqrt(q.size(-1))).to(mix.dtype)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
    weights, shrink = (scores - new).exp(), (largest - new).exp()
    total = total * shrink + weights.sum(dim=-1, keepdim=True)
    return new, total, mix * shrink + weights @ v.to(mix.dtype)


def tiled_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, tile: int = 64
) -> Tensor:
    """Compute `explicit_attention` tile by tile, never holding more than tile × tile scores.

    Shapes as there, also of the mask, whose axes may be 1; a row with nothing to attend to gives
    zeros. A tile in which the mask hides everything is not computed. Sums are in float32 or wider,
    the result is in the dtype of q. For the backward pass autograd still keeps every tile; fused
    kernels compute them again. Raises ValueError for a tile below 1. Source: Dao et al. 2022,
    algorithm 1.
    """
    if tile < 1:
        raise ValueError(f"tile must be at least 1, got {tile}")
    wide = torch.promote_types(q.dtype, torch.float32)
    if mask is not None:
        mask = mask.expand(*mask.shape[:-2], q.size(-2), k.size(-2))
    rows = []
    for t in range(0, q.size(-2), tile):
        some = q[..., t : t + tile, :]
        largest = torch.full_like(some[..., :1], torch.finfo(wide).min, dtype=wide)
        mix = v.new_zeros((*some.shape[:-1], v.size(-1)), dtype=wide)
        state = largest, torch.zeros_like(largest), mix
        for s in range(0, k.size(-2), tile):
            seen = None if mask is None else mask[..., t : t + tile, s : s + tile]
            if seen is None or seen.any():
                keys, values = k[..., s : s + tile, :], v[..., s : s + tile, :]
                state = add_tile(state, some, keys, values, seen)
        _, total, mix = state
        rows.append(mix / total.masked_fill(total == 0, 1.0))
    return torch.cat(rows, dim=-2).to(q.dtype)


def window_mask(
    length: int, window: int, causal: bool = False, device: torch.device | None = None
) -> Tensor:
    """Let each position attend to those fewer than `window` steps away: (1, 1, T, T).

    A window of 1 is the position itself; one of `length` is all. With `causal`, only itself and
    the window - 1 before it. Raises ValueError for a window below 1. Source: Beltagy et al. 2020,
    section 3.1, whose width counts both sides.
    """
    if window < 1:
        raise ValueError(f"window must be at least 1, the position itself, got {window}")
    at = torch.arange(length, device=device)
    mask = ((at[:, None] - at).abs() < window)[None, None]
    return mask & causal_mask(length, device) if causal else mask


def global_and_window_mask(
    length: int, window: int, num_global: int, device: torch.device | None = None
) -> Tensor:
    """Let the first `num_global` positions attend to all and all to them, the others to a window.

    (1, 1, T, T). BigBird adds a few random keys to each position. Raises ValueError for a window
    below 1 or a number outside 0..length. Source: Zaheer et al. 2020, section 2.
    """
    if not 0 <= num_global <= length:
        raise ValueError(f"num_global={num_global} must lie in 0..length={length}")
    chosen = torch.arange(length, device=device) < num_global
    return window_mask(length, window, device=device) | chosen | chosen[:, None]


def window_attention(q: Tensor, k: Tensor, v: Tensor, window: int) -> Tensor:
    """Attend to the last `window` positions, never computing a score outside 2 blocks of them.

    q, k (B, H, T, D) and v (B, H, T, D) -> (B, H, T, D), as explicit attention under the causal
    `window_mask`. Queries are cut into blocks of `window`; each block meets its own keys and those
    of the block before. Time and memory grow with T × window. Raises ValueError for a window below
    1, or lengths that differ.
    """
    length = q.size(-2)
    if window < 1 or k.size(-2) != length or v.size(-2) != length:
        raise ValueError(f"window={window}, lengths {length}, {k.size(-2)} and {v.size(-2)}: they "
                         "need a window of at least 1 and one length")  # fmt: skip
    short = -length % window
    q, k, v = (F.pad(x, (0, 0, 0, short)).unflatten(2, (-1, window)) for x in (q, k, v))
    k, v = (torch.cat([F.pad(x, (0, 0, 0, 0, 1, 0))[:, :, :-1], x], dim=3) for x in (k, v))
    scores = q @ k.mT / math.sqrt(q.size(-1))  # (B, H, blocks, W, D) -> (B, H, blocks, W, 2W)
    at = torch.arange(window, device=q.device)
    seen = torch.arange(-window, window, device=q.device)  # positions of the keys within the block
    mask = (seen <= at[:, None]) & (seen > at[:, None] - window)
    blocks = torch.arange(q.size(2), device=q.device)[:, None, None]
    mask = mask & (blocks * window + seen >= 0)  # the first block has none before it
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
    return (weights @ v).flatten(2, 3)[:, :, :length]


def feature_map(x: Tensor) -> Tensor:
    """Return elu(x) + 1, which is positive. Source: Katharopoulos et al. 2020, equation 7."""
    return F.elu(x) + 1


def linear_attention_weights(q: Tensor, k: Tensor, causal: bool = False) -> Tensor:
    """Give linear attention's weights, which it never computes: φ(q)·φ(k), each row summing to 1.

    q, k (..., T, D) -> (..., T, T). With `causal`, later keys get 0.
    """
    scores = feature_map(q) @ feature_map(k).mT
    scores = scores.tril() if causal else scores
    return scores / scores.sum(dim=-1, keepdim=True)


def linear_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Compute linear attention from the right: φ(q) (φ(k)ᵀ v), divided by φ(q)·Σφ(k).

    Shapes as `explicit_attention`. This is the sum of the values with the weights φ(q)·φ(k), each
    row divided by its sum (`linear_attention_weights`), which are never computed. Keys and values
    leave only a (D, D) matrix and a vector, so time grows with T × D². With `causal`, each position
    has a matrix of its own, the running sum. As written here all of them exist at once, and memory
    grows with T × D², more than the T² of an attention map while T < D². Source:
    Katharopoulos et al. 2020, equations 6 and 9 to 12.
    """
    q, k = feature_map(q), feature_map(k)
    if causal:
        state = (k[..., :, None] * v[..., None, :]).cumsum(dim=-3)  # (..., T, D, D)
        mixed = (q[..., None, :] @ state).squeeze(-2)
        norm = (q * k.cumsum(dim=-2)).sum(dim=-1, keepdim=True)
        return mixed / norm
    mixed = q @ (k.mT @ v)  # (..., D, D) in between
    return mixed / (q @ k.sum(dim=-2)[..., None])
