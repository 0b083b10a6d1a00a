"""Where the parameters are, and what one hidden unit of a feed-forward network answers to."""

from collections import Counter
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np

from .axes import set_axes
from .style import CYCLE, GOLD, INK, label, new_axes


def stacked_bars(values, ax=None, *, ylabel=None, title=None, colors=None, total="{:,.0f}"):
    """Draw {bar: {part: number}} as bars of height 1, each part with its share; returns the Axes.

    Above each bar stands its sum, formatted by `total`. colors: {part: its place in CYCLE}. Raises
    ValueError for an empty bar or a number below 0.
    """
    if not values:
        raise ValueError("stacked_bars needs at least one {bar: {part: number}}, got none")
    parts = list(dict.fromkeys(part for bar in values.values() for part in bar))
    ax = new_axes(ax, (min(max(7.5, 1.75 * len(values)), 13), 4.4))
    drawn = dict.fromkeys(parts)
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
                ax.text(at, bottom + share / 2, f"{share:.0%}", ha="center", va="center",
                        color="white", fontweight="bold")  # fmt: skip
            bottom += share
        ax.text(at, 1.015, total.format(whole), ha="center", va="bottom", fontsize=11)
    ax.set_xticks(range(len(values)), [label(name) for name in values])
    ax.tick_params(axis="x", length=0)
    ax.grid(False, axis="x")
    ax.set(ylim=(0, 1.08), ylabel=ylabel)
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


def unit_card(contexts, activity, scores, *, title=None):
    """Draw one hidden unit: the contexts that its key answers to, and the words its value writes.

    contexts: lines of text, one per activity, the strongest first; a word between asterisks, *so*,
    is the position itself. scores: {word: how much the value raises it}, drawn in their order.
    Returns the two Axes. Raises ValueError if contexts and activities differ in number.
    """
    activity = [float(a) for a in activity]
    if len(contexts) != len(activity):
        raise ValueError(f"{len(contexts)} contexts for {len(activity)} activities")
    if not isinstance(scores, Mapping) or not scores:
        raise ValueError(f"scores needs at least one {{word: number}}, got {scores!r}")
    rows = max(len(contexts), len(scores))
    _, (left, right) = plt.subplots(
        1, 2, figsize=(12, 0.34 * rows + 1.3), layout="constrained", width_ratios=(3, 1)
    )
    at = np.arange(len(contexts))
    left.barh(at, activity, color=CYCLE[0], alpha=0.22, height=0.84)
    edge = max(activity, default=1.0)
    for y, line in zip(at, contexts, strict=True):
        left.text(0.012 * edge, y, label(line), va="center", fontsize=10.5)
    left.set(ylim=(len(contexts) - 0.4, -0.6), yticks=[], xlabel="activity")
    left.set_title("its key answers to")
    numbers = [float(score) for score in scores.values()]
    colors = [CYCLE[0] if number >= 0 else GOLD for number in numbers]
    right.barh(range(len(numbers)), numbers, color=colors, height=0.7)
    right.set_yticks(range(len(numbers)), [label(word) for word in scores])
    right.set(ylim=(len(numbers) - 0.4, -0.6), xlabel="v · direction of the word")
    right.axvline(0, color=INK, linewidth=1)
    right.set_title("its value writes")
    for ax in (left, right):
        ax.grid(False, axis="y")
    if title:
        left.figure.suptitle(title, fontsize=13, fontweight="bold")
    return left, right
