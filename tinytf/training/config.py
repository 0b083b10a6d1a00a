"""The settings of a training run."""

import math
from dataclasses import dataclass

from tinytf.checks import check_sizes
from tinytf.training.schedules import warmup_cosine, warmup_inverse_sqrt

__all__ = ["TrainingConfig"]


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; with precision="auto", the defaults are the shipped translator's recipe.

    attention="auto" is "explicit" on several threads of a CPU if the first batch is short: in
    sentences of some twenty tokens the fused kernel has little to save, and can take twice as long
    there. Layers with an attention of their own keep it.
    """

    steps: int = 3000
    lr: float = 2e-3
    warmup: int = 200  # steps; Adam's second moment is a poor estimate before that
    schedule: str = "cosine"  # or "constant", or "inverse_sqrt", the paper's, which ignores lr
    min_lr: float = 0.0  # what the cosine falls to
    label_smoothing: float = 0.1  # as in the paper, section 5.4
    weight_decay: float = 0.01  # on matrices only
    betas: tuple[float, float] = (0.9, 0.98)  # the paper's, section 5.3
    eps: float = 1e-9
    clip: float = 1.0  # largest gradient norm
    accumulate: int = 1  # batches per step
    precision: str = "float32"  # or "bfloat16" (weights stay float32), or "auto", the faster here
    attention: str = "fused"  # or "explicit", the same outputs to rounding, or "auto"
    parallel: str = "ddp"  # where there are several processes: or "fsdp", which shards the model
    recompute: bool = False  # activation checkpointing: less memory, a pass more
    seed: int = 0  # of dropout; batches and initial weights have their own

    def __post_init__(self) -> None:
        check_sizes(self, "steps", "accumulate")
        if self.warmup < 1 or self.warmup > self.steps:
            raise ValueError(
                f"warmup={self.warmup} must lie in 1..steps={self.steps}: "
                "warm up for fewer steps, or train for more"
            )
        if not (self.lr >= 0 and math.isfinite(self.lr)):
            raise ValueError(f"lr must be a finite number of at least 0, got {self.lr}")
        if not 0 <= self.min_lr <= self.lr:
            raise ValueError(f"min_lr must lie in 0..lr={self.lr}, got {self.min_lr}")
        if self.min_lr > 0 and self.schedule != "cosine":
            raise ValueError(f"min_lr={self.min_lr} is the cosine's: {self.schedule} has none")
        if not self.clip > 0:
            raise ValueError(f"clip must be above 0, got {self.clip}; math.inf never clips")
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing must lie in [0, 1), got {self.label_smoothing}")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay must be at least 0, got {self.weight_decay}")
        for name, known in (
            ("schedule", ("cosine", "constant", "inverse_sqrt")),
            ("precision", ("float32", "bfloat16", "auto")),
            ("attention", ("fused", "explicit", "auto")),
            ("parallel", ("ddp", "fsdp")),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r} is not one of {known}")

    def learning_rate(self, step: int, d_model: int) -> float:
        """Give the learning rate of a step, counted from 1; the paper's schedule asks d_model."""
        if self.schedule == "cosine":
            return warmup_cosine(step, self.lr, self.warmup, self.steps, self.min_lr)
        if self.schedule == "constant":
            return self.lr * min(1.0, step / self.warmup)
        return warmup_inverse_sqrt(step, d_model, self.warmup)
