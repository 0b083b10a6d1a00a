"""Words of the glossary, linked where a chapter first uses them."""

import html
import re

from tinytf_course.glossary import TERMS

_SHORTEST = 3  # letters of a name that is looked for in prose
_EVERYDAY = {  # words that mean something else before their chapter
    "alignment", "block", "cache", "component", "control", "device", "extrapolation", "feature",
    "floor", "frozen", "gate", "head", "held out", "inference", "input", "invariant", "key",
    "label", "layer", "leak", "mask", "memorised", "memory", "mode", "occlusion", "packed",
    "packing", "padding", "patch", "pipeline", "position", "probe", "projection", "prompt",
    "query", "router", "score", "segment", "sentinel", "surprise", "target", "temperature",
    "token", "twin", "value",
}  # fmt: skip
# What is not prose: code, formulas, links, HTML, headings.
_KEPT = re.compile(
    r"```.*?```|~~~.*?~~~|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]+\$|\[[^\]]*\]\([^)]*\)|<[^>]+>|^#.*?$",
    re.S | re.M,
)


def anchor(english):
    """The id of a term on the glossary's page."""
    return "term-" + re.sub(r"[^a-z0-9]+", "-", english.lower()).strip("-")


def link_terms(markdown, chapter, seen):
    """Markdown with the first use of each term linked; `seen` collects the terms that were.

    What is an everyday word too is linked from the chapter that builds it on.
    """
    for english, _, meaning, built in TERMS:
        if english in seen:
            continue
        names = [name for name in english.split(", ") if built <= chapter or name not in _EVERYDAY]
        form = "|".join(re.escape(form) for form in _forms(names))
        if not form:
            continue
        place = _first(markdown, re.compile(rf"(?<![\w-])(?:{form})(?![\w-])", re.I))
        if place:
            start, end = place
            seen.add(english)
            link = (
                f'<a class="term" href="glossary.html#{anchor(english)}" '
                f'title="{html.escape(meaning)}">{markdown[start:end]}</a>'
            )
            markdown = markdown[:start] + link + markdown[end:]
    return markdown


def _forms(names):
    """The ways a term is written in prose: each name, and its plural."""
    for name in names:
        if len(name) >= _SHORTEST and not name.startswith("["):
            yield from (name, f"{name}s")


def _first(markdown, form):
    """Where prose matches first, or None."""
    begin = 0
    for kept in [*_KEPT.finditer(markdown), None]:
        end = kept.start() if kept else len(markdown)
        found = form.search(markdown, begin, end)
        if found:
            return found.span()
        begin = _after_link(markdown, kept) if kept else end
    return None


def _after_link(markdown, kept):
    """The end of what is kept; a link that was made here goes on to its closing tag."""
    if kept[0].startswith("<a "):
        return markdown.index("</a>", kept.end())
    return kept.end()
