"""Ways to break a file: bytes cut and flipped, headers, tensors, tokenizers and folders edited."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save

from tinytf.training import checkpointing

from .specimens import Specimen

VALUES = [
    None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 10**12, 10**18, 10**40, 0.5, -0.0, 1e300,
    float("nan"), float("inf"), "", "x", "24", "\ud800", "x" * 1000, [], [1], {}, {"a": "y"},
    [[[]]], [[1, 2], [3, 4]], ["a", "a"],
]  # fmt: skip
DTYPES = [torch.float16, torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8,
          torch.bool]  # fmt: skip


def truncate(draw: random.Random, specimen: Specimen, folder: Path) -> None:
    """Cut a file off."""
    path = folder / draw.choice(specimen.files)
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(len(data))])


def flip(draw: random.Random, specimen: Specimen, folder: Path) -> None:
    """Flip one to three bits, every second time near the beginning."""
    path = folder / draw.choice(specimen.files)
    data = bytearray(path.read_bytes())
    reach = len(data) if draw.random() < 0.5 else min(len(data), 3000)
    for place in draw.sample(range(reach), draw.randint(1, 3)):
        data[place] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def overwrite(draw: random.Random, specimen: Specimen, folder: Path) -> None:
    """Put a stretch of noise, of zeros, or of another part of the file in a place."""
    path = folder / draw.choice(specimen.files)
    data = bytearray(path.read_bytes())
    length = draw.randint(1, min(512, len(data)))
    start, source = (draw.randrange(len(data) - length + 1) for _ in range(2))
    stretch = draw.choice([bytes(length), draw.randbytes(length), data[source : source + length]])
    data[start : start + length] = stretch
    path.write_bytes(data)


def edit(draw: random.Random, value: Any) -> Any:
    """Change something somewhere in what JSON can hold."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        name = draw.choice(list(value))
        changed = dict(value)
        what = draw.random()
        if what < 0.2:
            del changed[name]
        elif what < 0.3:
            changed[draw.choice(["new", "", "steps", "d_model"])] = draw.choice(VALUES)
        else:
            changed[name] = edit(draw, value[name])
        return changed
    if isinstance(value, list) and value and draw.random() < 0.8:
        changed, place = list(value), draw.randrange(len(value))
        what = draw.random()
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


def edit_header(draw: random.Random, specimen: Specimen, folder: Path) -> None:
    """Change entries of a header, its digest made right again; or what stands around it."""
    path = folder / specimen.files[0]
    tensors, header = checkpointing.read(path)
    if draw.random() < 0.8:
        for _ in range(draw.randint(1, 3)):
            header = edit(draw, header)
        checkpointing.write(path, tensors, header)
        return
    with safe_open(path, "pt") as file:
        meta = file.metadata()
    name = draw.choice(list(meta))
    wrong = ["", "[]", "{}", "null", "{", "[" * 5000, "NaN", '{"kind": 1e999}', meta[name][:-1]]
    meta[name] = draw.choice(wrong)
    path.write_bytes(save(tensors, meta))


def edit_tensors(draw: random.Random, specimen: Specimen, folder: Path) -> None:
    """Give tensors other shapes, types, names and values, the file being otherwise right."""
    ours = specimen.kind in ("run", "model")
    path = folder / specimen.files[0 if ours else 1]
    if ours:
        tensors, header = checkpointing.read(path)
    else:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            meta = file.metadata()
    for _ in range(draw.randint(1, 3)):
        name = draw.choice(sorted(tensors))
        tensors |= {name: _other(draw, tensors[name])}
        what = draw.random()
        if what < 0.15:
            del tensors[name]
        elif what < 0.3:
            tensors[draw.choice(["new", f"{name}.x", f"optimizer/{name}"])] = tensors[name].clone()
    if ours:
        finite = {n: t.nan_to_num() if t.is_floating_point() else t for n, t in tensors.items()}
        checkpointing.write(path, finite, header)
    else:
        path.write_bytes(save(tensors, meta))


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


def edit_tokenizer(draw: random.Random, specimen: Specimen, folder: Path) -> None:
    """Change merges, words and special tokens."""
    path = folder / draw.choice(specimen.files)
    if specimen.kind == "run" or specimen.kind == "model":
        tensors, header = checkpointing.read(path)
        names = [n for n in header if n in ("merges", "special_tokens") or n.endswith("_words")]
        name = draw.choice(names)
        header[name] = edit(draw, header[name])
        checkpointing.write(path, tensors, header)
    elif path.suffix == ".json":
        content = json.loads(path.read_text(encoding="utf-8"))
        for _ in range(draw.randint(1, 3)):
            content = edit(draw, content)
        path.write_text(json.dumps(content))
    else:
        lines = path.read_text(encoding="utf-8").split("\n")
        lines = edit(draw, lines)
        lines = lines if isinstance(lines, list) else [str(lines)]
        text = "\n".join(str(line) for line in lines)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))


def edit_config(draw: random.Random, specimen: Specimen, folder: Path) -> None:
    """Change a published config."""
    path = folder / "config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    for _ in range(draw.randint(1, 3)):
        content = edit(draw, content)
    path.write_text(json.dumps(content))


def edit_folder(draw: random.Random, specimen: Specimen, folder: Path) -> None:
    """Let a file be missing, empty, a folder, or another one."""
    path = folder / draw.choice(specimen.files)
    what = draw.randrange(5)
    if what == 0:
        path.unlink()
    elif what == 1:
        path.write_bytes(b"")
    elif what == 2:
        path.unlink()
        path.mkdir()
    elif what == 3:
        path.write_bytes(draw.randbytes(draw.randint(1, 4000)))
    else:
        other = folder / draw.choice(specimen.files)
        if other != path:
            shutil.copy(other, path)
        else:
            path.write_bytes(path.read_bytes() * 2)


ALL = ("run", "model", "folder", "tokenizer")
BREAKAGES: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "truncate": (truncate, ALL),
    "flip": (flip, ALL),
    "overwrite": (overwrite, ALL),
    "header": (edit_header, ("run", "model")),
    "tensors": (edit_tensors, ("run", "model", "folder")),
    "tokenizer": (edit_tokenizer, ("run", "model", "tokenizer")),
    "config": (edit_config, ("folder",)),
    "folder": (edit_folder, ALL),
}
