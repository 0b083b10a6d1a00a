"""The encoder-decoder with a decoder laid out for decoding: made by `fast_decoder`."""

import copy
from collections.abc import Callable
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from tinytf.attention import KeyValueCache
from tinytf.blocks import Decoder, DecoderLayer, LayerCache
from tinytf.decoding.fast_parts import (
    FastOutput,
    Map,
    Norm,
    StaticCache,
    attend_to,
    check_hooks,
    check_layer,
    check_linear,
    joined,
    kernel_mask,
    norm_of,
)
from tinytf.decoding.matvec import Columns
from tinytf.embedding import TiedOutput
from tinytf.residual import PostNorm, PreNorm
from tinytf.transformer import Transformer

__all__ = ["FastDecoder", "FastTransformer", "MemoryCache"]


class FastTransformer(Transformer):
    """What `fast_decoder` makes of a `Transformer`: its encoder, and a decoder that asks for less.

    The encoder runs once a sentence, and is a copy of the model's.
    """

    def __init__(self, model: Transformer, lay_out: Callable[..., Map] = Columns) -> None:
        TiedOutput.__init__(self)  # what it computes, not how its weights are drawn
        self.config = model.config
        self.src_embedding = copy.copy(model.src_embedding)  # the same tables
        self.tgt_embedding = copy.copy(model.tgt_embedding)
        self.positions = copy.deepcopy(model.positions)
        self.encoder = copy.deepcopy(model.encoder)
        self.decoder = FastDecoder(model.decoder, model.config.max_len, lay_out)
        check_linear("output", model.output)
        self.output = FastOutput(model.output.weight, lay_out, model.output.bias)


class MemoryCache(KeyValueCache):
    """The memory's keys and values as one layer needs them: keys on their side, a mask to add.

    `k` is (BH, D, S), scaled, `v` (BH, S, D), `bias` (BH, 1, S) with -inf at padding, or None.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bias: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.k is None else self.k.size(2)

    def fill(self, kv: Tensor, batch: int, heads: int, mask: Tensor | None) -> None:
        """Lay out the memory's keys and values (BS, 2C), once."""
        kv = kv.view(batch, -1, 2, heads, kv.size(1) // (2 * heads))
        k, v = kv.permute(2, 0, 3, 4, 1)  # (B, S, 2, H, D) -> 2 times (B, H, D, S)
        self.k = k.flatten(0, 1).contiguous() / k.size(2) ** 0.5  # scores need no scale then
        self.v = v.transpose(2, 3).flatten(0, 1).contiguous()
        if mask is not None and not bool(mask.all()):
            empty = ~mask.any(dim=-1, keepdim=True)  # rows of nothing but padding see zeros
            hidden = ~(mask | empty)
            bias = torch.zeros_like(mask, dtype=kv.dtype).masked_fill_(hidden, -torch.inf)
            self.bias = bias.expand(batch, heads, 1, -1).flatten(0, 1).contiguous()  # (BH, 1, S)
            self.v.view(batch, heads, *self.v.shape[1:]).masked_fill_(empty, 0.0)

    def attend(self, q: Tensor) -> Tensor:
        """Attend from q (BH, T, D) to the memory; returns (BH, T, D)."""
        scores = torch.bmm(q, self.k)
        if self.bias is not None:
            scores += self.bias
        return torch.bmm(scores.softmax(dim=-1), self.v)


class _Weights(NamedTuple):
    """What one layer computes with."""

    norms: tuple[Norm, Norm, Norm]
    qkv: Map
    own_out: Map
    q: Map
    kv: Map
    cross_out: Map
    up: Map
    down: Map

    @classmethod
    def of(cls, layer: DecoderLayer, lay_out: Callable[..., Map]) -> Self:
        """Read them off a layer."""
        own, cross, f = layer.self_attention, layer.cross_attention, layer.feed_forward
        residuals = (layer.residual_1, layer.residual_2, layer.residual_3)
        return cls(
            tuple(norm_of(residual.norm) for residual in residuals),
            joined(lay_out, (own.w_q, own.w_k, own.w_v)),
            lay_out(own.w_o.weight, own.w_o.bias),
            lay_out(cross.w_q.weight, cross.w_q.bias),
            joined(lay_out, (cross.w_k, cross.w_v)),
            lay_out(cross.w_o.weight, cross.w_o.bias),
            lay_out(f.w_1.weight, f.w_1.bias),
            lay_out(f.w_2.weight, f.w_2.bias),
        )


class FastDecoder(nn.Module):
    """The layers of a `Decoder`, without a module call or a copy of weights on the way."""

    @torch.no_grad()
    def __init__(
        self, decoder: Decoder, max_len: int, lay_out: Callable[..., Map] = Columns
    ) -> None:
        super().__init__()
        check_hooks("decoder", decoder)
        for number, layer in enumerate(decoder.layers):
            check_layer(f"decoder.layers.{number}", layer, (PostNorm, PreNorm))
        first = decoder.layers[0]
        self.max_len, self.num_heads = max_len, first.self_attention.num_heads
        self._pre = type(first.residual_1) is PreNorm
        self._weights = [_Weights.of(layer, lay_out) for layer in decoder.layers]
        self._activation = first.feed_forward.activation
        last = decoder.final_norm
        self._final_norm = None if type(last) is nn.Identity else norm_of(last)

    def new_cache(self) -> list[LayerCache]:
        """Return an empty cache, one entry a layer."""
        return [LayerCache(StaticCache(self.max_len), MemoryCache()) for _ in self._weights]

    @torch.no_grad()
    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | str | None = None,
        memory_mask: Tensor | None = None,
        cache: list[LayerCache] | None = None,
    ) -> Tensor:
        """Map x (B, T, C) and memory (B, S, C) to (B, T, C), as `Decoder.forward`."""
        batch, length, width = x.shape
        start = len(cache[0].self_attention) if cache else 0
        kernel = kernel_mask(mask, length, start, x.device)
        flat = x.reshape(-1, width).clone()  # (B, T, C) -> (BT, C), changed in place below
        for i, weights in enumerate(self._weights):
            own, cross = cache[i] if cache else (None, MemoryCache())
            if len(cross) == 0:
                kv = weights.kv(memory.reshape(-1, width))
                cross.fill(kv, batch, self.num_heads, memory_mask)
            flat = self._step(flat, batch, weights, own, cross, kernel)
        if self._final_norm is not None:
            flat = torch.layer_norm(flat, (width,), *self._final_norm)
        return flat.view(x.shape)

    def _step(
        self,
        x: Tensor,
        batch: int,
        weights: _Weights,
        own: StaticCache | None,
        cross: MemoryCache,
        kernel: dict,
    ) -> Tensor:
        """Pass x (BT, C) through one layer; x itself may be changed."""
        y = self._read(x, weights.norms[0])
        y = attend_to(weights.qkv(y), batch, self.num_heads, own, kernel)
        x = self._add(x, weights.own_out, y, weights.norms[0])

        q = weights.q(self._read(x, weights.norms[1]))
        y = self._merge(cross.attend(self._split(q, batch)), batch)
        x = self._add(x, weights.cross_out, y, weights.norms[1])

        y = self._activation(weights.up(self._read(x, weights.norms[2])))
        return self._add(x, weights.down, y, weights.norms[2])

    def _read(self, x: Tensor, norm: Norm) -> Tensor:
        """What a sublayer reads: the stream, in Pre-LN normalised."""
        return torch.layer_norm(x, x.shape[1:], *norm) if self._pre else x

    def _add(self, x: Tensor, out: Map, y: Tensor, norm: Norm) -> Tensor:
        """Add a sublayer's output to the stream, in Post-LN normalised after."""
        out.add_to(x, y)
        return x if self._pre else torch.layer_norm(x, x.shape[1:], *norm)

    def _split(self, q: Tensor, batch: int) -> Tensor:
        """(BT, C) -> (BH, T, D)."""
        q = q.view(batch, -1, self.num_heads, q.size(1) // self.num_heads)
        return q.transpose(1, 2).reshape(batch * self.num_heads, -1, q.size(-1))

    def _merge(self, heads: Tensor, batch: int) -> Tensor:
        """(BH, T, D) -> (BT, C)."""
        heads = heads.view(batch, self.num_heads, *heads.shape[1:])
        return heads.transpose(1, 2).reshape(batch * heads.size(2), -1)
