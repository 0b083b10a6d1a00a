"""The training loop with nothing beside it: what a `Trainer` does in each step."""

from collections.abc import Callable

from torch import nn

from tinytf.training.config import TrainingConfig
from tinytf.training.losses import Batch, sequence_loss
from tinytf.training.optimizer import adamw

__all__ = ["train"]


def train(
    model: nn.Module, batches: Callable[[int], Batch], config: TrainingConfig
) -> list[dict[str, float]]:
    """Train an encoder-decoder for `config.steps` steps; return a row of step and loss for each.

    `batches` maps the step, counted from 0, to its batch; the loss is in nats per token. On one
    device in float32 a `Trainer` of the same settings takes the same steps to the bit; it saves,
    resumes, accumulates and refuses broken gradients besides.
    """
    optimizer, history = adamw(model, config), []
    for step in range(1, config.steps + 1):
        batch = batches(step - 1).to(model.device)
        loss, tokens = sequence_loss(model, batch, config.label_smoothing)
        optimizer.zero_grad()
        (loss / tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate(step, model.config.d_model)
        optimizer.step()
        history.append({"step": step, "loss": loss.item() / tokens})
    return history
