"""What a decoder must not do and what it needs: checks of wrong models, and costs of parts."""

import matplotlib.pyplot as plt
import numpy as np

from .style import CYCLE, FAINT, GOLD, INK, PAPER, as_array, new_axes

ALARM = "#fbe3cd"  # behind a number that gives a mistake away


def verdicts(results, limits, scores=None, *, title=None):
    """Draw a table of models against checks; a number above its check's limit is filled.

    results: {model: {check: number, 0 where all is well}}. limits: {check: the largest number that
    is only rounding}. scores: {model: {score: text or number}}, further columns, never filled.
    Raises KeyError if a model lacks a check or a score, ValueError if there are no models. Returns
    the Axes.
    """
    if not results:
        raise ValueError("there are no models to show")
    checks, names = list(limits), list(results)
    extra = list(next(iter(scores.values()))) if scores else []
    size = (3.0 + 1.5 * (len(checks) + len(extra)), 1.7 + 0.5 * len(names))
    ax = new_axes(size=size)
    gap = 0.35 if extra else 0
    for row, name in enumerate(names):
        for column, check in enumerate(checks):
            number = float(results[name][check])
            alarm = not number <= limits[check]
            if alarm:
                place = (column - 0.47, row - 0.43)
                ax.add_patch(plt.Rectangle(place, 0.94, 0.86, facecolor=ALARM, edgecolor=GOLD))
            weight, color = ("bold", INK) if alarm else ("normal", FAINT)
            text = _number(number)
            ax.text(column, row, text, ha="center", va="center", color=color, fontweight=weight)
        for column, score in enumerate(extra, len(checks)):
            value = scores[name][score]
            text = value if isinstance(value, str) else _number(float(value))
            ax.text(column + gap, row, text, ha="center", va="center", color=INK)
    if extra:
        ax.axvline(len(checks) - 0.5 + gap / 2, color=FAINT, linewidth=1)
    ax.set_xlim(-0.5, len(checks) + len(extra) - 0.5 + gap)
    ax.set_ylim(len(names) - 0.5, -0.5)
    places = [*range(len(checks)), *(gap + len(checks) + i for i in range(len(extra)))]
    ax.set_xticks(places, [*map(_wrapped, checks), *map(_wrapped, extra)])
    ax.set_yticks(range(len(names)), names)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    for row in range(1, len(names)):
        ax.axhline(row - 0.5, color="#e6e9ed", linewidth=1, zorder=0)
    if title:
        ax.set_title(title)
    return ax


def cost_dots(costs, ax=None, *, colors=None, xlabel="cost", title=None, decimals=None):
    """Draw a row per part and, in it, a line of dots per way of removing it; returns the Axes.

    costs: {part: {way: numbers, one per run}}; the band behind the dots spans them. colors:
    {way: place in the house cycle}. decimals: write each row's mean at the right with so many.
    Raises ValueError if a part has no runs or the parts have different ways.
    """
    parts = list(costs)
    ways = list(costs[parts[0]]) if parts else []
    if not ways or any(list(costs[part]) != ways for part in parts):
        raise ValueError(f"every part needs the same ways of removing it, got {costs!r}")
    colors = colors or {way: place for place, way in enumerate(ways)}
    ax = new_axes(ax, (9, 0.34 * len(parts) * len(ways) + 1.5))
    step = 0.8 / len(ways)
    for row, part in enumerate(parts):
        for index, way in enumerate(ways):
            runs = as_array(costs[part][way], f"{part!r}, {way!r}", ndim=1)
            if not runs.size:
                raise ValueError(f"{part!r}, {way!r} has no runs")
            at = row + (index - (len(ways) - 1) / 2) * step
            color = CYCLE[colors[way]]
            ax.hlines(at, runs.min(), runs.max(), color=color, alpha=0.35, linewidth=6)
            ax.plot(runs, np.full(runs.shape, at), "o", color=color, markersize=8,
                    markeredgecolor=PAPER, label=way if row == 0 else None)  # fmt: skip
            if decimals is not None:
                ax.annotate(
                    f"{runs.mean():.{decimals}f}", (1.01, at), xycoords=("axes fraction", "data"),
                    va="center", color=color, fontsize=12,
                )  # fmt: skip
        if row:
            ax.axhline(row - 0.5, color="#d5dae0", linewidth=1)
    ax.axvline(0, color=INK, linewidth=1)
    ax.set(ylim=(len(parts) - 0.5, -0.5), xlabel=xlabel)
    ax.set_yticks(range(len(parts)), parts)
    ax.grid(False, axis="y")
    if title:
        ax.set_title(title)
    ax.legend(loc="best")
    return ax


def _number(number):
    if number == 0:
        return "0"
    return f"{number:.2f}" if abs(number) >= 0.005 else f"{number:.0e}".replace("e-0", "e-")


def _wrapped(text, width=13):
    lines = [""]
    for word in str(text).split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
