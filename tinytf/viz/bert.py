"""BERT's input, what a tagger says of each word, and results with a dot for each seed."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.patches import Rectangle

from .style import CYCLE, INK, as_array, label, new_axes

__all__ = ["group_dots", "input_card", "tag_bars"]

BEGINS, INSIDE = INK, "#9aa3ad"  # apart from every line's colour


def input_card(tokens: Sequence[str], segments: Sequence[int], ax=None):
    """Draw what is added up at each place: a row of words, one of positions, one of segments.

    tokens and segments have one length; cells of a segment share a colour. Returns the Axes.
    """
    if len(tokens) != len(segments):
        raise ValueError(f"{len(tokens)} tokens do not match {len(segments)} segments")
    if not tokens:
        raise ValueError("there are no tokens to draw")
    widths = [max(1.0, 0.17 * len(label(token)) + 0.45) for token in tokens]
    ax = new_axes(ax, (min(13, 1.2 + 0.62 * sum(widths)), 2.3))
    left = 0.0
    for place, (token, segment, width) in enumerate(zip(tokens, segments, widths, strict=True)):
        for row, text in enumerate((label(token), str(place), str(int(segment)))):
            color = CYCLE[int(segment) % len(CYCLE)]
            box = (left + 0.05, -row - 0.42)
            ax.add_patch(
                Rectangle(box, width - 0.1, 0.84, facecolor=color, alpha=0.22, linewidth=0)
            )
            ax.text(left + width / 2, -row, text, ha="center", va="center", fontsize=11, color=INK)
        left += width
    ax.set(xlim=(0, left), ylim=(-2.6, 0.6))
    ax.set_yticks([0, -1, -2], ["word", "position", "segment"])
    ax.set_xticks([])
    ax.grid(False)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    return ax


def tag_bars(words: Sequence[str], probabilities, ax=None, *, title=None):
    """Draw how likely each word begins a date or is inside one: probabilities (S, 3), as O, B, I.

    Returns the Axes.
    """
    p = as_array(probabilities, "probabilities", ndim=2)
    if p.shape != (len(words), 3):
        raise ValueError(f"{len(words)} words need probabilities ({len(words)}, 3), got {p.shape}")
    ax = new_axes(ax, (min(13, max(7.0, 0.95 * len(words))), 3.2))
    at = np.arange(len(words))
    ax.bar(at, p[:, 1], 0.7, color=BEGINS, label="B: a date begins")
    ax.bar(at, p[:, 2], 0.7, bottom=p[:, 1], color=INSIDE, label="I: inside a date")
    ax.set_xticks(at, [label(word) for word in words])
    ax.set(ylim=(0, 1.05), ylabel="probability")
    ax.grid(False, axis="x")
    ax.tick_params(axis="x", length=0)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.22), ncols=2)
    if title:
        ax.set_title(title, pad=30)
    return ax


def group_dots(
    values: Mapping[str, Mapping[str, Sequence[float]]],
    ax=None,
    *,
    reference: Mapping[str, float] | None = None,
    ylabel: str | None = None,
    colors: Mapping[str, int] | None = None,
):
    """Draw groups {label: {series: values over seeds}}: a dot a seed, and a line at their mean.

    reference: {label: y} draws dashed level lines. colors: {series: its place in CYCLE}.
    Returns the Axes.
    """
    if not values or not all(values.values()):
        raise ValueError(f"every group needs a series, got {values!r}")
    names = list(dict.fromkeys(name for group in values.values() for name in group))
    ax = new_axes(ax, (min(13, 3 + 2.1 * len(values)), 4.2))
    for name, level in (reference or {}).items():
        ax.axhline(float(level), color="#6b7280", linestyle="--", linewidth=1.5, label=label(name))
    for index, name in enumerate(names):
        color = CYCLE[(colors or {}).get(name, index) % len(CYCLE)]
        shown = label(name)
        for place, group in enumerate(values.values()):
            if name not in group:
                continue
            y = as_array(group[name], name, ndim=1)
            middle = place + (index - (len(names) - 1) / 2) * 0.7 / len(names)
            x = middle + np.linspace(-0.06, 0.06, len(y)) if len(y) > 1 else [middle]
            ax.plot(x, y, "o", color=color, markersize=8, alpha=0.75, label=shown)
            ax.plot([middle - 0.1, middle + 0.1], [y.mean()] * 2, color=color, linewidth=2.5)
            shown = None
    ax.set_xticks(range(len(values)), [label(name) for name in values])
    ax.set(xlim=(-0.5, len(values) - 0.5), ylabel=ylabel)
    ax.grid(False, axis="x")
    ax.tick_params(axis="x", length=0)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax
