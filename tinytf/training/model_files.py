"""A model from what a file of ours says: its sizes compared with the tensors before it is made.

A header is a few bytes that can ask for any size. So the model is built on the meta device first,
where nothing has numbers, and only what the tensors back is built in earnest.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, TypeVar, get_args

import torch
from torch import Tensor, nn

from tinytf.support.files import CheckpointError, naming, shortened
from tinytf.support.tensor_files import check_finite
from tinytf.training.checkpointing import load_weights

__all__ = ["build", "build_on_meta", "check_buffers", "fill", "read_config"]

FREE = 1 << 24  # numbers that may be computed (tables of positions) though no tensor holds them
LARGEST = (1 << 31) - 1  # of any size in a configuration
SIMPLE = {int, float, bool, str, NoneType}

Model = TypeVar("Model", bound=nn.Module)
Config = TypeVar("Config")


def build(
    model_class: Callable[[Config], Model],
    config_class: type[Config],
    said: Any,
    tensors: Mapping[str, Tensor],
    where: str,
) -> Model:
    """Make a model of a header's configuration and the weights beside it, in evaluation mode.

    `said` is the configuration as the header has it, `tensors` the parameters by name, `where` the
    file's name for messages. Nothing is drawn from the random state. Raises CheckpointError for a
    configuration that can't be read (`read_config`), for one that asks for other tensors than are
    there, and for tensors that are not of floats, or not finite.
    """
    with naming(where):
        config = read_config(config_class, said)
        try:
            layers = getattr(config, "num_layers", 0)
            if layers > len(tensors):  # each has one: even on the meta device they take memory
                raise CheckpointError(f"num_layers={layers}, the file has {len(tensors)} tensors")
            plan = build_on_meta(model_class, config)
            check_buffers(plan, tensors)
            load_weights(plan, tensors)  # compares names, shapes and types; meta keeps no numbers
            check_finite(tensors)
            with torch.random.fork_rng(devices=[]):
                model = model_class(config)
        except CheckpointError:
            raise
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(f"the configuration can't be used: {error}") from error
        load_weights(model, tensors)
    return model.eval()


def read_config(config_class: type[Config], said: Any) -> Config:
    """Make a configuration of what a header says. Raises CheckpointError naming what is wrong.

    A name that the class lacks, as a later version's file may have, is an error: without knowing
    what it means the model would be another one.
    """
    if not isinstance(said, Mapping):
        raise CheckpointError(f"the configuration must name sizes, got {said!r:.60}")
    fields = {field.name: field for field in dataclasses.fields(config_class)}
    if unknown := sorted(map(str, said.keys() - fields.keys())):
        raise CheckpointError(
            f"the configuration says {shortened(unknown[0])}={said[unknown[0]]!r:.40}, which this "
            f"version's {config_class.__name__} does not know; a later version may"
        )
    for name, value in said.items():
        kind = fields[name].type
        if not _is_of(value, kind):
            raise CheckpointError(f"{name} must be {_say(kind)}, got {value!r:.60}")
    try:
        return config_class(**said)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise CheckpointError(f"the configuration can't be used: {error}") from error


def build_on_meta(model_class: Callable[[Config], Model], config: Config) -> Model:
    """Build a model without numbers. Raises CheckpointError for sizes that no tensor can have."""
    try:
        with torch.device("meta"):
            return model_class(config)
    except (RuntimeError, OverflowError) as error:
        raise CheckpointError(f"no model has these sizes: {error}") from error


def check_buffers(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Refuse a model that computes tables larger than all its file holds (and than 64 MB).

    What is stored is compared tensor by tensor; a table of positions is computed from two numbers.
    """
    stored = sum(tensor.numel() for tensor in tensors.values())
    for name, buffer in model.named_buffers():
        if buffer.numel() > max(stored, FREE):
            raise CheckpointError(
                f"{name} would take {buffer.numel()} numbers, more than the {stored} that "
                f"the file holds and the {FREE} that any file may ask for"
            )


def fill(
    model: Model, tensors: Mapping[str, Tensor], buffers: Mapping[str, Tensor] | None = None
) -> Model:
    """Put copies of the tensors, in float32, into a model that may be on the meta device.

    `buffers`, computed rather than stored, are put in as they are. Parameters that were one (tied)
    are one again. Returns the model, in evaluation mode. Raises ValueError naming what is still on
    the meta device: parameters and buffers that are not given.
    """
    names: dict[nn.Parameter, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    copies = {
        name: tensor.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    model.load_state_dict(copies, strict=False, assign=True)
    for tied in names.values():
        source = model.get_parameter(next((name for name in tied if name in copies), tied[0]))
        for name in tied:
            module, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(module), attribute, source)
    for name, buffer in (buffers or {}).items():
        module, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(module), attribute, buffer)
    left = [name for name, p in model.named_parameters() if p.is_meta]
    left += [name for name, buffer in model.named_buffers() if buffer.is_meta]
    if left:
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""
        raise ValueError(f"these have no values yet: {', '.join(left[:5])}{more}")
    return model.eval()


def _is_of(value: Any, kind: Any) -> bool:
    """Say whether a value read from JSON may stand for a field of this type."""
    kinds = get_args(kind) or (kind,)
    if not set(kinds) <= SIMPLE:
        return True  # the class itself must say
    if isinstance(value, int) and not isinstance(value, bool):
        return not {int, float}.isdisjoint(kinds) and abs(value) <= LARGEST
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return type(value) in kinds


def _say(kind: Any) -> str:
    if kind is int:
        return f"a whole number up to {LARGEST}"
    return {float: "a finite number", bool: "true or false", str: "a text"}.get(kind, str(kind))
