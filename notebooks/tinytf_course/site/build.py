"""Write the pages' sources and have Sphinx make the site."""

import io
import re
import shutil
import tempfile
from pathlib import Path

from tinytf_course import live
from tinytf_course.build import BuildError
from tinytf_course.glossary import TERMS
from tinytf_course.notebooks import readable
from tinytf_course.readme import readme_of
from tinytf_course.site import api, pages, panels
from tinytf_course.site.assets import copy_library, require
from tinytf_course.site.chapter import page
from tinytf_course.site.outputs import Pictures
from tinytf_course.site.slim import slim

_FILES = Path(__file__).parent / "files"
_PANELS = "_static/panels"
_SETTINGS = {
    "project": "tinytf",
    "html_title": "tinytf",
    "author": "The tinytf authors",
    "extensions": ["myst_parser", "sphinx.ext.mathjax"],
    "html_theme": "sphinx_book_theme",
    "html_theme_options": {
        "use_download_button": False, "use_fullscreen_button": False, "show_toc_level": 2,
        "search_bar_text": "Search the course",
        # A header, even a hidden one, would have a menu button before the one that is seen, and the
        # theme's script listens to the first alone.
        "navbar_persistent": [],
    },
    "html_context": {"default_mode": "auto"},
    "html_use_index": False,
    "add_module_names": False,
    "toc_object_entries_show_parents": "hide",
    "html_static_path": ["_static"],
    "html_css_files": ["site.css", "icons.css"],
    "html_js_files": ["site.js", "panels.js"],
    "html_favicon": "_static/favicon.svg",
    "html_copy_source": False,
    "html_show_copyright": False,
    "html_show_sphinx": False,
    "mathjax_path": "mathjax/es5/tex-svg.js",
    "mathjax3_config": {"options": {"enableMenu": False}},
    "myst_enable_extensions": ["dollarmath", "amsmath"],
    "myst_disable_syntax": ["myst_role", "myst_line_comment", "myst_block_break", "myst_target"],
    "smartquotes": False,
    "suppress_warnings": ["misc.highlighting_failure", "myst.header"],
}  # fmt: skip


def build_site(notebooks, folder, chapters=None, moving=True, note=lambda text: None):
    """Build the site of the chapters in `notebooks` (all, or those numbers) in `folder`.

    Where panels are `moving`, chapters that have some are run, unless `folder` has the pictures of
    an earlier build that are still right; `note` is told which. Returns the number of chapters and
    what went wrong, a string a line: Sphinx's warnings, and chapters that do not run, whose panels
    stay still. Raises MissingPackage if a package of the extra `site` is missing, ValueError if
    there is no chapter.
    """
    require("sphinx", "myst_parser", "sphinx_book_theme")
    found = list(readable(notebooks, chapters))
    if not found:
        raise ValueError(f"no such chapter in {notebooks}")
    folder = Path(folder)
    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "source"
        moved, warnings = {}, []
        for chapter in found if moving else ():
            where = f"{_PANELS}/{chapter.chapter}"
            try:
                moved[chapter.chapter] = panels.draw(chapter, source / where, folder / where, note)
            except BuildError as error:
                warnings.append(f"{chapter.path.name}: its panels stay still: {error}")
        write_sources(found, source, readme_of(notebooks), moved)
        warnings += _sphinx(source, folder, Path(work) / "doctrees")
        for path in (folder / _PANELS).rglob("*.webp"):  # left from a chapter as it was
            place = path.relative_to(folder)
            if place.parts[2] in moved and not (source / place).exists():
                path.unlink()
    slim(folder)
    (folder / "notebooks").mkdir(exist_ok=True)
    for chapter in found:
        shutil.copyfile(chapter.path, folder / "notebooks" / chapter.path.name)
    (folder / ".nojekyll").touch()  # GitHub Pages otherwise drops folders that begin with _
    return len(found), warnings


def write_sources(chapters, source, readme=None, moved=None):
    """Write the Markdown of all pages into `source`, and what they load into `_static`.

    `moved` is what `panels.draw` returned for each chapter whose panels move.
    """
    static = source / "_static"
    static.mkdir(parents=True, exist_ok=True)
    for file in _FILES.iterdir():
        shutil.copyfile(file, static / file.name)
    copy_library("mathjax", static / "mathjax")
    text = readme.read_text(encoding="utf-8") if readme else ""
    written = {
        "index": pages.index(chapters, text),
        "claims": pages.claims(chapters),
        "glossary": pages.glossary(chapters),
        **api.pages(chapters),
    }
    names = {chapter.chapter: chapter.path.stem for chapter in chapters}
    for chapter in chapters:
        figures = f"_static/figures/{chapter.chapter}"
        pictures = Pictures(source / figures, figures)
        moving = {
            cell: panels.markup(facts, f"{_PANELS}/{chapter.chapter}/{cell}")
            for cell, facts in (moved or {}).get(chapter.chapter, {}).items()
        }
        written[chapter.path.stem] = page(chapter, pictures, names, moving)
    live.add(written, static)
    for name, markdown in written.items():
        (source / f"{name}.md").write_text(markdown, encoding="utf-8")


def _sphinx(source, folder, doctrees):
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    warnings = io.StringIO()
    with docutils_namespace():
        app = Sphinx(source, None, folder, doctrees, "html", confoverrides=_SETTINGS,
                     status=None, warning=warnings, freshenv=True)  # fmt: skip
        app.connect("doctree-read", _drop_double_anchors)
        app.connect("doctree-read", _index_terms)
        app.build()
    return [line for line in warnings.getvalue().splitlines() if line.strip()]


def _drop_double_anchors(app, doctree):
    """A heading may have the id of its cell: the heading keeps it."""
    from docutils import nodes

    taken = {id for section in doctree.findall(nodes.section) for id in section["ids"]}
    for raw in list(doctree.findall(nodes.raw)):  # a list, as nodes are removed meanwhile
        text = raw.astext()
        if text.startswith('<div class="cell-anchor"') and text.split('"')[3] in taken:
            raw.parent.remove(raw)


def _index_terms(app, doctree):
    """The search for a term of the glossary begins with the chapter that builds it."""
    from sphinx.addnodes import index

    chapter = re.match(r"(\d\d)_", app.env.docname)
    entries = [
        ("single", name, "", "main", None)
        for english, _, _, built in TERMS
        if chapter and built == int(chapter[1])
        for name in english.split(", ")
    ]
    doctree += index(entries=entries)
