"""The syllabi: `course/notes/syllabi.md`, with hours computed from the outline's minutes.

A line `{6 weeks}` begins a table that goes on to the next empty line, a line a week:

    * 05, 06 · what happens in class · what is left for home

`05` is a chapter, `10/2` half of one. What is written around it stays as it is; `{core}` and
`{electives}` are the hours that these take in all chapters.
"""

import re
from typing import NamedTuple

from tinytf_course.outline import CHAPTERS, in_hours
from tinytf_course.release.teaching import NotesError

_TABLE = re.compile(r"^\{(\d+) weeks\}\n((?:.+\n?)+)", flags=re.M)


class Week(NamedTuple):
    """A week: its chapters with the share of each that is read, class, home, minutes of core."""

    chapters: dict
    in_class: str
    home: str
    minutes: float
    beside: float  # minutes of the chapters' electives


def weeks(text):
    """{number of weeks: the Weeks} of a text. Raises NotesError for chapters that are none."""
    return {int(number): _weeks(int(number), lines) for number, lines in _TABLE.findall(text)}


def rendered(text):
    """The text with its tables written out in Markdown."""

    def write(found):
        return _table(_weeks(int(found[1]), found[2])) + "\n"

    for name, hours in zip(("{core}", "{electives}"), in_hours(), strict=True):
        text = text.replace(name, str(hours))
    return _TABLE.sub(write, text)


def _weeks(number, lines):
    found = [_week(line) for line in re.sub(r"\n(?!\*)\s*", " ", lines.strip()).splitlines()]
    if len(found) != number:
        raise NotesError(f"{number} weeks have {len(found)} lines")
    return found


def _week(line):
    known = {chapter.number: chapter for chapter in CHAPTERS}
    parts = line.removeprefix("* ").split(" · ")
    if len(parts) != 3:
        raise NotesError(f"no `* CHAPTERS · class · home`: {line!r}")
    chapters, minutes, beside = {}, 0, 0
    for name in parts[0].split(", "):
        number, _, divisor = name.partition("/")
        if number not in known:
            raise NotesError(f"no chapter {number!r} in the outline: {line!r}")
        chapters[number] = 1 / int(divisor or 1)
        minutes += known[number].core * chapters[number]
        beside += known[number].beside * chapters[number]
    return Week(chapters, *parts[1:], minutes, beside)


def _table(weeks):
    lines = ["| week | chapters | in class | at home | core | electives |", "|---" * 6 + "|"]
    for place, week in enumerate(weeks, 1):
        names = [name if share == 1 else f"{name} (part)" for name, share in week.chapters.items()]
        hours = _hours(week.minutes), _hours(week.beside)
        row = (str(place), ", ".join(names), week.in_class, week.home, *hours)
        lines.append(f"| {' | '.join(row)} |")
    core, beside = (_hours(sum(column)) for column in list(zip(*weeks, strict=True))[3:])
    return "\n".join([*lines, f"| | | | all together, hours | {core} | {beside} |"])


def _hours(minutes):
    return f"{minutes / 60:.1f}"
