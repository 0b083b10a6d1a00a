"""Which cell of a reader's copy is which cell of the chapter, whatever became of the ids."""

import difflib
import hashlib

from tinytf_course.notebooks import source

__all__ = ["fingerprint", "identified"]

_COMPARED = 2_000  # characters of a cell


def fingerprint(cell):
    """A short hash of the text of a cell."""
    return hashlib.sha256(source(cell).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def identified(cells, handed_out, chapter):
    """A reader's cells, as copies, each with an id that no other has.

    `handed_out` has the fingerprint of each cell as it was handed out, by id and in order;
    `chapter` is the chapter's cells as they are now. Where cells share an id, the one that is as
    it was handed out keeps it, or else the first. A cell without an id, as some editors save them,
    gets that of the cell with its text; one that was written in, that of the cell handed out
    between the same neighbours. What is left is the reader's own: `mine-1`, `mine-2`.
    """
    cells = [dict(cell) for cell in cells]
    nameless = [cell for cell in cells if "id" not in cell]
    _keep_one_of_each(cells, handed_out)
    if nameless:
        _match_equal(cells, handed_out)
        _match_between(cells, nameless, handed_out, {cell["id"]: cell for cell in chapter})
    taken = {cell.get("id") for cell in cells} | handed_out.keys() | {c["id"] for c in chapter}
    number = 0
    for cell in cells:
        while "id" not in cell:
            number += 1
            if (name := f"mine-{number}") not in taken:
                cell["id"] = name
    return cells


def _keep_one_of_each(cells, handed_out):
    """Take the id from all but one of the cells that share it."""
    groups = {}
    for cell in cells:
        if "id" in cell:
            groups.setdefault(cell["id"], []).append(cell)
    for id, group in groups.items():
        if len(group) > 1:
            untouched = (cell for cell in group if fingerprint(cell) == handed_out.get(id))
            keeps = next(untouched, group[0])
            for cell in group:
                if cell is not keeps:
                    del cell["id"]


def _free(cells, handed_out):
    """The ids that were handed out and that no cell has, in order."""
    taken = {cell.get("id") for cell in cells}
    return [id for id in handed_out if id not in taken]


def _match_equal(cells, handed_out):
    """Give a cell without an id that of the first free one that was handed out with its text."""
    waiting = {}
    for id in _free(cells, handed_out):
        waiting.setdefault(handed_out[id], []).append(id)
    for cell in cells:
        if "id" not in cell and (ids := waiting.get(fingerprint(cell))):
            cell["id"] = ids.pop(0)


def _match_between(cells, nameless, handed_out, chapter):
    """Give what is left of the nameless the ids that were handed out between their neighbours."""
    mine = {id(cell) for cell in nameless}
    order, free = list(handed_out), set(_free(cells, handed_out))
    place = {name: number for number, name in enumerate(order)}
    run, last = [], -1
    for cell in [*cells, {"id": None}]:
        if "id" not in cell:
            run += [cell] if id(cell) in mine else []
            continue
        if cell["id"] is not None and cell["id"] not in place:
            continue  # a cell of the reader's own
        here = place.get(cell["id"], len(order))
        _pair(run, [name for name in order[last + 1 : here] if name in free], chapter)
        run, last = [], here


def _pair(run, ids, chapter):
    """Give ids to a run of cells: one by one where there are as many, else by likeness of text."""
    if len(run) != len(ids):
        for name in ids:
            texts = {source(cell)[:_COMPARED]: cell for cell in reversed(run) if "id" not in cell}
            wanted = source(chapter[name])[:_COMPARED] if name in chapter else ""
            for text in difflib.get_close_matches(wanted, texts, n=1, cutoff=0.5):
                texts[text]["id"] = name
        return
    for cell, name in zip(run, ids, strict=True):
        cell["id"] = name
