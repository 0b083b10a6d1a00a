"""Folders in Hugging Face's format, looked at whole before a tensor is read, and written.

A folder holds config.json and model.safetensors, or the shards of it that
model.safetensors.index.json names, as large models come. Nothing is unpickled.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from tinytf.pretrained.rows import some
from tinytf.support.files import (
    CheckpointError,
    naming,
    read_json,
    shortened,
    write_atomically,
)
from tinytf.support.tensor_files import check_finite, read_tensors

__all__ = ["Folder", "open_folder", "write_folder"]

LARGEST_CONFIG, LARGEST_INDEX = 1 << 22, 1 << 24  # bytes; parsed, they take 30 times as many


@dataclass(frozen=True)
class Folder:
    """A folder whose files are what they should be, though no tensor has been read."""

    path: Path
    config: Any  # what config.json says, not yet looked at
    tensors: dict[str, Tensor]  # by their name, on the meta device: shapes and types
    files: tuple[Path, ...]

    def read(self) -> dict[str, Tensor]:
        """Read the tensors. Raises CheckpointError for a weight that is not finite."""
        tensors = {}
        for file in self.files:
            part = read_tensors(file)
            with naming(file.name):
                check_finite(part)
            tensors |= part
        return tensors


def open_folder(folder: str | Path) -> Folder:
    """Read config.json and the headers of model.safetensors, or of its shards.

    Raises CheckpointError that says what is wrong, and names a shard that is missing, truncated, or
    holds other tensors than the index says.
    """
    folder = Path(folder)
    config = read_json(folder / "config.json", LARGEST_CONFIG)
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if os.path.isfile(whole):
        return Folder(folder, config, read_tensors(whole, "meta"), (whole,))
    if os.path.isfile(index):
        return Folder(folder, config, *_read_shards(index))
    there = ""
    if pickles := sorted(path.name for path in folder.glob("pytorch_model*.bin")):
        there = f" ({pickles[0]} is a pickle, which could run code, and is not opened)"
    raise CheckpointError(f"there is no model.safetensors in {folder}{there}")


def _read_shards(index: Path) -> tuple[dict[str, Tensor], tuple[Path, ...]]:
    """Read the headers of files that an index names, each with just the tensors that it says."""
    said = read_json(index, LARGEST_INDEX)
    places = said.get("weight_map") if isinstance(said, Mapping) else None
    if not isinstance(places, Mapping) or not places:
        raise CheckpointError(f"{index.name} must say in weight_map which file holds each tensor")
    shards: dict[str, list[str]] = {}
    for name, shard in places.items():
        if not isinstance(shard, str) or re.search(r"[/\\:]", shard):  # no way out of the folder
            raise CheckpointError(
                f"{index.name} places {shortened(name)} in {shard!r:.60}, not a file beside it"
            )
        shards.setdefault(shard, []).append(name)
    if gone := [shard for shard in shards if not os.path.isfile(index.parent / shard)]:
        raise CheckpointError(f"{index.name} names files that are not there: {some(gone)}")
    tensors = {}
    for shard, names in shards.items():
        found = read_tensors(index.parent / shard, "meta")
        if missing := [name for name in names if name not in found]:
            raise CheckpointError(
                f"{shortened(shard)} lacks {some(missing)}, which {index.name} places there"
            )
        if extra := [name for name in found if places.get(name) != shard]:
            raise CheckpointError(f"{shard} holds {some(extra)}, which {index.name} does not say")
        tensors |= found
    return tensors, tuple(index.parent / shard for shard in shards)


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
