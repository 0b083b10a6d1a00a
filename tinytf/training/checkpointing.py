"""Files: one safetensors file holds weights, state and configuration; nothing is unpickled."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from tinytf.support.files import CheckpointError, write_atomically

__all__ = [
    "CheckpointError",
    "load_weights",
    "model_tensors",
    "read",
    "weights_alone",
    "write",
]

FORMAT = "tinytf-1"


def write(path: str | Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Write tensors and a JSON header to `path`, whole or not at all (`files.write_atomically`).

    Raises CheckpointError if it could not be written.
    """
    data = save(
        {name: t.detach().cpu().contiguous() for name, t in tensors.items()},
        metadata={"format": FORMAT, "header": json.dumps(header)},
    )
    write_atomically(path, data)


def read(path: str | Path, device: str | torch.device = "cpu") -> tuple[dict[str, Tensor], dict]:
    """Read the tensors and the header that `write` wrote.

    Raises CheckpointError for a file that is missing, truncated, or not one of ours.
    """
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"there is no checkpoint at {path}")
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            meta = file.metadata() or {}
            if meta.get("format") != FORMAT:
                raise CheckpointError(
                    f"{path.name} is a safetensors file, but not a tinytf checkpoint "
                    f"(format {meta.get('format')!r}, expected {FORMAT!r})"
                )
            # copies: a tensor that maps the file would keep Windows from replacing it
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            return tensors, json.loads(meta["header"])
    except SafetensorError as error:
        raise CheckpointError(
            f"{path.name} ({path.stat().st_size} bytes) is truncated or not a safetensors file: "
            f"{error}"
        ) from error


def weights_alone(tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> dict[str, Tensor]:
    """Take a model's weights from what `read` gave, of a training run's file too."""
    if header["kind"] != "training":
        return dict(tensors)
    return {name[6:]: t for name, t in tensors.items() if name.startswith("model/")}


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """List a model's parameters by name, each shared tensor once."""
    return dict(model.named_parameters(remove_duplicate=True))


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into a model's parameters; all must be there, and fit, before any is copied.

    Raises CheckpointError that names the tensors missing, unexpected or of another shape.
    """
    own = model_tensors(model)
    faults = []
    if missing := sorted(own.keys() - tensors.keys()):
        faults.append(f"missing {', '.join(missing[:5])}" + _more(missing))
    if extra := sorted(tensors.keys() - own.keys()):
        faults.append(f"unexpected {', '.join(extra[:5])}" + _more(extra))
    for name in sorted(own.keys() & tensors.keys()):
        if own[name].shape != tensors[name].shape:
            faults.append(
                f"{name} has shape {tuple(tensors[name].shape)}, "
                f"the model expects {tuple(own[name].shape)}"
            )
    if faults:
        raise CheckpointError("the weights do not fit the model: " + "; ".join(faults))
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(tensors[name])


def _more(names: list[str]) -> str:
    return f" and {len(names) - 5} more" if len(names) > 5 else ""
