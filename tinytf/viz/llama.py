"""Which query heads share a key head, and what runs of several seeds came to."""

import numpy as np
from matplotlib.patches import Rectangle

from .style import CYCLE, FAINT, INK, as_array, label, new_axes


def head_groups(num_heads, num_kv_heads, ax=None, *, title=None):
    """Draw query heads in a row, the key and value heads below, and who reads which.

    A group has one colour; past the last colour they begin anew. Returns the Axes. Raises
    ValueError if the key heads can't serve equal groups.
    """
    if num_kv_heads < 1 or num_heads % num_kv_heads:
        raise ValueError(f"num_heads={num_heads} is not divisible by num_kv_heads={num_kv_heads}")
    ax = new_axes(ax, (9, 2.6))
    group = num_heads // num_kv_heads
    for key in range(num_kv_heads):
        color, middle = CYCLE[key % len(CYCLE)], key * group + (group - 1) / 2
        for query in range(key * group, (key + 1) * group):
            ax.plot([query + 0.5, middle + 0.5], [0.8, 0], color=color, linewidth=1, zorder=1)
            ax.add_patch(Rectangle((query + 0.12, 0.8), 0.76, 0.3, facecolor=color, zorder=2))
        for place, height in ((0.0, 0.3), (0.34, 0.3)):  # a key head and its value head
            y = -height - place
            ax.add_patch(Rectangle((middle + 0.12, y), 0.76, height, facecolor=color, zorder=2))
    for y, name in ((0.95, "queries"), (-0.15, "keys"), (-0.49, "values")):
        ax.text(-0.3, y, name, ha="right", va="center", fontsize=11)
    ax.set(xlim=(-0.1, num_heads), ylim=(-0.75, 1.2), xticks=[], yticks=[])
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if title:
        ax.set_title(title, loc="left")
    return ax


def seed_dots(values, ax=None, *, colors=None, band=None, xlabel=None, title=None):
    """Draw {name: numbers, one per seed} as dots on a line each, the mean as a stroke.

    colors: {name: place in CYCLE}; band: the name whose range of seeds is shaded for all lines.
    Returns the Axes. Raises ValueError if there is nothing to draw, or `band` is not among them.
    """
    if not values or not all(len(runs) for runs in values.values()):
        raise ValueError("seed_dots needs at least one name with at least one number")
    if band is not None and band not in values:
        raise ValueError(f"band={band!r} is not among {list(values)}")
    ax = new_axes(ax, (9, 0.42 * len(values) + 1.2))
    values = {name: as_array(runs, f"values of {name!r}", ndim=1) for name, runs in values.items()}
    if band is not None:
        low, high = values[band].min(), values[band].max()
        ax.axvspan(low, high, color=FAINT, alpha=0.22, linewidth=0, zorder=0)
    for row, (name, numbers) in enumerate(values.items()):
        color = CYCLE[(colors or {}).get(name, 0)]
        ax.plot(numbers, np.full(len(numbers), row), "o", color=color, alpha=0.55, markersize=7)
        ax.plot([numbers.mean()] * 2, [row - 0.3, row + 0.3], color=INK, linewidth=2)
    ax.set_yticks(range(len(values)), [label(name) for name in values])
    ax.set(ylim=(len(values) - 0.5, -0.5), xlabel=xlabel)
    ax.tick_params(axis="y", length=0)
    ax.grid(True, axis="x", alpha=0.3)
    if title:
        ax.set_title(title)
    return ax
