"""Safetensors files, checked whole before a tensor of theirs is read: names, types, shapes, places.

Source: the format's description in the safetensors repository: eight bytes say how long the header
is; the header is JSON, and says of each tensor its type, its shape and the bytes it takes up.
"""

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from tinytf.support.files import CheckpointError, is_file, parse_json, plain_words, shortened

__all__ = ["check_finite", "read_header", "read_tensors"]

LONGEST_HEADER = 100_000_000  # bytes, as safetensors' own reader has it
DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U8": torch.uint8, "BOOL": torch.bool, "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}  # fmt: skip


def read_header(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Say which tensors a file holds, and the words that stand in its header beside them.

    The tensors are on the meta device: shapes and types, no numbers. All of the file is accounted
    for: a header longer than the file, a tensor without its bytes, bytes of no tensor, a name given
    twice and a type that is unknown are each a CheckpointError naming file, entry and what
    disagrees. Not a tensor is read, so nothing large is allocated.
    """
    path = Path(path)
    if not is_file(path):
        raise CheckpointError(f"there is no file {path}")
    try:
        size = path.stat().st_size
        try:
            header, rest = _read_json(path, size)
            tensors, places = {}, []
            words = _check_words(header.pop("__metadata__", {}))
            for name, said in header.items():
                tensors[name], place = _check_entry(name, said)
                places.append((*place, name))
            _check_places(sorted(places), rest)
        except ValueError as error:
            raise CheckpointError(
                f"{path.name} ({size} bytes) is truncated or not a safetensors file: {error}"
            ) from error
    except OSError as error:
        raise CheckpointError(f"could not read {path}: {plain_words(error)}") from error
    return tensors, words


def read_tensors(path: str | Path) -> dict[str, Tensor]:
    """Read all tensors of a file that `read_header` has checked. Raises CheckpointError."""
    path = Path(path)
    read_header(path)
    try:
        return load_file(path)
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(
            f"{path.name} ({path.stat().st_size} bytes) is truncated or not a safetensors file: "
            f"{error}"
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


def _read_json(path: Path, size: int) -> tuple[dict[str, Any], int]:
    """Read the header; returns it and how many bytes follow it."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        rest = size - 8 - length
        if size < 8 or rest < 0:
            raise ValueError(f"its header takes {length} bytes, the file has {max(0, size - 8)}")
        if length > LONGEST_HEADER:
            raise ValueError(f"its header takes {length} bytes, at most {LONGEST_HEADER} are read")
        header = parse_json(file.read(length).decode())
    if not isinstance(header, dict):
        raise ValueError(f"its header must name tensors, got {header!r:.60}")
    return header, rest


def _check_words(words: Any) -> dict[str, str]:
    if not isinstance(words, dict) or not all(isinstance(word, str) for word in words.values()):
        raise ValueError(f"__metadata__ must give texts by name, got {words!r:.60}")
    return words


def _check_entry(name: str, said: Any) -> tuple[Tensor, tuple[int, int]]:
    """Make the tensor on the meta device; returns it and where its bytes begin and end."""
    name.encode()  # a lone surrogate is a ValueError
    name = shortened(name)
    if not isinstance(said, dict) or said.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{name} must have dtype, shape and data_offsets, got {said!r:.90}")
    dtype, shape, place = said["dtype"], said["shape"], said["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"{name} has dtype {dtype!r:.40}, which is none of {', '.join(DTYPES)}")
    if not _whole_numbers(shape) or math.prod(n or 1 for n in shape) >= 1 << 60:
        raise ValueError(f"{name} has shape {shape!r:.60}, which no tensor has")
    if not _whole_numbers(place) or len(place) != 2:
        raise ValueError(f"{name} has data_offsets {place!r:.60}, not where it begins and ends")
    needed, taken = math.prod(shape) * DTYPES[dtype].itemsize, place[1] - place[0]
    if needed != taken:
        raise ValueError(f"{name}, {dtype} of {shape}, needs {needed} bytes and has {taken}")
    return torch.empty(shape, dtype=DTYPES[dtype], device="meta"), tuple(place)


def _check_places(places: list[tuple[int, int, str]], size: int) -> None:
    """Check that tensors stand one after the other, and fill what follows the header."""
    for (_, end, one), (begin, _, other) in pairwise(places):
        if begin != end:
            raise ValueError(
                f"{shortened(one)} ends at byte {end}, but {shortened(other)} begins at {begin}"
            )
    first, last = (places[0][0], places[-1][1]) if places else (0, 0)
    if first != 0 or last != size:
        raise ValueError(f"its tensors take bytes {first} to {last}, the file has 0 to {size}")


def _whole_numbers(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) < 17
        and all(type(n) is int and 0 <= n < 1 << 60 for n in values)
    )
