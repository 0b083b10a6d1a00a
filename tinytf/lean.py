"""Decoding with little overhead: weights laid out once, keys and values written in place.

A small model's token takes less time to compute than to ask for: module calls, joined weights and
growing caches cost more than the arithmetic. `lean` gives a model with the same outputs that asks
for less; the tests hold it equal to the plain one.
"""

import copy
from typing import NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.attention import KeyValueCache, fused_attention
from tinytf.gpt import GPT, CausalLayer, CausalStack

__all__ = ["LeanStack", "StaticCache", "lean"]


def lean(model: GPT) -> GPT:
    """Return a copy of a model for decoding, which computes a single new token faster.

    It is used as the model itself: `generate(lean(model), ...)`, and comes in evaluation mode.
    It copies the weights that make queries, keys and values and shares the others, so make it anew
    when the model has learned, moved or changed its precision. There is nothing in it to look into
    or to train: `record` and `states` refuse it. Raises ValueError for a model whose attention is
    not the fused one.
    """
    twin = copy.deepcopy(model, {id(p): p for p in model.parameters()})  # modules, not weights
    twin.eval()
    twin.decoder = LeanStack(twin.decoder, model.config.max_len)
    return twin


class StaticCache(KeyValueCache):
    """Keys and values in one tensor as long as they can get, so that a new position copies none.

    `room` is (B, 2, H, max_len, D), made when the first position is appended.
    """

    def __init__(self, max_len: int) -> None:
        super().__init__()
        self.max_len, self.length = max_len, 0
        self.room: Tensor | None = None

    def __len__(self) -> int:
        return self.length

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write new positions, each (B, H, T, D), after the old ones and return all of them."""
        if self.room is None:
            batch, heads, _, width = k.shape
            self.room = k.new_empty(batch, 2, heads, self.max_len, width)
        end = self.length + k.size(2)
        self.room[:, 0, :, self.length : end] = k
        self.room[:, 1, :, self.length : end] = v
        self.length = end
        return self.room[:, 0, :, :end], self.room[:, 1, :, :end]

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order (beams that live on)."""
        if self.room is not None:
            self.room = self.room[rows]


class _Weights(NamedTuple):
    """What one layer computes with."""

    norm_1: tuple[Tensor, Tensor, float]  # gain, bias, eps
    qkv: tuple[Tensor, Tensor]
    out: tuple[Tensor, Tensor]
    norm_2: tuple[Tensor, Tensor, float]
    up: tuple[Tensor, Tensor]
    down: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, layer: CausalLayer) -> Self:
        """Read them off a layer."""
        a, f = layer.self_attention, layer.feed_forward
        norms = [(n.weight, n.bias, n.eps) for n in (layer.residual_1.norm, layer.residual_2.norm)]
        qkv = (torch.cat([m.weight for m in (a.w_q, a.w_k, a.w_v)]),
               torch.cat([m.bias for m in (a.w_q, a.w_k, a.w_v)]))  # fmt: skip
        pairs = [(m.weight, m.bias) for m in (a.w_o, f.w_1, f.w_2)]
        return cls(norms[0], qkv, pairs[0], norms[1], *pairs[1:])


class LeanStack(nn.Module):
    """The layers of a `CausalStack`: one new position by hand, several by the stack itself."""

    @torch.no_grad()
    def __init__(self, stack: CausalStack, max_len: int) -> None:
        super().__init__()
        for layer in stack.layers:
            if layer.self_attention.attention is not fused_attention:
                raise ValueError("lean decoding needs layers whose attention is fused_attention")
        self.max_len, self.num_heads = max_len, stack.layers[0].self_attention.num_heads
        self._stack = (stack,)  # in a tuple: not a submodule, so that nothing is hooked in vain
        self._weights = [_Weights.of(layer) for layer in stack.layers]
        self._activation = stack.layers[0].feed_forward.activation

    def new_cache(self) -> list[StaticCache]:
        """Return an empty cache, one entry a layer."""
        return [StaticCache(self.max_len) for _ in self._weights]

    @torch.no_grad()
    def forward(self, x: Tensor, cache: list[StaticCache] | None = None) -> Tensor:
        """Map (B, T, C) to (B, T, C), as `CausalStack.forward`."""
        (stack,) = self._stack
        if cache is None or x.size(1) > 1 or cache[0].room is None:
            return stack(x, cache)
        x = x[:, 0].clone()  # (B, 1, C) -> (B, C), changed in place below
        for weights, layer in zip(self._weights, cache, strict=True):
            self._step(x, weights, layer)
        return stack.final_norm(x)[:, None]

    def _step(self, x: Tensor, weights: _Weights, cache: StaticCache) -> None:
        """Pass x (B, C) through one layer, in place."""
        batch, width = x.shape
        gain, bias, eps = weights.norm_1
        qkv = F.linear(torch.layer_norm(x, (width,), gain, bias, eps), *weights.qkv)
        qkv = qkv.view(batch, 3, self.num_heads, -1)  # (B, 3C) -> (B, 3, H, D)
        room, end = cache.room, cache.length + 1
        room.select(3, cache.length).copy_(qkv.narrow(1, 1, 2))
        cache.length = end
        k, v = room.narrow(3, 0, end).unbind(1)
        q = qkv.select(1, 0).unsqueeze(2)  # (B, H, 1, D)
        heads = F.scaled_dot_product_attention(q, k, v).flatten(1)  # (B, H, 1, D) -> (B, C)
        x.add_(F.linear(heads, *weights.out))
        gain, bias, eps = weights.norm_2
        inner = F.linear(torch.layer_norm(x, (width,), gain, bias, eps), *weights.up)
        x.add_(F.linear(self._activation(inner), *weights.down))
