"""Which cells of a chapter are electives, as the outline names them, and the marks that say so."""

import re

from tinytf_course.cell_ids import heading
from tinytf_course.notebooks import source

# What a heading ends with: " (elective, 8 minutes)", " (10 minutes, and a network)" or nothing.
_MARK = re.compile(r"(?: \((?:about |elective, )?\d+ minutes?(?P<more>[^)]*)\)| · \d+ minutes?)?$")


def electives(cells, chapter):
    """For each cell the elective that it belongs to, None in the core.

    A section reaches to the next heading of its rank, an exercise as far as the ids of its cells;
    what stands under "Further" and has no name in the outline belongs to "Further".
    """
    found, sections, exercise = [], [], ("", None)
    for cell in cells:
        title, id = heading(cell) or "", cell.get("id") or ""
        if asked := re.match(r"Exercise (\S+)", title):
            exercise = id, asked[1]
        elif title:
            rank = len(re.search(r"^#+(?=\s)", source(cell), flags=re.M)[0])
            named = id if id in chapter.pieces else "Further" * title.startswith("Further")
            sections = [*(section for section in sections if section[0] < rank), (rank, named)]
        own = exercise[1] if id.startswith(exercise[0]) and exercise[1] in chapter.pieces else None
        found.append(own or next((name for _, name in reversed(sections) if name), None))
    return found


def marked(cells, chapter):
    """{id: text} of the cells that begin an elective, with its minutes in their last heading."""
    found, word = {}, "elective, "
    for cell in cells:
        word = "" if (heading(cell) or "").startswith("Further") else word  # all there is elective
        if minutes := heading(cell) and chapter.pieces.get(cell.get("id")):
            mark = rf" ({word}{minutes} minute{'s' * (minutes > 1)}\g<more>)"
            *before, last = re.finditer(r"^#+ .*$", text := source(cell), flags=re.M)
            found[cell["id"]] = (
                text[: last.start()] + _MARK.sub(mark, last[0], count=1) + text[last.end() :]
            )
    return found
