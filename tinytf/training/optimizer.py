"""The optimiser of a training run."""

import torch
from torch import nn

from tinytf.training.config import TrainingConfig

__all__ = ["adamw"]


def adamw(model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """Make AdamW for a model, with weight decay on matrices only.

    `fused=True` does a whole step in one kernel: faster, and rounded in its own way.
    Source: Loshchilov and Hutter 2019, algorithm 2.
    """
    parameters = list(model.parameters())
    matrices = [p for p in parameters if p.dim() > 1]
    others = [p for p in parameters if p.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.lr, betas=config.betas, eps=config.eps, fused=True)
