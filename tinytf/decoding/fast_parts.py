"""What fast decoders are made of: a cache with room, attention for it, and maps laid out."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.attention import KeyValueCache
from tinytf.decoding.matvec import Columns, Map
from tinytf.masks import CAUSAL, written_out
from tinytf.norm import RMSNorm

__all__ = [
    "FastOutput",
    "Heads",
    "StaticCache",
    "View",
    "attend_in_blocks",
    "attend_once",
    "attend_to",
    "in_place",
    "joined",
    "norm_of",
]

IN_PLACE = {F.relu: torch.relu_, F.silu: functools.partial(F.silu, inplace=True)}
BLOCK = 256  # queries that are given a mask at a time


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
        """Write new positions, each (B, H, T, D), after the old ones and return all of them.

        Raises ValueError for another batch size than that of the old ones.
        """
        heads = k.size(1)
        k, v = self.extend(torch.stack([k, v]))
        return k.unflatten(0, (-1, heads)), v.unflatten(0, (-1, heads))

    def extend(self, kv: Tensor) -> tuple[Tensor, Tensor]:
        """Do as `append` does, with keys and values in one tensor (2, B, H, T, D).

        Returns keys and values, each (BH, S, D).
        """
        _, batch, heads, length, width = kv.shape
        if self.room is None:
            self.room = kv.new_empty(2, batch, heads, self.max_len, width)
        elif batch != self.room.size(1):
            raise ValueError(f"a batch of {batch} does not match the cache's, {self.room.size(1)}")
        self.room.narrow(3, self.length, length).copy_(kv)
        self.length += length
        kept = self.room.view(2, batch * heads, self.max_len, width)
        return kept.narrow(2, 0, self.length).unbind()

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
        self.map = lay_out(weight, bias)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Map (..., C) to (..., V)."""
        return self.map(x.reshape(-1, x.size(-1))).view(*x.shape[:-1], -1)


class Heads(NamedTuple):
    """How many heads ask, how many answer, and by what queries and keys are turned, if at all."""

    queries: int
    keys: int  # fewer where groups of query heads share keys and values
    turns: Tensor | None = None  # (max_len, D / 2), complex: RoPE's angles


class View(NamedTuple):
    """What the newest positions of a stack may see, worked out once for all its layers."""

    batch: int
    start: int  # how many positions are in the cache
    once: bool  # one new position a row
    mask: Tensor | str | None  # boolean, (B, 1, T, S), or `CAUSAL`
    padding: Tensor | None  # beside `CAUSAL`: what is none, (B, 1, 1, S)
    bias: Tensor | None  # in place of a mask where `once`: (B, 1, S), far below 0 at padding

    @classmethod
    def of(
        cls, mask: Tensor | str | None, x: Tensor, start: int, padding: Tensor | None = None
    ) -> "View":
        """Read it off a stack's input (B, T, C) and its mask, to which `padding` may be added."""
        batch, length, _ = x.shape
        if length > 1:
            return cls(batch, start, False, mask, padding, None)
        mask = padding if mask is CAUSAL else mask
        if mask is None:
            return cls(batch, start, True, None, None, None)
        # A row of nothing but padding must stay finite: its keys are multiplied by 0 later.
        hidden = torch.zeros_like(mask, dtype=x.dtype)
        hidden = hidden.masked_fill_(~mask, torch.finfo(x.dtype).min / 2)
        return cls(batch, start, True, None, None, hidden[:, 0])


def attend_to(x: Tensor, heads: Heads, cache: StaticCache | None, view: View) -> Tensor:
    """Attend from x (BT, (H + 2 G) D), queries, keys and values side by side, to what came before.

    There are H heads of queries, scaled already, and G of keys. New keys and values are written to
    the cache where there is one. Returns (BT, H D).
    """
    h, g = heads.queries, heads.keys
    x = x.view(view.batch, -1, h + 2 * g, x.size(1) // (h + 2 * g)).transpose(1, 2)
    if heads.turns is not None:
        x = _turned(x, heads, view.start)
    width = x.size(3)
    q, kv = x.split((h, 2 * g), dim=1)  # (B, H, T, D), (B, 2 G, T, D)
    kv = kv.unflatten(1, (2, g)).transpose(0, 1)  # (2, B, G, T, D)
    k, v = kv.flatten(1, 2).unbind() if cache is None else cache.extend(kv)  # (B G, S, D)
    if view.once:
        q = q.reshape(view.batch * g, -1, width)  # (B G, H / G, D): a group asks together
        return attend_once(q, k.transpose(1, 2), v, view.bias).view(view.batch, -1)
    k, v = (part.unflatten(0, (-1, g)).repeat_interleave(h // g, dim=1) for part in (k, v))
    causal = view.mask is CAUSAL
    if causal and (view.start > 0 or view.padding is not None):
        mixed = attend_in_blocks(q, k, v, view.padding)
    else:
        mixed = F.scaled_dot_product_attention(
            q, k, v, attn_mask=None if causal else view.mask, is_causal=causal, scale=1.0
        )
    return mixed.transpose(1, 2).reshape(-1, h * width)  # (B, H, T, D) -> (BT, C)


def attend_in_blocks(q: Tensor, k: Tensor, v: Tensor, padding: Tensor | None = None) -> Tensor:
    """Attend causally from the last T of S positions, `BLOCK` queries at a time: (B, H, T, D).

    q, scaled already, is (B, H, T, D), k and v are (B, H, S, D), `padding` is (B, 1, 1, S), True
    where there is none. The kernel's own "causal" means the first T positions and no padding; a
    mask for all queries would hold T S numbers, four bytes each once the kernel has them.
    """
    length, start, mixed = q.size(2), k.size(2) - q.size(2), []
    for first in range(0, length, BLOCK):
        rows = q[:, :, first : first + BLOCK]
        seen = start + first + rows.size(2)
        mask = written_out(CAUSAL, rows.size(2), seen, q.device)
        if padding is not None:
            mask = padding[..., :seen] if mask is None else padding[..., :seen] & mask
        keys, values = k[:, :, :seen], v[:, :, :seen]
        mixed.append(F.scaled_dot_product_attention(rows, keys, values, attn_mask=mask, scale=1.0))
    return torch.cat(mixed, dim=2) if len(mixed) > 1 else mixed[0]


def attend_once(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
    """Attend from q (N, R, D), scaled already, to k (N, D, S) and v (N, S, D): (N, R, D).

    `bias`, (B, 1, S), is added to the scores, the same for the N / B rows of each of the B.
    For few queries two products of batches ask for less than the fused kernel does.
    """
    scores = torch.bmm(q, k)
    if bias is not None:
        scores.view(len(bias), -1, scores.size(2)).add_(bias)
    return torch.bmm(scores.softmax(dim=-1), v)


def _turned(x: Tensor, heads: Heads, start: int) -> Tensor:
    """Turn queries and keys in x (B, H + 2 G, T, D); a pair is a complex number, and turns so."""
    turned, values = x.split((heads.queries + heads.keys, heads.keys), dim=1)
    kind = x.dtype if x.dtype == torch.float64 else torch.float32
    pairs = torch.view_as_complex(turned.to(kind).unflatten(-1, (-1, 2)).contiguous())
    pairs = pairs * heads.turns.narrow(0, start, x.size(2))
    turned = torch.view_as_real(pairs).flatten(-2).to(x.dtype)
    return torch.cat([turned, values], dim=1)


def joined(lay_out: Callable[..., Map], maps: Sequence[nn.Linear], scale: float = 1.0) -> Map:
    """Lay out several linear maps as one, whose outputs stand side by side, the first's scaled."""
    weights, biases = [m.weight for m in maps], [m.bias for m in maps]
    weight = torch.cat([weights[0] * scale, *weights[1:]])
    if biases[0] is None:
        return lay_out(weight, None)
    return lay_out(weight, torch.cat([biases[0] * scale, *biases[1:]]))


def norm_of(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    """Give what a norm computes, without a module call."""
    shape, weight, eps = norm.weight.shape, norm.weight, norm.eps
    if type(norm) is RMSNorm:
        return lambda x: torch.rms_norm(x, shape, weight, eps)
    return lambda x: torch.layer_norm(x, shape, weight, norm.bias, eps)


def in_place(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Give an activation that overwrites what it is given, where torch has it."""
    return IN_PLACE.get(activation, activation)
