"""Which numbers a normalisation averages, on a real tensor of batch × position × feature."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.patches import Polygon

from tinytf.viz.spoken import alt
from tinytf.viz.style import CYCLE, INK, as_array, labels, new_axes

GREYS = LinearSegmentedColormap.from_list("tinytf.greys", ("#ffffff", "#c3c9d1"))
GROUP = CYCLE[0]
PAD = "#c2410c"
LEAN, RISE = 0.3, 0.92  # how far each position moves left and down on its sheet
GAP, NAME = 1.4, 5.5  # between two sheets of a stack; from one to the next at least, for its name
APART, CAPTION = 4.2, 11  # between two stacks; from one to the next at least, for the words below
MARGIN = 7.6  # for the words, left of the first stack


def norm_groups(x, groups, words, ax=None, *, cell=None, shown=8, colors=None):
    """Draw x (B, T, C) as a stack of B sheets, once for each group of numbers; returns the Axes.

    groups: {title: boolean (B, T, C)}, True for the numbers that share one mean (or other
    statistic). They are filled in blue (or in colors[title]), in red where the token is padding; of
    the others, real tokens show their value in grey and padding is blank. Under each stack stands
    how many they are.
    words: B lists of T tokens, the rows of the sheets, written beside the first stack; "<pad>" is
    padding.
    cell: (b, t, c), the output number that the groups belong to, gets a black frame.
    shown: how many of the C features to draw; the counts are of all C.
    """
    x = as_array(x, "x", ndim=3)
    groups = {title: as_array(group, repr(title), ndim=3) > 0 for title, group in groups.items()}
    _check(x, groups, words, cell, shown)
    shown = min(shown, x.shape[2])
    padding = np.array([[token == "<pad>" for token in row] for row in words])
    pitch = max(shown + APART, CAPTION)
    wide = len(groups) * pitch + MARGIN - 2.6
    high = 3.2 + 1.6 * max(title.count("\n") for title in groups)
    tall = x.shape[0] * _step(x.shape[1]) + 3.4 + high
    ax = new_axes(ax, (0.26 * wide, 0.26 * tall))
    for index, (title, group) in enumerate(groups.items()):
        left = index * pitch
        color = (colors or {}).get(title, GROUP)
        _stack(ax, left, x, group, padding, shown, cell, color)
        _caption(ax, left, title, group, padding, shown, color)
    _name_rows(ax, words, padding)
    ax.set(xlim=(-MARGIN, wide - MARGIN), ylim=(high - tall, high))
    ax.set_aspect("equal")
    ax.axis("off")
    return alt(ax, _said(groups, padding))


def _said(groups, padding):
    """The groups in words, for who can't see them."""
    parts = []
    for title, group in groups.items():
        tokens, features = group.any(axis=2), group.any(axis=(0, 1))
        size = f"{_many(int(tokens.sum()), 'token')} × {_many(int(features.sum()), 'feature')}"
        pads = int((tokens & padding).sum())
        parts.append(f"{' '.join(title.split())}: {size}, {pads} of them padding.")
    return "Which numbers share a statistic. " + " ".join(parts)


def _check(x, groups, words, cell, shown):
    if not groups:
        raise ValueError("groups needs at least one {title: boolean (B, T, C)}")
    for title, group in groups.items():
        if group.shape != x.shape:
            raise ValueError(f"group {title!r} has shape {group.shape}, x has {x.shape}")
        if not group.any():
            raise ValueError(f"group {title!r} is empty")
    if shown < 1:
        raise ValueError(f"shown={shown} must be at least 1")
    rows = [len(row) for row in words]
    if rows != [x.shape[1]] * x.shape[0]:
        raise ValueError(f"words has rows of {rows} tokens for x of shape {x.shape}")
    if cell is not None:
        if len(cell) != 3 or not all(0 <= i < n for i, n in zip(cell, x.shape, strict=True)):
            raise ValueError(f"cell {tuple(cell)} lies outside x of shape {x.shape}")
        if cell[2] >= shown:
            raise ValueError(f"cell {tuple(cell)} is not among the {shown} features shown")


def _corner(b, t, c, positions, left=0.0):
    """Where the upper left corner of a cell lies; later positions lie lower and further left."""
    return left + c - LEAN * t, -(b * _step(positions) + t * RISE)


def _cells(where, positions, left):
    """The corners of each cell (b, t, c) of `where`, as (N, 4, 2)."""
    around = ((0, 0), (0, 1), (1, 1), (1, 0))
    return np.array(
        [[_corner(b, t + i, c + j, positions, left) for i, j in around] for b, t, c in where]
    )


def _step(positions):
    """How far down it is from a sheet of so many positions to the next."""
    return max(positions * RISE + GAP, NAME)


def _stack(ax, left, x, group, padding, shown, cell, color):
    positions = x.shape[1]
    where = np.argwhere(np.ones((*x.shape[:2], shown), bool))
    polygons, at = _cells(where, positions, left), tuple(where.T)
    inside, empty = group[at], padding[at[:2]]
    low, high = np.quantile(x[at], [0.02, 0.98])
    shades = GREYS(np.clip((x[at] - low) / max(high - low, 1e-12), 0, 1))
    shades[empty] = (0.965, 0.969, 0.976, 1)
    shades[inside] = to_rgba(color)
    shades[inside & empty] = to_rgba(PAD)
    ax.add_collection(
        PolyCollection(polygons, facecolors=shades, edgecolors="#ffffff", linewidths=0.7)
    )
    for b in range(x.shape[0]):
        corners = ((0, 0), (0, shown), (positions, shown), (positions, 0))
        outline = [_corner(b, t, c, positions, left) for t, c in corners]
        ax.add_patch(Polygon(outline, fill=False, edgecolor="#8a94a0", linewidth=1.0))
        if shown < x.shape[2]:
            right, middle = _corner(b, positions / 2, shown, positions, left)
            ax.text(right + 0.3, middle, "…", fontsize=20, va="center", color=INK)
    for c in np.flatnonzero(group[:, :, :shown].any(axis=(0, 1))):  # through several sheets
        sheets = np.flatnonzero(group[:, :, c].any(axis=1))
        for above, below in itertools.pairwise(sheets):
            ends = (_corner(above, positions, c + 0.5, positions, left),
                    _corner(below, 0, c + 0.5, positions, left))  # fmt: skip
            ax.plot(*zip(*ends, strict=True), color=color, linewidth=3.2, linestyle=":")
    if cell is not None:
        frame = _cells([cell], positions, left)[0]
        ax.add_patch(Polygon(frame, fill=False, edgecolor="#000000", linewidth=3.4, zorder=5))


def _caption(ax, left, title, group, padding, shown, color):
    positions = group.shape[1]
    middle = left + (shown - LEAN * positions) / 2
    weight = plt.rcParams["axes.titleweight"]
    above = left + shown / 2
    ax.text(above, 1.6, title, ha="center", fontsize=18, fontweight=weight, color=INK)
    features = f"{_many(group.shape[2], 'feature')} →"
    ax.text(above, 0.4, features, ha="center", fontsize=14, color=INK)
    bottom = _corner(group.shape[0] - 1, positions, 0, positions)[1]
    tokens, features = group.any(axis=2), group.any(axis=(0, 1))
    below = [(_many(int(group.sum()), "number"), 22, weight, color)]
    below += [(f"{_many(int(tokens.sum()), 'token')} × {_many(int(features.sum()), 'feature')}",
               15, "normal", INK)]  # fmt: skip
    if pads := int((tokens & padding).sum()):
        below += [(f"{_many(pads, 'token')} of padding", 15, weight, PAD)]
    for line, (text, size, bold, color) in enumerate(below):
        style = {"fontsize": size, "fontweight": bold, "color": color}
        ax.text(middle, bottom - 0.5 - 1.5 * line, text, ha="center", va="top", **style)


def _name_rows(ax, words, padding):
    for b, row in enumerate(words):
        for t, token in enumerate(labels(row)):
            x, y = _corner(b, t + 0.5, 0, len(row))
            color = PAD if padding[b, t] else INK
            ax.text(x - 0.35, y, token, ha="right", va="center", fontsize=15, color=color)
        middle = _corner(b, len(row) / 2, 0, len(row))[1]
        ax.text(0.3 - MARGIN, middle, f"sentence {b + 1}", rotation=90, ha="center", va="center",
                fontsize=14, color=INK)  # fmt: skip


def _many(count, thing):
    return f"{count:,} {thing}" + "s" * (count != 1)
