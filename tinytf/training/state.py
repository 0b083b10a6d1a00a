"""What a training loop needs to go on: weights, the optimiser's moments, step and random state."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tinytf.support.files import shortened
from tinytf.support.randomness import random_state, set_random_state
from tinytf.training.checkpointing import (
    CheckpointError,
    load_weights,
    model_tensors,
    read,
    weight_faults,
    write,
)
from tinytf.training.sharded import gathered, part_of

__all__ = ["TrainingState", "check_state", "load_training_state", "save_training_state"]

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
    """Write a model, its optimiser and the step to one file, for a training loop of your own.

    `header` is anything else that JSON can hold. The random state that dropout draws from goes with
    them (default: torch's own, as it is now). The optimiser's settings, such as its rate, are
    not kept. Of several processes one `writes`; what is sharded over them is made whole, for which
    all must call. Raises CheckpointError if it could not be written, or if a weight is not finite.
    """
    named = model_tensors(model)
    tensors = {f"model/{name}": tensor for name, tensor in named.items()}
    without = []
    for name, parameter in named.items():
        state = optimizer.state.get(parameter, {})
        if not state:
            without.append(name)
        for key, value in state.items():
            if value is not None:
                tensors[f"optimizer/{name}/{key}"] = torch.as_tensor(value)
    if random is None:
        random = random_state(_device(model))
    tensors |= {f"random/{kind}": state for kind, state in random.items()}
    tensors = gathered(tensors, keep=writes)
    if not writes:
        return
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
    state = check_state(path, tensors, header, model, optimizer)
    state.put_into(model, optimizer)
    set_random_state(state.random, _device(model))
    return header


class TrainingState(NamedTuple):
    """What is in a file, seen to fit a model and its optimiser."""

    weights: dict[str, Tensor]
    moments: dict[str, dict[str, Any]]  # by parameter
    random: dict[str, Tensor]

    def put_into(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Change weights and moments; the random state is the caller's to set."""
        load_weights(model, self.weights)
        optimizer.state.clear()
        for name, parameter in model_tensors(model).items():
            if name in self.moments:
                optimizer.state[parameter] = {
                    key: part_of(value, parameter) if isinstance(value, Tensor) else value
                    for key, value in self.moments[name].items()
                }


def check_state(
    path: str | Path,
    tensors: Mapping[str, Tensor],
    header: Mapping[str, Any],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    steps: float = math.inf,
) -> TrainingState:
    """Take a file's tensors apart and see that each fits, before anything is changed.

    Moments are compared with those that the optimiser would make: its kernels trust their sizes.
    Numbers must be such as a training can make: finite, mean squares of at least 0, and no more
    than `steps` steps. Raises CheckpointError naming file, entry and the two values.
    """
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}, "random": {}}
    faults = []
    for name, tensor in tensors.items():
        part, _, rest = name.partition("/")
        if part in parts:
            parts[part][rest] = tensor
        else:
            faults.append(f"unexpected {shortened(name)}")
    faults += weight_faults(model, parts["model"], same_dtype=True)
    without = header.get("without_moments", [])
    if not (isinstance(without, list) and all(isinstance(name, str) for name in without)):
        faults.append("without_moments is not a list of names")
        without = []
    moments, wrong = _moments(model, optimizer, parts["optimizer"], set(without))
    faults += wrong + _random_faults(parts["random"], _device(model))
    faults += [fault for name, tensor in tensors.items() for fault in _bad_number(name, tensor)]
    faults += _step_faults(parts["optimizer"], steps)
    if faults:
        more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise CheckpointError(
            f"{Path(path).name} does not fit this run: " + "; ".join(faults[:5]) + more
        )
    return TrainingState(parts["model"], moments, parts["random"])


def _moments(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    saved: Mapping[str, Tensor],
    without: set[str],
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Sort an optimiser's tensors by parameter, and say what is not as a fresh one makes them."""
    fresh = _fresh_moments(optimizer)
    moments: dict[str, dict[str, Any]] = {}
    expected, faults = set(), []
    for name, parameter in model_tensors(model).items():
        if parameter not in fresh or name in without:
            continue
        moments[name] = {}
        for key, value in fresh[parameter].items():
            entry, like = f"{name}/{key}", torch.as_tensor(value)
            expected.add(entry)
            if entry not in saved:
                faults.append(f"missing optimizer/{entry}")
            elif (found := _kind(saved[entry])) != (wanted := _kind(like)):
                faults.append(f"optimizer/{entry} is {found}, expected {wanted}")
            else:
                place = parameter.device if like.device.type == "meta" else like.device
                held = saved[entry].to(place)
                moments[name][key] = held if isinstance(value, Tensor) else held.item()
    faults += [
        f"unexpected optimizer/{shortened(entry)}" for entry in sorted(saved.keys() - expected)
    ]
    return moments, faults


def _bad_number(name: str, tensor: Tensor) -> Iterator[str]:
    """Say of a weight or a moment, in a list of one, which number no training makes."""
    if not tensor.is_floating_point():
        return
    good, expected = tensor.isfinite(), "a finite number"
    if name.startswith("optimizer/") and good.all() and name.rpartition("/")[2] in NOT_NEGATIVE:
        good, expected = tensor >= 0, "at least 0"
    if not good.all():
        place = (~good).nonzero()[0].tolist()
        value = tensor[tuple(place)].item()
        yield f"{shortened(name)}{place or ''} is {value}, expected {expected}"


def _step_faults(moments: Mapping[str, Tensor], steps: float) -> Iterator[str]:
    """Say which of the optimiser's counts of steps are no counts, or too high."""
    for name, tensor in moments.items():
        if name.rpartition("/")[2] != "step" or tensor.numel() != 1:
            continue
        value = tensor.item()
        if math.isfinite(value) and value != int(value):
            yield f"optimizer/{shortened(name)} is {value}, expected a whole number"
        elif steps < value < math.inf:
            yield f"optimizer/{name} is {value}, expected at most {steps}, the steps of the run"


def _kind(tensor: Tensor) -> str:
    return f"{tensor.dtype} of shape {tuple(tensor.shape)}"


def _fresh_moments(optimizer: torch.optim.Optimizer) -> dict[Tensor, dict[str, Any]]:
    """Give what the optimiser keeps of each parameter after a step, as shapes and dtypes alone.

    A twin takes the step on torch's meta device, where tensors have no values.
    """
    twin = object.__new__(type(optimizer))
    twin.__dict__.update(optimizer.__dict__)
    twin._optimizer_step_pre_hooks, twin._optimizer_step_post_hooks = {}, {}
    twin.state, twin.param_groups, pairs = defaultdict(dict), [], []
    for group in optimizer.param_groups:
        shadows = [  # of a sharded parameter's whole shape
            torch.empty(p.shape, dtype=p.dtype, device="meta").requires_grad_()
            for p in group["params"]
        ]
        for shadow in shadows:
            shadow.grad = torch.empty_like(shadow)
        plainly = {key: False for key in ("fused", "foreach", "capturable") if key in group}
        twin.param_groups.append(group | plainly | {"params": shadows})
        pairs += zip(group["params"], shadows, strict=True)
    if isinstance(optimizer, torch.optim.Adagrad):  # whose torch 2.11 keeps them from the start
        for parameter, shadow in pairs:
            for key, value in optimizer.state.get(parameter, {}).items():
                twin.state[shadow][key] = value.clone() if key == "step" else shadow.detach()
    type(optimizer).step(twin)
    fresh = {}
    for parameter, shadow in pairs:
        state = {key: value for key, value in twin.state[shadow].items() if value is not None}
        fused = {"step": "meta"} if optimizer.defaults.get("fused") else {}
        fresh[parameter] = {
            key: value.to(fused[key]) if key in fused else value for key, value in state.items()
        }
    return fresh


def _random_faults(states: Mapping[str, Tensor], device: torch.device) -> list[str]:
    """Say which random states can't be set; those of other devices than this one are not tried."""
    here = random_state(device)
    faults = [f"missing random/{kind}" for kind in sorted({"cpu"} - states.keys())]
    faults += [
        f"unexpected random/{shortened(k)}" for k in sorted(states.keys() - {"cpu", "cuda", "mps"})
    ]
    for kind in sorted(here.keys() & states.keys()):
        if (found := _kind(states[kind])) != (wanted := _kind(here[kind])):
            faults.append(f"random/{kind} is {found}, expected {wanted}")
            continue
        try:
            torch.Generator(device if kind != "cpu" else "cpu").set_state(states[kind])
        except RuntimeError as error:
            faults.append(f"random/{kind} is not a random state: {error}")
    return faults


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
