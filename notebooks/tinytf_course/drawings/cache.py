"""Drawings of the key-value cache: which scores repeat, what is kept, what each call computes."""

from matplotlib.patches import Rectangle

from tinytf.viz.style import COLOURS, INK, MASKED, PAPER

from .diagram import Diagram

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
        "time; the rows above it are not computed again.",
    )  # fmt: skip


def draw_kept(words):
    """Draw what one layer keeps of `words` while the last of them is computed: keys and values.

    A column a word; the keys and values of the earlier ones are pale, their queries struck out.
    Raises ValueError for fewer than two words.
    """
    last = len(words) - 1
    if last < 1:
        raise ValueError(f"{len(words)} words: nothing is kept yet")
    wide = 1.75
    d = Diagram(
        wide * len(words) + 2.1, 6.9,
        alt=f"A column for each of {len(words)} words, with its key and its value, which the cache "
        "of the layer holds. Only the newest word has a query. It meets all "
        f"{len(words)} keys, and the weighted values are added up to its output. "
        f"The {last} older queries are struck out.",
    )  # fmt: skip
    kept, size = [], (1.0, 0.62)
    places = [1.9 + wide * i for i in range(len(words))]
    answer = d.box(places[-1], 6.3, "output", role="output", size=(1.9, 0.62))
    for i, (x, word) in enumerate(zip(places, words, strict=True)):
        old = i < last
        d.box(x, 0.55, word, role="input", size=(1.35, 0.62), faint=old)
        query = d.box(x, 1.65, f"q{i}", role="query", size=size, faint=old)
        if old:
            d.ax.plot(
                [x - 0.5, x + 0.5], [1.4, 1.9], color=COLOURS["mask"], linewidth=1.3, zorder=4
            )
        key = d.box(x, 3.3, f"k{i}", role="key", size=size, faint=old)
        value = d.box(x, 4.25, f"v{i}", role="value", size=size, faint=old)
        kept += [key, value]
        corner = (answer.x - 0.6, answer.y - 0.31)
        d.arrow(value.top, corner if old else answer.bottom, role="value")
    for key in kept[::2]:
        d.arrow(query.top, key.bottom, role="query")
    d.frame(kept, margin=0.22)
    d.text(0.95, 3.78, "the cache", align="right", size=10)
    return d.ax


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
