"""Scaled dot-product attention and multi-head attention (Vaswani et al. 2017, section 3.2)."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.checks import check_heads
from tinytf.masks import CAUSAL, check_mask, written_out

__all__ = [
    "KeyValueCache",
    "MultiHeadAttention",
    "attend",
    "attention_weights",
    "explicit_attention",
    "fused_attention",
]


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """Compute how much each query attends to each key: softmax(q kᵀ / √d_k).

    q is (..., T, D), k is (..., S, D), mask is boolean with as many axes as the scores, True = may
    attend. Returns (..., T, S); each row sums to 1, a row with nothing to attend to is all zeros.
    Raises ValueError if the widths or the mask do not fit, TypeError if the mask is not boolean.
    Source: Vaswani et al. 2017, equation 1.
    """
    _check_widths(q, k)
    check_mask(mask, q, k)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is None:
        return scores.softmax(dim=-1)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1).masked_fill(~mask, 0.0)


def explicit_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """Mix the values by the attention weights, step by step, so that the weights can be seen.

    Shapes as in `attention_weights`, v is (..., S, D); returns (..., T, D).
    """
    return F.dropout(attention_weights(q, k, mask), dropout, training=dropout > 0) @ v


def fused_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | str | None = None, dropout: float = 0.0
) -> Tensor:
    """Compute `explicit_attention` in one kernel that never stores the weights.

    Same shapes. Raises ValueError as that does. In place of a mask, `CAUSAL` lets the kernel hide
    what is later: it then computes half, and no mask is made. The kernel can't be
    differentiated twice (for the gradient of a gradient): give the layers `explicit_attention` for
    that. Source: Dao et al. 2022 (FlashAttention), where the device has it.
    """
    _check_widths(q, k)
    if mask is CAUSAL and q.size(-2) == k.size(-2):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
    mask = written_out(mask, q.size(-2), k.size(-2), q.device)
    check_mask(mask, q, k)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)


def attend(
    attention: Callable[..., Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | str | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Call a layer's attention function, with `CAUSAL` written out unless it is the fused one."""
    if attention is not fused_attention:
        mask = written_out(mask, q.size(-2), k.size(-2), q.device)
    return attention(q, k, v, mask, dropout)


class KeyValueCache:
    """The keys and values one attention layer has computed so far, each (B, H, S, D).

    Self-attention appends the positions of each call; cross-attention stores the memory's once.
    `padding` is True where a stack's positions are not padding, (B, 1, 1, S), None where none is:
    the first layer's cache remembers it for `tinytf.blocks.padding_so_far`.
    """

    def __init__(self) -> None:
        self.k: Tensor | None = None
        self.v: Tensor | None = None
        self.padding: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.k is None else self.k.size(2)

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add new positions after the old ones and return all of them.

        Raises ValueError for another batch size than that of the old ones.
        """
        if self.k is not None and len(k) != len(self.k):
            raise ValueError(f"a batch of {len(k)} does not match the cache's, {len(self.k)}")
        if self.k is not None:
            k, v = torch.cat([self.k, k], dim=2), torch.cat([self.v, v], dim=2)
        self.k, self.v = k, v
        return k, v

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order; an empty cache stays empty."""
        if self.k is not None:
            self.k, self.v = self.k[rows], self.v[rows]
        if self.padding is not None:
            self.padding = self.padding[rows]


class MultiHeadAttention(nn.Module):
    """Attend in `num_heads` heads of width d_model / num_heads, then mix them.

    Source: Vaswani et al. 2017, section 3.2.2. `attention` is the function that does the work:
    the fused kernel by default; `tinytf.inspect` swaps in the explicit one to look inside.
    `d_model` and `num_heads` are kept by these names, `dropout` works on the weights, in training
    only, and without `bias` the projections have none. Raises ValueError if d_model is not
    divisible by num_heads.
    """

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        check_heads(d_model, num_heads)
        self.d_model, self.num_heads, self.dropout = d_model, num_heads, dropout
        self.w_q = nn.Linear(d_model, d_model, bias)
        self.w_k = nn.Linear(d_model, d_model, bias)
        self.w_v = nn.Linear(d_model, d_model, bias)
        self.w_o = nn.Linear(d_model, d_model, bias)
        self.attention: Callable[..., Tensor] = fused_attention

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | str | None = None,
        cache: KeyValueCache | None = None,  # service
    ) -> Tensor:
        """Attend from x (B, T, C) to itself, or to `memory` (B, S, C) where it is given.

        mask is boolean, (B or 1, H or 1, T or 1, S or 1), True = may attend, or `CAUSAL`. With a
        `cache`, self-attention sees the positions of earlier calls too, and cross-attention
        projects the memory once. Returns (B, T, C). Raises ValueError if a width is not d_model, or
        memory or cache are of another batch size.
        """
        source = x if memory is None else memory
        _check_input("x", x, self.d_model)
        _check_input("memory", source, self.d_model)
        _check_batches(x, source)
        dropout = self.dropout if self.training else 0.0
        (q,) = self._project(x, self.w_q)
        if memory is not None and cache:  # service
            _check_batches(x, memory, cache.k)  # whose keys and values need no projection any more
            heads = attend(self.attention, q, cache.k, cache.v, mask, dropout)
            return self.w_o(heads.transpose(1, 2).flatten(2))
        k, v = self._project(source, self.w_k, self.w_v)
        if cache is not None:  # service
            k, v = cache.append(k, v)
        heads = attend(self.attention, q, k, v, mask, dropout)
        return self.w_o(heads.transpose(1, 2).flatten(2))  # (B, H, T, D) -> (B, T, C)

    def _project(self, x: Tensor, *maps: nn.Module) -> list[Tensor]:
        """Project x (B, T, C) with each map and split the results into heads."""
        heads = [m(x).unflatten(-1, (self.num_heads, -1)) for m in maps]
        return [part.transpose(1, 2) for part in heads]  # each (B, T, H, D) -> (B, H, T, D)


def _check_input(name: str, x: Tensor, d_model: int) -> None:
    if x.dim() != 3 or x.size(-1) != d_model:
        raise ValueError(
            f"{name} must be of shape (B, length, d_model={d_model}), got {tuple(x.shape)}"
        )


def _check_batches(x: Tensor, memory: Tensor, kept: Tensor | None = None) -> None:
    if memory.size(0) != x.size(0) or (kept is not None and kept.size(0) != x.size(0)):
        held = "" if kept is None else f", the cache {len(kept)}"
        raise ValueError(f"x has a batch of {len(x)}, memory of {len(memory)}{held}")


def _check_widths(q: Tensor, k: Tensor) -> None:
    if q.size(-1) != k.size(-1):
        raise ValueError(
            f"queries and keys must have one width, got q {tuple(q.shape)} and k {tuple(k.shape)}"
        )
