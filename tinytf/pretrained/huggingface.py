"""Folders of weights in Hugging Face's format: config.json and model.safetensors.

What every loader shares: reading the files (weights may be cut into shards) and writing them, and
turning tensors by a table whose rows say which of theirs holds which of ours. Nothing is unpickled,
and what does not fit is named.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from tinytf.support.files import CheckpointError, read_json, write_atomically

__all__ = [
    "Row",
    "check_settings",
    "fill",
    "read_folder",
    "read_sizes",
    "to_ours",
    "to_theirs",
    "write_folder",
]


def _same(tensor: Tensor) -> Tensor:
    return tensor


class Row(NamedTuple):
    """One of their tensors, and ours that stand one below the other in it.

    `forth` turns ours, joined along the first axis, into theirs; `back` undoes it. Both return a
    view or a copy, and change nothing.
    """

    theirs: str
    ours: tuple[str, ...]
    forth: Callable[[Tensor], Tensor] = _same
    back: Callable[[Tensor], Tensor] = _same


def to_theirs(rows: Iterable[Row], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copy our parameters into their tensors, by name."""
    state = {}
    for row in rows:
        tensor = torch.cat([ours[name].detach() for name in row.ours])
        state[row.theirs] = row.forth(tensor).contiguous()
    return state


def to_ours(
    rows: Iterable[Row],
    theirs: Mapping[str, Tensor],
    parameters: Mapping[str, Tensor],
    words: str,
) -> dict[str, Tensor]:
    """Turn their tensors into ours, by name; they may be views of the tensors given.

    `parameters` are those of our model, looked at for their shapes alone (they may be on the meta
    device), `words` say which sizes it has. Raises CheckpointError that names the tensors missing,
    unexpected, of another shape, or not of floats.
    """
    rows = list(rows)
    with torch.device("meta"):
        empty = {name: torch.empty(p.shape) for name, p in parameters.items()}
    shapes = {name: tuple(t.shape) for name, t in to_theirs(rows, empty).items()}
    faults = []
    if missing := [name for name in shapes if name not in theirs]:
        faults.append(f"missing {_some(missing)}")
    if extra := [name for name in theirs if name not in shapes]:
        faults.append(f"unexpected {_some(extra)}")
    for name in [name for name in shapes if name in theirs]:
        if tuple(theirs[name].shape) != shapes[name]:
            faults.append(
                f"{name} has shape {tuple(theirs[name].shape)}, the config asks for {shapes[name]}"
            )
        elif not theirs[name].is_floating_point():
            faults.append(f"{name} holds {theirs[name].dtype}, not floats")
    if faults:
        raise CheckpointError(f"the weights do not fit {words}: {'; '.join(faults)}")
    ours = {}
    for row in rows:
        heights = [parameters[name].size(0) for name in row.ours]
        ours |= zip(row.ours, row.back(theirs[row.theirs]).split(heights), strict=True)
    return ours


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
                f"the config says {name}={config[name]!r}, "
                f"but {model} computes {name}={good[0]!r} only"
            )


def read_sizes(config: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, int]:
    """Read whole numbers: `names` maps our names to theirs. Raises CheckpointError for others."""
    sizes = {}
    for ours, theirs in names.items():
        value = config.get(theirs)
        if not isinstance(value, int) or isinstance(value, bool):
            raise CheckpointError(f"the config must give {theirs} a whole number, got {value!r}")
        sizes[ours] = value
    return sizes


def fill(model: nn.Module, tensors: Mapping[str, Tensor]) -> nn.Module:
    """Put copies of the tensors, in float32, into a model that may be on the meta device.

    Parameters that were one (tied) are one again. Returns the model, in evaluation mode. Raises
    ValueError naming what is still on the meta device: parameters that `tensors` lack, and buffers
    that are computed rather than stored.
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
    left = [name for name, p in model.named_parameters() if p.is_meta]
    left += [name for name, buffer in model.named_buffers() if buffer.is_meta]
    if left:
        raise ValueError(f"these have no values yet: {_some(left)}")
    return model.eval()


def read_folder(folder: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read config.json and model.safetensors, or its shards, as large models come.

    Without that file, model.safetensors.index.json says which file holds each tensor. Raises
    CheckpointError that says what is wrong, and names a shard that is missing, truncated, or holds
    other tensors than the index says.
    """
    folder = Path(folder)
    config = read_json(folder / "config.json")
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        return config, _read_tensors(whole)
    if index.is_file():
        return config, _read_shards(index)
    there = ""
    if pickles := sorted(path.name for path in folder.glob("pytorch_model*.bin")):
        there = f" ({pickles[0]} is a pickle, which could run code, and is not opened)"
    raise CheckpointError(f"there is no model.safetensors in {folder}{there}")


def _read_shards(index: Path) -> dict[str, Tensor]:
    """Read the files that an index names, each with exactly the tensors that it says."""
    said = read_json(index)
    places = said.get("weight_map") if isinstance(said, Mapping) else None
    if not isinstance(places, Mapping) or not places:
        raise CheckpointError(f"{index.name} must say in weight_map which file holds each tensor")
    shards: dict[str, list[str]] = {}
    for name, shard in places.items():
        if not isinstance(shard, str) or re.search(r"[/\\:]", shard):  # no way out of the folder
            raise CheckpointError(f"{index.name} places {name} in {shard!r}, not a file beside it")
        shards.setdefault(shard, []).append(name)
    if gone := [shard for shard in shards if not (index.parent / shard).is_file()]:
        raise CheckpointError(f"{index.name} names files that are not there: {_some(gone)}")
    tensors = {}
    for shard, names in shards.items():
        found = _read_tensors(index.parent / shard)
        if missing := [name for name in names if name not in found]:
            raise CheckpointError(
                f"{shard} lacks {_some(missing)}, which {index.name} places there"
            )
        if extra := [name for name in found if places.get(name) != shard]:
            raise CheckpointError(f"{shard} holds {_some(extra)}, which {index.name} does not say")
        tensors |= found
    return tensors


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """Read one file of tensors."""
    try:
        return load_file(path)
    except SafetensorError as error:
        raise CheckpointError(
            f"{path.name} ({path.stat().st_size} bytes) is truncated or not a safetensors file: "
            f"{error}"
        ) from error


def write_folder(
    folder: str | Path, config: Mapping[str, Any], state: Mapping[str, Tensor]
) -> None:
    """Write config.json and model.safetensors that Hugging Face's `from_pretrained` reads.

    Raises CheckpointError if they could not be written; a file is written whole or not at all.
    """
    folder = Path(folder)
    tensors = {name: tensor.cpu() for name, tensor in state.items()}
    write_atomically(folder / "model.safetensors", save(tensors, metadata={"format": "pt"}))
    text = json.dumps(config, indent=2) + "\n"
    write_atomically(folder / "config.json", text.encode())


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
