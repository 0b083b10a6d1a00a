"""Longer experiments: their code, and the small tables of results that chapters read.

`python -m tinytf_course.studies NAME` remakes a table; `load(NAME)` reads the one that ships.
"""

import json
import platform
from pathlib import Path

import torch

from tinytf.support.files import write_atomically

__all__ = ["load", "save", "table"]

FOLDER = Path(__file__).parent


def load(name: str) -> dict:
    """Read a study: its command, the versions it ran with, and its rows.

    Raises FileNotFoundError naming the studies there are.
    """
    path = table(name, FOLDER)
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in FOLDER.glob("*.json"))) or "none"
        raise FileNotFoundError(f"no study {name!r}; there are: {there}")
    return json.loads(path.read_text(encoding="utf-8"))


def save(name: str, rows: list[dict], folder: Path = FOLDER) -> None:
    """Write a study's rows with what a reader needs to repeat it, whole or not at all.

    Raises CheckpointError if it could not be written; an earlier table is then untouched.
    """
    study = {
        "command": f"python -m tinytf_course.studies {name}",
        "versions": {"python": platform.python_version(), "torch": torch.__version__.split("+")[0]},
        "rows": rows,
    }
    text = json.dumps(study, ensure_ascii=False, indent=1) + "\n"
    write_atomically(table(name, folder), text.encode())


def table(name: str, folder: Path) -> Path:
    """Name the file of a study's rows."""
    return folder / f"{name}.json"
