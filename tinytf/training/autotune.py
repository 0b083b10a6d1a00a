"""The faster precision and the faster attention, found by timing them where the run will be."""

import math
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from tinytf.attention import fused_attention
from tinytf.inspect import attention_layers
from tinytf.support.device import choose_precision
from tinytf.support.modes import training_as_found
from tinytf.support.randomness import seeded
from tinytf.training.config import TrainingConfig
from tinytf.training.distributed import Team
from tinytf.training.losses import Batch, TextBatch
from tinytf.training.precision import attending, autocast, check_masters

__all__ = ["choose_attention", "choose_training_precision", "settle"]

SHORT = 64  # tokens; over longer ones the fused kernel is the faster, and needs less memory
TURNS = 5  # of each; the best one counts, since others may have been disturbed


def settle(
    config: TrainingConfig,
    model: nn.Module,
    batches: Callable[[int], Batch | TextBatch],
    objective: Callable[..., tuple[Tensor, int]],
    team: Team,
) -> tuple[TrainingConfig, list[str]]:
    """Replace each "auto" by what is faster here; also return the names of those settings.

    To be called before the model is sharded, with the batches and objective of its training. Raises
    ValueError as `check_masters`.
    """
    measured = [name for name in ("precision", "attention") if getattr(config, name) == "auto"]
    if "precision" in measured:
        config = replace(config, precision=choose_training_precision(model.device, team))
    check_masters(model, config.precision)
    if "attention" in measured:
        how = (config.label_smoothing, config.precision, team)
        config = replace(config, attention=choose_attention(model, batches(0), objective, *how))
    return config, measured


def choose_training_precision(device: torch.device, team: Team) -> str:
    """Choose the faster one here; a team takes what most of its processes find."""
    faster = choose_precision(device.type) == "bfloat16"
    return "bfloat16" if _most(team, faster, device) else "float32"


def choose_attention(
    model: nn.Module,
    batch: Batch | TextBatch,
    objective: Callable[..., tuple[Tensor, int]],
    label_smoothing: float,
    precision: str,
    team: Team,
) -> str:
    """Choose "fused" or "explicit" by timing a batch, if it is short and on a CPU; a team votes.

    Weights, gradients, modes and random state are afterwards as they were.
    """
    device = model.device
    rows, _ = team.share(batch.to(device))
    short = max(part.size(1) for part in rows) <= SHORT
    fused = any(m.attention is fused_attention for m in attention_layers(model).values())
    explicit_wins = False
    if device.type == "cpu" and short and fused:
        best = {"fused": math.inf, "explicit": math.inf}
        with training_as_found(model), seeded(0):
            for _ in range(TURNS):
                for kind in best:
                    taken = _time_step(kind, model, rows, objective, label_smoothing, precision)
                    best[kind] = min(best[kind], taken)
        explicit_wins = best["explicit"] < best["fused"]
    return "explicit" if _most(team, explicit_wins, device) else "fused"


def _time_step(
    kind: str,
    model: nn.Module,
    batch: Batch | TextBatch,
    objective: Callable[..., tuple[Tensor, int]],
    label_smoothing: float,
    precision: str,
) -> float:
    """Take the time of a forward and a backward pass with one kind of attention."""
    in_float32 = precision != "float32"
    learning = [p for p in model.parameters() if p.requires_grad]
    start = time.perf_counter()
    with attending(model, kind, in_float32), autocast(precision, model.device):
        loss, _ = objective(model, batch, label_smoothing)
    torch.autograd.grad(loss, learning, allow_unused=True)  # which leaves no trace
    return time.perf_counter() - start


def _most(team: Team, vote: bool, device: torch.device) -> bool:
    (votes,) = team.total([vote], device)
    return 2 * votes > team.world_size
