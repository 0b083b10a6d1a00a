"""A reader's own copies of the chapters: made, brought up to date, given back, and read.

A copy remembers of each cell how it was handed out (a hash, in the notebook's metadata). So an
update can tell what the reader wrote from what they only ran: the first is kept, the second follows
the chapter.
"""

import copy as copies
import json
from typing import NamedTuple

from tinytf.support.files import write_atomically
from tinytf_course.matching import fingerprint, identified
from tinytf_course.moved import rewritten
from tinytf_course.saved import read, source
from tinytf_course.stubs import build_copy, read_copy

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
    handed = {cell["id"]: fingerprint(cell) for cell in fresh["cells"] if "id" in cell}
    fresh.setdefault("metadata", {})[_KEY] = {"mode": mode, "handed_out": handed}
    return fresh


def update(mine, notebook):
    """Bring a reader's copy to the chapter's present state; return the new copy and an `Update`.

    A cell that the reader has not touched follows the chapter; one that they wrote in stays as it
    is, and so do cells of their own, after the cell that they stood behind; only imports of what
    has moved in the package get their new names. Outputs stay with cells whose text stays.
    Raises ValueError for a notebook that is no copy of ours.
    """
    mode, handed = _made(mine)
    names = [cell.get("id") for cell in notebook["cells"]]
    if None in names or len(set(names)) < len(names):
        raise ValueError("the chapter has cells without an id of their own: nothing to go by")
    fresh = fresh_copy(notebook, mode)
    written = identified(mine["cells"], handed, fresh["cells"])
    theirs = {cell["id"]: cell for cell in written}
    did, cells = Update([], [], [], []), []
    for cell in fresh["cells"]:
        old = theirs.get(cell["id"])
        if old is None:
            did.new.append(cell["id"])
        elif source(old) == source(cell):
            cell = old
        elif handed.get(cell["id"]) == fingerprint(old):
            did.changed.append(cell["id"])
        else:
            if handed.get(cell["id"]) != fingerprint(cell):
                did.kept.append(cell["id"])
            cell = old
        cells.append(cell)
    present = {cell["id"] for cell in cells}
    before = None  # the cell that a cell of the reader's own stands behind
    for old in written:
        id = old["id"]
        if id in present:
            before = id
        elif id in handed and handed[id] == fingerprint(old):
            did.gone.append(id)
        else:
            place = next((i for i, c in enumerate(cells) if c.get("id") == before), -1)
            cells.insert(place + 1, old)
            before = id
    result = copies.deepcopy(mine)
    result["cells"] = [_with_new_names(cell) for cell in cells]
    result |= {key: notebook[key] for key in ("nbformat", "nbformat_minor") if key in notebook}
    result["metadata"][_KEY] = fresh["metadata"][_KEY]
    return result, did


def _with_new_names(cell):
    """The cell, with the imports of its code by the names of today."""
    code = source(cell)
    if cell.get("cell_type") != "code" or rewritten(code) == code:
        return cell
    return cell | {"source": rewritten(code).splitlines(keepends=True)}


def write(path, notebook):
    """Save a notebook as one file or not at all."""
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode(errors="backslashreplace"))  # as JSON has half a character


def _made(copy):
    """How a copy was made: its mode, and the fingerprints of its cells by id."""
    known = copy.get("metadata", {}).get(_KEY)
    known = known if isinstance(known, dict) else {}
    mode, handed = known.get("mode", "read"), known.get("handed_out")
    if mode not in ("read", "build") or not isinstance(handed, dict):
        raise ValueError("it was not made by `start`, so nothing says what is yours in it")
    return mode, {id: text for id, text in handed.items() if isinstance(text, str)}
