"""Token embeddings, scaled as in Vaswani et al. 2017, section 3.4."""

import math
from collections.abc import Callable
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.checks import values_can_be_read

__all__ = ["TiedOutput", "TokenEmbedding", "check_ids"]


class TokenEmbedding(nn.Module):
    """Look up a vector per token and multiply it by √d_model, or by `scale` where it is given.

    The table is drawn from a normal distribution with standard deviation d_model^-0.5, so the
    scaled vectors have unit variance, comparable to the positional encoding that is added to them.
    `vocab_size` is kept as an attribute.
    """

    def __init__(self, vocab_size: int, d_model: int, scale: float | None = None) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.scale = math.sqrt(d_model) if scale is None else scale
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / math.sqrt(d_model))

    def forward(self, ids: Tensor) -> Tensor:
        """Embed ids (B, T) as (B, T, C). Raises ValueError or TypeError, as `check_ids` does."""
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
    if not values_can_be_read():
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= vocab_size:
        bad = high if high >= vocab_size else low
        raise ValueError(
            f"id {bad} is outside the vocabulary of {vocab_size} (0..{vocab_size - 1})"
        )


class TiedOutput(nn.Module):
    """A model whose `output` may share its matrix with an embedding `table` (weight tying).

    The two stay one parameter when the model is moved (`to_empty` creates every tensor again) and
    when it is loaded (`assign=True` puts in the state's own tensors). `_apply(fn, recurse=True)`,
    by which torch moves a model, calls torch's own, calls `tie` if the two were one before, and
    returns the model. After loading, the function given to `register_load_state_dict_post_hook`
    calls `tie` if `config.tie_output` is true and the output's weight is a parameter. Source of
    tying: Press and Wolf 2017.
    """

    def __init__(self) -> None:
        super().__init__()
        self.register_load_state_dict_post_hook(_tie_loaded)

    def tie(self) -> None:
        """Make the output's matrix and the embedding table one parameter."""
        self.output.weight = self.table

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        tied = getattr(self.output, "weight", None) is self.table
        super()._apply(fn, recurse)
        if tied:
            self.tie()
        return self


def _tie_loaded(model: TiedOutput, _keys: object) -> None:
    """Tie again what loading took apart. Raises ValueError where the state held two matrices."""
    weight = getattr(model.output, "weight", None)
    if model.config.tie_output and isinstance(weight, nn.Parameter):
        _check_one_matrix(weight, model.table)
        model.tie()


def _check_one_matrix(weight: Tensor, table: Tensor) -> None:
    if not (weight.is_meta or table.is_meta or torch.equal(weight, table)):
        raise ValueError(
            "the state's output.weight is another matrix than its embedding table, but the model's "
            "config ties the two: give it tie_output=False"
        )
