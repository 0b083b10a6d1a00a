"""What a model costs: bars of bytes by part, the machine's roof, and a ladder of speeds."""

import matplotlib.pyplot as plt
import numpy as np

from tinytf.viz.style import CYCLE, FAINT, INK, as_array, label, new_axes

UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))


def size_text(number):
    """Write a number of bytes in its unit, three digits: 24.9 GB."""
    for factor, unit in UNITS:
        if abs(number) >= factor * 0.9995:
            return f"{number / factor:.3g} {unit}"
    return f"{number:.3g} B"


def byte_bars(values, ax=None, *, colors=None, limit=None, title=None):
    """Draw {bar: {part: bytes}} as stacked horizontal bars with their sums; returns the Axes.

    colors: {part: its place in CYCLE}. limit: (name, bytes) draws a dashed line, a device's memory
    say. Raises ValueError for nothing to draw or a number below 0.
    """
    if not values or not all(values.values()):
        raise ValueError("byte_bars needs at least one bar with at least one part")
    parts = list(dict.fromkeys(part for bar in values.values() for part in bar))
    largest = max(sum(bar.values()) for bar in values.values())
    factor, unit = next((f, u) for f, u in UNITS if largest >= f or f == 1)
    ax = new_axes(ax, (10, 0.62 * len(values) + 1.5))
    for row, (name, bar) in enumerate(values.items()):
        if min(bar.values()) < 0:
            raise ValueError(f"the parts of {name!r} must not be negative, got {bar}")
        left = 0.0
        for index, part in enumerate(parts):
            color = CYCLE[(colors or {}).get(part, index) % len(CYCLE)]
            width = bar.get(part, 0) / factor
            ax.barh(row, width, 0.7, left, color=color, label=None if row else label(part))
            left += width
        ax.text(left, row, f"  {size_text(sum(bar.values()))}", va="center", fontsize=11)
    if limit is not None:
        name, most = limit
        ax.axvline(most / factor, color=INK, linestyle="--", linewidth=1.5)
        ax.text(most / factor, -0.62, f" {label(name)}", ha="left", va="bottom", fontsize=10.5)
    ax.set_yticks(range(len(values)), [label(name) for name in values])
    ax.set(ylim=(len(values) - 0.5, -0.6 - 0.5 * (limit is not None)), xlabel=unit)
    ax.margins(x=0.14)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if title:
        ax.set_title(title)
    return ax


def roofline(points, rate, bandwidth, ax=None, *, colors=None, title=None):
    """Draw what a machine allows, and where {name: (operations per byte, operations a second)} lie.

    rate: operations a second that products reach at best; bandwidth: bytes fetched a second.
    Below rate / bandwidth operations a byte the roof is the fetching, above it the arithmetic.
    colors: {name: its place in CYCLE}. Returns the Axes. Raises ValueError for no points, or a
    number that is not above 0. Source: Williams et al. 2009.
    """
    table = as_array([list(map(float, point)) for point in points.values()], "points")
    if not len(table) or table.min() <= 0 or rate <= 0 or bandwidth <= 0:
        raise ValueError("roofline needs points, and numbers above 0")
    ax = new_axes(ax, (9.5, 5))
    ridge = rate / bandwidth
    low, high = min(table[:, 0].min(), ridge) / 3, max(table[:, 0].max(), ridge) * 4
    x = np.geomspace(low, high, 200)
    ax.plot(x, np.minimum(rate, bandwidth * x) / 1e9, color=INK, linewidth=2.2, zorder=1)
    ax.axvline(ridge, color=FAINT, linestyle=":", linewidth=1.5)
    for place, side, words in ((1.15, "left", "arithmetic"), (1 / 1.15, "right", "fetching")):
        ax.text(ridge * place, rate / 1e9 * 2, f"{words} is the limit", fontsize=11, ha=side)
    fast = sorted((n for n in points if points[n][0] > ridge), key=lambda n: -points[n][1])
    for index, (name, (intensity, speed)) in enumerate(points.items()):
        color = CYCLE[(colors or {}).get(name, index) % len(CYCLE)]
        ax.plot(intensity, speed / 1e9, "o", color=color, markersize=11, zorder=3)
        spot = {"xytext": (11, 0), "ha": "left", "va": "center"}
        if intensity > ridge:  # the roof is above, and names of neighbours must not meet
            spot = {"xytext": (0, -13), "ha": "center", "va": "top"}
            if fast.index(name) % 2:
                spot = {"xytext": (11, 0), "ha": "left", "va": "center"}
        ax.annotate(label(name), (intensity, speed / 1e9), textcoords="offset points", **spot,
                    color=color, fontsize=11.5, zorder=4,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})  # fmt: skip
    floor = min(table[:, 1].min(), bandwidth * low) / 1e9
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(floor / 3, rate / 1e9 * 4))
    ax.set(xlabel="operations per byte that products read and write", ylabel="GFLOP/s")
    if title:
        ax.set_title(title)
    return ax


def rung_table(speeds, shares, *, colors=None, xlabel="times the first", title=None):
    """Draw {rung: (low, middle, high)} as bars, and beside each the shares of its time by kind.

    shares: {rung: {kind: share}}; colors: {kind: its place in CYCLE}. A bar longer than the first's
    is faster. Returns the two Axes. Raises ValueError if the two do not name the same rungs.
    """
    if not speeds or list(speeds) != list(shares):
        raise ValueError(f"speeds of {list(speeds)}, but shares of {list(shares)}")
    kinds = list(dict.fromkeys(kind for each in shares.values() for kind in each))
    fig, axes = plt.subplots(
        1, 2, figsize=(13, 0.5 * len(speeds) + 1.6), sharey=True, layout="constrained"
    )
    for row, (name, (low, middle, high)) in enumerate(speeds.items()):
        axes[0].barh(row, middle, 0.66, color="#a3abb5")
        axes[0].plot([low, high], [row, row], color=INK, linewidth=2)
        axes[0].text(max(high, middle), row, f"  {middle:.2f}", va="center", fontsize=11)
        left = 0.0
        for index, kind in enumerate(kinds):
            share = shares[name].get(kind, 0)
            color = CYCLE[(colors or {}).get(kind, index) % len(CYCLE)]
            axes[1].barh(row, share, 0.66, left, color=color, label=None if row else label(kind))
            if share >= 0.07:
                axes[1].text(left + share / 2, row, f"{share:.0%}", ha="center", va="center",
                             color="white", fontsize=10.5)  # fmt: skip
            left += share
    axes[0].axvline(1, color=FAINT, linestyle="--", linewidth=1.5)
    axes[0].set_yticks(range(len(speeds)), [label(name) for name in speeds])
    axes[0].set(ylim=(len(speeds) - 0.5, -0.5), xlabel=xlabel)
    axes[0].margins(x=0.12)
    axes[1].set(xlim=(0, 1), xlabel="share of a step's time")
    axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    for ax in axes:
        ax.tick_params(axis="y", length=0)
        ax.grid(False, axis="y")
    if title:
        fig.suptitle(title)
    return axes
