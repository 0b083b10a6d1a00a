"""A decoder-only model's layers laid out for decoding: those of GPT, and those of Llama."""

from collections.abc import Callable
from typing import NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.blocks import EncoderLayer
from tinytf.decoding.fast_checks import GPT_STACK, LLAMA_STACK, check_stack
from tinytf.decoding.fast_parts import (
    Heads,
    StaticCache,
    View,
    attend_to,
    in_place,
    joined,
    norm_of,
)
from tinytf.decoding.matvec import Columns, Map
from tinytf.feedforward import FeedForward
from tinytf.gpt import CausalStack
from tinytf.grouped_query import GroupedQueryAttention
from tinytf.masks import CAUSAL
from tinytf.relative import rotary_angles

__all__ = ["FastStack"]


class _Weights(NamedTuple):
    """What one layer computes with."""

    norm_1: Callable[[Tensor], Tensor]
    qkv: Map
    out: Map
    norm_2: Callable[[Tensor], Tensor]
    up: Map  # SwiGLU's gate and what it lets through, side by side
    down: Map

    @classmethod
    def of(cls, layer: EncoderLayer, lay_out: Callable[..., Map]) -> Self:
        """Read them off a layer."""
        a, f = layer.self_attention, layer.feed_forward
        scale = (a.d_model // a.num_heads) ** -0.5  # scores need none then
        return cls(
            norm_of(layer.residual_1.norm),
            joined(lay_out, (a.w_q, a.w_k, a.w_v), scale),
            lay_out(a.w_o.weight, a.w_o.bias),
            norm_of(layer.residual_2.norm),
            joined(lay_out, (f.w_1,) if isinstance(f, FeedForward) else (f.w_1, f.w_3)),
            lay_out(f.w_2.weight, f.w_2.bias),
        )


class FastStack(nn.Module):
    """The layers of a `CausalStack`, without a module call or a copy of weights on the way.

    Raises ValueError for a stack with a part that neither `GPT` nor `Llama` has.
    """

    @torch.no_grad()
    def __init__(
        self, stack: CausalStack, max_len: int, lay_out: Callable[..., Map] = Columns
    ) -> None:
        super().__init__()
        first = stack.layers[0]
        turned = isinstance(first.self_attention, GroupedQueryAttention)
        check_stack(stack, LLAMA_STACK if turned else GPT_STACK)
        self.max_len = max_len
        self._heads = _grouped(stack, max_len) if turned else _alike(first)
        self._activation = _gated if turned else in_place(first.feed_forward.activation)
        self.weights = [_Weights.of(layer, lay_out) for layer in stack.layers]
        self._final_norm = norm_of(stack.final_norm)

    def new_cache(self) -> list[StaticCache]:
        """Return an empty cache, one entry a layer."""
        return [StaticCache(self.max_len) for _ in self.weights]

    @torch.no_grad()
    def forward(
        self, x: Tensor, cache: list[StaticCache] | None = None, padding: Tensor | None = None
    ) -> Tensor:
        """Map (B, T, C) to (B, T, C), as `CausalStack.forward`."""
        view = View.of(CAUSAL, x, len(cache[0]) if cache else 0, padding)
        flat = x.reshape(-1, x.size(2)).clone()  # (B, T, C) -> (BT, C), changed in place below
        for weights, layer in zip(self.weights, cache or [None] * len(self.weights), strict=True):
            self._step(flat, weights, layer, view)
        return self._final_norm(flat).view(x.shape)

    def _step(self, x: Tensor, weights: _Weights, cache: StaticCache | None, view: View) -> None:
        """Pass x (BT, C) through one layer, in place."""
        qkv = weights.qkv(weights.norm_1(x))
        weights.out.add_to(x, attend_to(qkv, self._heads, cache, view))
        weights.down.add_to(x, self._activation(weights.up(weights.norm_2(x))))


def _alike(layer: EncoderLayer) -> Heads:
    heads = layer.self_attention.num_heads
    return Heads(heads, heads)


def _grouped(stack: CausalStack, max_len: int) -> Heads:
    """Read off how heads are grouped and turned. Raises ValueError where layers differ in that."""
    ways = {(a.num_heads, a.num_kv_heads, a.base) for a in _attentions(stack)}
    if len(ways) > 1:
        raise ValueError(
            "fast decoding needs layers of one kind, and of (num_heads, num_kv_heads, base) "
            f"there are {sorted(ways, key=str)}"
        )
    ((heads, groups, base),) = ways
    first = next(_attentions(stack))
    if base is None:
        return Heads(heads, groups)
    weight = first.w_q.weight
    angles = rotary_angles(max_len, first.width, base=base, device=weight.device)
    kind = torch.float64 if weight.dtype == torch.float64 else torch.float32
    return Heads(heads, groups, torch.complex(angles.cos().to(kind), angles.sin().to(kind)))


def _attentions(stack: CausalStack):
    return (layer.self_attention for layer in stack.layers)


def _gated(x: Tensor) -> Tensor:
    """What SwiGLU does between its maps: (B, 2 d_ff) to (B, d_ff)."""
    gate, through = x.chunk(2, dim=1)
    return F.silu(gate).mul_(through)
