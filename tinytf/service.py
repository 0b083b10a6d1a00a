"""What the models do for their users, and no chapter's idea needs.

Lines of the top level that call it, or that are there for it alone, end in the mark `# service`.
`graduate` sets them aside: a chapter builds a definition without them.
"""

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn

from tinytf.attention import KeyValueCache
from tinytf.blocks import LayerCache, decoder_mask, padding_so_far, token_positions
from tinytf.masks import padding_mask
from tinytf.positional import sinusoidal_encoding

__all__ = ["Movable", "so_far", "target_mask"]


class Movable(nn.Module):
    """A model that says where it is, and tabulates its positions anew where all is made anew.

    `to_empty` on another device makes every tensor without its numbers, and no state holds what can
    be computed.
    """

    @property
    def device(self) -> torch.device:
        """The device the parameters are on."""
        return self.table.device

    def position_table(self) -> Tensor:
        """Tabulate the positions, (max_len, C)."""
        return sinusoidal_encoding(self.config.max_len, self.config.d_model)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        was_empty = self.positions.table.is_meta
        super()._apply(fn, recurse)
        if was_empty and not self.positions.table.is_meta:
            self.positions.table.copy_(self.position_table())
        return self


def target_mask(
    ids: Tensor, pad_id: int = 0, cache: list[LayerCache] | None = None
) -> Tensor | str:
    """Hide from each target position what is later, and padding: ids (B, T) -> (B, 1, T, S).

    With a cache, the ids are the newest of S positions, and it remembers where padding was. Returns
    `CAUSAL` where nothing is padding: the kernel then needs no mask.
    """
    first = cache[0].self_attention if cache else None
    padding = padding_so_far(padding_mask(ids, pad_id), ids.size(1), first)
    return decoder_mask(padding, ids.size(1))


def so_far(
    ids: Tensor, cache: list[KeyValueCache] | None = None, mask: Tensor | None = None
) -> tuple[int, Tensor | None, Tensor | None]:
    """Say where new tokens (B, T) stand: their start, their positions and the padding of all.

    The start counts what the cache holds. Positions (B, T) and padding (B, 1, 1, S) are None where
    nothing is padding: then the positions run on from the start.
    """
    first = cache[0] if cache else None
    padding = padding_so_far(mask, ids.size(1), first)
    positions = None if padding is None else token_positions(padding, ids.size(1))
    return len(first) if cache else 0, positions, padding
