"""Drawings and figures of checks: a program run in two ways, where checks stand, what they find."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch

from tinytf.viz.axes import set_axes
from tinytf.viz.spoken import alt
from tinytf.viz.style import COLOURS, CYCLE, GOLD, INK, MASKED, PAPER, new_axes

from .diagram import Diagram

CELLS = {"alarm": "#f2a65a", "silent": PAPER, "not for it": MASKED}


def draw_two_ways():
    """Draw a check: one input, run as it is and changed, and the outputs compared."""
    d = Diagram(
        17.6, 4.6,
        "A batch goes into the program twice: once as it is, once with a change that must not "
        "matter. The two outputs are compared, and their difference is 0, or rounding, if "
        "all is well. What is inside the program is not looked at.",
    )  # fmt: skip
    batch = d.box(1.4, 2.2, "a batch", "(B, T)", role="input")
    change = d.box(5.0, 3.5, "a change that\nmust not matter", role="loss", size=(2.9, 0.95))
    one = d.box(9.3, 3.5, "the program", role="plain", size=(2.5, 0.95))
    two = d.box(9.3, 0.9, "the program", role="plain", size=(2.5, 0.95))
    gap = d.box(13.3, 2.2, "how far\napart?", role="weights", size=(1.9, 0.95))
    out = d.box(16.3, 2.2, "0, or not", "one number", role="output")
    d.arrow(batch, change)
    d.arrow(change, one)
    d.arrow((batch.x, batch.bottom[1]), two, bend=0.12)
    d.arrow(one, gap, "outputs")
    d.arrow(two, gap, "outputs")
    d.arrow(gap, out)
    return d.ax


def draw_where_checks_stand(checks):
    """Draw a program's stations from data to writing, and under each the checks that guard it.

    checks: {station: titles of checks}, the stations in their order from left to right.
    """
    high = max(map(len, checks.values()), default=0)
    listed = "; ".join(f"{place}: {', '.join(titles)}" for place, titles in checks.items())
    d = Diagram(
        3.9 * len(checks) + 0.4, 0.62 * high + 2.0,
        f"The stations of a program in a row, and the checks under each. {listed}.",
    )  # fmt: skip
    before, top = None, 0.62 * high + 1.3
    for i, (place, titles) in enumerate(checks.items()):
        station = d.box(2.1 + 3.9 * i, top, place, role="decoder", size=(2.5, 0.8))
        if before is not None:
            d.arrow(before, station)
        for j, title in enumerate(titles):
            d.box(station.x, top - 1.05 - 0.62 * j, title, role="weights", size=(3.5, 0.52))
        before = station
    return d.ax


def alarm_map(found, limits, ax=None, *, order=None):
    """Draw programs against checks: an orange cell is an alarm, a white one is silent.

    found: {program: {check: number, or None where it does not apply}}; limits: {check: the largest
    number that is no alarm}; grey where one does not apply. order: {program: its group}, a line
    between groups. Raises ValueError if there are no programs. Returns the Axes.
    """
    if not found:
        raise ValueError("there are no programs to show")
    names, checks, heard = list(found), list(limits), {}
    ax = new_axes(ax, (max(6, 2.6 + 0.3 * len(checks)), 3.1 + 0.27 * len(names)))
    for row, name in enumerate(names):
        for column, check in enumerate(checks):
            number = found[name][check]
            kind = (
                "not for it" if number is None else "silent" if number <= limits[check] else "alarm"
            )
            ax.add_patch(plt.Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=CELLS[kind],
                                       edgecolor="#b6bdc6", linewidth=0.6))  # fmt: skip
            if kind == "alarm":
                heard.setdefault(name.replace("_", " "), []).append(check)
        if order and row and order[name] != order[names[row - 1]]:
            ax.axhline(row - 0.5, color=INK, linewidth=2)
    ax.set(xlim=(-0.5, len(checks) - 0.5), ylim=(len(names) - 0.5, -0.5))
    ax.set_xticks(range(len(checks)), checks, rotation=90)
    ax.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    told = {"alarm": "alarm", "silent": "silent", "not for it": "does not apply"}
    keys = [Patch(facecolor=CELLS[kind], edgecolor="#b6bdc6", label=told[kind]) for kind in told]
    ax.legend(handles=keys, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncol=3, frameon=False)
    listed = "; ".join(f"{name}: {', '.join(which)}" for name, which in heard.items())
    return alt(ax, f"{len(names)} programs against {len(checks)} checks. Alarms: {listed}.")


def loudest(found, limits, complaint, *, most=8):
    """Draw what a program's checks give, the loudest `most`, as multiples of their limits.

    found: {check: number, or None where it does not apply}; limits as for `alarm_map`; complaint:
    what one sees of the program, the title. An alarm is orange. Returns the Axes.
    """
    shares = {check: min(max(n / limits[check], 1e-6), 1e6)
              for check, n in found.items() if n is not None}  # fmt: skip
    order = sorted(shares, key=shares.get, reverse=True)[:most]
    ax = new_axes(size=(9, 1.5 + 0.4 * len(order)))
    for row, check in enumerate(order):
        colour = GOLD if shares[check] > 1 else COLOURS["plain"]
        ax.plot([1e-6, shares[check]], [row, row], color=colour, linewidth=3, alpha=0.4)
        ax.plot(shares[check], row, "o", color=colour, markersize=9)
    ax.axvline(1, color=COLOURS["loss"], linewidth=1.5)
    ax.text(1.4, len(order) - 0.6, "the limit", color=COLOURS["loss"])
    ax.set(xscale="log", xlim=(7e-7, 2.5e6), ylim=(len(order) - 0.5, -0.5), title=complaint)
    ax.set_yticks(range(len(order)), order)
    ax.grid(False, axis="y")
    set_axes(ax, xlabel="result of the check, as a multiple of its limit")
    alarms = [check for check in order if shares[check] > 1]
    return alt(ax, f"{complaint} Of {len(shares)} checks these raise an alarm: "
               f"{', '.join(alarms) or 'none'}.")  # fmt: skip


def margins(healthy, ill, limits, ax=None):
    """Draw for each check what healthy programs and patients give, on one logarithmic scale.

    healthy, ill: {check: numbers}; limits: {check: the alarm's limit}. Each number is divided by
    its check's limit, so the line at 1 is the alarm for all; 0 stands at the left edge, and an
    infinite one at the right. Returns the Axes.
    """
    checks = list(limits)
    ax = new_axes(ax, (9.5, 1.4 + 0.36 * len(checks)))
    for kind, numbers, colour, shift, marker in (
        ("healthy", healthy, CYCLE[0], -0.13, "o"), ("patients", ill, GOLD, 0.13, "D"),
    ):  # fmt: skip
        for row, check in enumerate(checks):
            shares = np.array([float(n) for n in numbers.get(check, ())]) / limits[check]
            shares = np.clip(shares, 1e-6, 1e6)
            ax.plot(shares, np.full(len(shares), row + shift), marker, color=colour, alpha=0.55,
                    markersize=6, markeredgecolor=PAPER, linestyle="none",
                    label=kind if row == 0 else None)  # fmt: skip
    ax.axvline(1, color=COLOURS["loss"], linewidth=1.5)
    ax.set_xscale("log")
    ax.set(xlim=(4e-7, 2.5e6), ylim=(len(checks) - 0.5, -0.5))
    ax.set_yticks(range(len(checks)), checks)
    ax.grid(False, axis="y")
    set_axes(ax, xlabel="result of the check, as a multiple of its limit")
    ax.legend(loc="lower right")
    return ax
