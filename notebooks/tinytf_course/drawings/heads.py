"""The heads of a model as one table: what each looks at, and what it costs to lose it."""

import matplotlib.pyplot as plt
import numpy as np

from tinytf.viz.attention import heatmap
from tinytf.viz.style import CYCLE, INK, as_array


def head_table(rows, scores, costs, *, title=None, xlabel="cost"):
    """Draw a row per head: a heatmap of its scores, and beside it the dots of its costs.

    rows: the heads' names. scores: {role: a number in 0..1 per head, NaN where it can't be}.
    costs: {label: (heads, runs)}, a dot for each run, dark on the range of that row's dots.
    Returns the two Axes.
    """
    table = np.stack([as_array(values, name, ndim=1) for name, values in scores.items()], axis=1)
    if len(table) != len(rows):
        raise ValueError(f"{len(table)} scores for {len(rows)} rows")
    height = 0.3 * len(rows) + 1.6
    _, (left, right) = plt.subplots(
        1, 2, figsize=(12, height), layout="constrained", width_ratios=(0.42 * len(scores), 5)
    )
    known = ~np.isnan(table)
    heatmap(
        np.where(known, table, 0), rows, list(scores), left, mask=known, annotate=False,
        xlabel="", ylabel="", title=title, colorbar="score",
    )  # fmt: skip
    left.set_aspect("auto")
    left.tick_params(axis="x", rotation=45)
    at = np.arange(len(rows))
    for index, (name, values) in enumerate(costs.items()):
        values = as_array(values, f"costs {name!r}", ndim=2)
        if len(values) != len(rows):
            raise ValueError(f"{len(values)} costs of {name!r} for {len(rows)} rows")
        place = at + (index - (len(costs) - 1) / 2) * 0.3
        color = CYCLE[index]
        right.hlines(place, values.min(1), values.max(1), color=color, alpha=0.35, linewidth=4)
        right.plot(values, np.tile(place[:, None], values.shape[1]), "o", color=color, markersize=4)
        right.plot([], [], "o", color=color, label=name)
    right.axvline(0, color=INK, linewidth=1)
    right.set(ylim=(len(rows) - 0.5, -0.5), yticks=at, yticklabels=[], xlabel=xlabel)
    right.grid(True, axis="y", alpha=0.4)
    right.legend(loc="lower right")
    return left, right
