"""Training: a loop that can be stopped at any step and resumed to the bit."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tinytf.support.compiled import is_compiled
from tinytf.support.files import naming
from tinytf.support.interrupt import deferred_interrupt
from tinytf.support.modes import training_as_found
from tinytf.support.randomness import random_state, seeded, set_random_state
from tinytf.text.words import PAD
from tinytf.training.checkpointing import load_weights, model_tensors, read
from tinytf.training.config import TrainingConfig
from tinytf.training.distributed import Team, gathered, whole
from tinytf.training.losses import Batch, TextBatch, for_compiled, sequence_loss
from tinytf.training.optimizer import adamw
from tinytf.training.precision import Bfloat16Matrices, InFloat32, attending, autocast, settled
from tinytf.training.recompute import recomputing
from tinytf.training.state import put_training_state, resumed_settings, save_training_state

__all__ = ["InFloat32", "Trainer", "TrainingConfig"]


class Trainer:
    """Train a model on `batches`, a function from the step (counted from 0) to a batch.

    `objective(model, batch, label_smoothing)` gives the loss summed over the batch's tokens, in
    nats, and their number: `sequence_loss` for an encoder-decoder, `next_token_loss` for a GPT.
    Since a batch depends on its step alone, weights, optimiser and dropout's random state are all
    there is to save: a run that is stopped and resumed ends in the same bits as one that was not.
    `history` holds one row per logged step: step, loss (nats per token), lr, grad_norm, seconds.

    Parts of the model that are in evaluation mode stay in it while the rest trains; a model that is
    in it as a whole trains as a whole. After a run each module has the mode it had.

    In a `team` of several processes each has its own Trainer, equal but for the team. Together they
    take the steps that one would, to rounding; only the main one writes. With dropout, what is
    dropped depends on seed, step and process, so a run resumes to the bit in a team as large.
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
        pad_id = getattr(model.config, "pad_id", PAD)  # a GPT has none
        if pad_id != PAD:
            raise ValueError(f"the model has pad_id={pad_id}, but batches are padded with {PAD}")
        self.model, self.batches = model, batches
        self.config = settled(config, model, batches, self.team)
        # the settings that were left to us: a resumed run takes those it began with
        self.chosen = [name for name, value in asdict(config).items() if value == "auto"]
        if is_compiled(model):
            objective = for_compiled(objective)
        self.objective = self.team.wrap(model, objective, config.parallel)
        self.optimizer, self.matrices = adamw(model, config), Bfloat16Matrices(self.team)
        self.step = 0
        self.saved_step: int | None = None  # of the file last saved or loaded
        self.seconds = 0.0
        self.history: list[dict[str, float]] = []
        self.unlogged = (0.0, 0)  # loss and tokens since the last row
        with seeded(config.seed):
            self.random = random_state(model.device)

    def learning_rate(self, step: int) -> float:
        """Give the learning rate of a step, counted from 1."""
        return self.config.learning_rate(step, self.model.config.d_model)

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
        team, device = self.team, self.model.device
        started, saved = time.perf_counter() - self.seconds, time.perf_counter()
        first = self.step
        pause = 0.0 if team.alone else 2.0  # torchrun passes on a signal that all have had
        with self._set_up(), deferred_interrupt(pause) as interrupted:
            while self.step < until:
                due = save_to and self.step > first and time.perf_counter() - saved > save_every
                with team.words(self.step):  # all stop and save after the same step
                    votes = [bool(interrupted), bool(due) and team.is_main]
                    stop, save = team.total(votes, device)
                if save:
                    self.save(save_to, **(header or {}))
                    saved = time.perf_counter()
                if stop:
                    break
                with team.words(self.step):
                    loss, tokens, norm = self._train_step()
                self.step += 1
                self.seconds = time.perf_counter() - started
                self.random = random_state(device)
                self.unlogged = (self.unlogged[0] + loss, self.unlogged[1] + tokens)
                if bar is not None:
                    bar.update(1)
                if self.step % log_every == 0 or self.step == self.config.steps:
                    self._log(norm)
                    if bar is not None:
                        bar.set_postfix_str(f"loss {self.history[-1]['loss']:.3f}", refresh=False)
            if save_to:
                self.save(save_to, **(header or {}))
        if interrupted or self.step < until:
            raise KeyboardInterrupt(f"stopped after step {self.step} of {until}")
        return self.history

    @contextmanager
    def _set_up(self) -> Iterator[None]:
        """Train in training mode, on the run's own random state; give both back, come what may."""
        device, outside = self.model.device, random_state(self.model.device)
        in_float32 = self.config.precision != "float32" and device.type == "cpu"
        self.matrices.prepare(self.model, self.config)
        set_random_state(self.random, device)
        try:
            with (
                training_as_found(self.model),
                attending(self.model, self.config.attention, in_float32),
                recomputing(self.model) if self.config.recompute else nullcontext(),
            ):
                yield
        finally:
            set_random_state(outside, device)

    def _log(self, norm: float) -> None:
        """Add a row to the history: the mean loss since the row before."""
        total, tokens = self.unlogged
        row = {"step": self.step, "loss": total / tokens, "lr": self.learning_rate(self.step)}
        self.history.append(row | {"grad_norm": norm, "seconds": self.seconds})
        self.unlogged = (0.0, 0)

    def _train_step(self) -> tuple[float, int, float]:
        """Take one optimiser step; return the loss summed over tokens, the tokens, the norm.

        The gradient is that of the mean over all tokens of the step's batches at once, also when
        these are uneven.
        """
        c, team, device = self.config, self.team, self.model.device
        step, lr = self.step + 1, self.learning_rate(self.step + 1)
        micro = [self.batches(self.step * c.accumulate + i).to(device) for i in range(c.accumulate)]
        tokens, total = sum(batch.num_tokens for batch in micro), 0.0
        self.optimizer.zero_grad(set_to_none=True)
        if not team.alone:  # a process drops other units than the next one
            torch.manual_seed((c.seed * c.steps + self.step) * team.world_size + team.rank)
        with self.matrices.in_use():
            for i, batch in enumerate(micro):
                rows, counts = team.share(batch)
                with team.adding_up(self.objective, now=i == len(micro) - 1):
                    with autocast(c.precision, device):
                        loss, _ = self.objective(rows, c.label_smoothing)
                    # DDP and FSDP2 divide the sum of gradients by the number of processes
                    (loss * (counts * team.world_size) / tokens).backward()
                total += counts * loss.item()
        (total,) = team.total([total], device)
        _check_finite("loss", total, step, lr)
        norm = float(whole(nn.utils.clip_grad_norm_(self.model.parameters(), c.clip)))
        _check_finite("gradient's norm", norm, step, lr)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()
        return total, tokens, norm

    def weights_into(self, model: nn.Module) -> None:
        """Bring the weights as they are now, whole, to another model of the same configuration.

        In a team all must call it; only the main process's model is changed. Nothing is done where
        it is the very model that is trained.
        """
        with self.team.words(self.step):  # those of a sharded model take part all the same
            weights = gathered(model_tensors(self.model), keep=self.team.is_main)
        if self.team.is_main and model is not self.model:
            load_weights(model, weights)

    def save(self, path: str | Path, **header: Any) -> None:
        """Write weights, optimiser, random state, configurations and history to one file.

        In a team all must call it, and the main process writes.
        """
        own = {
            "model": asdict(self.model.config),
            "training": asdict(self.config),
            "seconds": self.seconds,
            "history": self.history,
            "unlogged": self.unlogged,
        }
        state = (self.model, self.optimizer, self.step, own | header, self.random)
        with self.team.words(self.step):
            save_training_state(path, *state, writes=self.team.is_main)
        self.saved_step = self.step

    def load(self, path: str | Path) -> dict[str, Any]:
        """Take up a run where `save` left it, and return the file's header.

        Raises CheckpointError if the file is not a training checkpoint, or is one of another model
        or of other settings; the trainer is then as it was.
        """
        tensors, header = read(path)
        name = Path(path).name
        with naming(name):
            config = resumed_settings(header, self.model.config, self.config, self.chosen)
        random = put_training_state(name, tensors, header, self.model, self.optimizer)
        self.config, self.random = config, self.random | random
        self.step = self.saved_step = header["step"]
        self.seconds, self.history = header["seconds"], header["history"]
        self.unlogged = tuple(header["unlogged"])
        return header


def _check_finite(what: str, value: float, step: int, lr: float) -> None:
    if not math.isfinite(value):
        raise FloatingPointError(
            f"the {what} is {value} at step {step}, with a learning rate of {lr:.2g}: the weights "
            "are as they were before it; try a lower rate or a longer warm-up"
        )
