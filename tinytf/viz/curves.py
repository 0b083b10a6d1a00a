"""Learning curves from the history that training returns."""

from collections.abc import Mapping

import numpy as np

from .statistics import lines


def learning_curve(history, y="loss", ax=None, *, x="step", smooth=0, **axes):
    """Draw `y` over `x` for one history, or for each of {name: history}; returns the Axes.

    A history is a list of dicts such as {"step": 100, "loss": 2.3, "exact_match": 0.1}; records
    without `y` are passed over. smooth: average each point with this many on either side, the raw
    line kept faint behind. axes: title, ylabel, logy and the like, as for `lines`.
    """
    named = dict(history) if isinstance(history, Mapping) else {y.replace("_", " "): history}
    if smooth < 0:
        raise ValueError(f"smooth={smooth} must not be negative")
    xs, ys = {}, {}
    for name, records in named.items():
        kept = [record for record in records if record.get(y) is not None and x in record]
        if not kept:
            seen = sorted({key for record in records for key in record})
            raise ValueError(f"no record of {name!r} has both {x!r} and {y!r}; it has {seen}")
        xs[name] = [float(record[x]) for record in kept]
        ys[name] = np.array([float(record[y]) for record in kept])
    shown = {name: _running_mean(values, smooth) for name, values in ys.items()}
    names = {"xlabel": x.replace("_", " "), "ylabel": y.replace("_", " ")}
    ax = lines(xs, shown, ax, **names | axes)
    if smooth:
        drawn = list(ax.lines)
        for line, (name, values) in zip(drawn, ys.items(), strict=False):
            ax.plot(xs[name], values, color=line.get_color(), alpha=0.25, linewidth=1)
    return ax


def _running_mean(values, window):
    if not window:
        return values
    return np.array(
        [values[max(0, i - window) : i + window + 1].mean() for i in range(len(values))]
    )
