"""What happens inside one training step: gradients added up, and nothing done with broken ones."""

import math
from collections.abc import Callable, Sequence

from torch import Tensor

from tinytf.training.config import TrainingConfig
from tinytf.training.distributed import Team
from tinytf.training.losses import Batch, TextBatch
from tinytf.training.precision import autocast

__all__ = ["add_up_gradients", "check_finite"]


def add_up_gradients(
    objective: Callable[..., tuple[Tensor, int]],
    micro: Sequence[Batch | TextBatch],
    config: TrainingConfig,
    team: Team,
) -> tuple[float, int]:
    """Add up the gradients of a step's batches; return the loss summed over tokens, and those.

    The gradient is that of the mean over all the batches' tokens at once, also when they are
    uneven. `objective` is bound to a model (`Team.wrap`), whose device the batches are on.
    """
    device = micro[0][0].device
    tokens = sum(batch.num_tokens for batch in micro)
    total = 0.0
    for i, batch in enumerate(micro):
        rows, counts = team.share(batch)
        with team.adding_up(objective, now=i == len(micro) - 1):
            with autocast(config.precision, device):
                loss, _ = objective(rows, config.label_smoothing)
            # DDP and FSDP2 divide the sum of gradients by the number of processes
            (loss * (counts * team.world_size) / tokens).backward()
        total += counts * loss.item()
    (total,) = team.total([total], device)
    return total, tokens


def check_finite(what: str, value: float, step: int, lr: float) -> None:
    """Raise FloatingPointError if the loss or the gradient's norm of a step is not finite."""
    if not math.isfinite(value):
        raise FloatingPointError(
            f"the {what} is {value} at step {step}, with a learning rate of {lr:.2g}: the weights "
            "are as they were before it; try a lower rate or a longer warm-up"
        )
