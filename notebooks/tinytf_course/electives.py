"""Which cells of a chapter are electives, as the outline names them, and the marks that say so."""

import re

from tinytf_course.cell_ids import heading
from tinytf_course.notebooks import source

_HEADING = re.compile(r"^#+ (?!Further$).*$", flags=re.M)
# What one ends with: " (elective, 8 minutes)", " (10 minutes, and a network)" or nothing.
_MARK = re.compile(r"(?: \((?:about |elective, )?\d+ minutes?(?P<more>[^)]*)\)| · \d+ minutes?)?$")
_LEFT = re.compile(r" \(elective, \d+ minutes?\)$")  # of what is no elective any more


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
    """{id: text} of the cells with headings, the first of each elective with its minutes."""
    found, word = {}, "elective, "
    for cell in cells:
        title, minutes = heading(cell), chapter.pieces.get(cell.get("id"))
        word = "" if title and title.startswith("Further") else word  # all there is elective
        if title and (first := _HEADING.search(text := source(cell))):
            mark = f" ({word}{minutes} minute{'s' * (minutes != 1)}\\g<more>)" if minutes else ""
            line = (_MARK if minutes else _LEFT).sub(mark, first[0], count=1)
            found[cell["id"]] = text[: first.start()] + line + text[first.end() :]
    return found
