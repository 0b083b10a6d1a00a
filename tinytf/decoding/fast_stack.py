"""A decoder's layers laid out for decoding, those of GPT, Llama and Transformer alike.

All layers are rows of sublayers (attention to what came before, attention to the memory, a
feed-forward network), and one function passes vectors through them.
"""

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor, nn

from tinytf.attention import MultiHeadAttention, fused_attention
from tinytf.blocks import Decoder, DecoderLayer, EncoderLayer, LayerCache, decoder_mask
from tinytf.checks import is_plain_linear
from tinytf.decoding.fast_parts import (
    CrossAttention,
    FastFeedForward,
    LayOut,
    MemoryCache,
    SelfAttention,
    StaticCache,
    Sublayer,
    View,
    as_bias,
    norm_of,
)
from tinytf.decoding.maps import Columns
from tinytf.feedforward import FeedForward, SwiGLU
from tinytf.gpt import CausalStack
from tinytf.grouped_query import GroupedQueryAttention
from tinytf.llama import LlamaLayer
from tinytf.masks import written_out
from tinytf.norm import LayerNorm, RMSNorm
from tinytf.residual import PostNorm, PreNorm

__all__ = ["FastDecoder", "FastStack", "check_part"]

BLOCK = 256  # positions that are given a mask at a time
KNOWN = (
    CausalStack, Decoder, EncoderLayer, LlamaLayer, DecoderLayer, MultiHeadAttention,
    GroupedQueryAttention, FeedForward, SwiGLU, PreNorm, PostNorm, LayerNorm, RMSNorm,
    nn.LayerNorm, nn.Linear, nn.ModuleList, nn.Dropout, nn.Identity,
)  # fmt: skip


def check_part(name: str, part: nn.Module) -> None:
    """Raise ValueError for a part that is not as its class makes it: it would be passed by."""
    if type(part) not in KNOWN:
        raise ValueError(f"{name} is a {type(part).__name__}, which fast decoding does not know")
    if part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part):
        raise ValueError(f"{name} has hooks or a forward of its own: they would be passed by")
    if type(part) is nn.Linear and not is_plain_linear(part):
        raise ValueError(f"{name} has hooks on its gradients, and there will be none")
    if getattr(part, "attention", fused_attention) is not fused_attention:
        raise ValueError(f"fast decoding needs {name}.attention to be fused_attention")


class FastStack(nn.Module):
    """The layers of a `CausalStack`, without a module call or a copy of weights on the way.

    Raises ValueError for a stack with a part that fast decoding would pass by.
    """

    @torch.no_grad()
    def __init__(self, stack: nn.Module, max_len: int, lay_out: LayOut = Columns) -> None:
        super().__init__()
        for name, part in stack.named_modules(prefix="decoder"):
            check_part(name, part)
        self.max_len = max_len
        self.layers = [_sublayers(layer, max_len, lay_out) for layer in stack.layers]
        self.final_norm = norm_of(stack.final_norm)

    def new_cache(self) -> list[StaticCache]:
        """Return an empty cache, one entry a layer."""
        return [StaticCache(self.max_len) for _ in self.layers]

    @property
    def nbytes(self) -> int:
        """How many bytes the matrices of all layers take."""
        maps = (vars(part).values() for part in chain.from_iterable(self.layers))
        return sum(getattr(m, "nbytes", 0) for m in chain.from_iterable(maps) if callable(m))

    @torch.no_grad()
    def forward(
        self, x: Tensor, cache: list[StaticCache] | None = None, padding: Tensor | None = None
    ) -> Tensor:
        """Map (B, T, C) to (B, T, C), as `CausalStack.forward`."""
        cache = cache or [StaticCache(x.size(1)) for _ in self.layers]
        start, length = len(cache[0]), x.size(1)
        if length <= BLOCK or (start == 0 and padding is None):
            return self._through(x, [(own, None) for own in cache], decoder_mask(padding, length))
        # The kernel's own "causal" means the first positions and no padding. A mask for all
        # queries would hold T S numbers, so they come in blocks.
        parts = []
        for part in x.split(BLOCK, dim=1):
            end = len(cache[0]) + part.size(1)
            parts.append(self(part, cache, None if padding is None else padding[..., :end]))
        return torch.cat(parts, dim=1)

    def _through(
        self,
        x: Tensor,
        states: Sequence[tuple],
        mask: Tensor | str | None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Map (B, T, C) to (B, T, C); each layer has a tuple with a state for each sublayer."""
        batch, length, width = x.shape
        start, bias = len(states[0][0]), None
        if start > 0 or length == 1:
            mask = written_out(mask, length, start + length, x.device)
        if length == 1 and mask is not None:
            bias = as_bias(mask, x.dtype)
        view = View(batch, mask, bias, memory, memory_mask)
        flat = x.reshape(-1, width)  # (B, T, C) -> (BT, C)
        for layer, kept in zip(self.layers, states, strict=True):
            flat = self._layer(flat, layer, kept, view)
        return self.final_norm(flat).view(x.shape)

    def _layer(self, x: Tensor, layer: Sequence[Sublayer], kept: tuple, view: View) -> Tensor:
        """Pass x (BT, C) through one layer: each sublayer reads the stream and is added to it."""
        for sublayer, state in zip(layer, kept, strict=True):
            if sublayer.first:
                x = sublayer.out(sublayer(sublayer.norm(x), state, view)).add_(x)
            else:
                x = sublayer.norm(sublayer.out(sublayer(x, state, view)).add_(x))
        return x


class FastDecoder(FastStack):
    """The layers of a `Decoder`, laid out as those of a `CausalStack` are."""

    def new_cache(self) -> list[LayerCache]:
        """Return an empty cache, one entry a layer."""
        return [LayerCache(StaticCache(self.max_len), MemoryCache()) for _ in self.layers]

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
        states = [(*kept, None) for kept in cache or self.new_cache()]
        return self._through(x, states, mask, memory, memory_mask)


def _sublayers(layer: nn.Module, max_len: int, lay_out: LayOut) -> list[Sublayer]:
    """Lay out one layer of any family."""
    own = SelfAttention(layer.self_attention, layer.residual_1, max_len, lay_out)
    if type(layer) is not DecoderLayer:
        return [own, FastFeedForward(layer.feed_forward, layer.residual_2, lay_out)]
    cross = CrossAttention(layer.cross_attention, layer.residual_2, lay_out)
    return [own, cross, FastFeedForward(layer.feed_forward, layer.residual_3, lay_out)]
