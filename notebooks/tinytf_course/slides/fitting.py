"""How much fits on a slide: lines that a piece takes, pieces packed, long outputs cut."""

import math
import re

FULL = 11  # lines of text on one slide
TALL = 99  # the height of a picture or an explorer: a slide of its own
_ROW = re.compile(r"<tr\b.*?</tr>", re.S)


def lines(markdown, kind):
    """About how many lines of text a block takes on a slide."""
    if kind == "code":
        return 0.7 * markdown.count("\n")
    if kind == "table":
        return 0.9 * sum(max(1, math.ceil(len(row) / 95)) for row in markdown.splitlines())
    if kind == "formula":
        return 2 + 1.2 * markdown.count(r"\\")
    return math.ceil(len(markdown) / 72) + 0.6


def packed(pieces):
    """Pieces (content, lines) in lists that fit on a slide each, in order."""
    found, room = [], 0
    for content, size in pieces:
        if not found or size > room:
            found.append([])
            room = FULL
        found[-1].append(content)
        room -= size
    return found


def cut(shown, most=14):
    """An output as HTML with at most `most` rows or lines, and a word about the others."""
    rows = list(_ROW.finditer(shown))
    if len(rows) > most + 1 and "<table" in shown and shown.count("<table") == 1:
        head, tail = shown[: rows[most].end()], shown[rows[-1].end() :]
        return f'{head}{tail}<p class="more">… {len(rows) - most - 1} more rows</p>'
    if shown.startswith("<pre") and shown.count("\n") >= most:
        kept = shown.split("\n")[:most]
        return "\n".join(kept) + f"\n… {shown.count(chr(10)) + 1 - most} more lines</pre>"
    return shown


def height(shown):
    """About how many lines of code an output as HTML takes."""
    if "<img" in shown or "<script" in shown:
        return TALL
    rows = len(_ROW.findall(shown))
    text = re.sub(r"<[^>]+>", "", shown)
    return 1.6 * rows if rows else sum(1 + len(line) // 105 for line in text.splitlines()) + 0.6
