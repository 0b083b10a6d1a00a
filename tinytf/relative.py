"""Positions inside attention: rotary (RoPE) and linear biases (ALiBi).

Both act on scores, not on embeddings, and depend on the distance of query and key alone. A layer
gets one by assignment: `layer.attention = RotaryAttention()`. They are for self-attention: in
cross-attention the two positions count along different sentences, and their distance says nothing.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytf.attention import attention_weights, fused_attention
from tinytf.masks import check_mask

__all__ = [
    "AlibiAttention",
    "RotaryAttention",
    "alibi_bias",
    "alibi_slopes",
    "apply_rotary",
    "half_split_order",
    "rotary_angles",
    "rotate",
]


def rotary_angles(
    length: int,
    width: int,
    start: int = 0,
    base: float = 10000.0,
    device: torch.device | None = None,
    positions: Tensor | None = None,
) -> Tensor:
    """Tabulate by how much RoPE turns each pair at each position: (length, width / 2), in radians.

    Pair i of position p turns by p · base^(-2i/width), p counted from `start`. Or `positions` are
    given, (..., length) in place of length and start: then (..., length, width / 2). Computed and
    returned in float64 (float32 where the device has none): at position 100,000 bfloat16 could not
    tell one position from the next. Raises ValueError for an odd width. Source: Su et al. 2021,
    equation 15.
    """
    if width % 2 != 0:
        raise ValueError(f"RoPE turns pairs of numbers: a head width of {width} is odd")
    kind = torch.float32 if device is not None and device.type == "mps" else torch.float64
    if positions is None:
        positions = torch.arange(start, start + length, device=device)
    frequency = base ** (-torch.arange(0, width, 2, dtype=kind, device=device) / width)
    return positions.to(kind)[..., None] * frequency


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Turn each neighbouring pair (x[2i], x[2i+1]) of the last axis by its angle.

    x is (..., T, D), angles are (T, D / 2) in radians; leading axes and an axis of length 1
    broadcast. The result has the dtype of x, and half precision is turned in float32. Pairs are
    neighbours as in Su et al. 2021, equation 34; Hugging Face's Llama pairs i with i + D/2:
    `half_split_order` leads from one to the other.
    """
    kind = x.dtype if x.dtype == torch.float64 else torch.float32
    cos, sin = angles.cos().to(kind), angles.sin().to(kind)
    even, odd = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
    return pairs.flatten(-2).to(x.dtype)  # (..., T, D / 2, 2) -> (..., T, D)


def apply_rotary(
    x: Tensor, start: int = 0, base: float = 10000.0, positions: Tensor | None = None
) -> Tensor:
    """Turn queries or keys x (B, H, T, D) by their positions: start, start + 1, … (RoPE).

    Or by `positions` that are given, (T,) or (B, T). Raises ValueError for an odd D. Source: Su et
    al. 2021 (RoFormer), section 3.2.
    """
    if positions is not None and positions.dim() == 2:
        positions = positions[:, None]  # (B, T) -> (B, 1, T): alike for all heads
    return rotate(x, rotary_angles(x.size(-2), x.size(-1), start, base, x.device, positions))


def half_split_order(width: int) -> Tensor:
    """Give the order of dimensions that brings neighbouring pairs into two halves: 0 2 4 … 1 3 5 ….

    With it, `rotate(x, a)[..., order]` equals the half-split rotation of `x[..., order]`. To run a
    checkpoint trained with one convention under the other, reorder the rows of each head's query
    and key projections: the scores are the same.
    """
    return torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])


def alibi_slopes(num_heads: int) -> Tensor:
    """Give each head its slope: (H,).

    For a power of two, 2^(-8/H), 2^(-16/H), … 2^-8. For other numbers, those of the power of two
    below, then every other one of the power above, from its first on. Source: Press et al. 2022,
    section 3 and the authors' code (for other numbers).
    """
    if num_heads < 1:
        raise ValueError(f"num_heads={num_heads} must be at least 1")
    below = 2 ** int(math.log2(num_heads))

    def powers(heads: int) -> list[float]:
        return [2 ** (-8 * (h + 1) / heads) for h in range(heads)]

    return torch.tensor(powers(below) + powers(2 * below)[0::2][: num_heads - below])


def alibi_bias(slopes: Tensor, length: int, keys: int | None = None) -> Tensor:
    """Tabulate -slope · |distance|: (H, T, S), in the dtype of the slopes.

    The T queries are the last of the S positions (S = T unless `keys` is given), as they are when
    a cache holds the earlier ones. Raises ValueError if T > S. Source: Press et al. 2022, section
    3, which is causal; |distance| extends it to both sides.
    """
    keys = length if keys is None else keys
    _check_lengths("ALiBi", length, keys)
    key = torch.arange(keys, device=slopes.device)
    query = key[keys - length :, None]
    return -slopes[:, None, None] * (query - key).abs()  # (H, 1, 1) * (T, S) -> (H, T, S)


@dataclass(frozen=True)
class RotaryAttention:
    """Attention whose queries and keys are turned by their positions (RoPE).

    A score then depends on the contents and on the distance alone. For self-attention only; the
    T queries are the last of the S positions, which count from 0 unless `positions` says otherwise,
    (S,) or (B, S). Values are not turned. A cache holds keys unturned, and they are turned at each
    call. Raises ValueError for an odd head width, and for more queries
    than keys. Source: Su et al. 2021 (RoFormer), section 3.2.
    """

    base: float = 10000.0

    positions: Tensor | None = None

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
    ) -> Tensor:
        """Map q (B, H, T, D), k and v (B, H, S, D) to (B, H, T, D)."""
        return fused_attention(*self.turned(q, k), v, mask, dropout)

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
        """Give the weights that the call mixes values by, (B, H, T, S)."""
        return attention_weights(*self.turned(q, k), mask)

    def turned(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Turn the queries and the keys by the angles of their positions."""
        before = k.size(-2) - q.size(-2)
        _check_lengths("RoPE", q.size(-2), k.size(-2))
        last = None if self.positions is None else self.positions[..., before:]
        q = apply_rotary(q, before, self.base, last)
        return q, apply_rotary(k, 0, self.base, self.positions)


@dataclass(frozen=True)
class AlibiAttention:
    """Attention whose scores fall by a slope per head with each step of distance (ALiBi).

    For self-attention only; the T queries are the last of the S positions. `slopes`, one per
    head, default to `alibi_slopes`. A row with nothing to attend to gives zeros. Raises ValueError
    for a number of slopes that is not the number of heads, and for more queries than keys.
    Source: Press et al. 2022, section 3.
    """

    slopes: tuple[float, ...] | None = None

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
    ) -> Tensor:
        """Map q (B, H, T, D), k and v (B, H, S, D) to (B, H, T, D)."""
        bias = self._bias(q, k)
        check_mask(mask, q, k)
        if mask is None:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropout)
        # A finite number hides a key exactly, and keeps gradients finite where all are hidden.
        hidden = torch.finfo(bias.dtype).min
        bias = torch.where(mask, bias, hidden)
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropout)
        return heads.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
        """Give the weights that the call mixes values by, (B, H, T, S)."""
        check_mask(mask, q, k)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)) + self._bias(q, k)
        if mask is None:
            return scores.softmax(dim=-1)
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        return scores.softmax(dim=-1).masked_fill(~mask, 0.0)

    def _bias(self, q: Tensor, k: Tensor) -> Tensor:
        """Tabulate the bias for these queries and keys: (1, H, T, S), in the dtype of q."""
        heads = q.size(1)
        slopes = alibi_slopes(heads) if self.slopes is None else torch.tensor(self.slopes)
        if len(slopes) != heads:
            raise ValueError(f"{len(slopes)} slopes for {heads} heads: each head needs one")
        return alibi_bias(slopes.to(q.device), q.size(2), k.size(2)).to(q.dtype)[None]


def _check_lengths(name: str, queries: int, keys: int) -> None:
    if queries > keys:
        raise ValueError(
            f"{queries} queries for {keys} keys: {name} is for self-attention, where the queries "
            "are the last of the positions"
        )
