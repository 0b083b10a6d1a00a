"""One interface for the families whose weights come in Hugging Face's format.

A family says how its sizes are called there and which of their tensors holds which of ours; what
is done with that stands here, once. A folder is checked whole before anything is made of it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tinytf.pretrained.folders import Folder, open_folder, write_folder
from tinytf.pretrained.rows import Row, name_faults, to_ours, to_theirs
from tinytf.support.files import CheckpointError, naming, shortened
from tinytf.training.model_files import LARGEST, build_on_meta, check_buffers, fill

__all__ = ["Family", "check_settings", "read_number", "read_sizes", "renamed"]


class Family(ABC):
    """Weights of one family of models, to and from Hugging Face's format.

    A family fills in the two configs, the rows, and where needed the methods below them.
    """

    build: Callable[[Any], nn.Module]  # our model, made of our config
    sizes: Mapping[str, str]  # our names of sizes, and theirs

    @abstractmethod
    def from_config(self, config: Mapping[str, Any]) -> Any:
        """Read our config from what Hugging Face's config.json says.

        Raises CheckpointError for a size that is missing or no whole number, sizes that disagree,
        and settings that need another model than ours.
        """

    @abstractmethod
    def to_config(self, model: nn.Module) -> dict[str, Any]:
        """Say a model's sizes in the words of Hugging Face's config.json."""

    @abstractmethod
    def rows(self, config: Any) -> list[Row]:
        """List all tensors of a model without a head of its own, theirs and ours."""

    def rows_of(self, model: nn.Module) -> list[Row]:
        """List all tensors of this model."""
        return self.rows(self.config_of(model))

    def config_of(self, model: nn.Module) -> Any:
        """Give our config of a model."""
        return model.config

    def say_sizes(self, config: Any) -> dict[str, int]:
        """Give the sizes by their names."""
        return {theirs: getattr(config, ours) for ours, theirs in self.sizes.items()}

    def tidy(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Call tensors as today's files do, and leave out what holds no weights."""
        return dict(state)

    def passed_over(self, model: nn.Module) -> tuple[str, ...]:
        """Say how the names begin of tensors that may be there and are not asked for."""
        return ()

    def twins(self, model: nn.Module) -> dict[str, str]:
        """Name tensors that may be there twice: each must be the tensor it is tied to."""
        return {}

    def computed(self, model: nn.Module) -> dict[str, Tensor]:
        """Give the buffers that are computed rather than stored, by name."""
        return {}

    def from_state(self, state: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
        """Turn Hugging Face's tensors into those of `model`, by name; they may be views.

        `model` says which tensors are asked for, and of what shapes; it may be on the meta device.
        Names may be those of older files. Raises CheckpointError that names the tensors missing,
        unexpected, misshapen, not of floats, or not equal to those they are tied to.
        """
        tensors, skip = self.tidy(state), self.passed_over(model)
        tensors = {n: t for n, t in tensors.items() if not (skip and n.startswith(skip))}
        twins = self.twins(model)
        tied = {name: tensors.pop(name) for name in twins if name in tensors}
        words = self._words(self.config_of(model))
        ours = to_ours(self.rows_of(model), tensors, dict(model.named_parameters()), words)
        for name, tensor in tied.items():
            if not _equal(tensor, tensors[twins[name]]):
                raise CheckpointError(
                    f"the weights do not fit {words}: {name} is not {twins[name]}, which it is "
                    "tied to: they are one tensor here"
                )
        return ours

    def to_state(self, model: nn.Module) -> dict[str, Tensor]:
        """Copy our parameters into Hugging Face's tensors, by name, each tied one once.

        What their model's `load_state_dict(state, strict=False)` takes.
        """
        return to_theirs(self.rows_of(model), dict(model.named_parameters()))

    def load(
        self, source: str | Path, build: Callable[[Any], nn.Module] | None = None
    ) -> nn.Module:
        """Make a model of a folder with config.json and model.safetensors, whole or in shards.

        `build` makes it of our config, where it is not the family's usual one. Returns the model in
        float32, on the CPU, in evaluation mode; nothing is drawn from the random state. Config,
        headers, names, shapes and types are compared before a tensor is read, and a model of sizes
        that the files do not back is never made. Raises CheckpointError naming file, entry and what
        disagrees.
        """
        folder = open_folder(source)
        with naming(folder.path / "config.json"):
            config = self.from_config(folder.config)
        with naming(folder.path):
            self._check_backed(config, folder)
            model = build_on_meta(build or self.build, config)
            check_buffers(model, folder.tensors)
            self.from_state(folder.tensors, model)
            ours = self.from_state(folder.read(), model)
        return fill(model, ours, self.computed(model))

    def save(self, model: nn.Module, folder: str | Path) -> None:
        """Write config.json and model.safetensors that Hugging Face's `from_pretrained` reads.

        Raises CheckpointError if they could not be written; a file is written whole or not at all.
        """
        write_folder(folder, self.to_config(model), self.to_state(model))

    def _words(self, config: Any) -> str:
        return ", ".join(f"{name}={size}" for name, size in self.say_sizes(config).items())

    def _check_backed(self, config: Any, folder: Folder) -> None:
        """Refuse sizes that the tensors can't have, before anything is listed by them.

        No axis is longer than all numbers there are, and each layer has tensors; `max_len` may be a
        limit alone.
        """
        stored = sum(tensor.numel() for tensor in folder.tensors.values())
        layers, limit = self.sizes["num_layers"], self.sizes["max_len"]
        for name, size in self.say_sizes(config).items():
            most = max(100, len(folder.tensors)) if name == layers else stored
            if name != limit and size > most:
                raise CheckpointError(
                    f"the config says {name}={size}, but the files hold {stored} numbers in "
                    f"{len(folder.tensors)} tensors"
                )
        names, there = [row.theirs for row in self.rows(config)], self.tidy(folder.tensors)
        if sum(name not in there for name in names) > len(there):
            faults = "; ".join(name_faults(names, there))
            raise CheckpointError(f"the weights do not fit {self._words(config)}: {faults}")


def renamed(state: Mapping[str, Tensor], rename: Callable[[str], str]) -> dict[str, Tensor]:
    """Give tensors other names. Raises CheckpointError where two of them would become one."""
    tensors: dict[str, Tensor] = {}
    before: dict[str, str] = {}
    for name, tensor in state.items():
        new = rename(name)
        if new in tensors:
            raise CheckpointError(
                f"{shortened(before[new])} and {shortened(name)} are two names of one tensor"
            )
        tensors[new], before[new] = tensor, name
    return tensors


def check_settings(
    config: Mapping[str, Any], fixed: Mapping[str, tuple[Any, ...]], model: str
) -> None:
    """Refuse a config that needs another model than ours, which `model` names.

    `fixed` gives, per setting, the values that ours computes, the usual one first: that is what a
    config means that does not mention it. Raises CheckpointError.
    """
    if not isinstance(config, Mapping):
        raise CheckpointError(f"the config must name sizes and settings, got {config!r:.60}")
    for name, good in fixed.items():
        if config.get(name, good[0]) not in good:
            raise CheckpointError(
                f"the config says {name}={config[name]!r:.60}, "
                f"but {model} computes {name}={good[0]!r} only"
            )


def read_sizes(config: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, int]:
    """Read whole numbers: `names` maps our names to theirs. Raises CheckpointError for others."""
    sizes = {}
    for ours, theirs in names.items():
        value = config.get(theirs)
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) > LARGEST:
            raise CheckpointError(
                f"the config must give {theirs} a whole number, got {value!r:.60}"
                + (f": more than {LARGEST}" if type(value) is int else "")
            )
        sizes[ours] = value
    return sizes


def read_number(config: Mapping[str, Any], name: str, default: float) -> float:
    """Read a finite number, or the default where the config does not say it."""
    value = config.get(name, default)
    if type(value) not in (int, float) or not abs(value) < 1e300:  # nan is not, either
        raise CheckpointError(f"the config must give {name} a finite number, got {value!r:.60}")
    return float(value)


def _equal(one: Tensor, other: Tensor) -> bool:
    """Say whether tensors hold the same numbers; on the meta device, whether they could."""
    if one.shape != other.shape or not one.is_floating_point():
        return False
    return one.is_meta or torch.equal(one.float(), other.float())
