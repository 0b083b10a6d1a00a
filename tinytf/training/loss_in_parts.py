"""Cross-entropy of half-precision logits, some rows at a time: they are never all in float32."""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["cross_entropy_in_parts"]

_AT_A_TIME = 1 << 20  # logits in float32: 4 MB, which a processor's cache holds


def cross_entropy_in_parts(logits: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Sum the cross-entropy of logits (N, V) and ids (N,), in nats, as a float32.

    The same number as `F.cross_entropy(logits.float(), …, reduction="sum")` gives, to rounding, and
    so is the gradient, which is rounded to the logits' precision. There is none of the gradient.
    """
    rows = max(_AT_A_TIME // logits.size(1), 1)
    return _InParts.apply(logits, targets, label_smoothing, rows)


class _InParts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float, rows: int) -> Tensor:
        total = logits.new_zeros((), dtype=torch.float32)
        sums = []  # log of the sum of exponentials, of each row
        for some, theirs in _parts(rows, logits, targets):
            wide = some.float()
            scores = wide.log_softmax(dim=-1)
            total += F.nll_loss(scores, theirs, reduction="sum") * (1 - smoothing)
            if smoothing:
                total -= scores.mean(dim=-1).sum() * smoothing
            sums.append(wide[:, 0] - scores[:, 0])
        ctx.smoothing, ctx.rows = smoothing, rows
        ctx.save_for_backward(logits, targets, torch.cat(sums))
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        logits, targets, sums = ctx.saved_tensors
        all_slopes = torch.empty_like(logits)
        parts = _parts(ctx.rows, logits, targets, sums, all_slopes)
        for some, theirs, their_sums, slopes in parts:
            wide = some.float().sub_(their_sums[:, None]).exp_()  # probabilities
            wide -= ctx.smoothing / logits.size(1)
            right = torch.full_like(their_sums, ctx.smoothing - 1)
            wide.scatter_add_(1, theirs[:, None], right[:, None])
            slopes.copy_(wide.mul_(gradient))
        return all_slopes, None, None, None


def _parts(rows: int, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    return zip(*(tensor.split(rows) for tensor in tensors), strict=True)
