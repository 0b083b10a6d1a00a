"""Bars of parts on each other, and counts as dots."""

from collections import Counter

import matplotlib.pyplot as plt
from matplotlib.ticker import PercentFormatter

from tinytf.viz.axes import set_axes
from tinytf.viz.style import CYCLE, INK, label, new_axes

__all__ = ["dot_histogram", "stacked_bars"]


def stacked_bars(values, ax=None, *, ylabel=None, title=None, colors=None, total="{:,.0f}"):
    """Draw {bar: {part: number}} as bars of height 1, each part with its percentage.

    Above each bar stands its sum, formatted by `total`. colors: {part: its place in CYCLE}. Returns
    the Axes. Raises ValueError for an empty bar or a number below 0.
    """
    if not values:
        raise ValueError("stacked_bars needs at least one {bar: {part: number}}, got none")
    parts = list(dict.fromkeys(part for bar in values.values() for part in bar))
    ax = new_axes(ax, (min(max(7.5, 1.75 * len(values)), 13), 4.4))
    drawn = dict.fromkeys(parts)
    inches = 0.72 * ax.bbox.width / ax.figure.dpi / len(values)  # that a bar is wide
    size = min(plt.rcParams["font.size"], 0.9 * 72 * inches / 1.5)  # "97" is 1.5 times as wide
    for at, (name, bar) in enumerate(values.items()):
        whole = sum(bar.values())
        if whole <= 0 or min(bar.values()) < 0:
            raise ValueError(f"the parts of {name!r} must not be negative nor all 0, got {bar}")
        bottom = 0.0
        for index, part in enumerate(parts):
            share = bar.get(part, 0) / whole
            color = CYCLE[(colors or {}).get(part, index) % len(CYCLE)]
            patch = ax.bar(at, share, 0.72, bottom, color=color)
            drawn[part] = drawn[part] or patch
            if share >= 0.06:
                ax.text(at, bottom + share / 2, f"{100 * share:.0f}", ha="center", va="center",
                        color="white", fontweight="bold", fontsize=size)  # fmt: skip
            bottom += share
        above = total.format(whole)
        fits = 100 * inches / (0.66 * len(above) or 1)  # a digit is 0.66 of its size wide
        ax.text(at, 1.015, above, ha="center", va="bottom", fontsize=min(11, fits))
    ax.set_xticks(range(len(values)), [label(name) for name in values])
    ax.tick_params(axis="x", length=0)
    ax.grid(False, axis="x")
    ax.set(ylim=(0, 1.08), ylabel=ylabel)
    ax.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    if title:
        ax.set_title(title)
    handles = [drawn[part] for part in reversed(parts)]
    names = [label(part) for part in reversed(parts)]
    ax.legend(handles, names, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def dot_histogram(values, places, ax=None, *, kinds=None, marked=None, rest="never", **axes):
    """Draw one dot for each {name: number}, stacked over the number's place; returns the Axes.

    places: the numbers there can be, in order; a value of None stands beside them, under `rest`.
    kinds: {name: kind} colours the dots. marked: a name whose dot is outlined and written out.
    axes: as for `set_axes`.
    Raises ValueError for a number that is not among the places, or if there is none.
    """
    if not values:
        raise ValueError("dot_histogram needs at least one {name: number}, got none")
    order = [*places, None]
    if strange := {value for value in values.values() if value not in order}:
        raise ValueError(f"{sorted(strange)} are not among the places {list(places)}")
    ax = new_axes(ax, (9, 3.6))
    kinds = kinds or dict.fromkeys(values, "")
    names = list(dict.fromkeys(kinds[name] for name in values))
    height = Counter()
    for name in sorted(values, key=lambda n: (names.index(kinds[n]), n != marked)):
        x, y = order.index(values[name]), height[values[name]]
        height[values[name]] += 1
        color = CYCLE[names.index(kinds[name]) % len(CYCLE)]
        ax.plot(x, y, "o", color=color, markersize=5, zorder=2)
        if name == marked:
            ax.plot(x, y, "o", color="none", markeredgecolor=INK, markersize=10, zorder=3,
                    markeredgewidth=2)  # fmt: skip
            ax.annotate(label(name), (x, y), (36, 34), textcoords="offset points",
                        arrowprops={"arrowstyle": "-", "color": INK})  # fmt: skip
    for index, kind in enumerate(names):
        if kind:
            ax.plot([], [], "o", color=CYCLE[index % len(CYCLE)], label=kind)
    shown = order if None in values.values() else places
    ax.set_xticks(range(len(shown)), [rest if place is None else place for place in shown])
    ax.set(xlim=(-0.7, len(shown) - 0.3), ylim=(-2, max(height.values()) * 1.15 + 1))
    set_axes(ax, yticks=[], **axes)
    ax.grid(False)
    ax.spines["left"].set_visible(False)
    if any(names):
        ax.legend(loc="upper left")
    return ax
