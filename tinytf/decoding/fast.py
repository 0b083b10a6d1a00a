"""Decoding with little overhead: weights laid out once, keys and values written in place.

A small model's token takes less time to compute than to ask for: module calls, joined weights and
growing caches cost more than the arithmetic. A large one's takes the time to read its weights.
`fast_decoder` gives a model with the same outputs that asks for less and reads faster; the tests
hold it equal to the plain one.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.attention import KeyValueCache, MultiHeadAttention, fused_attention
from tinytf.blocks import EncoderLayer, decoder_mask
from tinytf.checks import is_plain_linear
from tinytf.decoding.matvec import Columns, Half
from tinytf.embedding import TiedOutput
from tinytf.feedforward import FeedForward
from tinytf.gpt import GPT, CausalStack
from tinytf.masks import CAUSAL, written_out
from tinytf.norm import LayerNorm
from tinytf.residual import PreNorm

__all__ = ["FastGPT", "FastStack", "StaticCache", "fast_decoder"]

WEIGHTS = {None: Columns, "float16": Half}


def fast_decoder(model: GPT, weights: str | None = None) -> "FastGPT":
    """Return a copy of a model for decoding, which computes new tokens faster.

    It is used as the model itself: `generate(fast_decoder(model), ...)`, and comes in evaluation
    mode. It has its own copy of every matrix, laid out for few tokens at a time, and shares
    embeddings and norms, so make it anew when the model has learned, moved or changed its
    precision. Both together take twice the memory of the weights; let go of the model if you only
    decode.

    `weights="float16"` rounds that copy to float16, half as large: on a CPU it is read in less than
    half the time, and logits are near the model's, not equal. That needs a model in float32 on the
    CPU, and raises as `Half` does.

    There is nothing in it to look into or to train: `record` refuses it. Raises ValueError for
    other `weights`, a model that is fast already, one that is no GPT (a `Llama`), and one of which
    a part is not as GPT has it: another attention, norm or kind of linear map, or one with hooks.
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights={weights!r} is not one of {tuple(WEIGHTS)}")
    if not isinstance(model, GPT):
        raise ValueError(f"fast decoding is for a GPT, and this is a {type(model).__name__}")
    if isinstance(model, FastGPT):
        raise ValueError("the model is fast already: give the one it was made from")
    return FastGPT(model, WEIGHTS[weights]).eval()


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
        return self.extend(torch.stack([k, v], dim=1))

    def extend(self, kv: Tensor) -> tuple[Tensor, Tensor]:
        """Do as `append` does, with keys and values in one tensor (B, 2, H, T, D)."""
        batch, _, heads, length, width = kv.shape
        if self.room is None:
            self.room = kv.new_empty(batch, 2, heads, self.max_len, width)
        self.room.narrow(3, self.length, length).copy_(kv)
        self.length += length
        k, v = self.room.narrow(3, 0, self.length).unbind(1)
        return k, v

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order (beams that live on)."""
        super().select(rows)
        if self.room is not None:
            self.room = self.room[rows]


class FastGPT(GPT):
    """What `fast_decoder` returns: a GPT whose layers and output are laid out for decoding."""

    def __init__(self, model: GPT, lay_out: Callable[..., "Map"] = Columns) -> None:
        TiedOutput.__init__(self)  # of a GPT what it computes, not how its weights are drawn
        self.config = model.config
        self.embedding = copy.copy(model.embedding)  # the same table
        self.positions = copy.deepcopy(model.positions)
        self.decoder = FastStack(model.decoder, model.config.max_len, lay_out)
        _check_linear("output", model.output)
        self.output = FastOutput(model.output.weight, lay_out)


Map = Columns | Half
Norm = tuple[Tensor, Tensor, float]  # gain, bias, eps


def _norm(norm: nn.LayerNorm) -> Norm:
    return norm.weight, norm.bias, norm.eps


class _Weights(NamedTuple):
    """What one layer computes with."""

    norm_1: Norm
    qkv: Map
    out: Map
    norm_2: Norm
    up: Map
    down: Map

    @classmethod
    def of(cls, layer: EncoderLayer, lay_out: Callable[..., Map]) -> Self:
        """Read them off a layer."""
        a, f = layer.self_attention, layer.feed_forward
        norms = [_norm(n) for n in (layer.residual_1.norm, layer.residual_2.norm)]
        parts = (a.w_q, a.w_k, a.w_v)
        qkv = lay_out(torch.cat([m.weight for m in parts]), torch.cat([m.bias for m in parts]))
        maps = [lay_out(m.weight, m.bias) for m in (a.w_o, f.w_1, f.w_2)]
        return cls(norms[0], qkv, maps[0], norms[1], *maps[1:])


class FastStack(nn.Module):
    """The layers of a `CausalStack`, without a module call or a copy of weights on the way."""

    @torch.no_grad()
    def __init__(
        self, stack: CausalStack, max_len: int, lay_out: Callable[..., Map] = Columns
    ) -> None:
        super().__init__()
        _check_parts(stack)
        self.max_len, self.num_heads = max_len, stack.layers[0].self_attention.num_heads
        self._weights = [_Weights.of(layer, lay_out) for layer in stack.layers]
        self._activation = stack.layers[0].feed_forward.activation
        self._final_norm = _norm(stack.final_norm)

    def new_cache(self) -> list[StaticCache]:
        """Return an empty cache, one entry a layer."""
        return [StaticCache(self.max_len) for _ in self._weights]

    @torch.no_grad()
    def forward(
        self, x: Tensor, cache: list[StaticCache] | None = None, padding: Tensor | None = None
    ) -> Tensor:
        """Map (B, T, C) to (B, T, C), as `CausalStack.forward`."""
        batch, length, width = x.shape
        start = len(cache[0]) if cache else 0
        mask = decoder_mask(padding, length)
        if mask is CAUSAL and start == 0:
            kernel: dict[str, Any] = {"is_causal": True}
        else:
            kernel = {"attn_mask": written_out(mask, length, start + length, x.device)}
        flat = x.reshape(-1, width).clone()  # (B, T, C) -> (BT, C), changed in place below
        for weights, layer in zip(self._weights, cache or [None] * len(self._weights), strict=True):
            self._step(flat, batch, weights, layer, kernel)
        return torch.layer_norm(flat, (width,), *self._final_norm).view(x.shape)

    def _step(
        self, x: Tensor, batch: int, weights: _Weights, cache: StaticCache | None, kernel: dict
    ) -> None:
        """Pass x (BT, C) through one layer, in place."""
        width = x.size(1)
        qkv = weights.qkv(torch.layer_norm(x, (width,), *weights.norm_1))
        qkv = qkv.view(batch, -1, 3, self.num_heads, width // self.num_heads)  # (B, T, 3, H, D)
        qkv = qkv.permute(0, 2, 3, 1, 4)  # (B, T, 3, H, D) -> (B, 3, H, T, D)
        kv = qkv.narrow(1, 1, 2)
        k, v = kv.unbind(1) if cache is None else cache.extend(kv)
        heads = F.scaled_dot_product_attention(qkv.select(1, 0), k, v, **kernel)
        weights.out.add_to(x, heads.transpose(1, 2).reshape(x.shape))  # (B, H, T, D) -> (BT, C)
        inner = weights.up(torch.layer_norm(x, (width,), *weights.norm_2))
        weights.down.add_to(x, self._activation(inner))


def _check_parts(stack: CausalStack) -> None:
    """Raise ValueError for a layer that is not made as GPT makes it: it would be passed by."""
    for number, layer in enumerate(stack.layers):
        attention = layer.self_attention
        if type(attention) is not MultiHeadAttention:
            name = type(attention).__name__
            raise ValueError(f"fast decoding computes MultiHeadAttention, not {name}")
        if attention.attention is not fused_attention:
            raise ValueError("fast decoding needs layers whose attention is fused_attention")
        parts = (layer.feed_forward, layer.residual_1, layer.residual_2)
        if (kinds := [type(part) for part in parts]) != [FeedForward, PreNorm, PreNorm]:
            names = ", ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"fast decoding computes FeedForward, PreNorm, PreNorm, not {names}")
        for name, part in layer.named_modules():
            if name.rpartition(".")[2].startswith("w_"):
                _check_linear(f"decoder.layers.{number}.{name}", part)
    for name, part in stack.named_modules():
        if name.endswith("norm") and type(part) not in (LayerNorm, nn.LayerNorm):
            raise ValueError(f"decoder.{name} is a {type(part).__name__}: no LayerNorm")
        if part._forward_hooks or part._forward_pre_hooks:
            raise ValueError(f"decoder.{name} has hooks, which fast decoding would pass by")


def _check_linear(name: str, part: nn.Module) -> None:
    if not is_plain_linear(part):
        raise ValueError(
            f"{name} is no nn.Linear as it comes, without hooks: fast decoding would pass it by"
        )


class FastOutput(nn.Module):
    """The map to logits, by a matrix laid out for few positions."""

    @torch.no_grad()
    def __init__(self, weight: nn.Parameter, lay_out: Callable[..., Map] = Columns) -> None:
        super().__init__()
        self.weight = weight
        self._map = lay_out(weight)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Map (..., C) to (..., V)."""
        return self._map(x.reshape(-1, x.size(-1))).view(*x.shape[:-1], -1)
