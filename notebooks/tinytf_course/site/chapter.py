"""A chapter's page: its notebook as Markdown that Sphinx reads."""

import re

from tinytf_course.notebooks import source
from tinytf_course.online import CELL, own_lines
from tinytf_course.site.coursemap import navigation
from tinytf_course.site.folds import as_buttons, fold, pending, question
from tinytf_course.site.outputs import to_html
from tinytf_course.site.terms import link_terms

_FENCE = "`" * 9
_LINK = re.compile(r"\[([^\]]*)\]\((\d\d[a-z]?_\w+)\.ipynb\)")


def page(notebook, pictures, names):
    """The Markdown of one chapter's page; `names` are the pages of the chapters by number."""
    number = int(re.match(r"\d+", notebook.chapter)[0])
    waiting, seen, parts, folded = pending(notebook.cells), set(), [], False
    for cell, ids in zip(notebook.cells, waiting):
        parts.append(raw(f'<div class="cell-anchor" id="{cell.get("id", "")}"></div>'))
        if cell["cell_type"] == "markdown":
            text = _LINK.sub(r'<a href="\2.html">\1</a>', source(cell))
            text = link_terms(text, number, seen)
            parts.append(waiting_caption(text) if folded else text)
        elif cell["cell_type"] == "code" and source(cell).strip():
            is_map = "course_map(" in source(cell)
            shown = navigation(names, number) if is_map else results(cell, ids, pictures)
            folded = shown.startswith("<details")
            wrote = set_up(source(cell)) if cell.get("id") == CELL else code(source(cell))
            parts += [wrote, raw(shown)]
    return "\n\n".join(part for part in parts if part) + "\n"


def waiting_caption(text):
    """A figure's caption, if the text begins with one, set apart to stay hidden with its figure."""
    caption, gap, rest = text.partition("\n\n")
    if not re.match(r"\*[^* ]", caption):
        return text
    return f'<div class="waits">\n\n{caption}\n\n</div>{gap}{rest}'


def results(cell, ids, pictures):
    """All that a code cell showed, as HTML, folded while a prediction waits for it."""
    asked = question(cell)
    shown = [to_html(output, pictures) for output in cell.get("outputs", [])]
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
