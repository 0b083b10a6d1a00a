"""Longer experiments: their code, and the small tables of results that chapters read.

`python -m tinytf.studies NAME` remakes a table; `load(NAME)` reads the one that ships.
"""

import json
import platform
from pathlib import Path

import torch

__all__ = ["load", "save"]

FOLDER = Path(__file__).parent


def load(name: str) -> dict:
    """Read a study: its command, the versions it ran with, and its rows.

    Raises FileNotFoundError naming the studies there are.
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in FOLDER.glob("*.json"))) or "none"
        raise FileNotFoundError(f"no study {name!r}; there are: {there}")
    return json.loads(path.read_text(encoding="utf-8"))


def save(name: str, rows: list[dict], folder: Path = FOLDER) -> None:
    """Write a study's rows with what a reader needs to repeat it."""
    study = {
        "command": f"python -m tinytf.studies {name}",
        "versions": {"python": platform.python_version(), "torch": torch.__version__.split("+")[0]},
        "rows": rows,
    }
    text = json.dumps(study, ensure_ascii=False, indent=1) + "\n"
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
