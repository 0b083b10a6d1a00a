"""Safetensors files of any origin: read whole, or only their tensors' shapes and types."""

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from tinytf.support.files import CheckpointError, plain_words, shortened

__all__ = ["check_finite", "read_tensors"]


def read_tensors(path: str | Path, device: str = "cpu") -> dict[str, Tensor]:
    """Read all tensors of a file, by name; on the device "meta" their shapes and types alone.

    Safetensors accounts for every byte of the header and of the file before a tensor is read, and
    a tensor takes no memory until its numbers are asked for. Raises CheckpointError naming file and
    fault for one that is missing, truncated or damaged.
    """
    path = Path(path)
    if not os.path.isfile(path):
        raise CheckpointError(f"there is no file {path}")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name).to(device) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, RuntimeError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{path.name} ({path.stat().st_size} bytes) is truncated or not a safetensors file: "
            f"{shortened(str(error), 300)}"
        ) from error
    except OSError as error:
        raise CheckpointError(f"could not read {path}: {plain_words(error)}") from error


def check_finite(tensors: Mapping[str, Tensor]) -> None:
    """Refuse weights that are no numbers. Raises CheckpointError naming the first, and its place.

    What float32 can't hold, as a float64 may, counts as infinite: models are loaded in float32.
    """
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            continue
        finite = tensor.to(torch.float32).isfinite()
        if not finite.all():
            place = (~finite).nonzero()[0].tolist()
            value = tensor[tuple(place)].item()
            raise CheckpointError(
                f"{shortened(name)}{place} is {value}, and a weight must be a finite float32"
            )
