"""What a training loop needs to go on: weights, the optimiser's moments, step and random state."""

import copy
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tinytf.support.files import CheckpointError, shortened
from tinytf.support.randomness import random_state, set_random_state
from tinytf.training.checkpointing import (
    first_of,
    load_weights,
    model_tensors,
    read,
    weight_faults,
    write,
)
from tinytf.training.config import TrainingConfig
from tinytf.training.distributed import gathered, part_of

__all__ = [
    "load_training_state",
    "put_training_state",
    "resumed_settings",
    "save_training_state",
]

# Settings that a resumed run may change: the steps are the same, but for precision's rounding. In a
# file weights and moments are float32 in either precision.
FREE = {"parallel", "recompute", "precision"}
CHOICES = {"precision": ("float32", "bfloat16"), "attention": ("fused", "explicit")}
ROW = ("step", "loss", "lr", "grad_norm", "seconds")  # of the history

# What torch's optimisers never make negative: they take its root, or divide by it, or count by it.
NOT_NEGATIVE = {
    "step", "exp_avg_sq", "max_exp_avg_sq", "square_avg", "acc_delta", "exp_inf", "sum"
}  # fmt: skip


def save_training_state(
    path: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: int,
    header: Mapping[str, Any] | None = None,
    random: Mapping[str, Tensor] | None = None,
    writes: bool = True,
) -> None:
    """Write a model, its optimiser and the step to one file: a Trainer's, or your own loop's.

    `header` is anything else that JSON can hold. The random state that dropout draws from goes with
    them (default: torch's own, as it is now). The optimiser's settings, such as its rate, are
    not kept. Of several processes one `writes`; what is sharded over them is made whole, for which
    all must call. Raises CheckpointError if it could not be written, or if a weight is not finite.
    """
    named = model_tensors(model)
    tensors = {f"model/{name}": tensor for name, tensor in named.items()}
    for name, parameter in named.items():
        for key, value in optimizer.state.get(parameter, {}).items():
            if value is not None:
                tensors[f"optimizer/{name}/{key}"] = value
    random = random_state(_device(model)) if random is None else random
    tensors |= {f"random/{kind}": state for kind, state in random.items()}
    tensors = gathered(tensors, keep=writes)
    if writes:
        without = [name for name, p in named.items() if not optimizer.state.get(p)]
        own = {"kind": "training", "step": step, "without_moments": without}
        write(path, tensors, own | dict(header or {}))


def load_training_state(
    path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Any]:
    """Put what `save_training_state` wrote into a model and its optimiser; return the header.

    `header["step"]` is the step; torch's random state is set to the one saved, so that a loop whose
    batches depend on the step alone goes on to the bit. Raises CheckpointError if anything in the
    file does not fit; model, optimiser and random state are then as they were.
    """
    tensors, header = read(path)
    step = header.get("step")
    if header.get("kind") != "training" or type(step) is not int or step < 0:
        raise CheckpointError(
            f"{Path(path).name} holds kind {header.get('kind')!r:.60} at step {step!r:.60}, "
            "not the state of a training"
        )
    random = put_training_state(Path(path).name, tensors, header, model, optimizer)
    set_random_state(random, _device(model))
    return header


def put_training_state(
    where: str,
    tensors: Mapping[str, Tensor],
    header: Mapping[str, Any],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
) -> dict[str, Tensor]:
    """Put what was read into a model and its optimiser, once all fits; return the random state.

    Moments are compared with those that the optimiser would make: its kernels trust their sizes.
    Numbers must be such as a training can make: finite, and mean squares of at least 0. Raises
    CheckpointError naming the file `where`, the entry and the two values.
    """
    kept, without = _kept_by(optimizer), header.get("without_moments", [])
    left = dict(tensors)
    weights = {name[6:]: left.pop(name) for name in tensors if name.startswith("model/")}
    random = {k: left.pop(f"random/{k}") for k in ("cpu", "cuda", "mps") if f"random/{k}" in left}
    faults = [*weight_faults(model, weights, same_dtype=True)]
    moments: dict[Tensor, dict[str, Tensor]] = {}
    for name, parameter in model_tensors(model).items():
        if parameter not in kept or (isinstance(without, list) and name in without):
            continue
        moments[parameter] = {}
        for key, like in kept[parameter].items():
            entry = f"optimizer/{name}/{key}"
            if (tensor := left.pop(entry, None)) is None:
                faults.append(f"missing {entry}")
            elif (found := _kind(tensor)) != (wanted := _kind(like)):
                faults.append(f"{entry} is {found}, expected {wanted}")
            else:
                moments[parameter][key] = part_of(tensor, parameter)
    faults += [f"unexpected {shortened(name)}" for name in sorted(left)]
    faults += [*_bad_numbers(tensors), *_bad_random_states(random, _device(model))]
    if faults:
        raise CheckpointError(f"{where} does not fit this run: {first_of(faults)}")
    load_weights(model, weights)
    every = (parameter for group in optimizer.param_groups for parameter in group["params"])
    state = {i: moments[parameter] for i, parameter in enumerate(every) if parameter in moments}
    optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
    return random


def resumed_settings(
    header: Mapping[str, Any], model: Any, config: TrainingConfig, chosen: Sequence[str]
) -> TrainingConfig:
    """Give the settings that a run goes on with: its own, and those `chosen` when it began.

    Raises CheckpointError for a file's header that is no training run's, or that has other settings
    or another model's sizes.
    """
    if header.get("kind") != "training":
        kind = shortened(repr(header.get("kind")))
        raise CheckpointError(f"it holds {kind}, not a training run")
    saved, mine = {}, {}
    for part, own in (("model", model), ("training", config)):
        said, known = header.get(part), {field.name: field.default for field in fields(own)}
        if not isinstance(said, dict):
            raise CheckpointError(f"{part} is {shortened(repr(said))}, expected named settings")
        if later := sorted(said.keys() - known.keys()):
            raise CheckpointError(
                f"it was written by a later version: unknown setting {shortened(later[0])}"
            )
        defaults = {name: value for name, value in known.items() if value is not MISSING}
        saved |= json.loads(json.dumps(defaults)) | said  # older files do not say all
        mine |= asdict(own)
    began = {name: saved[name] for name in chosen if saved[name] in CHOICES[name]}
    config = replace(config, **began)
    mine = json.loads(json.dumps(mine | began))
    if differ := [key for key in mine if mine[key] != saved.get(key) and key not in FREE]:
        alike = any(str(mine[key]) == str(saved.get(key)) for key in differ)
        show = repr if alike else str  # '12' is not 12
        theirs, ours = (
            ", ".join(f"{key}={shortened(show(said.get(key)))}" for key in differ)
            for said in (saved, mine)
        )
        raise CheckpointError(
            f"it was trained with {theirs}, but this run has {ours}: "
            "a resumed run keeps its model and its settings"
        )
    _check_progress(header, config.steps)
    return config


def _check_progress(header: Mapping[str, Any], steps: int) -> None:
    """Raise CheckpointError for a step, seconds, history or unlogged loss that no run has."""

    def numbers(*values: Any) -> bool:
        return all(type(value) in (int, float) and abs(value) < 1 << 63 for value in values)

    def is_row(row: Any) -> bool:
        named = isinstance(row, dict) and row.keys() == set(ROW)
        return named and numbers(*row.values()) and type(row["step"]) is int

    step, seconds, history, unlogged = (
        header.get(name) for name in ("step", "seconds", "history", "unlogged")
    )
    pair = isinstance(unlogged, list) and len(unlogged) == 2 and numbers(*unlogged)
    rows = isinstance(history, list) and all(map(is_row, history))
    for name, right, expected in (
        ("step", type(step) is int and 0 <= step <= steps, f"an integer in 0..{steps}"),
        ("seconds", numbers(seconds) and seconds >= 0, "a number of at least 0"),
        ("history", rows, f"rows of numbers for {', '.join(ROW)}"),
        ("unlogged", pair and type(unlogged[1]) is int, "a loss and a number of tokens"),
    ):
        if not right:
            said = shortened(repr(header.get(name)))
            raise CheckpointError(
                f"it is not a run of a Trainer: {name} is {said}, expected {expected}"
            )


def _kept_by(optimizer: torch.optim.Optimizer) -> dict[Tensor, dict[str, Tensor]]:
    """Give what an optimiser keeps of each parameter, or will once it has taken a step.

    For the latter a copy of it takes a step on torch's meta device, where tensors have shapes and
    dtypes, but no values.
    """
    twin = copy.copy(optimizer)
    twin.state, twin.param_groups, shadows = defaultdict(dict), [], {}
    for group in optimizer.param_groups:
        fresh = [p for p in group["params"] if not optimizer.state.get(p)]
        # a sharded parameter's shape is the whole one's
        made = {p: torch.empty(p.shape, dtype=p.dtype, device="meta") for p in fresh}
        for shadow in made.values():
            shadow.grad = torch.empty_like(shadow)
        plainly = {key: False for key in ("fused", "foreach", "capturable") if key in group}
        twin.param_groups.append(group | plainly | {"params": [*made.values()]})
        shadows |= made
    twin.step()
    every = (p for group in optimizer.param_groups for p in group["params"])
    states = {p: optimizer.state.get(p) or twin.state[shadows[p]] for p in every}
    return {p: {k: t for k, t in state.items() if t is not None} for p, state in states.items()}


def _kind(tensor: Tensor) -> str:
    return f"{tensor.dtype} of shape {tuple(tensor.shape)}"


def _bad_numbers(tensors: Mapping[str, Tensor]) -> Iterator[str]:
    """Say which weights and moments are numbers that no training makes."""
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            continue
        good, expected = tensor.isfinite(), "a finite number"
        if name.startswith("optimizer/") and name.rpartition("/")[2] in NOT_NEGATIVE:
            good, expected = good & (tensor >= 0), "a finite number of at least 0"
        if not good.all():
            place = (~good).nonzero()[0].tolist()
            value = tensor[tuple(place)].item()
            yield f"{shortened(name)}{place or ''} is {value}, expected {expected}"


def _bad_random_states(states: Mapping[str, Tensor], device: torch.device) -> Iterator[str]:
    """Say which random states can't be set; those of other devices than this one are not tried."""
    if "cpu" not in states:
        yield "missing random/cpu"
    for kind in {"cpu", device.type} & states.keys():
        try:
            torch.Generator("cpu" if kind == "cpu" else device).set_state(states[kind])
        except (RuntimeError, TypeError) as error:
            yield f"random/{kind} is not a random state: {error}"


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
