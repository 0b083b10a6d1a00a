"""Token embeddings, scaled as in Vaswani et al. 2017, section 3.4."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["TokenEmbedding", "check_ids"]


class TokenEmbedding(nn.Module):
    """Look up a vector per token and multiply it by √d_model.

    The table starts as a normal of standard deviation d_model^-0.5, so that the scaled vectors have
    unit variance and the positions added to them are neither drowned nor drowning.
    """

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.vocab_size, self.scale = vocab_size, math.sqrt(d_model)
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / self.scale)

    def forward(self, ids: Tensor) -> Tensor:
        """Embed ids (B, T) as (B, T, C). Raises as `check_ids` does."""
        check_ids(ids, self.vocab_size)
        return F.embedding(ids, self.weight) * self.scale


def check_ids(ids: Tensor, vocab_size: int) -> None:
    """Refuse ids that are empty, not integers, or outside 0..vocab_size-1.

    Looked at before the lookup: on a GPU a bad id kills the process's CUDA context. Raises
    ValueError or TypeError.
    """
    if ids.dim() != 2 or ids.numel() == 0:
        raise ValueError(f"ids must be a non-empty batch (B, T), got shape {tuple(ids.shape)}")
    if ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"ids must be int64 or int32, got {ids.dtype}")
    if torch.compiler.is_compiling():  # reading values would break the graph
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= vocab_size:
        bad = high if high >= vocab_size else low
        raise ValueError(
            f"id {bad} is outside the vocabulary of {vocab_size} (0..{vocab_size - 1})"
        )
