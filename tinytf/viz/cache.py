"""Drawings of the key-value cache: which scores repeat, and what prefill and a step compute."""

from matplotlib.patches import Rectangle

from .diagram import Diagram
from .style import COLOURS, INK, MASKED, PAPER

CELL = 0.62
NEW, AGAIN, KEPT, HIDDEN = "computed, new", "computed again", "not computed", "hidden"
FILLS = {NEW: COLOURS["weights"], AGAIN: COLOURS["key"], KEPT: "#dce9f5", HIDDEN: MASKED}


def draw_repeats(words):
    """Draw the scores for writing the last of `words` and the next: which of them repeat.

    Three squares with a row a query and a column a key: a step, the next one without a cache, and
    the next one with it. Raises ValueError for fewer than two words.
    """
    last = len(words) - 1
    if last < 1:
        raise ValueError(f"{len(words)} words make no two steps")
    steps = {
        f"{last} words read": _kinds(last, range(last), NEW),
        f"{last + 1} words read, no cache": _kinds(last + 1, range(last), AGAIN),
        f"{last + 1} words read, with a cache": _kinds(last + 1, range(last), KEPT),
    }
    many, new = last * (last + 1) // 2, last + 1
    return _panels(
        steps, words,
        alt=f"Three triangles of scores. With {last} words read there are {many}. With one word "
        f"more and no cache the same {many} are computed again, and one row of {new} is new. With "
        "a cache only that row is computed.",
    )  # fmt: skip


def draw_prefill(words, prompt):
    """Draw a prefill of the first `prompt` words at once, then a step for each other word.

    Raises ValueError for a prompt that is empty or leaves no step.
    """
    if not 0 < prompt < len(words):
        raise ValueError(f"a prompt of {prompt} words of {len(words)} leaves no prefill or no step")
    steps = {f"prefill: {prompt} at once": _kinds(prompt, range(0), KEPT)}
    for read in range(prompt + 1, len(words) + 1):
        steps[f"step {read - prompt}"] = _kinds(read, range(read - 1), KEPT)
    return _panels(
        steps, words,
        alt=f"The prefill computes a triangle of {prompt} rows in one call. Each of the "
        f"{len(words) - prompt} steps after it computes a single row, which is one longer each "
        "time; what stands above it is not computed again.",
    )  # fmt: skip


def _kinds(size, old, kind):
    """A causal square: `kind` in the rows `old`, new in the others, hidden above the diagonal."""
    return [
        [HIDDEN if j > i else kind if i in old else NEW for j in range(size)] for i in range(size)
    ]


def _panels(steps, words, alt):
    """Squares side by side, a row a query and a column a key, with a legend below."""
    size = max(len(kinds) for kinds in steps.values())
    wide = size * CELL + 2.3
    d = Diagram(wide * len(steps) + 0.3, size * CELL + 2.9, alt=alt)
    high = size * CELL + 1.75
    for number, (title, kinds) in enumerate(steps.items()):
        left = 1.55 + number * wide
        d.text(left + len(kinds) * CELL / 2, high + 0.85, title)
        for i, row in enumerate(kinds):
            asks = NEW in row or AGAIN in row
            d.text(left - 0.1, high - (i + 0.5) * CELL, f"{words[i]}  q{i}", size=9, align="right",
                   color=INK if asks else "#9aa3ad")  # fmt: skip
            d.text(left + (i + 0.5) * CELL, high + 0.25, f"k{i}", size=9)
            for j, kind in enumerate(row):
                _cell(d, left + j * CELL, high - (i + 1) * CELL, kind)
    used = {kind for kinds in steps.values() for row in kinds for kind in row}
    x = 1.55
    for kind in (kind for kind in FILLS if kind in used):
        _cell(d, x, 0.45, kind, size=0.42)
        d.text(x + 0.6, 0.66, kind, size=10, align="left")
        x += 3.6
    return d.ax


def _cell(d, x, y, kind, size=CELL):
    d.ax.add_patch(
        Rectangle((x, y), size, size, facecolor=FILLS[kind], edgecolor=PAPER, linewidth=1.2)
    )
