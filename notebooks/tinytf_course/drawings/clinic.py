"""What silent bugs cost: one row a bug, a point a seed, sorted from deadly to none."""

from collections.abc import Mapping, Sequence
from statistics import mean

import matplotlib.pyplot as plt

from tinytf.viz.spoken import alt
from tinytf.viz.style import COLOURS, INK

__all__ = ["draw_severity"]

# One colour and one marker for what a bug does.
LOOKS = {
    "deadly": (COLOURS["loss"], "o"),
    "mild": (COLOURS["key"], "s"),
    "flatters": (COLOURS["output"], "D"),
    "helps": (COLOURS["value"], "^"),
    "harmless": (COLOURS["plain"], "v"),
}


def draw_severity(
    gaps: Mapping[str, Sequence[float]], verdicts: Mapping[str, str], titles: Mapping[str, str]
) -> plt.Axes:
    """Draw how much worse each bug makes its measure; a point for each seed, a bar for the mean.

    gaps: {bug: a number a seed}, above 0 is worse; verdicts: {bug: one of LOOKS}; titles: what to
    write at its row. ValueError without bugs, or for a verdict that has no colour.
    """
    if not gaps:
        raise ValueError("no bug to draw: gaps is empty")
    strange = {verdicts[name] for name in gaps} - set(LOOKS)
    if strange:
        raise ValueError(f"no colour for {sorted(strange)}; there are: {', '.join(LOOKS)}")
    order = sorted(gaps, key=lambda name: mean(gaps[name]))
    _, ax = plt.subplots(figsize=(8.5, 0.28 * len(order) + 1.4))
    for y, name in enumerate(order):
        colour, marker = LOOKS[verdicts[name]]
        ax.plot([0, mean(gaps[name])], [y, y], color=colour, lw=3, alpha=0.35)
        ax.plot(gaps[name], [y] * len(gaps[name]), marker, color=colour, ms=5, ls="none")
    for verdict, (colour, marker) in LOOKS.items():
        if verdict in verdicts.values():
            ax.plot([], [], marker, color=colour, label=verdict)
    ax.axvline(0, color=INK, lw=0.8)
    ax.set_xscale("symlog", linthresh=0.1)
    ax.set_xlim(right=2 * max(0.1, *map(max, gaps.values())))  # no point on the edge
    ax.set_yticks(range(len(order)), [titles.get(name, name) for name in order], fontsize=9)
    ax.set_xlabel("damage compared with the healthy twin, each on its own measure")
    ax.legend(loc="lower right", frameon=False)
    worst, best = order[-1], order[0]
    counts = {v: sum(verdicts[name] == v for name in order) for v in LOOKS}
    said = ", ".join(f"{n} {v}" for v, n in counts.items() if n)
    alt(
        ax.figure,
        f"What {len(order)} silent bugs cost, a point for each seed: {said}. The worst is "
        f"{titles.get(worst, worst)} ({mean(gaps[worst]):.2f}), the other end is "
        f"{titles.get(best, best)} ({mean(gaps[best]):.2f}).",
    )
    return ax
