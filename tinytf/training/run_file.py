"""A training run as a file: what `Trainer.save` writes and `Trainer.load` takes up."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tinytf.training import checkpointing

if TYPE_CHECKING:
    from tinytf.training.trainer import Trainer

__all__ = ["load_run", "save_run"]


def save_run(run: "Trainer", path: str | Path, header: dict[str, Any]) -> None:
    """Write weights, optimiser, random state, configurations and history to one file."""
    tensors = {f"model/{n}": p for n, p in checkpointing.model_tensors(run.model).items()}
    for name, parameter in checkpointing.model_tensors(run.model).items():
        for key, value in run.optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer/{name}/{key}"] = value
    tensors |= {f"random/{kind}": state for kind, state in run.random.items()}
    checkpointing.write(
        path,
        tensors,
        {
            "kind": "training",
            "model": asdict(run.model.config),
            "training": asdict(run.config),
            "step": run.step,
            "seconds": run.seconds,
            "history": run.history,
            "unlogged": run.unlogged,
            **header,
        },
    )


def load_run(run: "Trainer", path: str | Path) -> dict[str, Any]:
    """Take up a run where `save_run` left it, and return the file's header."""
    tensors, header = checkpointing.read(path)
    if header.get("kind") != "training":
        raise checkpointing.CheckpointError(
            f"{Path(path).name} holds {header.get('kind')!r}, not a training run"
        )
    settings = {"attention": "fused"} | header["training"]  # older files do not say
    saved = header["model"] | settings
    mine = json.loads(json.dumps(asdict(run.model.config) | asdict(run.config)))
    mine |= {name: settings[name] for name in run.measured}  # as they were when the run began
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
    checkpointing.load_weights(run.model, parts["model"])
    run.config = replace(run.config, **{name: settings[name] for name in run.measured})
    run.optimizer.state.clear()
    for name, parameter in checkpointing.model_tensors(run.model).items():
        state = {
            key: parts["optimizer"][f"{name}/{key}"].to(parameter.device)
            for key in ("step", "exp_avg", "exp_avg_sq")
            if f"{name}/{key}" in parts["optimizer"]
        }
        if state:
            run.optimizer.state[parameter] = state
    run.random |= parts["random"]
    run.step, run.seconds = header["step"], header["seconds"]
    run.history, run.unlogged = header["history"], header["unlogged"]
    return header
