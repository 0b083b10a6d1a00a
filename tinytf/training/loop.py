"""Training loops with nothing beside them: what a `Trainer` does in each step."""

from collections.abc import Callable

from torch import nn

from tinytf.training.config import TrainingConfig
from tinytf.training.losses import Batch, TextBatch, next_token_loss, sequence_loss
from tinytf.training.optimizer import adamw

__all__ = ["pretrain", "train"]


def train(
    model: nn.Module, batches: Callable[[int], Batch], config: TrainingConfig
) -> list[dict[str, float]]:
    """Train an encoder-decoder for `config.steps` steps; return a row for each.

    A row is {"step": …, "loss": …}, the step counted from 1, the loss in nats per token, a plain
    number. `batches` maps a number, counted from 0, to a batch. The gradient is clipped to the
    length `config.clip`, and the rate of a step is `config.learning_rate(step,
    model.config.d_model)`. On one device in float32 a `Trainer` of the same settings takes the same
    steps to the bit; it saves, resumes, accumulates and refuses broken gradients besides.
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


def pretrain(
    model: nn.Module, batches: Callable[[int], TextBatch], config: TrainingConfig
) -> list[dict[str, float]]:
    """Train a decoder-only model for `config.steps` steps; return a row for each.

    `batches` maps a number, counted from 0, to a batch; a step takes the next `config.accumulate`
    of them, and its gradient is that of the mean over all their tokens. A row holds step, loss
    (nats per token) and grad_norm, the gradient's length before clipping. A `Trainer` with
    `next_token_loss` takes the same steps, to rounding.
    """
    optimizer, history = adamw(model, config), []
    for step in range(1, config.steps + 1):
        first = (step - 1) * config.accumulate
        micro = [batches(first + i).to(model.device) for i in range(config.accumulate)]
        tokens, total = sum(batch.num_tokens for batch in micro), 0.0
        optimizer.zero_grad()
        for batch in micro:
            loss, _ = next_token_loss(model, batch, config.label_smoothing)
            (loss / tokens).backward()
            total += loss.item()
        norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate(step, model.config.d_model)
        optimizer.step()
        history.append({"step": step, "loss": total / tokens, "grad_norm": norm.item()})
    return history
