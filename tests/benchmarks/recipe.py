"""One optimiser step, with one recipe, of any model: ours by the trainer, others by plain code."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.training.losses import Batch, TextBatch
from tinytf.training.precision import attending
from tinytf.training.trainer import Trainer, TrainingConfig

__all__ = ["RECIPE", "Peer", "joined", "our_step", "plain_step"]

RECIPE = {"lr": 1e-4, "weight_decay": 0.01, "betas": (0.9, 0.98), "eps": 1e-9}
Step = Callable[[], float]


class Peer(NamedTuple):
    """A model's step, which returns its loss, and what there is to know about it.

    Peers of one `group` have the same weights and must begin with the same loss; an empty one says
    that this model can't have another's. `exact` is off where rounding may part them.
    """

    step: Step
    model: nn.Module
    group: str = ""
    note: str = ""
    exact: bool = True


def plain_step(
    model: nn.Module,
    forward: Callable[[], Tensor],
    labels: Tensor,
    precision: str = "float32",
    **changes: Any,
) -> Step:
    """Make a step of AdamW with clipping, as a good training script has it.

    `forward` gives logits (B, T, V), labels are (B, T); `changes` are to the recipe.
    """
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1]},
        {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, **RECIPE | changes, fused=True)
    model.train()

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        half = torch.autocast(labels.device.type, torch.bfloat16)
        with half if precision == "bfloat16" else nullcontext():
            logits = forward()
        loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def our_step(
    model: nn.Module,
    batch: Batch | TextBatch,
    objective: Callable[..., tuple[Tensor, int]],
    precision: str = "float32",
) -> Step:
    """Make a step of the trainer itself."""
    config = TrainingConfig(
        steps=10**6, warmup=1, schedule="constant", label_smoothing=0.0, precision=precision,
        attention="auto", clip=1.0, **RECIPE,
    )  # fmt: skip
    trainer = Trainer(model, lambda step: batch, config, objective=objective)
    model.train()
    in_float32 = precision != "float32" and model.device.type == "cpu"
    trainer.matrices.prepare(model, trainer.config)  # `run` does so once

    def step() -> float:
        with attending(model, trainer.config.attention, in_float32):  # and this
            loss, tokens, _ = trainer._train_step()
        trainer.step += 1
        return loss / tokens

    return step


def joined(maps: tuple[nn.Linear, ...]) -> dict[str, Tensor]:
    """Put the weights of several maps one below the other, as one map's state."""
    states = [m.state_dict() for m in maps]
    return {name: torch.cat([state[name] for state in states]) for name in states[0]}
