"""Encoder and decoder: the layers and their stacks (Vaswani et al. 2017, section 3.1)."""

from collections.abc import Callable
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.attention import KeyValueCache, MultiHeadAttention
from tinytf.feedforward import FeedForward
from tinytf.residual import PostNorm, PreNorm

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "LayerCache",
    "PostNorm",
    "PreNorm",
]


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network, each with its residual."""

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

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map (B, S, C) to (B, S, C); mask says which keys are real, True = may attend."""
        x = self.residual_1(x, lambda y: self.self_attention(y, mask=mask))
        return self.residual_2(x, self.feed_forward)


class LayerCache(NamedTuple):
    """What one decoder layer keeps between steps."""

    self_attention: KeyValueCache
    cross_attention: KeyValueCache

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order; rows may only move within a sentence."""
        self.self_attention.select(rows)  # the memory is the same for all beams of a sentence


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention to the memory, then a feed-forward network."""

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
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """Map x (B, T, C) to (B, T, C), reading memory (B, S, C) through memory_mask."""
        own, cross = cache or (None, None)
        x = self.residual_1(x, lambda y: self.self_attention(y, mask=mask, cache=own))
        x = self.residual_2(x, lambda y: self.cross_attention(y, memory, memory_mask, cross))
        return self.residual_3(x, self.feed_forward)


class Encoder(nn.Module):
    """A stack of encoder layers: equal in structure, each with weights of its own."""

    def __init__(self, layers: list[EncoderLayer], final_norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.final_norm = final_norm

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map (B, S, C) to the memory, (B, S, C)."""
        for layer in self.layers:
            x = layer(x, mask)
        return self.final_norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers, every one of which reads the same memory."""

    def __init__(self, layers: list[DecoderLayer], final_norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.final_norm = final_norm

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: list[LayerCache] | None = None,
    ) -> Tensor:
        """Map x (B, T, C) and memory (B, S, C) to (B, T, C)."""
        for i, layer in enumerate(self.layers):
            x = layer(x, memory, mask, memory_mask, cache[i] if cache else None)
        return self.final_norm(x)

    def new_cache(self) -> list[LayerCache]:
        """Return an empty cache, one entry a layer."""
        return [LayerCache(KeyValueCache(), KeyValueCache()) for _ in self.layers]
