"""Running text as batches: contiguous blocks of one long row of ids, a function of the step."""

import torch
from torch import Tensor

from tinytf.training.losses import TextBatch

__all__ = ["TextBlocks"]


class TextBlocks:
    """Batches of `size` blocks of `length` tokens, without end, the same for a seed and a step.

    The ids (N,) are cut into blocks that follow each other; what a block must say is itself moved
    by one token, so the last token of a block is the first that the next one reads. An epoch takes
    every block once, in an order of its own, and cuts at an offset of its own, so that the places
    where contexts begin change. At its two ends an epoch leaves out less than two blocks.

    Raises ValueError for a text too short for one block, which takes length + 1 tokens, TypeError
    for ids that are not integers.
    """

    def __init__(self, ids: Tensor, length: int, size: int, seed: int = 0) -> None:
        if length < 1 or size < 1:
            raise ValueError(f"length={length} and size={size} must be at least 1")
        if ids.dim() != 1:
            raise ValueError(f"ids must be one long row (N,), got shape {tuple(ids.shape)}")
        if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
            raise TypeError(f"ids must be integers, got {ids.dtype}")
        if len(ids) < length + 1:
            raise ValueError(
                f"the text has {len(ids)} tokens, too short for one block of length={length} and "
                f"the token after it: give at least {length + 1} tokens, or a smaller length"
            )
        self.ids, self.length, self.size, self.seed = ids, length, size, seed
        self.count = max(1, (len(ids) - 1) // length - 1)  # blocks an epoch
        self._drawn: tuple[int, int, Tensor] = (-1, 0, torch.empty(0))

    @property
    def per_epoch(self) -> float:
        """How many batches show every block once."""
        return self.count / self.size

    def starts(self, step: int) -> list[int]:
        """Return where in the text the blocks of a step's batch begin."""
        found = []
        for number in range(step * self.size, (step + 1) * self.size):
            epoch, place = divmod(number, self.count)
            offset, order = self._epoch(epoch)
            found.append(offset + self.length * int(order[place]))
        return found

    def __call__(self, step: int) -> TextBatch:
        """Return a step's batch: (size, length) ids, and the same moved by one."""
        rows = torch.tensor(self.starts(step))[:, None] + torch.arange(self.length + 1)
        block = self.ids[rows].long()  # (B, T + 1)
        return TextBatch(block[:, :-1], block[:, 1:])

    def _epoch(self, epoch: int) -> tuple[int, Tensor]:
        """Draw an epoch's offset and order."""
        if self._drawn[0] != epoch:
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
            room = len(self.ids) - self.count * self.length  # offsets 0 .. room - 1
            offset = int(torch.randint(room, (), generator=generator))
            self._drawn = (epoch, offset, torch.randperm(self.count, generator=generator))
        return self._drawn[1], self._drawn[2]
