"""The training loop of small studies, and the recipe that most of them share.

`tinytf.training` can save and resume a run, divide it among processes and watch it; a study of a
few hundred steps need not.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from tinytf.training.schedules import warmup_cosine

__all__ = ["optimise", "optimise_with_warmup"]


def optimise(
    optimizer: torch.optim.Optimizer,
    loss: Callable[[int], Tensor],
    steps: int,
    rate: Callable[[int], float] | None = None,
    clip: float | None = None,
) -> Tensor:
    """Take steps 1 … `steps` on `loss(step)`; returns the losses before each, (steps,) on the CPU.

    `rate(step)` is the learning rate of a step, by default the optimizer's own; `clip` is the norm
    at which gradients are cut.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    losses = []
    for step in range(1, steps + 1):
        if rate is not None:
            for group in optimizer.param_groups:
                group["lr"] = rate(step)
        value = loss(step)
        optimizer.zero_grad()
        value.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        losses.append(value.detach())
    return torch.stack(losses).cpu() if losses else torch.empty(0)


def optimise_with_warmup(
    parameters: Iterable[nn.Parameter],
    loss: Callable[[int], Tensor],
    steps: int,
    lr: float,
    warmup: int,
    until: int | None = None,
) -> Tensor:
    """Take AdamW steps; the rate rises for `warmup` steps and falls along a cosine, norms are cut.

    `until` stops earlier, on the rates of all the steps. Returns the losses, as `optimise`.
    """
    optimizer = torch.optim.AdamW(parameters, lr, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    return optimise(
        optimizer, loss, until or steps, lambda step: warmup_cosine(step, lr, warmup, steps), 1.0
    )
