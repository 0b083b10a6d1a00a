"""The training loop of small studies: one loss, AdamW, a cosine with warm-up, clipped gradients."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from tinytf.training.schedules import warmup_cosine

__all__ = ["optimise"]


def optimise(
    parameters: Iterable[nn.Parameter],
    loss: Callable[[int], Tensor],
    steps: int,
    lr: float,
    warmup: int,
    until: int | None = None,
) -> list[float]:
    """Take AdamW steps on `loss(step)`, steps counted from 0; returns the losses.

    The rate rises for `warmup` steps and falls along a cosine. `until` stops earlier, on the rates
    of all the steps. (`tinytf.training` can save and resume a run; a study need not.)
    """
    parameters = list(parameters)
    optimizer = torch.optim.AdamW(parameters, lr, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    history = []
    for step in range(until or steps):
        value = loss(step)
        optimizer.param_groups[0]["lr"] = warmup_cosine(step + 1, lr, warmup, steps)
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        history.append(value.detach())
    return torch.stack(history).tolist()
