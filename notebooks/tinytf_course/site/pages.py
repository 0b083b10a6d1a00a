"""The pages beside the chapters: index, claims, glossary; those of the package are in `api`."""

import html
import re

from tinytf_course.display import inline
from tinytf_course.glossary import TERMS
from tinytf_course.live.panels import panel
from tinytf_course.outline import CHAPTERS, in_hours
from tinytf_course.site.chapter import raw
from tinytf_course.site.coursemap import navigation
from tinytf_course.site.head import front_matter
from tinytf_course.site.terms import anchor

_DESCRIPTION = (
    "A notebook course on the Transformer and the small package that it builds: attention, "
    "encoder, decoder, GPT, BERT and Llama, with every testable sentence measured."
)
# README's pictures and badges; the index has the model itself.
_PICTURE = re.compile(
    r"<!--.*?-->|\[!\[[^\]]*\]\([^)]*\)\]\([^)]*\)|!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>", re.S
)
_RELATION = re.compile(r"(.+?) ((?:[<>=≠≥≤≈]|!=|in) .+)")


def index(chapters, readme):
    """The first page: what README says before its first section, the translator, the chapters."""
    known = {chapter.number: chapter for chapter in CHAPTERS}
    cards = "".join(_card(notebook, known[notebook.chapter]) for notebook in chapters
                    if notebook.chapter in known)  # fmt: skip
    pages = {notebook.chapter: notebook.path.stem for notebook in chapters}
    opening, *others = _paragraphs(readme)
    lead, *others = others or [""]
    names = "\n".join(["", *pages.values(), "claims", "glossary", "api"])
    return "\n\n".join(
        [
            front_matter("tinytf", _DESCRIPTION, **{"html_theme.sidebar_secondary.remove": True}),
            opening,
            f'<div class="lead">\n\n{lead}\n\n</div>',
            raw(_facts(chapters)),
            raw(panel("translator")),
            *others,
            "## Chapters",
            raw(navigation(pages)),
            raw(f'<div class="cards">{cards}</div>'),
            "Every measured sentence is listed among the [claims](claims.md), every term in the "
            "[glossary](glossary.md), and what the package offers on [its own pages](api.md). "
            "To run the cells, install the course as its README says.",
            f"```{{toctree}}\n:hidden:\n{names}\n```",
        ]
    )


def claims(chapters):
    """Every claim by chapter: a link to its cell, its sentence, and what was measured against what.

    A number that stands in the sentence is not repeated unless its bound says more.
    """
    sections, count = [], 0
    for notebook in chapters:
        where = _cells_of_claims(notebook)
        rows = [
            f'<tr><td><a href="{notebook.path.stem}.html#{where.get(claim["id"], "")}">'
            f"{html.escape(claim['id'])}</a></td><td>{inline(claim['sentence'])}</td>"
            f"{_measured(claim['measured'])}</tr>"
            for claim in notebook.claims()
        ]
        count += len(rows)
        if rows:
            head = "<tr><th>claim</th><th>sentence</th><th>measured</th><th>must be</th></tr>"
            table = (
                f'<table class="claims"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'
            )
            address = f"{notebook.path.stem}.md"
            about = f"[To the chapter]({address})"
            sections += [f"## {title(notebook)}", about, raw(f'<div class="shown">{table}</div>')]
    opening = (
        f"{count} sentences were measured when their chapters were built; a chapter whose claim "
        "does not hold is not built. A link leads to the cell that measures it; the last two "
        "columns have the number that was measured and what it must be."
    )
    front = front_matter(
        "Claims", "Every measured sentence of the course, with its number, by chapter."
    )
    return "\n\n".join(filter(None, [front, "# Claims", opening, *sections]))


def glossary(chapters):
    """Every term in English and Chinese, with its meaning and a link to its chapter.

    A row of letters leads to the first term of each.
    """
    terms = sorted(TERMS, key=lambda term: term[0].lower())
    firsts = {}
    for english, *_ in terms:
        firsts.setdefault(english[0].upper(), anchor(english))
    letters = " ".join(
        f'<a href="#{first}">{letter}</a>' for letter, first in firsts.items() if letter.isalpha()
    )
    opening = (
        f"The course's {len(terms)} terms in English and Chinese, with the chapter that builds or "
        "explains each."
    )
    names = {notebook.chapter: notebook.path.stem for notebook in chapters}
    rows = "".join(
        f'<tr id="{anchor(english)}"><th scope="row">{html.escape(english)}</th>'
        f'<td lang="zh">{chinese}</td><td>{inline(meaning)}</td>'
        f"<td>{_chapter_link(f'{number:02d}', names)}</td></tr>"
        for english, chinese, meaning, number in terms
    )
    head = "<tr><th>English</th><th>中文</th><th>meaning</th><th>chapter</th></tr>"
    table = f'<table class="glossary"><thead>{head}</thead><tbody>{rows}</tbody></table>'
    front = front_matter(
        "Glossary", "The course's terms in English and Chinese, and where each is built."
    )
    row = raw(f'<nav class="letters" aria-label="Letters">{letters}</nav>')
    shown = raw(f'<div class="shown">{table}</div>')
    return "\n\n".join([front, "# Glossary", opening, row, shown])


def title(notebook):
    """A chapter's number and title, from the outline or else from its file name."""
    known = {chapter.number: chapter.title for chapter in CHAPTERS}
    name = notebook.path.stem.partition("_")[2].replace("_", " ")
    return f"{notebook.chapter} {known.get(notebook.chapter, name)}"


def _paragraphs(readme):
    """README's title and what it says before its first section, without pictures and notes."""
    text = _PICTURE.sub("", readme.split("\n## ")[0]).strip() or "# tinytf"
    return [part for part in text.split("\n\n") if part.strip()]


def _facts(chapters):
    """How much there is, and where to go, in one row each."""
    known = {chapter.number: chapter for chapter in CHAPTERS}
    core, beside = in_hours(
        known[notebook.chapter] for notebook in chapters if notebook.chapter in known
    )
    claims = sum(len(notebook.claims()) for notebook in chapters)
    exercises = sum(len(set(notebook.ids("check"))) for notebook in chapters)
    facts = "".join(
        f"<li><b>{number:,}</b> {what}</li>"
        for number, what in (
            (len(chapters), "chapters"),
            (core, "hours of core"),
            (beside, "hours of electives"),
            (exercises, "exercises"),
            (claims, "claims, each checked by code"),
        )
    )
    first = f"{chapters[0].path.stem}.html"
    links = (first, f"Begin: {title(chapters[0])}"), ("#chapters", "All chapters"), (
        "claims.html", "What was measured")  # fmt: skip
    ways = "".join(f'<a href="{address}">{html.escape(name)}</a>' for address, name in links)
    return f'<ul class="facts">{facts}</ul><p class="ways">{ways}</p>'


def _card(notebook, chapter):
    times = [f"{chapter.core} min"] * bool(chapter.core)
    times += [f"{chapter.beside} min optional"] * bool(chapter.beside)
    return (
        f'<a class="card-link" href="{notebook.path.stem}.html"><b>{html.escape(title(notebook))}'
        f"</b><span>{inline(chapter.question)}</span><small>{', '.join(times)}</small></a>"
    )


def _measured(text):
    """What was measured and what it must be, a column each: "0.9 > 0.5" becomes 0.9 and > 0.5."""
    found = _RELATION.fullmatch(text)
    bound = found[2] if found else f"= {text}" * (text != "not run")  # equal: written only once
    number = found[1] if found else text
    return f'<td class="measured">{html.escape(number)}</td><td>{html.escape(bound)}</td>'


def _chapter_link(number, names):
    return f'<a href="{names[number]}.html">{number}</a>' if number in names else number


def _cells_of_claims(notebook):
    return {
        output["metadata"]["claim"]["id"]: cell.get("id", "")
        for cell in notebook.code
        for output in cell.get("outputs", [])
        if output.get("metadata", {}).get("claim")
    }
