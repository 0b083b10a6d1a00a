"""Text for a slide: what a paragraph says first, what it says in bold, and its lists."""

import functools
import re

_KEPT = re.compile(r"`[^`\n]+`|\$[^$]+\$|\[[^\]]*\]\([^)]*\)|\((?:[^()]|\n)*\)")
_END = re.compile(r"(?<=[.!?])[\"*)]*\s+(?=[A-Z`*$\"(\[])")
_SHORT_FORMS = re.compile(r"\b(e\.g|i\.e|et al|cf|vs|Eq|Fig)\.$")
_FOLDED = re.compile(r"<details>.*?</details>", re.S)


@functools.cache
def _parser():
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def formula(text, options):
        return rf"\[{text}\]" if options["display_mode"] else rf"\({text}\)"

    return MarkdownIt("commonmark", {"html": True}).enable("table").use(
        dollarmath_plugin, renderer=formula
    )  # fmt: skip


def to_html(markdown):
    """Markdown as HTML, formulas in the delimiters that MathJax looks for."""
    return _parser().render(markdown)


def without_folds(markdown):
    """Markdown without its folded hints and solutions."""
    return _FOLDED.sub("", markdown)


def blocks(markdown):
    """The blocks of a text: headings, paragraphs, lists, tables, formulas, code."""
    found, fence = [], None
    for line in markdown.splitlines():
        if fence:
            found[-1] += f"\n{line}"
            if line.startswith(fence) or line.endswith(fence):
                fence = None
                found.append("")
        elif line.startswith(("```", "$$")):
            found.append(line)
            fence = line[:3].strip("\n") if line.startswith("```") else "$$"
            fence = None if fence == "$$" and line.count("$$") > 1 else fence
        elif line.startswith("#"):
            found += [line, ""]
        elif not line.strip():
            found.append("")
        elif found and found[-1]:
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return [block for block in found if block.strip()]


def kind(block):
    """What a block is: heading, code, formula, table, list, caption or text."""
    for name, form in (
        ("heading", r"#"), ("code", r"```"), ("formula", r"\$\$"), ("table", r"\|"),
        ("list", r"(?:[*-]|\d+\.) "), ("caption", r"\*[^* ]"),
    ):  # fmt: skip
        if re.match(form, block):
            return name
    return "text"


def sentences(text):
    """The sentences of a paragraph; formulas, code, links and brackets are not cut."""
    masked = _KEPT.sub(lambda kept: re.sub(r"(?<=.).(?=..)", "x", kept[0], flags=re.S), text)
    found, start = [], 0
    for end in _END.finditer(masked):
        if not _SHORT_FORMS.search(masked[start : end.start()]):
            found.append(text[start : end.end()].strip())
            start = end.end()
    return [*found, text[start:].strip()]


def shortened(text):
    """A paragraph's first sentence (after a question its answer too), and those with bold words."""
    found = sentences(" ".join(text.split()))
    first = 2 if found[0].rstrip('"*)').endswith("?") else 1
    kept = [*found[:first], *(sentence for sentence in found[first:] if "**" in sentence)]
    return " ".join(map(_closed, _joined(kept)))


def items(block):
    """A list's items, each shortened, its marks kept."""
    found = re.split(r"\n(?=(?:[*-]|\d+\.) )", block)
    return [mark[0] + shortened(item[mark.end():]) for item in found
            if (mark := re.match(r"(?:[*-]|\d+\.) +", item))]  # fmt: skip


def _joined(sentences):
    """Sentences of one emphasis as one piece, so that it is closed once."""
    if len(sentences) > 1 and re.match(r"\*[^*]", sentences[0]) and _odd(sentences[0]):
        return [" ".join(sentences[:2]), *sentences[2:]]
    return sentences


def _odd(sentence):
    return _KEPT.sub("", sentence).replace("**", "").count("*") % 2


def _closed(sentence):
    """A sentence cut out of emphasis, with its emphasis closed or left away."""
    if not _odd(sentence):
        return sentence
    return f"{sentence}*" if re.match(r"\*[^*]", sentence) else re.sub(r"\*(?!.*\*)", "", sentence)
