"""A chapter's slides, made from its cells by rule."""

import ast
import html
import re
from typing import NamedTuple

from tinytf.course.notebooks import source, tree
from tinytf.course.outline import CHAPTERS
from tinytf.course.site.folds import _calls as calls_of
from tinytf.course.site.outputs import to_html as output_html
from tinytf.course.slides import code, prose
from tinytf.course.slides.fitting import cut, height, lines, packed

_SIDE_ROADS = re.compile(r"##? (?:Further|Read next)\b")


class Slide(NamedTuple):
    """One slide: its heading, what it shows (HTML), what is said (HTML), and how it looks."""

    title: str
    body: str
    notes: str = ""
    look: str = ""


class Deck:
    """Collects the slides of a chapter, cell after cell."""

    def __init__(self, notebook, pictures):
        self.notebook, self.pictures = notebook, pictures
        self.slides, self.title, self.answers = [], "", answers(notebook)

    def add(self, body, notes="", look="", title=None):
        """One more slide under the present heading."""
        self.slides.append(Slide(self.title if title is None else title, body, notes, look))

    def all(self):
        """The slides, up to the side roads at the chapter's end."""
        for cell in self.notebook.cells:
            text = source(cell)
            if cell["cell_type"] == "markdown":
                main, *side = re.split(r"(?m)^(?=## (?:Further|Read next)\b)", text)
                self.text(main)
                if side:
                    break
            elif cell["cell_type"] == "code" and text.strip():
                self.code(cell)
        return self.slides

    def text(self, markdown):
        """Slides of a Markdown cell; a caption goes to the figure before it."""
        notes = prose.to_html(markdown)
        pieces = []
        found = prose.blocks(prose.without_folds(markdown))
        if found and prose.kind(found[0]) == "caption" and self.caption(found[0], notes):
            found = found[1:]
        for block in found:
            kind = prose.kind(block)
            if kind == "heading":
                self.flush(pieces, notes)
                self.heading(block, notes)
            elif kind == "list":
                parts = prose.items(block)
                pieces += [(part, lines(part, kind)) for part in parts]
            elif kind in ("text", "caption"):
                short = prose.shortened(block)
                pieces.append((short, lines(short, kind)))
            else:
                pieces.append((block, lines(block, kind)))
        self.flush(pieces, notes)

    def flush(self, pieces, notes):
        """Make slides of what was collected."""
        if self.slides and self.slides[-1].look == "chapter":  # the chapter's first words
            last = self.slides[-1]
            lead = [piece for piece, _ in pieces if piece.startswith("**")]
            rest = [pair for pair in pieces if pair[0] not in lead]
            lead = "".join(map(prose.to_html, lead)) or last.body
            self.slides[-1] = last._replace(body=lead, notes=notes)
            pieces[:] = rest
        for group in packed(pieces):
            body = prose.to_html("\n\n".join(group)).replace("<ol>", '<ol class="list">')
            self.add(body, notes, "text")
        pieces.clear()

    def heading(self, block, notes):
        """A new heading; those of the first two ranks have a slide to themselves."""
        rank, self.title = len(block) - len(block.lstrip("#")), block.lstrip("# ")
        if rank == 1:
            known = {chapter.number: chapter for chapter in CHAPTERS}
            chapter = known.get(self.notebook.chapter)
            lead = f"<p>{html.escape(chapter.question)}</p>" if chapter else ""
            self.add(lead, notes, "chapter")
        elif rank == 2:
            self.add("", notes, "section")

    def caption(self, block, notes):
        """Set a caption under the figure that was shown last; whether there was one."""
        if not self.slides or self.slides[-1].look != "figure":
            return False
        last = self.slides[-1]
        short = prose.to_html(prose.shortened(block))
        self.slides[-1] = last._replace(body=f"{last.body}\n{short}", notes=notes)
        return True

    def code(self, cell):
        """Slides of a code cell: questions, code with what it printed, figures."""
        outputs = [output_html(output, self.pictures) for output in cell.get("outputs", [])]
        outputs = [shown for shown in outputs if shown and not _is_answer(shown)]
        questions = [shown for shown in outputs if _question(shown) in self.answers]
        for shown in questions:
            answer = self.answers[_question(shown)]
            self.add(f'{shown}<div class="fragment">{answer}</div>', "", "question", "Predict")
        outputs = [cut(shown) for shown in outputs if shown not in questions]
        figures = [shown for shown in outputs if height(shown) == 99]
        printed = "\n".join(shown for shown in outputs if shown not in figures)
        if not _left_out(cell) and not questions:
            *first, last = code.chunks(source(cell))
            for piece in first:
                self.add(code.to_html(piece), "", "code")
            together = last.count("\n") + height(printed) <= code.LINES
            self.add(code.to_html(last) + (printed if together else ""), "", "code")
            printed = "" if together else printed
        if printed:
            for group in packed([(shown, height(shown)) for shown in printed.split("\n<div class=")]):
                shown = "\n<div class=".join(group)
                self.add(shown if shown.startswith("<") else f"<div class={shown}", "", "printed")
        for shown in figures:
            self.add(shown, "", "figure")


def answers(notebook):
    """The HTML that answers each prediction of a chapter."""
    found = {}
    for cell in notebook.code:
        ids = [id for name, id in calls_of(cell) if name == "predict.answer"]
        for output in cell.get("outputs", []):
            shown = "".join(output.get("data", {}).get("text/html", ""))
            found |= {id: shown for id in ids if _is_answer(shown) and _question(shown) == id}
    return found


def _question(shown):
    named = re.search(r"<code>([^<]*)</code>", shown)
    return named and named[1]


def _is_answer(shown):
    return bool(re.search(r"</b> <code>[^<]*</code> (?:you said: .*; )?measured: <b>", shown))


def _left_out(cell):
    """Whether a class need not see a cell's code: imports, exercises to fill in, drawing."""
    outputs = cell.get("outputs", [])
    if "drawing" in cell.get("metadata", {}).get("tags", []):
        return True
    if any(output.get("metadata", {}).get("check") for output in outputs):
        return True
    statements = tree(source(cell)).body
    names = {name for name, _ in calls_of(cell)}
    drawn = any("image/png" in output.get("data", {}) for output in outputs)
    return (
        all(isinstance(node, ast.Import | ast.ImportFrom) or _is_setup(node) for node in statements)
        or names == {"predict.answer"} and len(statements) <= 3
        or drawn and len(statements) <= 2
    )  # fmt: skip


def _is_setup(node):
    return isinstance(node, ast.Assign) and ast.unparse(node.value) == "setup()"
