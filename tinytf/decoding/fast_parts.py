"""The sublayers of a layer laid out for decoding, and the caches that they write to."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.attention import KeyValueCache, MultiHeadAttention
from tinytf.feedforward import FeedForward, SwiGLU
from tinytf.masks import CAUSAL
from tinytf.norm import RMSNorm
from tinytf.relative import rotary_angles
from tinytf.residual import PostNorm, PreNorm

__all__ = [
    "CrossAttention",
    "FastFeedForward",
    "LayOut",
    "MemoryCache",
    "SelfAttention",
    "StaticCache",
    "Sublayer",
    "View",
    "as_bias",
    "norm_of",
]

LayOut = Callable[[Tensor, Tensor | None], Callable[[Tensor], Tensor]]  # a class of `maps`


class StaticCache:
    """Keys and values in one tensor as long as they can get, so that a new position copies none.

    `room` is (2, B, G, max_len, D) for G heads of keys, made when the first position is appended;
    `padding` is kept for `padding_so_far`, as in `KeyValueCache`.
    """

    def __init__(self, max_len: int) -> None:
        self.max_len, self.length = max_len, 0
        self.room: Tensor | None = None
        self.padding: Tensor | None = None

    def __len__(self) -> int:
        return self.length

    def append(self, kv: Tensor) -> Tensor:
        """Write new keys and values (2, B, G, T, D) after the old; return all, (2, B, G, S, D).

        Raises ValueError for another batch size than that of the old ones.
        """
        batch, length = kv.size(1), kv.size(3)
        if self.room is None:
            self.room = kv.new_empty(*kv.shape[:3], self.max_len, kv.size(4))
        elif batch != self.room.size(1):
            raise ValueError(f"a batch of {batch} does not match the cache's, {self.room.size(1)}")
        self.room.narrow(3, self.length, length).copy_(kv)
        self.length += length
        return self.room.narrow(3, 0, self.length)

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order (beams that live on)."""
        if self.padding is not None:
            self.padding = self.padding[rows]
        if self.room is None:
            return
        kept = self.room.narrow(3, 0, self.length)[:, rows]
        if len(rows) != self.room.size(1):
            self.room = kept.new_empty(2, len(rows), *self.room.shape[2:])
        self.room.narrow(3, 0, self.length).copy_(kept)


class MemoryCache(KeyValueCache):
    """The memory's keys and values as one layer needs them: keys on their side, a bias to add.

    `k` is (BH, D, S), `v` (BH, S, D), `bias` (B, 1, S), far below 0 at padding, or None.
    """

    bias: Tensor | None = None

    def fill(self, kv: Tensor, heads: int, mask: Tensor | None) -> None:
        """Lay out the memory's keys and values (B, S, 2C), once."""
        kv = kv.unflatten(2, (2, heads, -1))
        k, v = kv.permute(2, 0, 3, 4, 1)  # (B, S, 2, H, D) -> 2 times (B, H, D, S)
        if mask is not None and not bool(mask.all()):
            self.bias = as_bias(mask, k.dtype)
            v = v.masked_fill(~mask, 0.0)  # a row of nothing but padding sees zeros
        self.k = k.flatten(0, 1).contiguous()
        self.v = v.transpose(2, 3).flatten(0, 1).contiguous()


class View(NamedTuple):
    """What the newest T positions of each row may see, worked out once for all layers."""

    batch: int
    mask: Tensor | str | None  # boolean, (B, 1, T, S), or `CAUSAL`
    bias: Tensor | None  # in place of the mask where T is 1: (B, 1, S)
    memory: Tensor | None  # (B, S, C), for cross-attention
    memory_mask: Tensor | None


class Sublayer:
    """What a sublayer of any kind has: a norm, which may come before, and a map to the stream."""

    def __init__(self, residual: PostNorm, out: nn.Linear, lay_out: LayOut) -> None:
        self.first, self.norm = type(residual) is PreNorm, norm_of(residual.norm)
        self.out = lay_out(out.weight, out.bias)


class SelfAttention(Sublayer):
    """Attention to what came before; queries may share keys, and both may be turned (RoPE)."""

    def __init__(self, a: nn.Module, residual: PostNorm, max_len: int, lay_out: LayOut) -> None:
        super().__init__(residual, a.w_o, lay_out)
        self.heads, self.groups = a.num_heads, getattr(a, "num_kv_heads", a.num_heads)
        width, base = a.d_model // a.num_heads, getattr(a, "base", None)
        self.qkv = _joined(lay_out, a.w_q, a.w_k, a.w_v, scale=width**-0.5)
        self.turns = None if base is None else _turns(max_len, width, base, a.w_q.weight)

    def __call__(self, x: Tensor, cache: StaticCache, view: View) -> Tensor:
        """Map x (BT, C), of which the cache gets keys and values, to heads (BT, H D)."""
        h, g = self.heads, self.groups
        x = self.qkv(x)
        x = x.view(view.batch, -1, h + 2 * g, x.size(1) // (h + 2 * g)).transpose(1, 2)
        if self.turns is not None:
            x = _turned(x, h + g, self.turns.narrow(0, len(cache), x.size(2)))
        q, kv = x.split((h, 2 * g), dim=1)  # (B, H, T, D), (B, 2 G, T, D)
        kv = cache.append(kv.unflatten(1, (2, g)).transpose(0, 1))  # (2, B, G, S, D)
        if q.size(2) == 1:
            q = q.reshape(view.batch * g, h // g, -1)  # (B G, H / G, D): a group asks together
            k, v = kv.flatten(1, 2).unbind()
            return _attend_once(q, k.transpose(1, 2), v, view.bias).view(view.batch, -1)
        causal = view.mask is CAUSAL
        mixed = F.scaled_dot_product_attention(
            q, *kv, None if causal else view.mask, is_causal=causal, scale=1.0, enable_gqa=g < h
        )
        return mixed.transpose(1, 2).flatten(2).flatten(0, 1)  # (B, H, T, D) -> (BT, C)


class CrossAttention(Sublayer):
    """Attention to the memory, whose keys and values are computed once."""

    def __init__(self, a: MultiHeadAttention, residual: PostNorm, lay_out: LayOut) -> None:
        super().__init__(residual, a.w_o, lay_out)
        self.heads = a.num_heads
        self.q = _joined(lay_out, a.w_q, scale=(a.d_model // a.num_heads) ** -0.5)
        self.kv = _joined(lay_out, a.w_k, a.w_v)

    def __call__(self, x: Tensor, cache: MemoryCache, view: View) -> Tensor:
        """Map x (BT, C) to heads (BT, C) that have read the memory."""
        if cache.k is None:
            kv = self.kv(view.memory.flatten(0, 1))  # (BS, 2C)
            cache.fill(kv.unflatten(0, (view.batch, -1)), self.heads, view.memory_mask)
        q, rows = self.q(x), view.batch * self.heads
        if len(x) == view.batch:  # T is 1: heads lie as they are
            return _attend_once(q.view(rows, 1, -1), cache.k, cache.v, cache.bias).view(x.shape)
        q = q.view(view.batch, -1, self.heads, x.size(1) // self.heads).transpose(1, 2)
        mixed = _attend_once(q.flatten(0, 1), cache.k, cache.v, cache.bias)  # (BH, T, D)
        return mixed.unflatten(0, (view.batch, -1)).transpose(1, 2).reshape(x.shape)


class FastFeedForward(Sublayer):
    """Two maps and what is between them; SwiGLU's gate and what it lets through side by side."""

    def __init__(self, f: FeedForward | SwiGLU, residual: PostNorm, lay_out: LayOut) -> None:
        super().__init__(residual, f.w_2, lay_out)
        gated = type(f) is SwiGLU
        self.up = _joined(lay_out, f.w_1, f.w_3) if gated else _joined(lay_out, f.w_1)
        self.activation = _gated if gated else f.activation

    def __call__(self, x: Tensor, cache: None, view: View) -> Tensor:
        """Map x (BT, C) to features (BT, d_ff)."""
        return self.activation(self.up(x))


def _joined(lay_out: LayOut, *maps: nn.Linear, scale: float = 1.0) -> Callable[[Tensor], Tensor]:
    """Lay out linear maps as one, whose outputs stand side by side, the first's scaled."""
    weights, biases = [m.weight for m in maps], [m.bias for m in maps]
    bias = None if biases[0] is None else torch.cat([biases[0] * scale, *biases[1:]])
    return lay_out(torch.cat([weights[0] * scale, *weights[1:]]), bias)


def norm_of(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    """Give what a norm computes, without a module call."""
    if type(norm) is nn.Identity:
        return lambda x: x
    shape, weight, eps = norm.weight.shape, norm.weight, norm.eps
    if type(norm) is RMSNorm:
        return lambda x: torch.rms_norm(x, shape, weight, eps)
    return lambda x: torch.layer_norm(x, shape, weight, norm.bias, eps)


def as_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a boolean mask (B, 1, 1, S) into what is added to scores, (B, 1, S).

    Not -inf: a row of nothing but padding must stay finite, for its values are multiplied by 0.
    """
    hidden = torch.zeros_like(mask, dtype=dtype)
    return hidden.masked_fill_(~mask, torch.finfo(dtype).min / 2)[:, 0]


def _attend_once(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
    """Attend from q (N, R, D), scaled already, to k (N, D, S) and v (N, S, D): (N, R, D).

    `bias`, (B, 1, S), is added to the scores, the same for the N / B rows of each of the B.
    For few queries two products of batches ask for less than the fused kernel does.
    """
    scores = torch.bmm(q, k)
    if bias is not None:
        scores.view(len(bias), -1, scores.size(2)).add_(bias)
    return torch.bmm(scores.softmax(dim=-1), v)


def _turns(max_len: int, width: int, base: float, weight: Tensor) -> Tensor:
    """Tabulate RoPE's turns of pairs as complex numbers, (max_len, D / 2)."""
    angles = rotary_angles(max_len, width, base=base, device=weight.device)
    kind = torch.float64 if weight.dtype == torch.float64 else torch.float32
    return torch.complex(angles.cos().to(kind), angles.sin().to(kind))


def _turned(x: Tensor, heads: int, turns: Tensor) -> Tensor:
    """Turn the first heads of x (B, H + 2 G, T, D); a pair is a complex number, and turns so."""
    turned, values = x.split((heads, x.size(1) - heads), dim=1)
    pairs = torch.view_as_complex(turned.to(turns.real.dtype).unflatten(-1, (-1, 2)).contiguous())
    turned = torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)
    return torch.cat([turned, values], dim=1)


def _gated(x: Tensor) -> Tensor:
    """What SwiGLU does between its maps: (B, 2 d_ff) to (B, d_ff)."""
    gate, through = x.chunk(2, dim=1)
    return F.silu(gate).mul_(through)
