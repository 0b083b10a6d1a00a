"""A chapter's slides, made from its cells by rule."""

import html
import re
from typing import NamedTuple

from tinytf_course.notebooks import source
from tinytf_course.online import CELL
from tinytf_course.outline import CHAPTERS
from tinytf_course.site.outputs import to_html as output_html
from tinytf_course.slides import code, prose
from tinytf_course.slides.cells import (
    answers,
    is_answer,
    is_check,
    is_claim,
    is_graduate,
    is_graduation,
    left_out,
    named,
    only_imports,
    without_tests,
)
from tinytf_course.slides.fitting import TALL, cut, height, lines, packed

_SIDE_ROADS = re.compile(r"(?m)^(?=## (?:Further|Read next)\b)")
_LEAD = 4  # lines of text that stand under a section's heading
_ROOM = code.LINES + 7  # lines of code, or what is as high, on a slide of code and words
_REMARK = 9
_FEW = 45  # characters


class Slide(NamedTuple):
    """One slide: its heading, what it shows (HTML), what is said (HTML), and how it looks."""

    title: str
    body: str
    notes: str = ""
    look: str = ""
    size: float = 99  # lines of code that it takes, if that is known


class Deck:
    """Collects the slides of a chapter, cell after cell."""

    def __init__(self, notebook, pictures):
        self.notebook, self.pictures = notebook, pictures
        self.slides, self.answers = [], answers(notebook)
        self.title = self.after = ""  # the present heading; that behind an exercise's end

    def add(self, body, notes="", look="", title=None, size=99):
        """One more slide under the present heading."""
        self.slides.append(Slide(title or self.title, body, notes, look, size))

    def all(self):
        """The slides, up to the side roads at the chapter's end."""
        for cell in self.notebook.cells:
            if cell["cell_type"] == "markdown":
                main, *side = _SIDE_ROADS.split(source(cell))
                self.text(main)
                if side:
                    break
            else:
                self.code(cell)
        return list(remarks_joined(self.slides))

    def lesson(self, plan):
        """The slides of a teacher's plan: the cells of its steps, which the notes tell first."""
        steps = {step.ends[0]: step for step in plan.steps if step.ends}
        last, told = "", {}  # the cell with which the present step ends; what to say at a slide
        for number, cell in enumerate(self.notebook.cells):
            id, markdown = cell.get("id"), cell["cell_type"] == "markdown"
            if step := steps.get(id):
                last = step.ends[-1]
                told[len(self.slides)] = step
            if not markdown and last:
                self.code(cell)
            elif last or not number:
                self.text(source(cell))
            elif found := re.findall(r"(?m)^#+ (?!Exercise)(.*)", source(cell) if markdown else ""):
                self.title = found[-1]
            last = "" if id == last else last
        for number, step in told.items():
            said = f"<p><b>{step.minutes} minutes.</b> {html.escape(step.text)}</p>"
            slide = self.slides[number]
            self.slides[number] = slide._replace(notes=said + slide.notes)
        return list(remarks_joined(self.slides))

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
            elif kind in ("text", "caption") and not re.match(r"About \d+ minutes", block):
                short = prose.shortened(block)
                pieces.append((short, lines(short, kind)))
            elif kind != "text":
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
        self.lead(pieces, notes)
        for group in packed(pieces):
            body = prose.to_html("\n\n".join(group)).replace("<ol>", '<ol class="list">')
            self.add(body, notes, "text")
        pieces.clear()

    def lead(self, pieces, notes):
        """A section's first words stand under its heading."""
        last = self.slides[-1] if self.slides else None
        if pieces and last and last.look == "section" and not last.body:
            first, size = pieces[0]
            if size < _LEAD and prose.kind(first) == "text":
                body = prose.to_html(first)
                self.slides[-1] = last._replace(body=body, notes=notes)
                pieces.pop(0)

    def heading(self, block, notes):
        """A new heading; those of the first two ranks have a slide to themselves."""
        rank, title = len(block) - len(block.lstrip("#")), block.lstrip("# ")
        self.after = self.title if title.startswith("Exercise") else title
        self.title = title
        if rank == 1:
            known = {chapter.number: chapter for chapter in CHAPTERS}
            chapter = known.get(self.notebook.chapter)
            lead = f"<p>{html.escape(chapter.question)}</p>" if chapter else ""
            self.add(lead, notes, "chapter")
        elif rank == 2:
            self.add("", notes, "section")

    def caption(self, block, notes):
        """Set a caption under the figure that was shown just now; whether there was one."""
        for place in range(len(self.slides) - 1, max(-1, len(self.slides) - 4), -1):
            slide = self.slides[place]
            if slide.look == "figure" and not slide.notes:
                short = prose.to_html(prose.shortened(block))
                self.slides[place] = slide._replace(body=f"{slide.body}\n{short}", notes=notes)
                return True
        return False

    def code(self, cell):
        """Slides of a code cell: questions, code with what it printed, figures."""
        if is_graduation(cell) or not source(cell).strip():
            return
        claims = [o["data"]["text/html"] for o in cell.get("outputs", []) if is_claim(o)]
        unseen = (is_check, is_claim, is_graduate)
        outputs = [o for o in cell.get("outputs", []) if not any(is_it(o) for is_it in unseen)]
        outputs = [output_html(output, self.pictures) for output in outputs]
        outputs = [shown for shown in outputs if shown and not is_answer(shown)]
        if any("<img" in shown for shown in outputs):  # a control without its kernel
            outputs = [shown for shown in outputs if 'class="widget"' not in shown]
        questions = [shown for shown in outputs if named(shown) in self.answers]
        for shown in questions:
            answer = self.answers[named(shown)]
            self.add(f'{shown}<div class="fragment">{answer}</div>', "", "question", "Predict")
        outputs = [cut(shown) for shown in outputs if shown not in questions]
        figures = [shown for shown in outputs if height(shown) == TALL]
        printed = [shown for shown in outputs if shown not in figures]
        if not left_out(cell) and not questions and cell.get("id") != CELL:
            printed = self.listing(without_tests(source(cell)), printed)
        for group in packed([(shown, height(shown)) for shown in printed]):
            shown = "\n".join(group)
            if not self.join(shown, sum(map(height, group))):
                self.add(shown, "", "printed")
        for shown in figures:
            self.add(shown, "", "figure")
        self.claims(["".join(claim) for claim in claims])
        if any(map(is_check, cell.get("outputs", []))):
            self.title = self.after

    def claims(self, sentences):
        """Set the measured sentences under the figure before them, or on a slide of their own."""
        if not sentences:
            return
        shown = f'<div class="claims">{"".join(sentences)}</div>'
        last, size = (self.slides or [None])[-1], 4 * len(sentences)
        fits = last and (last.look in ("figure", "text") or last.size + size <= _ROOM)
        if fits and last.title == self.title:
            self.slides[-1] = last._replace(body=last.body + shown, size=last.size + size)
        else:
            self.add(shown, "", "printed")

    def listing(self, text, printed):
        """Slides of code, with what it printed if both fit; returns what did not."""
        *first, last = code.chunks(text)
        first = [piece for piece in first if not only_imports(piece)]
        for piece in first:
            self.add(code.to_html(piece), "", "code")
        shown, size = code.to_html(last), last.count("\n") + 3
        below = sum(map(height, printed))
        if size + below <= _ROOM:
            shown, size, printed = shown + "\n".join(printed), size + below, []
        if first or not self.join(shown, size):
            self.add(shown, "", "code", size=size)
        return printed

    def join(self, shown, size):
        """Set code under the words before it, if both are short; whether that was done."""
        last = self.slides[-1] if self.slides else None
        if last is None or last.look != "text" or last.title != self.title:
            return False
        size += words(last.body)
        if size > _ROOM:
            return False
        self.slides[-1] = last._replace(body=last.body + shown, look="code", size=size)
        return True


def remarks_joined(slides):
    """The slides, a remark of a line or two set under its code, or over the figure it leads to.

    One of a few words that has neither is only said: it goes to the next slide's notes.
    """
    found, said = [], ""
    for slide in slides:
        slide, said = slide._replace(notes=said + slide.notes), ""
        last, size = found[-1] if found else None, words(slide.body)
        short = slide.look == "text" and size < _REMARK
        if (
            last
            and short
            and (last.look, last.title) == ("code", slide.title)
            and last.size + size <= _ROOM
        ):
            body, notes = last.body + slide.body, last.notes + slide.notes
            found[-1] = last._replace(body=body, notes=notes, size=last.size + size)
        elif leads_to(last, slide):
            body, notes = last.body + slide.body, last.notes + slide.notes
            found[-1] = slide._replace(body=body, notes=notes)
        elif slide.look == "text" and len(re.sub(r"<[^>]+>", "", slide.body).strip()) < _FEW:
            said = slide.notes
        else:
            found.append(slide)
    return found


def leads_to(words_before, slide):
    """Whether a slide is a picture and the one before it has only a remark for it."""
    return (
        words_before is not None
        and slide.look == "figure"
        and "<img" in slide.body
        and (words_before.look, words_before.title) == ("text", slide.title)
        and words(words_before.body) < _REMARK
    )


def words(body):
    """How many lines of code are as high as these words."""
    return 2 * (len(re.sub(r"<[^>]+>", "", body)) / 62 + body.count("<p>"))
