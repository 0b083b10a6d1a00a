"""Decoding with little overhead: weights laid out once, keys and values written in place.

A small model's token takes less time to compute than to ask for: module calls, joined weights and
growing caches cost more than the arithmetic. A large one's takes the time to read its weights.
`fast_decoder` gives a model with the same outputs that asks for less and reads faster; the tests
hold it equal to the plain one.
"""

import copy
from collections.abc import Callable
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from tinytf.blocks import EncoderLayer, decoder_mask
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
from tinytf.decoding.fast_transformer import FastTransformer
from tinytf.decoding.matvec import Columns, Half
from tinytf.embedding import TiedOutput
from tinytf.gpt import GPT, CausalStack
from tinytf.residual import PreNorm
from tinytf.transformer import Transformer

__all__ = ["FastGPT", "FastStack", "fast_decoder"]

WEIGHTS = {None: Columns, "float16": Half}


def fast_decoder(
    model: GPT | Transformer, weights: str | None = None
) -> "FastGPT | FastTransformer":
    """Return a copy of a model for decoding, which computes new tokens faster.

    It is used as the model itself: `generate(fast_decoder(gpt), ...)`, `greedy` or `beam_search` of
    `fast_decoder(transformer)`, and comes in evaluation mode. It has its own copy of every matrix,
    those of the decoder laid out for few tokens at a time, and shares embeddings, so make it anew
    when the model has learned, moved or changed its precision. Both together take
    twice the memory of the weights; let go of the model if you only decode.

    `weights="float16"` rounds that copy to float16, half as large: on a CPU it is read in less than
    half the time, and logits are near the model's, not equal. That needs a model in float32 on the
    CPU, and raises as `Half` does.

    There is nothing in it to look into or to train: `record` refuses it. Raises ValueError for
    other `weights`, a model that is fast already, one that is neither GPT nor Transformer (a
    `Llama`), and one of which a part is not as these have it: another attention, norm or kind of
    linear map, or one with hooks.
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights={weights!r} is not one of {tuple(WEIGHTS)}")
    if isinstance(model, FastGPT | FastTransformer):
        raise ValueError("the model is fast already: give the one it was made from")
    for kind, fast in ((GPT, FastGPT), (Transformer, FastTransformer)):
        if isinstance(model, kind):
            return fast(model, WEIGHTS[weights]).eval()
    name = type(model).__name__
    raise ValueError(f"fast decoding is for a GPT or a Transformer, and this is a {name}")


class FastGPT(GPT):
    """What `fast_decoder` returns: a GPT whose layers and output are laid out for decoding."""

    def __init__(self, model: GPT, lay_out: Callable[..., "Map"] = Columns) -> None:
        TiedOutput.__init__(self)  # of a GPT what it computes, not how its weights are drawn
        self.config = model.config
        self.embedding = copy.copy(model.embedding)  # the same table
        self.positions = copy.deepcopy(model.positions)
        self.decoder = FastStack(model.decoder, model.config.max_len, lay_out)
        check_linear("output", model.output)
        self.output = FastOutput(model.output.weight, lay_out)


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
        norms = [norm_of(n) for n in (layer.residual_1.norm, layer.residual_2.norm)]
        qkv = joined(lay_out, (a.w_q, a.w_k, a.w_v))
        maps = [lay_out(m.weight, m.bias) for m in (a.w_o, f.w_1, f.w_2)]
        return cls(norms[0], qkv, maps[0], norms[1], *maps[1:])


class FastStack(nn.Module):
    """The layers of a `CausalStack`, without a module call or a copy of weights on the way."""

    @torch.no_grad()
    def __init__(
        self, stack: CausalStack, max_len: int, lay_out: Callable[..., Map] = Columns
    ) -> None:
        super().__init__()
        for number, layer in enumerate(stack.layers):
            check_layer(f"decoder.layers.{number}", layer, (PreNorm,))
        check_hooks("decoder", stack)
        self.max_len, self.num_heads = max_len, stack.layers[0].self_attention.num_heads
        self._weights = [_Weights.of(layer, lay_out) for layer in stack.layers]
        self._activation = stack.layers[0].feed_forward.activation
        self._final_norm = norm_of(stack.final_norm)

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
        kernel = kernel_mask(decoder_mask(padding, length), length, start, x.device)
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
        weights.out.add_to(x, attend_to(qkv, batch, self.num_heads, cache, kernel))
        inner = weights.up(torch.layer_norm(x, (width,), *weights.norm_2))
        weights.down.add_to(x, self._activation(inner))
