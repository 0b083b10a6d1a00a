"""A training run as a file: what `Trainer.save` writes and `Trainer.load` takes up."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinytf.support.files import shortened
from tinytf.training.checkpointing import CheckpointError, read
from tinytf.training.state import check_state, save_training_state

if TYPE_CHECKING:
    from tinytf.training.trainer import Trainer

__all__ = ["load_run", "save_run"]

ROW = ("step", "loss", "lr", "grad_norm", "seconds")  # of the history
# Settings that a resumed run may change: the steps are the same, but for precision's rounding. In a
# file weights and moments are float32 in either precision.
FREE = ("parallel", "recompute", "precision")


def save_run(run: "Trainer", path: str | Path, header: dict[str, Any]) -> None:
    """Write weights, optimiser, random state, configurations and history to one file.

    In a team all must call it, and the main process writes.
    """
    own = {
        "model": asdict(run.model.config),
        "training": asdict(run.config),
        "seconds": run.seconds,
        "history": run.history,
        "unlogged": run.unlogged,
    }
    entries, writes = own | header, run.team.is_main
    save_training_state(path, run.model, run.optimizer, run.step, entries, run.random, writes)


def load_run(run: "Trainer", path: str | Path) -> dict[str, Any]:
    """Take up a run where `save_run` left it, and return the file's header.

    Everything is checked before anything is changed.
    """
    tensors, header = read(path)
    name = Path(path).name
    if header.get("kind") != "training":
        raise CheckpointError(f"{name} holds {_short(header.get('kind'))}, not a training run")
    settings = _check_settings(run, header, name)
    if faults := _header_faults(header, run.config.steps):
        raise CheckpointError(f"{name} is not a run of a Trainer: " + "; ".join(faults[:5]))
    state = check_state(path, tensors, header, run.model, run.optimizer, header["step"])
    config = replace(run.config, **{name: settings[name] for name in run.measured})
    state.put_into(run.model, run.optimizer)
    run.config = config
    run.random = run.random | state.random
    run.step, run.seconds = header["step"], header["seconds"]
    run.history, run.unlogged = header["history"], tuple(header["unlogged"])
    return header


def _check_settings(run: "Trainer", header: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the settings a run began with; CheckpointError if they are not this run's."""
    saved, mine = {}, {}
    for part, config in (("model", run.model.config), ("training", run.config)):
        entry = header.get(part)
        if not isinstance(entry, dict):
            raise CheckpointError(
                f"{name} is not a run of a Trainer: {part} is {_short(entry)}, "
                "expected named settings"
            )
        known = {field.name: field.default for field in fields(config)}
        if unknown := sorted(entry.keys() - known.keys()):
            raise CheckpointError(
                f"{name} was written by a later version: unknown setting "
                + ", ".join(shortened(name) for name in unknown[:5])
            )
        defaults = {key: value for key, value in known.items() if value is not MISSING}
        saved |= json.loads(json.dumps(defaults)) | entry  # older files do not say all
        mine |= json.loads(json.dumps(asdict(config)))
    choices = {"precision": ("float32", "bfloat16"), "attention": ("fused", "explicit")}
    for key in run.measured:  # as they were when the run began
        mine[key] = saved[key] if saved[key] in choices[key] else mine[key]
    if differ := [key for key in mine if mine[key] != saved.get(key) and key not in FREE]:
        theirs = {key: saved.get(key) for key in differ}
        kinds = all(type(value) is type(mine[key]) for key, value in theirs.items())
        show = str if kinds else repr  # '12' is not 12
        raise CheckpointError(
            f"{name} was trained with "
            + ", ".join(f"{key}={_short(value, show)}" for key, value in theirs.items())
            + ", but this run has "
            + ", ".join(f"{key}={_short(mine[key], show)}" for key in differ)
            + ": a resumed run keeps its model and its settings"
        )
    return saved


def _header_faults(header: Mapping[str, Any], steps: int) -> list[str]:
    """Say what of step, seconds, history and the unlogged loss is not what a run has."""
    faults = []

    def need(entry: str, value: Any, holds: bool, expected: str) -> None:
        if not holds:
            faults.append(f"{entry} is {_short(value)}, expected {expected}")

    step, seconds = header.get("step"), header.get("seconds")
    need("step", step, _is_count(step) and step <= steps, f"an integer in 0..{steps}")
    need("seconds", seconds, _is_number(seconds) and seconds >= 0, "a number of at least 0")
    unlogged = header.get("unlogged")
    pair = isinstance(unlogged, list) and len(unlogged) == 2
    fits = pair and _is_number(unlogged[0]) and _is_count(unlogged[1])
    need("unlogged", unlogged, fits, "a loss and a number of tokens")
    history = header.get("history")
    need("history", history, isinstance(history, list), "a list of rows")
    for i, row in enumerate(history if isinstance(history, list) else []):
        numbers = isinstance(row, dict) and row.keys() == set(ROW)
        fits = numbers and all(map(_is_number, row.values())) and _is_count(row["step"])
        need(f"row {i} of history", row, fits, "numbers for " + ", ".join(ROW))
    return faults


def _is_number(value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    return whole or (isinstance(value, float) and math.isfinite(value))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value) and value >= 0


def _short(value: Any, show: Callable[[Any], str] = repr) -> str:
    text = show(value)
    return text if len(text) <= 60 else text[:57] + "…"
