"""The encoder-decoder with a decoder laid out for decoding: made by `fast_decoder`."""

import copy
from collections.abc import Callable
from typing import NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.attention import KeyValueCache
from tinytf.blocks import Decoder, DecoderLayer, LayerCache
from tinytf.checks import values_can_be_read
from tinytf.decoding.fast_checks import DECODER, check_linear, check_stack
from tinytf.decoding.fast_parts import (
    FastOutput,
    Heads,
    StaticCache,
    View,
    attend_once,
    attend_to,
    in_place,
    joined,
    norm_of,
)
from tinytf.decoding.matvec import Columns, Map
from tinytf.embedding import TiedOutput, TokenEmbedding
from tinytf.masks import CAUSAL
from tinytf.positional import PositionalEncoding
from tinytf.residual import PreNorm
from tinytf.transformer import Memory, Transformer

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

    def decode(self, tgt: Tensor, memory: Memory, cache: list[LayerCache] | None = None) -> Tensor:
        """Do as `Transformer.decode`; one new word a row, and none of them <pad>, takes a shortcut.

        What is refused there is refused here: anything unusual goes that way.
        """
        if cache is None or not self._is_a_step(tgt, memory, cache[0]):
            return super().decode(tgt, memory, cache)
        start, embedding = len(cache[0].self_attention), self.tgt_embedding
        x = F.embedding(tgt, embedding.weight)  # (B, 1) -> (B, 1, C)
        x = torch.add(self.positions.table[start], x, alpha=embedding.scale)
        return self.decoder(x, memory.states, CAUSAL, memory.mask, cache)

    def _is_a_step(self, tgt: Tensor, memory: Memory, cache: LayerCache) -> bool:
        """Say whether ids are one known word a row, after others that were no padding either.

        One look at the ids serves all that `check_ids`, masks and positions look at them for.
        """
        own, parts = cache.self_attention, (self.tgt_embedding, self.positions)
        if (
            tgt.shape != (len(memory.states), 1)
            or tgt.is_floating_point()
            or own.padding is not None
            or not 0 < len(own) < self.config.max_len
            or self.training
            or not values_can_be_read()
            or tuple(map(type, parts)) != (TokenEmbedding, PositionalEncoding)
            or any(part._forward_hooks or part._forward_pre_hooks for part in parts)
        ):
            return False
        words = tgt.flatten().tolist()
        pad_id, size = self.config.pad_id, self.config.tgt_vocab_size
        return pad_id not in words and min(words) >= 0 and max(words) < size


class MemoryCache(KeyValueCache):
    """The memory's keys and values as one layer needs them: keys on their side, a bias to add.

    `k` is (BH, D, S), `v` (BH, S, D), `bias` (B, 1, S) with -inf at padding, or None.
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
        self.k = k.flatten(0, 1).contiguous()
        self.v = v.transpose(2, 3).flatten(0, 1).contiguous()
        if mask is not None and not bool(mask.all()):
            empty = ~mask.any(dim=-1, keepdim=True)  # rows of nothing but padding see zeros
            bias = torch.zeros_like(mask, dtype=kv.dtype)
            self.bias = bias.masked_fill_(~(mask | empty), -torch.inf)[:, 0]  # (B, 1, S)
            self.v.view(batch, heads, *self.v.shape[1:]).masked_fill_(empty, 0.0)


class _Weights(NamedTuple):
    """What one layer computes with."""

    norms: tuple[Callable[[Tensor], Tensor], ...]
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
        scale = (own.d_model // own.num_heads) ** -0.5  # scores need none then
        return cls(
            tuple(norm_of(residual.norm) for residual in residuals),
            joined(lay_out, (own.w_q, own.w_k, own.w_v), scale),
            lay_out(own.w_o.weight, own.w_o.bias),
            joined(lay_out, (cross.w_q,), scale),
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
        check_stack(decoder, DECODER)
        first, last = decoder.layers[0], decoder.final_norm
        heads = first.self_attention.num_heads
        self.max_len, self._heads = max_len, Heads(heads, heads)
        self._pre = type(first.residual_1) is PreNorm
        self.weights = [_Weights.of(layer, lay_out) for layer in decoder.layers]
        self._activation = in_place(first.feed_forward.activation)
        self._final_norm = None if type(last) is nn.Identity else norm_of(last)

    def new_cache(self) -> list[LayerCache]:
        """Return an empty cache, one entry a layer."""
        return [LayerCache(StaticCache(self.max_len), MemoryCache()) for _ in self.weights]

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
        width = x.size(2)
        view = View.of(mask, x, len(cache[0].self_attention) if cache else 0)
        flat = x.reshape(-1, width).clone()  # (B, T, C) -> (BT, C), changed in place below
        for i, weights in enumerate(self.weights):
            own, cross = cache[i] if cache else (None, MemoryCache())
            if len(cross) == 0:
                kv = weights.kv(memory.reshape(-1, width))
                cross.fill(kv, view.batch, self._heads.keys, memory_mask)
            flat = self._step(flat, weights, own, cross, view)
        if self._final_norm is not None:
            flat = self._final_norm(flat)
        return flat.view(x.shape)

    def _step(
        self,
        x: Tensor,
        weights: _Weights,
        own: StaticCache | None,
        cross: MemoryCache,
        view: View,
    ) -> Tensor:
        """Pass x (BT, C) through one layer; x itself may be changed."""
        y = weights.qkv(self._read(x, weights.norms[0]))
        y = attend_to(y, self._heads, own, view)
        x = self._add(x, weights.own_out, y, weights.norms[0])

        q = self._split(weights.q(self._read(x, weights.norms[1])), view)
        y = self._merge(attend_once(q, cross.k, cross.v, cross.bias), view)
        x = self._add(x, weights.cross_out, y, weights.norms[1])

        y = self._activation(weights.up(self._read(x, weights.norms[2])))
        return self._add(x, weights.down, y, weights.norms[2])

    def _read(self, x: Tensor, norm: Callable[[Tensor], Tensor]) -> Tensor:
        """What a sublayer reads: the stream, in Pre-LN normalised."""
        return norm(x) if self._pre else x

    def _add(self, x: Tensor, out: Map, y: Tensor, norm: Callable[[Tensor], Tensor]) -> Tensor:
        """Add a sublayer's output to the stream, in Post-LN normalised after."""
        out.add_to(x, y)
        return x if self._pre else norm(x)

    def _split(self, q: Tensor, view: View) -> Tensor:
        """(BT, C) -> (BH, T, D)."""
        rows = view.batch * self._heads.keys
        if view.once:
            return q.view(rows, 1, -1)  # as they lie
        q = q.view(view.batch, -1, self._heads.keys, q.size(1) // self._heads.keys)
        return q.transpose(1, 2).reshape(rows, -1, q.size(3))

    def _merge(self, heads: Tensor, view: View) -> Tensor:
        """(BH, T, D) -> (BT, C)."""
        if view.once:
            return heads.view(view.batch, -1)
        heads = heads.unflatten(0, (view.batch, -1)).transpose(1, 2)  # (B, T, H, D)
        return heads.flatten(2).flatten(0, 1)
