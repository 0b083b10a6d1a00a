"""Ways to break a file: bytes damaged, JSON and tensors edited, files of a folder swapped."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save

from tinytf.training import checkpointing

from .specimens import Specimen

VALUES = [
    None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 10**12, 10**18, 10**40, 0.5, -0.0, 1e300,
    float("nan"), float("inf"), "", "x", "24", "\ud800", "x" * 1000, [], [1], {}, {"a": "y"},
    [[[]]], [[1, 2], [3, 4]], ["a", "a"],
]  # fmt: skip
DTYPES = [torch.float16, torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8,
          torch.bool]  # fmt: skip


def damage(draw: random.Random, specimen: Specimen, folder: Path) -> None:
    """Cut a file off, flip one to three bits, or put noise, zeros or its own bytes in a place."""
    path = folder / draw.choice(specimen.files)
    data = bytearray(path.read_bytes())
    what = draw.randrange(3)
    if what == 0:
        data = data[: draw.randrange(len(data))]
    elif what == 1:
        reach = len(data) if draw.random() < 0.5 else min(len(data), 3000)
        for place in draw.sample(range(reach), draw.randint(1, 3)):
            data[place] ^= 1 << draw.randrange(8)
    else:
        length = draw.randint(1, min(512, len(data)))
        start, source = (draw.randrange(len(data) - length + 1) for _ in range(2))
        noise = [bytes(length), draw.randbytes(length), data[source : source + length]]
        data[start : start + length] = draw.choice(noise)
    path.write_bytes(data)


def edit(draw: random.Random, value: Any) -> Any:
    """Change something somewhere in what JSON can hold."""
    what = draw.random()
    if isinstance(value, dict) and value and draw.random() < 0.85:
        name, changed = draw.choice(list(value)), dict(value)
        if what < 0.2:
            del changed[name]
        elif what < 0.3:
            changed[draw.choice(["new", "", "steps", "d_model"])] = draw.choice(VALUES)
        else:
            changed[name] = edit(draw, value[name])
        return changed
    if isinstance(value, list) and value and draw.random() < 0.8:
        place, changed = draw.randrange(len(value)), list(value)
        if what < 0.25:
            del changed[place]
        elif what < 0.5:
            changed.insert(draw.randrange(len(value)), value[place])
        else:
            changed[place] = edit(draw, value[place])
        return changed
    if isinstance(value, int) and draw.random() < 0.5:
        return value + draw.choice([-1, 1, 10])
    return draw.choice(VALUES)


def edit_words(draw: random.Random, specimen: Specimen, folder: Path) -> None:
    """Change what a header, its digest made right again, or another file says in JSON or lines."""
    path = folder / draw.choice([f for f in specimen.files if f != "model.safetensors"])
    times = range(draw.randint(1, 3))
    if specimen.kind in ("run", "model"):
        tensors, header = checkpointing.read(path)
        names = [n for n in header if n in ("merges", "special_tokens") or n.endswith("_words")]
        if draw.random() < 0.3:
            name = draw.choice(names)
            header[name] = edit(draw, header[name])
        for _ in times:
            header = edit(draw, header)
        checkpointing.write(path, tensors, header)
    elif path.suffix == ".json":
        content = json.loads(path.read_text(encoding="utf-8"))
        for _ in times:
            content = edit(draw, content)
        path.write_text(json.dumps(content))
    else:
        lines = edit(draw, path.read_text(encoding="utf-8").split("\n"))
        text = "\n".join(map(str, lines if isinstance(lines, list) else [lines]))
        path.write_bytes(text.encode("utf-8", "surrogatepass"))


def edit_metadata(draw: random.Random, specimen: Specimen, folder: Path) -> None:
    """Change what stands around a header: format, digest, or the header as a text."""
    path = folder / specimen.files[0]
    with safe_open(path, "pt") as file:
        meta = file.metadata()
    name = draw.choice(list(meta))
    wrong = ["", "[]", "{}", "null", "{", "[" * 5000, "NaN", '{"kind": 1e999}', meta[name][:-1]]
    path.write_bytes(save(checkpointing.read(path)[0], meta | {name: draw.choice(wrong)}))


def edit_tensors(draw: random.Random, specimen: Specimen, folder: Path) -> None:
    """Give tensors other shapes, types, names and values, the file being otherwise right."""
    path, header = folder / specimen.files[-1], None
    if specimen.kind == "folder":
        tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    else:
        tensors, header = checkpointing.read(path)
    for _ in range(draw.randint(1, 3)):
        name = draw.choice(sorted(tensors))
        tensors[name] = _other(draw, tensors[name])
        what = draw.random()
        if what < 0.15:
            del tensors[name]
        elif what < 0.3:
            tensors[draw.choice(["new", f"{name}.x", f"optimizer/{name}"])] = tensors[name].clone()
    if header is None:
        path.write_bytes(save(tensors, {"format": "pt"}))
    else:
        finite = {n: t.nan_to_num() if t.is_floating_point() else t for n, t in tensors.items()}
        checkpointing.write(path, finite, header)


def _other(draw: random.Random, tensor: torch.Tensor) -> torch.Tensor:
    """Change one tensor's shape, type or values."""
    rank = tensor.dim()
    changes: list[Callable[[], torch.Tensor]] = [
        lambda: torch.zeros(3),
        lambda: torch.zeros(0),
        lambda: tensor.flatten(),
        lambda: tensor[None],
        lambda: tensor.to(draw.choice(DTYPES)),
        lambda: torch.zeros([draw.randrange(5) for _ in range(rank)]).to(tensor.dtype),
    ]
    if rank == 2:
        changes.append(lambda: tensor.t())
    if rank and tensor.size(0) > 1:
        changes.append(lambda: tensor[:-1])
    if tensor.is_floating_point():
        changes.append(lambda: torch.full_like(tensor, draw.choice([float("nan"), 3e4, -1.0])))
    return draw.choice(changes)().clone().contiguous()


def edit_folder(draw: random.Random, specimen: Specimen, folder: Path) -> None:
    """Let a file be missing, empty, a folder, noise, another one, or twice itself."""
    path, other = (folder / draw.choice(specimen.files) for _ in range(2))
    what, data = draw.randrange(5), path.read_bytes()
    path.unlink()
    if what == 1:
        path.mkdir()
    elif what > 1:
        noise = draw.randbytes(draw.randint(1, 4000))
        path.write_bytes([b"", noise, data * 2][what - 2])
        if what == 4 and other != path:
            shutil.copy(other, path)


BREAKAGES: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "damage": (damage, ("run", "model", "folder", "tokenizer")),
    "words": (edit_words, ("run", "model", "folder", "tokenizer")),
    "metadata": (edit_metadata, ("run", "model")),
    "tensors": (edit_tensors, ("run", "model", "folder")),
    "folder": (edit_folder, ("run", "model", "folder", "tokenizer")),
}
