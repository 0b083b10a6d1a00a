"""One interface for the families whose weights come in Hugging Face's format.

A family has a table of its sizes, one of the settings that it computes, and one of the names of
tensors; what is done with them stands here, once. A folder is checked before a tensor is read.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tinytf.pretrained.folders import Folder, open_folder, write_folder
from tinytf.pretrained.rows import Row, to_ours, to_theirs
from tinytf.support.files import CheckpointError, naming, shortened
from tinytf.training.model_files import LARGEST, build_on_meta, check_buffers, fill

__all__ = ["Family", "check_settings", "layers", "read_number", "read_sizes", "renamed"]


class Family:
    """Weights of one family of models, to and from Hugging Face's format.

    A family fills in the tables, `read` and `say`, and where needed the methods below them.
    """

    build: Callable[[Any], nn.Module]  # our model, made of our config
    config: type  # our config
    name: str  # of ours, in messages
    sizes: Mapping[str, str]  # our names of sizes, and theirs
    # what a config may say that would need another model: its values that ours computes, the usual
    # one first
    fixed: Mapping[str, tuple[Any, ...]]
    # their modules or tensors, and ours, {} for a layer's number: several stand one below the other
    names: Mapping[str, str]
    twins: Mapping[str, str]  # tensors that may be there twice, and the one that each is tied to

    def read(self, config: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
        """Read what our config has besides its sizes."""
        return {}

    def say(self, model: nn.Module) -> dict[str, Any]:
        """Say what Hugging Face's config.json has besides sizes and fixed settings."""
        return {}

    def turned(self, name: str, config: Any) -> tuple[Callable[[Tensor], Tensor], ...]:
        """Give the functions that turn our tensor into theirs of this name, and back, if any."""
        return ()

    def names_of(self, model: nn.Module) -> Mapping[str, str]:
        """Give the names of this model's tensors, if it has more than others of its family."""
        return self.names

    def config_of(self, model: nn.Module) -> Any:
        """Give our config of a model."""
        return model.config

    def say_sizes(self, config: Any) -> dict[str, int]:
        """Give the sizes by their names."""
        return {theirs: getattr(config, ours) for ours, theirs in self.sizes.items()}

    def tidy(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Call tensors as today's files do, and leave out what holds no weights."""
        return dict(state)

    def computed(self, model: nn.Module) -> dict[str, Tensor]:
        """Give the buffers that are computed rather than stored, by name."""
        return {}

    def from_config(self, config: Mapping[str, Any]) -> Any:
        """Read our config from what Hugging Face's config.json says.

        Raises CheckpointError for a size that is missing or no whole number, sizes that disagree,
        and settings that need another model than ours.
        """
        check_settings(config, self.fixed, self.name)
        sizes = read_sizes(config, self.sizes)
        more = self.read(config, sizes)
        try:
            return self.config(**sizes | more)
        except ValueError as error:
            raise CheckpointError(f"the config can't be used: {error}") from error

    def to_config(self, model: nn.Module) -> dict[str, Any]:
        """Say a model's sizes and settings in the words of Hugging Face's config.json."""
        said = {name: values[0] for name, values in self.fixed.items()}
        return said | self.say_sizes(self.config_of(model)) | self.say(model)

    def rows(self, model: nn.Module) -> Iterator[Row]:
        """List all tensors of a model, theirs and ours."""
        config, parameters = self.config_of(model), dict(model.named_parameters())
        for theirs, ours in self.names_of(model).items():
            for i in range(config.num_layers if "{}" in theirs else 1):
                parts = [name.format(i) for name in ours.split()]
                for kind in ("", ".weight", ".bias"):
                    if parts[0] + kind in parameters:
                        name = theirs.format(i) + kind
                        turned = self.turned(name, config)
                        yield Row(name, tuple(part + kind for part in parts), *turned)

    def from_state(self, state: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
        """Turn Hugging Face's tensors into those of `model`, by name; they may be views.

        `model` says which tensors are asked for, and of what shapes; it may be on the meta device.
        Names may be those of older files. Raises CheckpointError that names the tensors missing,
        unexpected, misshapen, not of floats, or not equal to those they are tied to.
        """
        tensors, rows = self.tidy(state), list(self.rows(model))
        own = {row.theirs for row in rows}
        tied = {name: tensors.pop(name) for name in self.twins if name in tensors.keys() - own}
        sizes = self.say_sizes(self.config_of(model))
        words = ", ".join(f"{name}={size}" for name, size in sizes.items())
        ours = to_ours(rows, tensors, dict(model.named_parameters()), words)
        for name, tensor in tied.items():
            if not _equal(tensor, tensors[twin := self.twins[name]]):
                raise CheckpointError(
                    f"the weights do not fit {words}: {name} is not {twin}, which it is tied to: "
                    "they are one tensor here"
                )
        return ours

    def to_state(self, model: nn.Module) -> dict[str, Tensor]:
        """Copy our parameters into Hugging Face's tensors, by name, each tied one once.

        What their model's `load_state_dict(state, strict=False)` takes.
        """
        return to_theirs(self.rows(model), dict(model.named_parameters()))

    def load(
        self, source: str | Path, build: Callable[[Any], nn.Module] | None = None
    ) -> nn.Module:
        """Make a model of a folder with config.json and model.safetensors, whole or in shards.

        `build` makes it of our config, where it is not the family's usual one. Returns the model in
        float32, on the CPU, in evaluation mode; nothing is drawn from the random state. Config,
        names, shapes and types are compared before a tensor is read, and a model of sizes that the
        files do not back is never made. Raises CheckpointError naming file, entry and what
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

    def _check_backed(self, config: Any, folder: Folder) -> None:
        """Refuse sizes that the tensors can't have, before a model is made of them.

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


def layers(theirs: str, ours: str, names: Mapping[str, str]) -> dict[str, str]:
    """Give the names of what stands in each layer; `names` are those inside of one."""
    return {
        f"{theirs}.{{}}.{one}": " ".join(f"{ours}.{{}}.{part}" for part in other.split())
        for one, other in names.items()
    }


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
