"""Take out of a built site what no page of it needs, and name what the theme leaves without a name.

The theme has each page load Font Awesome (1.5 MB of script, and fonts) for a dozen icons, which
`files/icons.css` draws, and the whole index of the search, of which only its own page has a use.
"""

import re
import shutil

_ICONS = re.compile(r"\s*<(?:script|link)\b[^>]*fontawesome[^>]*>(?:</script>)?")
_SEARCH = re.compile(
    r'\s*<script src="(?:_static/)?(?:searchtools|language_data|searchindex)\.js[^"]*"></script>'
)
_NAMED = {  # for readers who listen to the page
    '<div id="pst-primary-sidebar"':
        '<div id="pst-primary-sidebar" role="navigation" aria-label="Site"',
    '<summary><span class="toctree-toggle"':
        '<summary aria-label="The pages below it"><span class="toctree-toggle"',
    '<th class="head"><p></p></th>': "<td></td>",
    'title="Toggle primary sidebar"': 'title="Chapter list" aria-label="Chapter list"',
    'title="Toggle secondary sidebar"': 'title="On this page" aria-label="On this page"',
}  # fmt: skip
_RULE = re.compile(r"([^{}]*)\{[^{}]*\}")
_COMMENT = re.compile(r"/\*.*?\*/", re.S)
_LEFT = (".buildinfo", "objects.inv", "*.map", "*-macros.html", "fontawesome*", "*.LICENSE.txt")


def slim(folder):
    """Do so in a folder that Sphinx has written."""
    for path in folder.glob("*.html"):
        page = _ICONS.sub("", path.read_text(encoding="utf-8"))
        page = page if path.name == "search.html" else _SEARCH.sub("", page)
        for found, named in _NAMED.items():
            page = page.replace(found, named)
        path.write_text(page, encoding="utf-8")
    for path in (folder / "_static" / "styles").glob("*.css"):
        path.write_text(without_icons(path.read_text(encoding="utf-8")), encoding="utf-8")
    shutil.rmtree(folder / "_static" / "vendor" / "fontawesome", ignore_errors=True)
    shutil.rmtree(folder / "_sources", ignore_errors=True)
    for name in _LEFT:  # of use to Sphinx and to debuggers only
        for left in folder.rglob(name):
            left.unlink()


def without_icons(css):
    """A style sheet without the rules that are for Font Awesome alone, its fonts among them."""

    def kept(rule):
        selectors = _COMMENT.sub("", rule[1]).strip()
        font = selectors == "@font-face" and "fontawesome" in rule[0]
        icons = selectors and all(
            re.match(r"\.fa(?:[bsr]|-[\w-]+)?\b", one.strip()) for one in selectors.split(",")
        )
        return "" if font or icons else rule[0]

    return _RULE.sub(kept, css)
