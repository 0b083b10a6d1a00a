"""A reader's own copies of the chapters: made, brought up to date, given back, and read.

A copy remembers of each cell how it was handed out (a hash, in the notebook's metadata). So an
update can tell what the reader wrote from what they only ran: the first is kept, the second follows
the chapter.
"""

import copy as copies
import hashlib
import json
from typing import NamedTuple

from tinytf.course.notebooks import NotebookError, source
from tinytf.course.stubs import build_copy, read_copy
from tinytf.support.files import write_atomically

__all__ = ["Update", "fresh_copy", "read", "update", "write"]

_KEY = "tinytf"


class Update(NamedTuple):
    """What an update did, as cell ids: brought in, changed, taken out, and kept though changed."""

    new: list
    changed: list
    gone: list
    kept: list

    def __bool__(self):
        """Whether there was anything to bring."""
        return any(self)


def fresh_copy(notebook, mode="read"):
    """A copy of a chapter (what `json.load` gives) without outputs, to "read" or to "build"."""
    fresh = (build_copy if mode == "build" else read_copy)(notebook)
    handed = {cell["id"]: _hash(cell) for cell in fresh["cells"] if "id" in cell}
    fresh.setdefault("metadata", {})[_KEY] = {"mode": mode, "handed_out": handed}
    return fresh


def update(mine, notebook):
    """Bring a reader's copy to the chapter's present state; return the new copy and an `Update`.

    A cell that the reader has not touched follows the chapter; one that they wrote in stays as it
    is, and so do cells of their own, after the cell that they stood behind. Outputs stay with cells
    whose text stays. Raises ValueError for a notebook that is no copy of ours.
    """
    known = mine.get("metadata", {}).get(_KEY)
    if not isinstance(known, dict) or "handed_out" not in known:
        raise ValueError(
            "it was not made by `start` or `copy`, so nothing says what is yours in it"
        )
    handed = known["handed_out"]
    fresh = fresh_copy(notebook, known.get("mode", "read"))
    theirs = {cell.get("id"): cell for cell in mine["cells"]}
    did, cells = Update([], [], [], []), []
    for cell in fresh["cells"]:
        old = theirs.get(cell["id"])
        if old is None:
            did.new.append(cell["id"])
        elif source(old) == source(cell):
            cell = old
        elif handed.get(cell["id"]) == _hash(old):
            did.changed.append(cell["id"])
        else:
            if handed.get(cell["id"]) != _hash(cell):
                did.kept.append(cell["id"])
            cell = old
        cells.append(cell)
    present = {cell["id"] for cell in cells}
    before = None  # the cell that a cell of the reader's own stands behind
    for old in mine["cells"]:
        id = old.get("id")
        if id in present:
            before = id
        elif id in handed and handed[id] == _hash(old):
            did.gone.append(id)
        else:
            place = next((i for i, c in enumerate(cells) if c.get("id") == before), -1)
            cells.insert(place + 1, old)
            before = id
    result = copies.deepcopy(mine)
    result["cells"] = cells
    result["metadata"][_KEY] = fresh["metadata"][_KEY]
    return result, did


def read(path):
    """The notebook at `path`. Raises NotebookError naming what is wrong with it."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(notebook["cells"], list):
            return notebook
    except OSError as error:
        raise NotebookError(f"{path.name}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError):
        pass
    raise NotebookError(f"{path.name} is not a notebook")


def write(path, notebook):
    """Save a notebook as one file or not at all."""
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode())


def _hash(cell):
    return hashlib.sha256(source(cell).encode()).hexdigest()[:16]
