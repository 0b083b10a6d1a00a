"""Encoder and decoder: the layers and their stacks (Vaswani et al. 2017, section 3.1)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.attention import KeyValueCache, MultiHeadAttention
from tinytf.checks import values_can_be_read
from tinytf.feedforward import FeedForward
from tinytf.masks import CAUSAL, written_out
from tinytf.residual import PostNorm, PreNorm

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "LayerCache",
    "PostNorm",
    "PreNorm",
    "decoder_mask",
    "padding_so_far",
    "token_positions",
]


def padding_so_far(
    mask: Tensor | None, length: int, cache: KeyValueCache | None = None
) -> Tensor | None:
    """Say which of all positions are no padding, those that a cache remembers included.

    `mask` is that of the `length` new ones, (B, 1, 1, T) as `padding_mask` makes it, or None where
    none of them is padding. `cache` is that of a stack's first layer: it remembers the answer for
    the next call. Returns (B, 1, 1, S), or None where nothing is padding. Raises ValueError for a
    mask of another shape, TypeError if it is not boolean.
    """
    _check_padding(mask, length)
    if mask is not None and values_can_be_read() and bool(mask.all()):
        mask = None  # nothing to hide
    if cache is None or (mask is None and cache.padding is None):
        return mask
    old, new = cache.padding, mask
    if old is None:
        old = new.new_ones(len(new), 1, 1, len(cache))
    if new is None:
        new = old.new_ones(len(old), 1, 1, length)
    cache.padding = torch.cat([old[..., : len(cache)], new], dim=-1)
    return cache.padding


def _check_padding(mask: Tensor | None, length: int) -> None:
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean (True = no padding), got {mask.dtype}")
    if mask.dim() != 4 or mask.shape[1:] != (1, 1, length):
        raise ValueError(
            f"mask must be of shape (B, 1, 1, T={length}), as padding_mask makes it, "
            f"got {tuple(mask.shape)}"
        )


def token_positions(padding: Tensor, length: int) -> Tensor:
    """Number the `length` newest tokens of each row, padding not counted: (B, 1, 1, S) -> (B, T).

    `padding` comes from `padding_so_far`. Padding in front has position 0.
    """
    return (padding.cumsum(dim=-1) - 1).clamp(min=0)[:, 0, 0, -length:]


def decoder_mask(padding: Tensor | None, length: int) -> Tensor | str:
    """Hide from the `length` newest positions what is later, and padding where there is any.

    `padding` comes from `padding_so_far`. Returns (B, 1, T, S), or `CAUSAL`.
    """
    if padding is None:
        return CAUSAL
    causal = written_out(CAUSAL, length, padding.size(-1), padding.device)
    return padding if causal is None else padding & causal


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network, each with its residual.

    Its parts are `self_attention`, `feed_forward` and the residuals around them, `residual_1` and
    `residual_2`, made by `residual(d_model, dropout)`: all dropout is there. Under a causal mask it
    is the layer of a decoder-only model: what a decoder's layer is without cross-attention.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        residual: Callable[[int, float], nn.Module] = PostNorm,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)
        self.residual_1 = residual(d_model, dropout)
        self.residual_2 = residual(d_model, dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | str | None = None,
        cache: KeyValueCache | None = None,  # service
    ) -> Tensor:
        """Map (B, S, C) to (B, S, C); mask says which keys are real, True = may attend.

        With a `cache`, x holds only the positions that are new.
        """
        x = self.residual_1(x, lambda y: self.self_attention(y, mask=mask, cache=cache))
        return self.residual_2(x, self.feed_forward)


class LayerCache(NamedTuple):
    """What one decoder layer keeps between steps."""

    self_attention: KeyValueCache
    cross_attention: KeyValueCache

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order; rows may only move within a sentence."""
        self.self_attention.select(rows)  # the memory is the same for all beams of a sentence


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention to the memory, then a feed-forward network.

    Its parts are `self_attention`, `cross_attention`, `feed_forward` and the residuals around them,
    `residual_1` to `residual_3`, made by `residual(d_model, dropout)`: all dropout is there.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        residual: Callable[[int, float], nn.Module] = PostNorm,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)
        self.residual_1 = residual(d_model, dropout)
        self.residual_2 = residual(d_model, dropout)
        self.residual_3 = residual(d_model, dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | str | None = None,
        memory_mask: Tensor | None = None,
        cache: LayerCache | None = None,  # service
    ) -> Tensor:
        """Map x (B, T, C) to (B, T, C), reading memory (B, S, C) through memory_mask."""
        own, cross = cache or (None, None)  # service
        x = self.residual_1(x, lambda y: self.self_attention(y, mask=mask, cache=own))
        x = self.residual_2(x, lambda y: self.cross_attention(y, memory, memory_mask, cross))
        return self.residual_3(x, self.feed_forward)


class Encoder(nn.Module):
    """A stack of encoder layers: equal in structure, each with weights of its own.

    `layers` is an `nn.ModuleList`; `final_norm` comes after the last.
    """

    def __init__(self, layers: list[EncoderLayer], final_norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.final_norm = final_norm

    def forward(
        self,
        x: Tensor,
        mask: Tensor | str | None = None,
        cache: list[KeyValueCache] | None = None,  # service
    ) -> Tensor:
        """Map (B, S, C) to the memory, (B, S, C).

        With a `cache`, which has an entry for each layer, x holds only what is new.
        """
        kept = iter(cache or [None] * len(self.layers))  # service
        for layer in self.layers:
            x = layer(x, mask, next(kept))
        return self.final_norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers, every one of which reads the same memory.

    `layers` is an `nn.ModuleList`; `final_norm` comes after the last.
    """

    def __init__(self, layers: list[DecoderLayer], final_norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.final_norm = final_norm

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | str | None = None,
        memory_mask: Tensor | None = None,
        cache: list[LayerCache] | None = None,  # service
    ) -> Tensor:
        """Map x (B, T, C) and memory (B, S, C) to (B, T, C)."""
        kept = iter(cache or [None] * len(self.layers))  # service
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask, next(kept))
        return self.final_norm(x)

    def new_cache(self) -> list[LayerCache]:  # service
        """Return an empty cache, one entry a layer."""
        return [LayerCache(KeyValueCache(), KeyValueCache()) for _ in self.layers]
