"""How far a reader is: what they predicted, solved and built, by what their own copies show.

It reads the saved notebooks and nothing else, so a cell counts once its notebook is saved.
"""

import contextlib
import html
import re

from tinytf_course.electives import electives
from tinytf_course.notebooks import notebooks, readable
from tinytf_course.outline import CHAPTERS
from tinytf_course.saved import NotebookError, read, source

_ANSWERED = re.compile(r"^([✓→]) (\d\d-\w+)  you said: ")
_CELLS = 12  # the length of a drawn bar
_NAMES = ("predicted right", "exercises solved", "parts built")


def counts(folder):
    """(chapter, (right, said), (solved, tried), (passed, asked)) for each chapter begun."""
    rows = map(counted, readable(folder, parsed=False))  # a cell may be half written
    return [row for row in rows if row[1:] != ((0, 0),) * 3]


def counted(notebook):
    """(chapter, (right, said), (solved, tried), (passed, asked)) by what the outputs say."""
    checked = {one["id"]: one["status"] for one in notebook.records("check", "id", "status")}
    parts = {one["name"]: one["status"] for one in notebook.records("built", "name", "status")}
    texts = ("".join(out.get("data", {}).get("text/plain", "")) for out in notebook.outputs)
    predicted = {said[2]: said[1] == "✓" for said in map(_ANSWERED.match, texts) if said}
    tried = [status for status in checked.values() if status != "not yet"]
    solved = tried.count("passed"), len(tried)
    built = sum(status == "passed" for status in parts.values()), len(parts)
    return notebook.chapter, (sum(predicted.values()), len(predicted)), solved, built


def done_in(folder, chapter=None):
    """The numbers of the chapters that are done: all exercises of their core are solved.

    It is the reader's own copies in `folder` that count. Where there are none, as in the course's
    own notebooks, the chapters before `chapter` are done.
    """
    copies = list(_copies(folder))
    if not copies:
        return set(range(chapter or 0))
    return {int(one.number) for one in CHAPTERS for copy in copies if _solved(copy, one)}


def _copies(folder):
    """The notebooks of a folder that `start` has made."""
    for notebook in notebooks(folder):
        with contextlib.suppress(NotebookError):
            if "tinytf" in read(notebook.path).get("metadata", {}):
                yield notebook


def _solved(copy, chapter):
    """Whether a copy of this chapter shows all exercises of its core as solved."""
    if copy.chapter != chapter.number:
        return False
    asked = {
        found[1]
        for cell, elective in zip(copy.cells, electives(copy.cells, chapter), strict=True)
        if not elective and (found := re.match(r"### Exercise (\S+)", source(cell)))
    }
    checked = copy.records("check", "id", "status")
    return asked <= {check["id"] for check in checked if check["status"] == "passed"}


def so_far(folder="."):
    """What the copies in `folder` show, a line a chapter: the last line of a cell draws it."""
    return SoFar(counts(folder))


class SoFar:
    """What `so_far` returns: bars in a notebook, the same in words elsewhere."""

    def __init__(self, rows):
        self.rows = rows
        if len(rows) > 1:
            _, *columns = zip(*rows, strict=True)
            sums = [tuple(map(sum, zip(*pairs, strict=True))) for pairs in columns]
            self.rows = [*rows, ("all", *sums)]

    def __repr__(self):
        if not self.rows:
            return "nothing yet: run some cells and save the notebook"
        lines = [f"{'chapter':<9}" + "".join(f"{name:>18}" for name in _NAMES)]
        for chapter, *pairs in self.rows:
            lines.append(f"{chapter:<9}" + "".join(f"{_words(*pair):>18}" for pair in pairs))
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self):
        if not self.rows:
            return f"<p>{html.escape(repr(self))}</p>"
        left = ' style="text-align: left"'
        names = "".join(f'<th scope="col"{left}>{name}</th>' for name in ("chapter", *_NAMES))
        body = "".join(
            f'<tr><th scope="row"{left}>{html.escape(chapter)}</th>'
            + "".join(f"<td{left}>{_bar(*pair)}</td>" for pair in pairs)
            + "</tr>"
            for chapter, *pairs in self.rows
        )
        return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def _words(good, whole):
    return f"{good} of {whole}" if whole else ""


def _bar(good, whole):
    full = round(_CELLS * good / whole) if whole else 0
    bar = f'<span aria-hidden="true">{"█" * full}{"░" * (_CELLS - full)}</span> ' if whole else ""
    return bar + _words(good, whole)
