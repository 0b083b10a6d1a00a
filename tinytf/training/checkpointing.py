"""Files: one safetensors file holds weights, state and configuration; nothing is unpickled."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from tinytf.support.files import CheckpointError, plain_words, shortened, write_atomically
from tinytf.training.sharded import part_of

__all__ = [
    "CheckpointError",
    "load_weights",
    "model_tensors",
    "read",
    "weight_faults",
    "weights_alone",
    "write",
]

FORMAT = "tinytf-2"
LARGEST_HEADER = 1 << 25  # bytes of JSON; a tokenizer of 50,000 merges takes one million


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
    if len(text) > LARGEST_HEADER:
        raise CheckpointError(
            f"{path} is not written: its header has {len(text):,} bytes, more than the "
            f"{LARGEST_HEADER:,} that are read"
        )
    digest = _digest(kept, text)
    write_atomically(
        path, save(kept, metadata={"format": FORMAT, "header": text, "digest": digest})
    )


def read(path: str | Path, device: str | torch.device = "cpu") -> tuple[dict[str, Tensor], dict]:
    """Read the tensors and the header that `write` wrote; each bit is as it was written.

    Raises CheckpointError, and nothing else, for a file that is missing, can't be opened, is
    truncated or damaged, or is not one of ours. What is allocated is no more than the file holds.
    """
    path = Path(path)
    _check_readable(path)
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            text, digest = _metadata(path, file.metadata() or {})
            # copies: a tensor that maps the file would keep Windows from replacing it
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, RuntimeError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path.name} ({path.stat().st_size} bytes) is truncated or not a safetensors file: "
            f"{error}"
        ) from error
    if (found := _digest(tensors, text)) != digest:
        raise CheckpointError(
            f"{path.name} is damaged: the digest of what it holds is {found[:12]}…, "
            f"and {digest[:12]}… was stored when it was written"
        )
    return {name: t.to(device) for name, t in tensors.items()}, _parsed(path, text)


def _check_readable(path: Path) -> None:
    """Raise CheckpointError in plain words for what is no file, or may not be read."""
    try:
        if not path.is_file():
            what = "it is a folder" if path.is_dir() else "no such file"
            raise CheckpointError(f"there is no checkpoint at {path}: {what}")
        with path.open("rb"):
            pass
    except (OSError, ValueError) as error:
        if isinstance(error, CheckpointError):
            raise
        words = plain_words(error) if isinstance(error, OSError) else error
        raise CheckpointError(f"could not read {path}: {words}") from error


def _metadata(path: Path, meta: Mapping[str, str]) -> tuple[str, str]:
    """Take header and digest from a file's metadata, once it is seen to be one of ours."""
    if meta.get("format") != FORMAT:
        raise CheckpointError(
            f"{path.name} is a safetensors file, but not a tinytf checkpoint "
            f"(format {meta.get('format')!r:.60}, expected {FORMAT!r})"
        )
    if missing := {"header", "digest"} - meta.keys():
        raise CheckpointError(
            f"{path.name} is damaged: it lacks its {' and '.join(sorted(missing))}"
        )
    if len(meta["header"]) > LARGEST_HEADER:
        raise CheckpointError(
            f"{path.name} has a header of {len(meta['header']):,} bytes, more than the "
            f"{LARGEST_HEADER:,} that are read"
        )
    return meta["header"], meta["digest"]


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"the header of {path.name} is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise CheckpointError(
            f"the header of {path.name} is a {type(header).__name__}, expected named entries"
        )
    return header


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

    Raises CheckpointError that names the tensors missing, unexpected or of another shape or kind.
    """
    if faults := weight_faults(model, tensors):
        raise CheckpointError("the weights do not fit the model: " + "; ".join(faults))
    with torch.no_grad():
        for name, own in model_tensors(model).items():
            own.copy_(part_of(tensors[name], own))


def weight_faults(
    model: nn.Module, tensors: Mapping[str, Tensor], same_dtype: bool = False
) -> list[str]:
    """Say what keeps tensors from being copied into a model; an empty list if nothing does.

    Floats of any precision may be copied into floats, unless `same_dtype` asks for the very same.
    """
    own = model_tensors(model)
    faults = []
    if missing := sorted(own.keys() - tensors.keys()):
        faults.append(f"missing {', '.join(missing[:5])}" + _more(missing))
    if extra := sorted(tensors.keys() - own.keys()):
        faults.append(f"unexpected {', '.join(map(shortened, extra[:5]))}" + _more(extra))
    for name in sorted(own.keys() & tensors.keys()):
        if own[name].shape != tensors[name].shape:
            faults.append(
                f"{name} has shape {tuple(tensors[name].shape)}, "
                f"the model expects {tuple(own[name].shape)}"
            )
        elif own[name].dtype != tensors[name].dtype and (
            same_dtype or not (own[name].is_floating_point() and tensors[name].is_floating_point())
        ):
            faults.append(
                f"{name} is of {tensors[name].dtype}, the model expects {own[name].dtype}"
            )
    return faults


def _more(names: list[str]) -> str:
    return f" and {len(names) - 5} more" if len(names) > 5 else ""
