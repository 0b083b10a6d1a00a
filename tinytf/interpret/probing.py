"""Linear probes in closed form: what can be read from a model's states."""

import torch
from torch import Tensor

__all__ = ["fit_probe", "probe_accuracy"]


def fit_probe(x: Tensor, y: Tensor, ridge: float = 1.0) -> Tensor:
    """Fit a linear map from states x (N, C) to classes y (N,): (C + 1, classes), in float64.

    Least squares against one-hot classes, with `ridge` times the squared weights added; the last
    row, the offset, is free of the ridge. Raises ValueError for no states or a ridge that is not
    positive.
    """
    if len(x) == 0 or ridge <= 0:
        raise ValueError(f"a probe needs states and ridge > 0, got {len(x)} and {ridge}")
    x = with_one(x)
    wanted = torch.eye(int(y.max()) + 1, dtype=x.dtype, device=x.device)[y]
    held = ridge * torch.eye(x.size(1), dtype=x.dtype, device=x.device)
    held[-1, -1] = 0.0
    return torch.linalg.solve(x.T @ x + held, x.T @ wanted)


def with_one(x: Tensor) -> Tensor:
    """Append a column of ones, in float64."""
    return torch.nn.functional.pad(x.double(), (0, 1), value=1.0)


def probe_accuracy(weights: Tensor, x: Tensor, y: Tensor) -> float:
    """Return the share of states x (N, C) whose class y (N,) the probe predicts: a Python float.

    Computed in float64.
    """
    return ((with_one(x) @ weights).argmax(dim=-1) == y).double().mean().item()
