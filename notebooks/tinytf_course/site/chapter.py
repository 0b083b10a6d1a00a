"""A chapter's page: its notebook as Markdown that Sphinx reads."""

import re

from tinytf_course import online
from tinytf_course.notebooks import source
from tinytf_course.online import CELL, own_lines, without_badges
from tinytf_course.site.api import linked
from tinytf_course.site.coursemap import navigation
from tinytf_course.site.folds import as_buttons, fold, pending, question
from tinytf_course.site.head import front_matter
from tinytf_course.site.outputs import is_still, to_html
from tinytf_course.site.terms import link_terms

_FENCE = "`" * 9
_LINK = re.compile(r"\[([^\]]*)\]\((\d\d[a-z]?_\w+)\.ipynb\)")
_BADGE = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")


def page(notebook, pictures, names, panels=None):
    """The Markdown of one chapter's page; `names` are the pages of the chapters by number.

    `panels` are those that move, as HTML by the id of their cell; the others are stills.
    """
    number = int(re.match(r"\d+", notebook.chapter)[0])
    waiting, seen, parts, folded = pending(notebook.cells), set(), [], False
    for cell, ids in zip(notebook.cells, waiting):
        parts.append(raw(f'<div class="cell-anchor" id="{cell.get("id", "")}"></div>'))
        if cell["cell_type"] == "markdown":
            text = _LINK.sub(r'<a href="\2.html">\1</a>', without_badges(source(cell)))
            text = link_terms(text, number, seen)
            parts.append(waiting_caption(text) if folded else text)
            if cell is notebook.cells[0]:
                parts.append(raw(elsewhere(notebook.path)))
        elif cell["cell_type"] == "code" and source(cell).strip():
            is_map = "course_map(" in source(cell)
            shown = (
                navigation(names, number)
                if is_map
                else results(cell, ids, pictures, (panels or {}).get(cell.get("id")))
            )
            folded = shown.startswith("<details")
            wrote = set_up(source(cell)) if cell.get("id") == CELL else code(source(cell))
            parts += [wrote, raw(shown)]
    opening = source(notebook.cells[0])
    title = re.search(r"^# (.+)$", opening, re.M)
    question = re.search(r"^\*\*([^*]+)\*\*$", opening, re.M)
    name = title[1] if title else notebook.path.stem.replace("_", " ")
    front = front_matter(name, " ".join(question[1].split()) if question else name)
    return "\n\n".join(part for part in [front, *parts] if part) + "\n"


def waiting_caption(text):
    """A figure's caption, if the text begins with one, set apart to stay hidden with its figure."""
    caption, gap, rest = text.partition("\n\n")
    if not re.match(r"\*[^* ]", caption):
        return text
    return f'<div class="waits">\n\n{caption}\n\n</div>{gap}{rest}'


def elsewhere(path):
    """The notebook itself to download, and where else it opens, as HTML."""
    size = path.stat().st_size / 1000
    links = [f'<a href="notebooks/{path.name}" download>Download the notebook</a> ({size:.0f} kB)']
    badges = _BADGE.sub(r'<a href="\2">\1</a>', online.badges(path.name))
    links += [f"open in {badges}"] if badges else []
    return f'<p class="elsewhere">{" · ".join(links)}</p>'


def results(cell, ids, pictures, panel=None):
    """All that a code cell showed, as HTML, folded while a prediction waits for it.

    A `panel` that moves stands for its widgets' names and its still.
    """
    asked = question(cell)
    shown = [linked(to_html(output, pictures)) for output in cell.get("outputs", [])]
    if panel:
        shown = [output for output in shown if not is_still(output)] + [panel]
    shown = [as_buttons(output, asked) for output in shown if output]
    questions = [output for output in shown if "data-predict=" in output]
    others = "\n".join(output for output in shown if output not in questions)
    return "\n".join([fold(others, ids), *questions]).strip()


def code(text):
    """A code cell."""
    language = "ipython3" if text.startswith(("%", "!")) else "python"
    return f"{_FENCE}{language}\n{text}\n{_FENCE}"


def set_up(text):
    """The set-up cell: what its author wrote, folded."""
    opening = raw('<details class="set-up"><summary>Set-up</summary>')
    return "\n\n".join([opening, code(own_lines(text)), raw("</details>")])


def raw(markup):
    """HTML that passes through Sphinx as it is."""
    return f"{_FENCE}{{raw}} html\n{markup}\n{_FENCE}" if markup else ""
