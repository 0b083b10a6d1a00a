"""Predictions on a page: options to choose from, and results that wait until one is chosen."""

import ast
import html
import re

from tinytf_course.display import inline
from tinytf_course.notebooks import calls_in, source, tree

_LONGEST = 20  # cells before an answer; what is shown earlier than that stays open
_OPTION = re.compile(r"<li>(.*?)</li>", re.S)


def pending(cells):
    """For each cell, the ids of predictions that its outputs may answer: from the one behind the
    question to the one that answers it."""
    asked, found = {}, [[] for _ in cells]
    for place, cell in enumerate(cells):
        for name, id in calls_of(cell):
            if name == "predict":
                asked[id] = place
            elif id in asked:
                for between in range(max(asked[id] + 1, place - _LONGEST), place + 1):
                    found[between].append(id)
    return found


def question(cell):
    """The ids that a cell asks for."""
    return [id for name, id in calls_of(cell) if name == "predict"]


def as_buttons(shown, ids):
    """The HTML of a question with its options as buttons. Other HTML comes back as it is."""
    id = next((id for id in ids if f"<code>{html.escape(id)}</code>" in shown), None)
    if id is None or "<ul" not in shown:
        return shown
    button = rf'<li><button type="button" data-predict="{html.escape(id)}">\1</button></li>'
    return _OPTION.sub(button, shown).replace("<ul", '<ul class="options"', 1)


def fold(shown, ids):
    """Results behind a line to open, or as they are if no question waits for them."""
    if not ids or not shown:
        return shown
    names = ", ".join(ids)
    waiting = inline(f"The result answers prediction {names}: choose first, or open")
    measured = html.escape(f"Measured, after prediction {names}")
    return (
        f'<details class="until" data-until="{html.escape(" ".join(ids))}">'
        f'<summary data-measured="{measured}">{waiting}</summary>{shown}</details>'
    )


def calls_of(cell):
    """The predictions that a cell asks ("predict") or answers ("predict.answer"), as (what, id)."""
    if cell["cell_type"] != "code":
        return
    parsed = tree(source(cell))
    for name in ("predict", "predict.answer"):
        for call in calls_in(parsed, name):
            if isinstance(call.args[0], ast.Constant):
                yield name, call.args[0].value
