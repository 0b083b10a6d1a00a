"""Training: a loop that can be stopped at any step and resumed to the bit."""

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tinytf.attention import explicit_attention, fused_attention
from tinytf.checks import check_sizes
from tinytf.inspect import attention_layers, weights_of
from tinytf.support.device import choose_precision
from tinytf.support.interrupt import deferred_interrupt
from tinytf.support.randomness import random_state, seeded, set_random_state
from tinytf.text.words import PAD
from tinytf.training import checkpointing
from tinytf.training.distributed import Team
from tinytf.training.losses import Batch, TextBatch, sequence_loss
from tinytf.training.schedules import warmup_cosine, warmup_inverse_sqrt

__all__ = ["InFloat32", "Trainer", "TrainingConfig"]

_SHORT = 64  # tokens; over longer ones the fused kernel is the faster, and needs less memory


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; with precision="auto", the defaults are the shipped translator's recipe.

    With attention="auto", on a CPU, both are timed on the first batch if it is short: in sentences
    of some twenty tokens the fused kernel has little to save, and on several threads it can take
    twice as long. Layers with an attention of their own keep it.
    """

    steps: int = 3000
    lr: float = 2e-3
    warmup: int = 200  # steps; Adam's second moment is a poor estimate before that
    schedule: str = "cosine"  # or "constant", or "inverse_sqrt", the paper's, which ignores lr
    label_smoothing: float = 0.1  # as in the paper, section 5.4
    weight_decay: float = 0.01  # on matrices only
    betas: tuple[float, float] = (0.9, 0.98)  # the paper's, section 5.3
    eps: float = 1e-9
    clip: float = 1.0  # largest gradient norm
    accumulate: int = 1  # batches per step
    precision: str = "float32"  # or "bfloat16" (weights stay float32), or "auto", the faster here
    attention: str = "fused"  # or "explicit", the same outputs to rounding, or "auto"
    seed: int = 0  # of dropout; batches and initial weights have their own

    def __post_init__(self) -> None:
        check_sizes(self, "steps", "accumulate")
        if self.warmup < 1 or self.warmup > self.steps:
            raise ValueError(
                f"warmup={self.warmup} must lie in 1..steps={self.steps}: "
                "warm up for fewer steps, or train for more"
            )
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
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r} is not one of {known}")


class Trainer:
    """Train a model on `batches`, a function from the step (counted from 0) to a batch.

    `objective(model, batch, label_smoothing)` gives the loss summed over the batch's tokens, in
    nats, and their number: `sequence_loss` for an encoder-decoder, `next_token_loss` for a GPT.
    Since a batch depends on its step alone, weights, optimiser and dropout's random state are all
    there is to save: a run that is stopped and resumed ends in the same bits as one that was not.
    `history` holds one row per logged step: step, loss (nats per token), lr, grad_norm, seconds.

    In a `team` of several processes each has its own Trainer, equal but for the team. Together they
    take the steps that one would, to rounding; only the first writes. With dropout, what is dropped
    depends on the seed, the step and the process, so a run resumes to the bit in a team as large.
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Callable[[int], Batch | TextBatch],
        config: TrainingConfig,
        objective: Callable[..., tuple[Tensor, int]] = sequence_loss,
        team: Team | None = None,
    ) -> None:
        self.team = team or Team()
        self._chosen = [n for n in ("precision", "attention") if getattr(config, n) == "auto"]
        if "precision" in self._chosen:
            config = replace(config, precision=self._choose_precision(model.device))
        pad_id = getattr(model.config, "pad_id", PAD)  # a GPT has none
        if pad_id != PAD:
            raise ValueError(f"the model has pad_id={pad_id}, but batches are padded with {PAD}")
        self.model, self.batches, self.config = model, batches, config
        self.objective = self.team.wrap(model, objective)
        matrices = [p for p in model.parameters() if p.dim() > 1]
        others = [p for p in model.parameters() if p.dim() <= 1]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": config.weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=config.lr,
            betas=config.betas,
            eps=config.eps,
            fused=True,
        )
        self.step = 0
        self.seconds = 0.0
        self.history: list[dict[str, float]] = []
        self._unlogged = [0.0, 0]  # loss and tokens since the last row
        with seeded(config.seed):
            self._random = random_state(self.model.device)
        if "attention" in self._chosen:
            self.config = replace(config, attention=self._choose_attention(objective))

    def _choose_precision(self, device: torch.device) -> str:
        """Choose the faster one here; a team takes what most of its processes find."""
        faster = choose_precision(device.type) == "bfloat16"
        (votes,) = self.team.total([faster], device)
        return "bfloat16" if 2 * votes > self.team.size else "float32"

    def _choose_attention(self, objective: Callable[..., tuple[Tensor, int]]) -> str:
        """Time both, forward and backward, where sequences are short; a team votes here too."""
        kinds, best = ("fused", "explicit"), [math.inf, math.inf]
        batch, _ = self.team.share(self.batches(0).to(self.model.device))
        short = max(part.size(1) for part in batch) <= _SHORT
        fused = any(m.attention is fused_attention for m in attention_layers(self.model).values())
        if self.model.device.type == "cpu" and short and fused:
            learning = [p for p in self.model.parameters() if p.requires_grad]
            with self._whole():
                for turn in range(10):  # the best of five each
                    start = time.perf_counter()
                    with self._attending(kinds[turn % 2]), self._autocast():
                        loss, _ = objective(self.model, batch, self.config.label_smoothing)
                    torch.autograd.grad(loss, learning, allow_unused=True)  # which leaves no trace
                    best[turn % 2] = min(best[turn % 2], time.perf_counter() - start)
        (votes,) = self.team.total([best[1] < best[0]], self.model.device)
        return kinds[2 * votes > self.team.size]

    def learning_rate(self, step: int) -> float:
        """Give the learning rate of a step, counted from 1."""
        c = self.config
        if c.schedule == "cosine":
            return warmup_cosine(step, c.lr, c.warmup, c.steps)
        if c.schedule == "constant":
            return c.lr * min(1.0, step / c.warmup)
        return warmup_inverse_sqrt(step, self.model.config.d_model, c.warmup)

    def run(
        self,
        until: int | None = None,
        bar: Any = None,
        log_every: int = 20,
        save_to: str | Path | None = None,
        save_every: float = 60.0,
        header: dict[str, Any] | None = None,
    ) -> list[dict[str, float]]:
        """Train up to step `until` (default: all of config.steps) and return the history.

        `bar` is a tqdm bar to move; `save_to` a checkpoint file, written every `save_every` seconds
        and at the end, with `header` added to the file's. Ctrl-C lets the step finish, saves, and
        then raises KeyboardInterrupt: the trainer is whole and `run` goes on from there. Raises
        FloatingPointError, before the weights are touched, if the loss is not finite.
        """
        until = self.config.steps if until is None else until
        started, saved = time.perf_counter() - self.seconds, time.perf_counter()
        pause = 0.0 if self.team.alone else 2.0  # torchrun passes on a signal that all have had
        with self._whole(), self._attending(), deferred_interrupt(pause) as interrupted:
            while self.step < until and not self._agreed(bool(interrupted)):
                with self.team.words(self.step):
                    loss, tokens, norm = self._train_step()
                self.step += 1
                self.seconds = time.perf_counter() - started
                self._random = random_state(self.model.device)
                self._unlogged = [self._unlogged[0] + loss, self._unlogged[1] + tokens]
                if bar is not None:
                    bar.update(1)
                if self.step % log_every == 0 or self.step == self.config.steps:
                    self._log(norm)
                    if bar is not None:
                        bar.set_postfix_str(f"loss {self.history[-1]['loss']:.3f}", refresh=False)
                if save_to and time.perf_counter() - saved > save_every:
                    self.save(save_to, **(header or {}))
                    saved = time.perf_counter()
            if save_to:
                self.save(save_to, **(header or {}))
        if interrupted or self.step < until:
            raise KeyboardInterrupt(f"stopped after step {self.step} of {until}")
        return self.history

    def _agreed(self, stop: bool) -> bool:
        """Say whether any process of the team is to stop: all do so after the same step."""
        with self.team.words(self.step):
            return sum(self.team.total([stop], self.model.device)) > 0

    def _log(self, norm: float) -> None:
        """Add a row to the history: the mean loss since the row before."""
        total, tokens = self._unlogged
        self.history.append(
            {
                "step": self.step,
                "loss": total / tokens,
                "lr": self.learning_rate(self.step),
                "grad_norm": norm,
                "seconds": self.seconds,
            }
        )
        self._unlogged = [0.0, 0]

    def _train_step(self) -> tuple[float, int, float]:
        """Take one optimiser step; return the loss summed over tokens, the tokens, the norm."""
        c = self.config
        first = self.step * c.accumulate
        micro = [self.batches(first + i).to(self.model.device) for i in range(c.accumulate)]
        # divided by all the step's tokens at once: the mean over the big batch, also when uneven
        tokens = sum(b.num_tokens for b in micro)
        total = 0.0
        self.optimizer.zero_grad(set_to_none=True)
        if not self.team.alone:
            torch.manual_seed((c.seed * c.steps + self.step) * self.team.size + self.team.rank)
        for i, batch in enumerate(micro):
            rows, counts = self.team.share(batch)
            with self.team.adding_up(self.objective, now=i == len(micro) - 1):
                with self._autocast():
                    loss, _ = self.objective(rows, c.label_smoothing)
                # DDP divides the sum of gradients by the number of processes
                (loss * (counts * self.team.size) / tokens).backward()
            total += counts * loss.item()
        (total,) = self.team.total([total], self.model.device)
        if not math.isfinite(total):
            raise FloatingPointError(
                f"the loss is {total} at step {self.step + 1}, with a learning rate of "
                f"{self.learning_rate(self.step + 1):.2g}: the weights are as they were before it; "
                "try a lower rate or a longer warm-up"
            )
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), c.clip))
        if not math.isfinite(norm):
            raise FloatingPointError(f"the gradient's norm is {norm} at step {self.step + 1}")
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(self.step + 1)
        self.optimizer.step()
        return total, tokens, norm

    def save(self, path: str | Path, **header: Any) -> None:
        """Write weights, optimiser, random state, configurations and history to one file.

        In a team only the first process writes.
        """
        if not self.team.first:
            return
        tensors = {f"model/{n}": p for n, p in checkpointing.model_tensors(self.model).items()}
        for name, parameter in checkpointing.model_tensors(self.model).items():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer/{name}/{key}"] = value
        tensors |= {f"random/{kind}": state for kind, state in self._random.items()}
        checkpointing.write(
            path,
            tensors,
            {
                "kind": "training",
                "model": asdict(self.model.config),
                "training": asdict(self.config),
                "step": self.step,
                "seconds": self.seconds,
                "history": self.history,
                "unlogged": self._unlogged,
                **header,
            },
        )

    def load(self, path: str | Path) -> dict[str, Any]:
        """Take up a run where `save` left it, and return the file's header.

        Raises CheckpointError if the file is not a training checkpoint, or is one of another model
        or of other settings; the trainer is then as it was.
        """
        tensors, header = checkpointing.read(path)
        if header.get("kind") != "training":
            raise checkpointing.CheckpointError(
                f"{Path(path).name} holds {header.get('kind')!r}, not a training run"
            )
        settings = {"attention": "fused"} | header["training"]  # older files do not say
        saved = header["model"] | settings
        mine = json.loads(json.dumps(asdict(self.model.config) | asdict(self.config)))
        mine |= {name: settings[name] for name in self._chosen}  # as they were when the run began
        if differ := [name for name in mine if mine[name] != saved.get(name)]:
            raise checkpointing.CheckpointError(
                f"{Path(path).name} was trained with "
                + ", ".join(f"{n}={saved.get(n)}" for n in differ)
                + ", but this run has "
                + ", ".join(f"{n}={mine[n]}" for n in differ)
                + ": a resumed run keeps its model and its settings"
            )
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}, "random": {}}
        for name, tensor in tensors.items():
            part, rest = name.split("/", 1)
            parts[part][rest] = tensor
        checkpointing.load_weights(self.model, parts["model"])
        self.config = replace(self.config, **{name: settings[name] for name in self._chosen})
        self.optimizer.state.clear()
        for name, parameter in checkpointing.model_tensors(self.model).items():
            state = {
                key: parts["optimizer"][f"{name}/{key}"].to(parameter.device)
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"{name}/{key}" in parts["optimizer"]
            }
            if state:
                self.optimizer.state[parameter] = state
        self._random |= parts["random"]
        self.step, self.seconds = header["step"], header["seconds"]
        self.history, self._unlogged = header["history"], header["unlogged"]
        return header

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Train in training mode, on the run's own random state; give both back, come what may."""
        was_training, outside = self.model.training, random_state(self.model.device)
        set_random_state(self._random, self.model.device)
        self.model.train()
        try:
            yield
        finally:
            set_random_state(outside, self.model.device)
            self.model.train(was_training)

    @contextmanager
    def _attending(self, kind: str | None = None) -> Iterator[None]:
        """Attend in one kernel or step by step; where the rest is in bfloat16, still in float32.

        On a CPU the backward pass of attention is fast in float32 alone.
        """
        before = {layer: layer.attention for layer in attention_layers(self.model).values()}
        in_float32 = self.config.precision != "float32" and self.model.device.type == "cpu"
        for layer, attention in before.items():
            if (kind or self.config.attention) == "explicit" and attention is fused_attention:
                attention = explicit_attention
            layer.attention = InFloat32(attention) if in_float32 else attention
        try:
            yield
        finally:
            for layer, attention in before.items():
                layer.attention = attention

    def _autocast(self) -> Any:
        if self.config.precision == "float32":
            return nullcontext()
        return torch.autocast(self.model.device.type, dtype=torch.bfloat16)


class InFloat32:
    """An attention computed in float32; its weights are those of the attention inside."""

    def __init__(self, attention: Callable[..., Tensor]) -> None:
        self.attention = attention

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> Tensor:
        """Compute it; the result is in float32."""
        with torch.autocast(q.device.type, enabled=False):
            return self.attention(q.float(), k.float(), v.float(), *rest)

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
        """Give the weights of the attention inside, for `record` in a running training."""
        with torch.autocast(q.device.type, enabled=False):
            return weights_of(self.attention)(q.float(), k.float(), mask)
