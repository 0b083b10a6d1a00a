"""Files: one safetensors file holds weights, state and configuration; nothing is unpickled."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from tinytf.support.files import CheckpointError, plain_words, shortened, write_atomically
from tinytf.training.distributed import part_of

__all__ = [
    "CheckpointError",
    "first_of",
    "load_weights",
    "model_tensors",
    "read",
    "weight_faults",
    "weights_alone",
    "write",
]

FORMAT = "tinytf-2"


def write(path: str | Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Write tensors and a JSON header to `path`, whole or not at all (`files.write_atomically`).

    A digest of all of it is stored with them. Raises CheckpointError if the file could not be
    written, or if a tensor is not finite: a broken model never takes the place of a whole one.
    """
    kept = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    for name, tensor in kept.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            wrong = int((~tensor.isfinite()).sum())
            raise CheckpointError(
                f"{path} is not written: {wrong} of {tensor.numel()} values of {name} are not "
                f"finite in {tensor.dtype}"
            )
    text = json.dumps(header)
    said = {"format": FORMAT, "header": text, "digest": _digest(kept, text)}
    write_atomically(path, save(kept, metadata=said))


def read(path: str | Path, device: str | torch.device = "cpu") -> tuple[dict[str, Tensor], dict]:
    """Read the tensors and the header that `write` wrote; each bit is as it was written.

    Raises CheckpointError, and nothing else, for a file that is missing, can't be opened, is
    truncated or damaged, or is not one of ours. What is allocated is no more than the file holds.
    """
    path = Path(path)
    if not os.path.isfile(path):
        what = "it is a folder" if os.path.isdir(path) else "no such file"
        raise CheckpointError(f"there is no checkpoint at {path}: {what}")
    try:
        with path.open("rb"):  # which says more plainly than safetensors why it can't be
            pass
        with safe_open(path, framework="pt", device="cpu") as file:
            said = file.metadata() or {}
            # copies: a tensor that maps the file would keep Windows from replacing it
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise CheckpointError(f"could not read {path}: {plain_words(error)}") from error
    except (SafetensorError, AttributeError, LookupError, RuntimeError, TypeError) as error:
        raise CheckpointError(
            f"{path.name} ({path.stat().st_size} bytes) is truncated or not a safetensors file: "
            f"{error}"
        ) from error
    if said.get("format") != FORMAT:
        raise CheckpointError(
            f"{path.name} is a safetensors file, but not a tinytf checkpoint "
            f"(format {said.get('format')!r:.60}, expected {FORMAT!r})"
        )
    text, stored = said.get("header", ""), said.get("digest", "")
    if (found := _digest(tensors, text)) != stored:
        raise CheckpointError(
            f"{path.name} is damaged: the digest of what it holds is {found[:12]}…, "
            f"and {stored[:12]}… was stored when it was written"
        )
    try:
        header = json.loads(text)
        if not isinstance(header, dict):
            raise ValueError(f"expected named entries, got {header!r:.60}")
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"the header of {path.name} can't be read: {error}") from error
    return {name: t.to(device) for name, t in tensors.items()}, header


def _digest(tensors: Mapping[str, Tensor], header: str) -> str:
    """Hash every name, shape, dtype and value, and the header."""
    digest = hashlib.sha256(header.encode("utf-8", "surrogatepass"))
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def weights_alone(tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> dict[str, Tensor]:
    """Take a model's weights from what `read` gave, of a training run's file too."""
    if header.get("kind") != "training":
        return dict(tensors)
    return {name[6:]: t for name, t in tensors.items() if name.startswith("model/")}


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """List a model's parameters and kept buffers by name, each shared tensor once.

    Names are those of the plain model also where `torch.compile` has wrapped it, or a part of it.
    """
    named: dict[str, Tensor] = {}
    seen = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if isinstance(tensor, Tensor) and id(tensor) not in seen:
            seen.add(id(tensor))
            named[name.replace("_orig_mod.", "")] = tensor
    return named


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into a model's parameters; all must be there, and fit, before any is copied.

    Floats of any precision fit floats. Raises CheckpointError that names the tensors missing,
    unexpected or of another shape or kind.
    """
    if faults := list(weight_faults(model, tensors)):
        raise CheckpointError("the weights do not fit the model: " + first_of(faults))
    with torch.no_grad():
        for name, own in model_tensors(model).items():
            own.copy_(part_of(tensors[name], own))


def weight_faults(
    model: nn.Module, tensors: Mapping[str, Tensor], same_dtype: bool = False
) -> Iterator[str]:
    """Say what keeps tensors from being copied into a model."""
    own = model_tensors(model)
    yield from (f"missing {name}" for name in sorted(own.keys() - tensors.keys()))
    yield from (f"unexpected {shortened(name)}" for name in sorted(tensors.keys() - own.keys()))
    for name in sorted(own.keys() & tensors.keys()):
        mine, theirs = own[name], tensors[name]
        floats = mine.is_floating_point() and theirs.is_floating_point() and not same_dtype
        if mine.shape != theirs.shape:
            yield (f"{name} has shape {tuple(theirs.shape)}, the model expects {tuple(mine.shape)}")
        elif mine.dtype != theirs.dtype and not floats:
            yield f"{name} is of {theirs.dtype}, the model expects {mine.dtype}"


def first_of(faults: Sequence[str]) -> str:
    """Say the first five of what is wrong, and how many more there are."""
    return "; ".join(faults[:5]) + (f"; and {len(faults) - 5} more" if len(faults) > 5 else "")
