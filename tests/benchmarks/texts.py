"""Whether two decoders wrote the same texts; on a GPU rounding may decide between two words."""

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["NEAR", "check_same"]

NEAR = 1e-3  # of a logit: far above rounding in float32, far below what parts two likely words


@torch.no_grad()
def check_same(
    name: str,
    texts: Tensor,
    want: Tensor,
    score: Callable[[int, int], Tensor],
    exact: bool | None = None,
) -> None:
    """Raise AssertionError unless texts (B, T) are those wanted; on a GPU, but for near ties.

    There kernels differ by the shape of what they are given. Where a row first differs, the two
    words must score alike by `score(row, t)`, logits (V,) of what follows `want[row, :t]`; what
    comes after follows from that word. On a CPU (the default of `exact`) the ids must be equal.
    """
    if torch.equal(texts, want):
        return
    exact = want.device.type == "cpu" if exact is None else exact
    if exact or texts.shape != want.shape:
        raise AssertionError(f"{name} wrote another text")
    for row in (texts != want).any(dim=1).nonzero().flatten().tolist():
        place = int((texts[row] != want[row]).nonzero()[0])
        logits = score(row, place)
        apart = float((logits[texts[row, place]] - logits[want[row, place]]).abs())
        if apart > NEAR:
            raise AssertionError(
                f"{name} wrote another text: in row {row}, at place {place}, words whose logits "
                f"differ by {apart:.2g}"
            )
