"""What fast decoders are made of: caches with room, weights laid out, and what may be laid out."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.attention import KeyValueCache, MultiHeadAttention, fused_attention
from tinytf.checks import is_plain_linear
from tinytf.decoding.matvec import Columns, Half
from tinytf.feedforward import FeedForward
from tinytf.masks import CAUSAL, written_out
from tinytf.norm import LayerNorm

__all__ = [
    "FastOutput",
    "Map",
    "Norm",
    "StaticCache",
    "attend_to",
    "check_hooks",
    "check_layer",
    "check_linear",
    "joined",
    "kernel_mask",
    "norm_of",
]

Map = Columns | Half
Norm = tuple[Tensor, Tensor, float]  # gain, bias, eps


class StaticCache(KeyValueCache):
    """Keys and values in one tensor as long as they can get, so that a new position copies none.

    `room` is (2, B, H, max_len, D), made when the first position is appended.
    """

    def __init__(self, max_len: int) -> None:
        super().__init__()
        self.max_len, self.length = max_len, 0
        self.room: Tensor | None = None

    def __len__(self) -> int:
        return self.length

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write new positions, each (B, H, T, D), after the old ones and return all of them."""
        return self.extend(torch.stack([k, v]))

    def extend(self, kv: Tensor) -> tuple[Tensor, Tensor]:
        """Do as `append` does, with keys and values in one tensor (2, B, H, T, D)."""
        _, batch, heads, length, width = kv.shape
        if self.room is None:
            self.room = kv.new_empty(2, batch, heads, self.max_len, width)
        self.room.narrow(3, self.length, length).copy_(kv)
        self.length += length
        k, v = self.room.narrow(3, 0, self.length).unbind()
        return k, v

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order (beams that live on)."""
        super().select(rows)
        if self.room is None:
            return
        kept = self.room.narrow(3, 0, self.length)[:, rows]
        if len(rows) != self.room.size(1):
            self.room = kept.new_empty(2, len(rows), *self.room.shape[2:])
        self.room.narrow(3, 0, self.length).copy_(kept)


class FastOutput(nn.Module):
    """The map to logits, by a matrix laid out for few positions."""

    @torch.no_grad()
    def __init__(
        self,
        weight: nn.Parameter,
        lay_out: Callable[..., Map] = Columns,
        bias: nn.Parameter | None = None,
    ) -> None:
        super().__init__()
        self.weight = weight
        self.bias = bias
        self._map = lay_out(weight, bias)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Map (..., C) to (..., V)."""
        return self._map(x.reshape(-1, x.size(-1))).view(*x.shape[:-1], -1)


def kernel_mask(
    mask: Tensor | str | None, length: int, start: int, device: torch.device
) -> dict[str, Tensor | bool | None]:
    """Say a stack's mask in the fused kernel's words, for `length` positions after `start`."""
    if mask is CAUSAL and start == 0:
        return {"is_causal": True}
    return {"attn_mask": written_out(mask, length, start + length, device)}


def attend_to(x: Tensor, batch: int, heads: int, cache: StaticCache | None, kernel: dict) -> Tensor:
    """Attend from x (BT, 3C), queries, keys and values side by side, to what came before.

    New keys and values are written to the cache where there is one. Returns (BT, C).
    """
    qkv = x.view(batch, -1, 3, heads, x.size(1) // (3 * heads))
    qkv = qkv.permute(2, 0, 3, 1, 4)  # (B, T, 3, H, D) -> (3, B, H, T, D)
    kv = qkv.narrow(0, 1, 2)
    k, v = kv.unbind() if cache is None else cache.extend(kv)
    mixed = F.scaled_dot_product_attention(qkv.select(0, 0), k, v, **kernel)
    return mixed.transpose(1, 2).reshape(len(x), -1)  # (B, H, T, D) -> (BT, C)


def joined(lay_out: Callable[..., Map], maps: Sequence[nn.Linear]) -> Map:
    """Lay out several linear maps as one, whose outputs stand side by side."""
    return lay_out(torch.cat([m.weight for m in maps]), torch.cat([m.bias for m in maps]))


def norm_of(norm: nn.LayerNorm) -> Norm:
    """Read a norm's gain, bias and eps."""
    return norm.weight, norm.bias, norm.eps


def check_layer(where: str, layer: nn.Module, residuals: Sequence[type]) -> None:
    """Raise ValueError for a layer that is not made as its class makes it: it would be passed by.

    `residuals` are the kinds of residual that may stand around its sublayers.
    """
    for attention in _attentions(layer):
        if type(attention) is not MultiHeadAttention:
            name = type(attention).__name__
            raise ValueError(f"fast decoding computes MultiHeadAttention, not {name}")
        if attention.attention is not fused_attention:
            raise ValueError("fast decoding needs layers whose attention is fused_attention")
    around = [part for name, part in layer.named_children() if name.startswith("residual_")]
    kinds = [type(part) for part in (layer.feed_forward, *around)]
    if kinds[0] is not FeedForward or len({*kinds[1:]}) > 1 or kinds[1] not in residuals:
        names = ", ".join(kind.__name__ for kind in kinds)
        wanted = " or ".join(kind.__name__ for kind in residuals)
        raise ValueError(f"fast decoding computes FeedForward in {wanted}, not {names}")
    for name, part in layer.named_modules():
        if name.rpartition(".")[2].startswith("w_"):
            check_linear(f"{where}.{name}", part)


def _attentions(layer: nn.Module) -> list[nn.Module]:
    return [part for name, part in layer.named_children() if name.endswith("attention")]


def check_hooks(where: str, stack: nn.Module) -> None:
    """Raise ValueError for a module with hooks, or a norm that is no LayerNorm."""
    for name, part in stack.named_modules():
        known = (LayerNorm, nn.LayerNorm, nn.Identity)
        if name.endswith("norm") and type(part) not in known:
            raise ValueError(f"{where}.{name} is a {type(part).__name__}: no LayerNorm")
        if part._forward_hooks or part._forward_pre_hooks:
            raise ValueError(f"{where}.{name} has hooks, which fast decoding would pass by")


def check_linear(name: str, part: nn.Module) -> None:
    """Raise ValueError for a map that does more than its weight and bias."""
    if not is_plain_linear(part):
        raise ValueError(
            f"{name} is no nn.Linear as it comes, without hooks: fast decoding would pass it by"
        )
