"""The pages beside the chapters: index, claims, glossary."""

import html
import re

from tinytf_course.display import inline
from tinytf_course.glossary import TERMS
from tinytf_course.outline import CHAPTERS
from tinytf_course.site.chapter import raw
from tinytf_course.site.coursemap import navigation
from tinytf_course.site.terms import anchor

# README's pictures and badges; the index has the explorer itself.
_PICTURE = re.compile(r"\[!\[[^\]]*\]\([^)]*\)\]\([^)]*\)|!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>")


def index(chapters, readme):
    """The first page: what README says before its first section, an explorer, the chapters."""
    known = {chapter.number: chapter for chapter in CHAPTERS}
    cards = "".join(_card(notebook, known[notebook.chapter]) for notebook in chapters
                    if notebook.chapter in known)  # fmt: skip
    pages = {notebook.chapter: notebook.path.stem for notebook in chapters}
    names = "\n".join(["", *pages.values(), "claims", "glossary"])
    return "\n\n".join(
        [
            _PICTURE.sub("", readme.split("\n## ")[0]).strip() or "# tinytf",
            raw(_explorer(chapters)),
            "## Chapters",
            raw(navigation(pages)),
            raw(f'<div class="cards">{cards}</div>'),
            "Every measured sentence is listed among the [claims](claims.md), every term in the "
            "[glossary](glossary.md). To run the cells, install the course as its README says.",
            f"```{{toctree}}\n:hidden:\n{names}\n```",
        ]
    )


def claims(chapters):
    """Every claim, each a link to its cell; the bound shows where the mouse rests."""
    parts = [
        "# Claims",
        "Each sentence was measured when its chapter was built; a chapter whose claim does not "
        "hold is not built. A link leads to the cell that measures it.",
    ]
    for notebook in chapters:
        where = _cells_of_claims(notebook)
        rows = "".join(
            f'<tr><td><a href="{notebook.path.stem}.html#{where.get(claim["id"], "")}">'
            f'{html.escape(claim["id"])}</a></td><td title="measured: '
            f'{html.escape(claim["measured"])}">{inline(claim["sentence"])}</td></tr>'
            for claim in notebook.claims()
        )
        if rows:
            head = "<tr><th>claim</th><th>sentence</th></tr>"
            table = f'<table class="claims"><thead>{head}</thead><tbody>{rows}</tbody></table>'
            parts += [f"## {title(notebook)}", raw(f'<div class="shown">{table}</div>')]
    return "\n\n".join(parts)


def glossary(chapters):
    """Every term in English and Chinese, with its meaning and a link to its chapter."""
    names = {notebook.chapter: notebook.path.stem for notebook in chapters}
    rows = "".join(
        f'<tr id="{anchor(english)}"><th scope="row">{html.escape(english)}</th>'
        f'<td lang="zh">{chinese}</td><td>{inline(meaning)}</td>'
        f"<td>{_chapter_link(f'{number:02d}', names)}</td></tr>"
        for english, chinese, meaning, number in sorted(TERMS, key=lambda term: term[0].lower())
    )
    head = "<tr><th>English</th><th>中文</th><th>meaning</th><th>chapter</th></tr>"
    table = f'<table class="glossary"><thead>{head}</thead><tbody>{rows}</tbody></table>'
    return f"# Glossary\n\n{raw(f'<div class=shown>{table}</div>')}"


def title(notebook):
    """A chapter's number and title, from the outline or else from its file name."""
    known = {chapter.number: chapter.title for chapter in CHAPTERS}
    name = notebook.path.stem.partition("_")[2].replace("_", " ")
    return f"{notebook.chapter} {known.get(notebook.chapter, name)}"


def _card(notebook, chapter):
    times = [f"{chapter.core} minutes"] * bool(chapter.core)
    times += [f"{chapter.beside} of electives"] * bool(chapter.beside)
    return (
        f'<a class="card-link" href="{notebook.path.stem}.html"><b>{html.escape(title(notebook))}'
        f"</b><span>{inline(chapter.question)}</span><small>{', '.join(times)}</small></a>"
    )


def _explorer(chapters):
    """The first attention explorer that a chapter shows, alive."""
    for notebook in chapters:
        for output in notebook.outputs:
            shown = "".join(output.get("data", {}).get("text/html", ""))
            if re.match(r'\s*<div class="tinytf-explorer"', shown):
                return f'<div class="shown">{shown}</div>'
    return ""


def _chapter_link(number, names):
    return f'<a href="{names[number]}.html">{number}</a>' if number in names else number


def _cells_of_claims(notebook):
    return {
        output["metadata"]["claim"]["id"]: cell.get("id", "")
        for cell in notebook.code
        for output in cell.get("outputs", [])
        if output.get("metadata", {}).get("claim")
    }
