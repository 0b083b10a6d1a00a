"""The pages of the teacher's edition, in Markdown: a chapter's notes with the chapter's own facts.

`page` is for the teacher, `sheet` for the students: the quiz without its key.
"""

import re

from tinytf_course.release.teaching import NAMED

_LETTERS = "ABCDEFG"


def page(notes, facts):
    """A chapter's notes: facts, aims, misconceptions, plans, questions, quiz and its key."""
    chapter = facts.chapter
    parts = [f"# {chapter.number} {chapter.title}: teacher's notes", f"*{chapter.question}*"]
    needs = f" It needs: {chapter.needs}." if chapter.needs else ""
    times = f"{chapter.core} minutes of core, {chapter.beside} of electives"
    parts += [f"For a reader alone: {times}.{needs}"]
    parts += ["## What students can do afterwards", _points(notes.aims)]
    parts += ["## What they get wrong, and how to see it"]
    for number, each in enumerate(notes.wrong, 1):
        parts += [f"### {number}. {each.name}", f"> {each.says}", each.more]
        parts += [f"**See** {each.see}", _told(each.see, facts), f"**Ask** {each.ask}"]
    for plan in notes.plans:
        rows = [(s.minutes, _places(s.cells, facts), s.cells, s.text) for s in plan.steps]
        header = ("min", "section", "cells", "what happens")
        parts += [f"## {plan.minutes} minutes", _table(header, rows)]
        parts += [f"**At home** {plan.home}"]
    parts += [_votes(facts), _tasks(facts), "## Questions to discuss"]
    for question in notes.discuss:
        parts += [f"### {question.text}", question.answer]
    parts += ["## Quiz", *map(_asked, notes.quiz, range(1, 9)), "## Key"]
    parts += [_key(item, number) for number, item in enumerate(notes.quiz, 1)]
    return _named("\n\n".join(filter(None, parts))) + "\n"


def sheet(notes, facts):
    """The quiz as students get it."""
    title = f"# Quiz: {facts.chapter.number} {facts.chapter.title}"
    asked = [_asked(item, number) for number, item in enumerate(notes.quiz, 1)]
    return _named("\n\n".join([title, *asked])) + "\n"


def index(chapters, syllabi):
    """The first page: the chapters that have notes, as (Facts, file), and the syllabi's text."""
    rows = [
        (f"[{facts.chapter.number} {facts.chapter.title}]({file})", facts.chapter.question,
         facts.chapter.core or "", facts.chapter.beside or "", len(facts.exercises),
         f"[quiz](quiz_{file})")
        for facts, file in chapters
    ]  # fmt: skip
    header = ("chapter", "question", "core, min", "electives", "exercises", "for students")
    return "\n\n".join(["# tinytf: teacher's edition", _table(header, rows), syllabi]) + "\n"


def _asked(item, number):
    options = [f"{_LETTERS[n]}. {text}" for n, (text, _) in enumerate(item.options)]
    below = "  \n".join(options) or "*One to three sentences.*"  # two spaces: a new line
    return f"**{number}.** {item.text}\n\n{below}"


def _key(item, number):
    if item.answer:
        return f"**{number}.** {item.answer}"
    wrong = [f"* {_LETTERS[n]}: {reason}" for n, (_, reason) in enumerate(item.options) if reason]
    return "\n\n".join([f"**{number}. {item.key}** · what the others think:", "\n".join(wrong)])


def _votes(facts):
    """The chapter's predictions: what is asked, the options, what was measured."""
    rows = [
        (id, *map(_plain, (each.question, " / ".join(each.options), each.answer)))
        for id, each in facts.predictions.items()
    ]
    header = ("", "question", "options", "measured")
    return "## Predictions, with answers\n\n" + _table(header, rows) if rows else ""


def _tasks(facts):
    """The chapter's exercises: difficulty, minutes, points, the mistakes that are named."""
    rows = [
        (id, each.title, each.stars, each.minutes, each.points,
         _plain("; ".join(wrong.name for wrong in each.wrong)))
        for id, each in facts.exercises.items()
    ]  # fmt: skip
    header = ("", "exercise", "", "min", "points", "mistakes that the grader knows by name")
    return "## Exercises\n\n" + _table(header, rows) if rows else ""


def _told(text, facts):
    """A line for each thing that is named in `text`: what it claims, asks or has to be written."""
    lines = []
    for name in NAMED.findall(text):
        if name in facts.claims:
            lines.append(f"{{{name}}} {_plain(facts.claims[name])}")
        elif name in facts.predictions:
            each = facts.predictions[name]
            lines.append(f"{{{name}}} {_plain(each.question)} Measured: {_plain(each.answer)}")
        elif name in facts.exercises:
            lines.append(f"{{{name}}} {facts.exercises[name].title}")
        elif name.startswith("#"):
            lines.append(f"{{{name}}} under “{facts.sections[name[1:]][1]}”")
    return _points(lines)


def _places(cells, facts):
    """The headings under which the first and the last of the named cells stand."""
    names = [name[1:] for name in NAMED.findall(cells) if name.startswith("#")]
    if not names:
        return ""
    (_, begins), (ends, _) = facts.sections[names[0]], facts.sections[names[-1]]
    return " … ".join(dict.fromkeys([_plain(begins), *[_plain(ends)] * (len(names) > 1)]))


def _plain(text):
    """Text of the chapter, in which <eos> outside of code shall not pass for HTML."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"<(?=[\w/!|])", r"\\<", p) for p in pieces)


def _named(text):
    return NAMED.sub(lambda found: f"`{found[1].removeprefix('#')}`", text)


def _points(lines):
    return "\n".join(f"* {line}" for line in lines)


def _table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value):
    return re.sub(r"\s*\n\s*", " ", str(value)).replace("|", "\\|")
