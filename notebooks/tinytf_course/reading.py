"""What a chapter asks of its reader, counted: the figures that the course's style speaks of.

How it is counted:
  side roads   the electives that the outline names, and all under "Further"; the rest is the main
               road, of an elective chapter too
  words        of prose, without code, formulas, addresses and what is folded away; exercises apart
  lines        of code that are neither blank nor comment; exercises' cells apart
  short        share of the code cells of at most 12 lines, blank ones and comments included
  claims, predictions, exercises   the ids that cells call `claim`, `predict` and `check` with
  drawn        drawings of the mechanism: pictures of cells that call one of our functions
               `draw_...` (not one of the notebook's own) or have the tag `drawing`, and pictures
               in the text; the course map is none
  computed     all other saved pictures, the course map apart
  borrowed     names imported from tinytf, or used as tinytf.NAME, that this or a later chapter
               builds first
  honest       minutes: 150 words and 10 lines of code a minute, a minute a picture, and what the
               exercises say they take
"""

import ast
import re
from dataclasses import dataclass, field

from tinytf_course.cell_ids import heading
from tinytf_course.electives import electives
from tinytf_course.house import defining_file, parts
from tinytf_course.notebooks import calls_in, source
from tinytf_course.online import CELL
from tinytf_course.outline import CHAPTERS
from tinytf_course.places import place_of

WORDS_A_MINUTE, LINES_A_MINUTE, SHORT = 150, 10, 12
_ASIDE = (
    r"```.*?```|<details>.*?</details>|<[^>]+>|https?://\S+|\$\$.*?\$\$|\$[^$\n]*\$|!\[.*?\]\(.*?\)"
)


@dataclass
class Road:
    """The counts of a chapter's main road, or of its side roads."""

    words: int = 0
    lines: int = 0
    lengths: list = field(default_factory=list)  # of the code cells, in lines
    claims: set = field(default_factory=set)
    predictions: set = field(default_factory=set)
    exercises: set = field(default_factory=set)
    exercise_minutes: int = 0
    drawn: int = 0
    computed: int = 0

    @property
    def density(self):
        """Words of prose a line of code."""
        return self.words / max(self.lines, 1)

    @property
    def short(self):
        """The share of code cells of at most 12 lines."""
        return sum(length <= SHORT for length in self.lengths) / max(len(self.lengths), 1)

    @property
    def minutes(self):
        """How long it takes, by the formula at the top of this file."""
        reading = self.words / WORDS_A_MINUTE + self.lines / LINES_A_MINUTE
        return round(reading + self.drawn + self.computed + self.exercise_minutes)


def roads(notebook):
    """The main road and the side roads of a Notebook."""
    main, side = Road(), Road()
    chapter = next((one for one in CHAPTERS if one.number == notebook.chapter), CHAPTERS[0])
    beside = electives(notebook.cells, chapter)
    trees = iter(notebook.trees)
    nodes = [node for code in notebook.trees for node in ast.walk(code)]
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for cell, elective in zip(notebook.cells, beside, strict=True):
        road = side if elective else main
        if cell["cell_type"] == "markdown":
            _read(cell, road)
        elif cell["cell_type"] == "code" and source(cell).strip():
            tree = next(trees)
            if cell.get("id") != CELL:  # that one is folded
                _run(cell, tree, road, own)
    return main, side


def borrowed(notebook, chapters):
    """The names that a chapter takes from the package though it or a later one builds them.

    `chapters` are the notebooks of the course. Returns {name: the chapter that builds it}.
    """
    order = {chapter.number: place for place, chapter in enumerate(CHAPTERS)}
    first = {}
    for part in parts(chapters):
        known = first.setdefault((part.file, part.name), part.chapter)
        if order.get(part.chapter, 0) < order.get(known, 0):
            first[part.file, part.name] = part.chapter
    here, found = order.get(notebook.chapter, len(order)), {}
    for name, dotted in _taken(notebook):
        file = defining_file(name, dotted)
        key = (place_of(file), name) if file else None
        if key in first and order.get(first[key], 0) >= here:
            found[name] = first[key]
    return found


def prose(text):
    """The number of words in Markdown, without code, formulas, addresses and folded parts."""
    text = re.sub(_ASIDE, " ", text, flags=re.S)
    return len(re.findall(r"[^\W\d_][\w'’-]*", text))


def code_lines(text):
    """The number of lines that are neither blank nor comment."""
    lines = map(str.strip, text.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def _read(cell, road):
    text, title = source(cell), heading(cell)
    road.drawn += len(re.findall(r"!\[.*?\]\(.*?\)|<svg\b", text))
    if title and title.startswith("Exercise "):
        found = re.search(r"about (\d+) minutes", text)
        road.exercise_minutes += int(found[1]) if found else 0
    else:
        road.words += prose(text)


def _run(cell, code, road, own):
    told = {
        name: {getattr(call.args[0], "value", None) for call in calls_in(code, name)} - {None}
        for name in ("claim", "predict", "check")
    }
    road.claims |= told["claim"]
    road.predictions |= told["predict"]
    road.exercises |= told["check"]
    road.lengths.append(len(source(cell).splitlines()))
    road.lines += 0 if told["check"] else code_lines(source(cell))
    called = [node.func for node in ast.walk(code) if isinstance(node, ast.Call)]
    names = {ast.unparse(function).rpartition(".")[2] for function in called} - own
    outputs = cell.get("outputs", [])
    pictures = sum(any("image/" in form for form in o.get("data", {})) for o in outputs)
    if "course_map" in names:
        return
    if "drawing" in cell["metadata"].get("tags", []) or any(n.startswith("draw_") for n in names):
        road.drawn += pictures
    else:
        road.computed += pictures


def _taken(notebook):
    """(name, module) of what the notebook's code takes from tinytf."""
    for code in notebook.trees:
        for node in ast.walk(code):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tinytf"):
                yield from ((alias.name, node.module) for alias in node.names)
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "tinytf":
                yield node.attr, "tinytf"
