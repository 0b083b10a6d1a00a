"""What every figure may be told about its axes, and how numbers and words are put on them."""

import numpy as np
from matplotlib.ticker import MaxNLocator, ScalarFormatter


def set_axes(ax, *, title=None, logx=False, logy=False, **settings):
    """Set the title, logarithmic axes and whatever else `ax.set` takes: labels, limits, ticks.

    logx, logy: True, or the base (2 for lengths that double). What is None is left as it is.
    """
    ax.set(**{name: value for name, value in settings.items() if value is not None})
    if title:
        ax.set_title(title)
    for side, base in (("x", logx), ("y", logy)):
        if base:
            base = 10 if base is True else base
            getattr(ax, f"set_{side}scale")("log", base=base)
            if base == 2:
                getattr(ax, f"{side}axis").set_major_formatter(ScalarFormatter())


def count_in_whole_numbers(ax):
    """Put no ticks between the whole numbers of x, if all lines stand on whole numbers."""
    if ax.lines and all(_whole(line.get_xdata()) for line in ax.lines):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def name_bars(ax, names):
    """Write the names under bars at 0, 1, 2 ..., turned where they are long."""
    long = sum(map(len, names)) > 62
    turned = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if long else {}
    ax.set_xticks(range(len(names)), names, **turned)
    ax.grid(False, axis="x")


def _whole(values):
    values = np.asarray(values, dtype=float)
    return np.allclose(values, np.round(values))
