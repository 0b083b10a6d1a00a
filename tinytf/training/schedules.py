"""Learning-rate schedules: functions of the step, counted from 1."""

import math

__all__ = ["warmup_cosine", "warmup_inverse_sqrt"]


def warmup_inverse_sqrt(step: int, d_model: int, warmup: int) -> float:
    """Give the learning rate of the paper: up for `warmup` steps, then down as 1/√step.

    Counts steps from 1. Source: Vaswani et al. 2017, equation 3.
    """
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def warmup_cosine(step: int, lr: float, warmup: int, steps: int, floor: float = 0.0) -> float:
    """Rise linearly from 0 to `lr` over `warmup` steps, then fall along half a cosine to `floor`.

    `floor` is reached at `steps`, and kept afterwards. A warm-up that takes all steps leaves none
    to fall: the rate is `lr` at the last, `floor` after it. Counts steps from 1. Source:
    Loshchilov and Hutter 2017, equation 5, with a warm-up before it.
    """
    if step < warmup:
        return lr * step / warmup
    progress = min(1.0, (step - warmup) / max(1, steps - warmup))
    return floor + (lr - floor) * 0.5 * (1 + math.cos(math.pi * progress))
