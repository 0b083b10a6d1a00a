"""The course on one page: the parts of the Transformer, each with the chapter that builds it."""

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

from tinytf.viz.spoken import alt
from tinytf.viz.style import CYCLE, FAINT, INK, PAPER

TODAY = CYCLE[0]
EDGE = "#8a94a0"  # boxes of other chapters
LAYER = "#f3f6f9"  # what encloses other boxes

# (x, y, width, height, text, chapters); the data flows from left to right.
_ENCLOSING = (
    (0.0, 1.0, 12.2, 4.85, "the Transformer", (14, 15)),
    (3.6, 1.12, 6.0, 2.1, "encoder layer, stacked", (12,)),
    (3.6, 3.45, 6.0, 2.1, "decoder layer, stacked", (13,)),
)
_PARTS = (
    (0.2, 1.6, 1.5, 1.15, "English:\ntokens,\nembeddings", (3, 4)),
    (0.2, 3.53, 1.5, 1.15, "Chinese:\ntokens,\nembeddings", (3, 4)),
    (1.95, 1.6, 1.3, 1.15, "positions", (8, 9)),
    (1.95, 3.53, 1.3, 1.15, "positions", (8, 9)),
    (3.8, 1.75, 3.7, 1.0, "self-attention", (5, 6)),
    (3.8, 3.6, 1.75, 1.0, "masked self-\nattention", (5, 6)),
    (5.75, 3.6, 1.75, 1.0, "cross-\nattention", (7,)),
    (7.7, 3.6, 1.7, 1.0, "feed-\nforward", (11,)),
    (7.7, 1.75, 1.7, 1.0, "feed-\nforward", (11,)),
    (3.8, 1.24, 5.6, 0.42, "residual and normalisation around each", (10,)),
    (3.8, 4.69, 5.6, 0.42, "residual and normalisation around each", (10,)),
    (10.0, 3.53, 1.9, 1.15, "decoding,\nword by word", (16, 17)),
)
_AROUND = (
    (0, "start here"),
    (1, "recurrent\nnetworks"),
    (2, "from\nrecurrence"),
    (18, "GPT"),
    (19, "pretraining"),
    (20, "sampling"),
    (21, "BERT"),
    (22, "three\nfamilies"),
    (23, "the block\ntoday"),
    (24, "public\ntranslator"),
    (25, "images"),
    (26, "counting\nthe cost"),
    (27, "in parallel"),
    (28, "looking\ninside"),
    (29, "following\nan answer"),
    (30, "bug clinic"),
)
_ARROWS = (
    ((1.7, 2.2), (1.95, 2.2)),
    ((3.25, 2.2), (3.8, 2.2)),
    ((7.5, 2.2), (7.7, 2.2)),
    ((1.7, 4.13), (1.95, 4.13)),
    ((3.25, 4.13), (3.8, 4.13)),
    ((5.55, 4.13), (5.75, 4.13)),
    ((7.5, 4.13), (7.7, 4.13)),
    ((9.4, 4.13), (10.0, 4.13)),
)


def course_map(chapter, ax=None):
    """Draw the parts of the Transformer, those that `chapter` (a number) builds highlighted.

    The rows below them hold the chapters about the whole rather than a part. Returns the Axes.
    """
    chapter = int(chapter)
    known = {c for *_, chapters in _ENCLOSING + _PARTS for c in chapters} | {c for c, _ in _AROUND}
    if chapter not in known:
        raise ValueError(f"no chapter {chapter} on the map; it has {min(known)} to {max(known)}")
    ax = ax if ax is not None else plt.subplots(figsize=(10.5, 6.0), layout="constrained")[1]
    for x, y, width, height, text, chapters in _ENCLOSING:
        today = chapter in chapters
        face = LAYER if len(text) > 16 else PAPER
        _box(ax, x, y, width, height, TODAY if today else EDGE, face, today, dashed=True)
        color = TODAY if today else INK
        top = y + height - 0.1
        ax.text(x + 0.12, top, text, va="top", color=color, fontsize=10.5)
        _number(ax, x + width - 0.12, top - 0.02, chapters, today, "top")
    for x, y, width, height, text, chapters in _PARTS:
        _part(ax, x, y, width, height, text, chapters, chapter in chapters)
    for start, end in _ARROWS:
        _arrow(ax, start, end)
    # What the encoder found goes up and around to every decoder layer.
    ax.plot([9.4, 9.82, 9.82, 6.62], [2.2, 2.2, 3.335, 3.335], color=INK, linewidth=1.4)
    _arrow(ax, (6.62, 3.335), (6.62, 3.6))
    ax.text(9.95, 2.75, "memory", fontsize=10.5, color=INK, va="center")
    for place, (number, text) in enumerate(_AROUND):
        row, column = divmod(place, 8)
        _part(ax, column * 1.5357, -row, 1.45, 0.85, text, (number,), chapter == number)
    ax.set(xlim=(-0.1, 12.3), ylim=(-1.1, 5.95))
    ax.set_axis_off()
    everything = [(text, chapters) for *_, text, chapters in _ENCLOSING + _PARTS]
    everything += [(text, (number,)) for number, text in _AROUND]
    today = [text for text, found in everything if chapter in found]
    today = dict.fromkeys(" ".join(text.replace("-\n", "-").split()) for text in today)
    return alt(
        ax,
        "The Transformer's parts with the chapters that build them. English runs through "
        "embeddings, positions and encoder layers to a memory, which the decoder layers read while "
        f"they write the Chinese. Coloured, for chapter {chapter:02d}: {', '.join(today)}.",
    )


def _part(ax, x, y, width, height, text, chapters, today):
    _box(ax, x, y, width, height, TODAY if today else EDGE, TODAY if today else PAPER, today)
    color, flat = PAPER if today else INK, height < 0.6
    ax.text(
        x + width / 2, y + height / 2 + (0 if flat else 0.11), text, ha="center", va="center",
        fontsize=10.5, color=color, linespacing=1.05, fontweight="bold" if today else "normal",
    )  # fmt: skip
    _number(ax, x + width - 0.08, y + (0.1 if flat else 0.05), chapters, today, "bottom", color)


def _number(ax, x, y, chapters, today, va, color=None):
    text = ", ".join(f"{number:02d}" for number in chapters)
    color = color if today and color else TODAY if today else FAINT
    weight = "bold" if today else "normal"
    ax.text(x, y, text, ha="right", va=va, fontsize=9, color=color, fontweight=weight)


def _box(ax, x, y, width, height, edge, face, today, dashed=False):
    style = "round,pad=0,rounding_size=0.1"
    ax.add_patch(
        FancyBboxPatch(
            (x, y), width, height, boxstyle=style, edgecolor=edge, facecolor=face,
            linewidth=2.2 if today else 1.2, linestyle="--" if dashed and not today else "-",
        )
    )  # fmt: skip


def _arrow(ax, start, end):
    shape = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=shape)
