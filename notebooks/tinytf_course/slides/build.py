"""Write the slides of chapters as HTML files, with reveal.js and MathJax beside them."""

import html
import shutil
from pathlib import Path

from tinytf_course.display import inline
from tinytf_course.notebooks import readable
from tinytf_course.site.assets import copy_library, require
from tinytf_course.site.outputs import Pictures
from tinytf_course.site.pages import title
from tinytf_course.slides.code import colours
from tinytf_course.slides.deck import Deck

_FILES = Path(__file__).parent / "files"


def build_slides(notebooks, folder, chapters=None, minutes=None):
    """Write a deck for each chapter (all, or those numbers) and an index into `folder`.

    minutes: cut them by the teacher's plan for a lesson of so many minutes (45 or 90). Returns
    {file name: number of slides}. Raises MissingPackage if a package of the extra `site` is
    missing, ValueError if there is no chapter or no such plan.
    """
    require("markdown_it", "mdit_py_plugins", "pygments")
    found = list(readable(notebooks, chapters))
    if not found:
        raise ValueError(f"no such chapter in {notebooks}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    copy_library("reveal.js", folder / "reveal.js")
    copy_library("mathjax", folder / "mathjax")
    shutil.copyfile(_FILES / "slides.js", folder / "slides.js")
    style = (_FILES / "slides.css").read_text(encoding="utf-8")
    (folder / "slides.css").write_text(f"{style}\n{colours()}\n", encoding="utf-8")
    made = {}
    for notebook in found:
        figures = f"figures/{notebook.chapter}"
        deck = Deck(notebook, Pictures(folder / figures, figures))
        slides = deck.lesson(_plan(notebook, minutes)) if minutes else deck.all()
        name = f"{notebook.path.stem}.html"
        (folder / name).write_text(_page(title(notebook), slides), encoding="utf-8")
        made[name] = len(slides)
    (folder / "index.html").write_text(_index(found), encoding="utf-8")
    return made


def _plan(notebook, minutes):
    from tinytf_course.release.teaching import read, written  # which students don't have

    notes = written().get(notebook.chapter)
    plans = {plan.minutes: plan for plan in read(notes).plans} if notes else {}
    if minutes not in plans:
        known = " or ".join(map(str, plans)) or "none"
        raise ValueError(f"chapter {notebook.chapter} has no plan for {minutes} minutes: {known}")
    return plans[minutes]


_HEAD = """<!DOCTYPE html>
<html lang="en" data-theme="light"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="reveal.js/dist/reset.css">
<link rel="stylesheet" href="reveal.js/dist/reveal.css">
<link rel="stylesheet" href="slides.css">
"""

_SCRIPTS = """<script>window.MathJax = {options: {enableMenu: false},
  tex: {inlineMath: [["\\\\(", "\\\\)"]], displayMath: [["\\\\[", "\\\\]"]]}};</script>
<script src="mathjax/es5/tex-svg.js"></script>
<script src="reveal.js/dist/reveal.js"></script>
<script src="reveal.js/plugin/notes/notes.js"></script>
<script src="slides.js"></script>
"""


def _page(name, slides):
    sections = "\n".join(map(_section, slides))
    return (
        _HEAD.format(title=html.escape(name))
        + f'</head><body><div class="reveal"><div class="slides">\n{sections}\n</div></div>\n'
        + f"{_SCRIPTS}</body></html>\n"
    )


def _index(chapters):
    links = "".join(
        f'<li><a href="{notebook.path.stem}.html">{html.escape(title(notebook))}</a></li>'
        for notebook in chapters
    )
    body = f'<body class="index"><h1>tinytf: slides</h1><ul>{links}</ul></body>'
    return f"{_HEAD.format(title='tinytf: slides')}</head>{body}</html>\n"


def _section(slide):
    rank = "h1" if slide.look in ("chapter", "section") else "h2"
    notes = f'<aside class="notes">{slide.notes}</aside>' if slide.notes else ""
    body = slide.body.replace(' loading="lazy"', "")
    return (
        f'<section class="{slide.look}"><{rank}>{inline(slide.title)}</{rank}>\n'
        f'<div class="body"><div class="inner">{body}</div></div>{notes}</section>'
    )
