"""Positional encodings: as a table of values, as waves, as turned pairs, and compared."""

import math

import numpy as np
from matplotlib.patches import Circle

from .statistics import lines
from .style import CYCLE, SIGNED, as_array, label, new_axes

# A scheme of positions keeps its colour from figure to figure.
SCHEMES = ("none", "sinusoidal", "learned", "RoPE", "ALiBi")  # by place in CYCLE


def positional_heatmap(table, ax=None, *, title=None):
    """Draw a (positions, d_model) table, signed and centred on 0; returns the Axes."""
    table = as_array(table, "table", ndim=2)
    end = max(abs(table.min()), abs(table.max())) or 1.0
    ax = _signed_map(table, new_axes(ax, (9, 4.4)), end, "value")
    ax.set(xlabel="dimension", ylabel="position")
    if title:
        ax.set_title(title)
    return ax


def position_similarity(table, ax=None, *, title=None):
    """Draw the cosine of every two rows of a (positions, d_model) table; returns the Axes.

    A row of zeros has the cosine 0 to any.
    """
    table = as_array(table, "table", ndim=2)
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    unit = table / np.where(lengths == 0, 1, lengths)
    ax = _signed_map(unit @ unit.T, new_axes(ax, (5.4, 4.4)), 1.0, "cosine")
    ax.set(xlabel="position", ylabel="position", aspect="equal")
    if title:
        ax.set_title(title)
    return ax


def _signed_map(values, ax, end, name):
    """Draw a matrix from -end to end with seaborn, every few rows and columns numbered."""
    import seaborn as sns  # takes a second, so that only these figures wait for it

    round_steps = [digit * 10**power for power in range(9) for digit in (1, 2, 5)]
    ticks = [next(step for step in round_steps if 8 * step >= count) for count in values.shape]
    sns.heatmap(values, cmap=SIGNED, vmin=-end, vmax=end, xticklabels=ticks[1],
                yticklabels=ticks[0], cbar_kws={"label": name}, rasterized=True, ax=ax)  # fmt: skip
    ax.tick_params(length=0, labelrotation=0)
    return ax


def positional_curves(table, dims, ax=None, *, title=None):
    """Draw chosen dimensions of a (positions, d_model) table as curves over position."""
    table = as_array(table, "table", ndim=2)
    dims = [int(dim) for dim in dims]
    for dim in dims:
        if not 0 <= dim < table.shape[1]:
            raise ValueError(f"dimension {dim} is outside a table of width {table.shape[1]}")
    series = {f"dimension {dim}": table[:, dim] for dim in dims}
    ax = new_axes(ax, (9, 4.0))
    lines(
        None,
        series,
        ax,
        xlabel="position",
        ylabel="value",
        title=title,
        markers=False,
        legend=False,
    )
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def rotations(vectors, ax=None, *, title=None):
    """Draw {name: (x, y)} as arrows inside the circle of the longest; returns the Axes.

    Arrows of one name come as a (T, 2) table, numbered 0 to T - 1.
    """
    rows = {name: as_array(values, f"vector {name!r}") for name, values in vectors.items()}
    for name, values in rows.items():
        if values.ndim not in (1, 2) or values.shape[-1] != 2:
            raise ValueError(f"vector {name!r} must be (2,) or (T, 2), got shape {values.shape}")
    reach = max((values**2).sum(-1).max() ** 0.5 for values in rows.values()) or 1.0
    ax = new_axes(ax, (4.6, 4.6))
    ax.add_patch(Circle((0, 0), reach, fill=False, color="#b4bac2", linewidth=1.2))
    for index, (name, values) in enumerate(rows.items()):
        table = values.reshape(-1, 2)
        for number, (x, y) in enumerate(table):
            shown = label(name) if values.ndim == 1 else number
            arrow = {"color": CYCLE[index % len(CYCLE)], "arrowstyle": "-|>", "linewidth": 2.2}
            ax.annotate("", (x, y), (0, 0), arrowprops=arrow | {"shrinkA": 0, "shrinkB": 0})
            outside = 1 + 0.16 * reach / (math.hypot(x, y) or 1.0)
            ax.text(outside * x, outside * y, shown, ha="center", va="center", fontsize=11)
    ax.set(xlim=(-1.3 * reach, 1.3 * reach), ylim=(-1.3 * reach, 1.3 * reach), aspect="equal")
    ax.set(xlabel="first of the pair", ylabel="second of the pair")
    if title:
        ax.set_title(title)
    return ax


def scheme_curves(x, curves, ax=None, *, doubling=False, **axes):
    """Draw {scheme: (seeds, N)} over N places x: the mean, and a band from least to most.

    A scheme is one of none, sinusoidal, learned, RoPE, ALiBi, also with a remark after a comma;
    it has one colour in every figure. A single run may come as (N,). doubling: x in powers of two.
    axes: as for `lines`. Returns the Axes.
    """
    x = as_array(x, "x", ndim=1)
    means, bands, colors = {}, {}, {}
    for name, values in curves.items():
        scheme = name.split(",")[0]
        if scheme not in SCHEMES:
            raise ValueError(f"no scheme {scheme!r}; there are {', '.join(SCHEMES)}")
        runs = np.atleast_2d(as_array(values, f"curve {name!r}"))
        if runs.ndim != 2 or runs.shape[1] != len(x):
            raise ValueError(f"curve {name!r} of shape {runs.shape} does not fit {len(x)} places")
        means[name], colors[name] = runs.mean(axis=0), SCHEMES.index(scheme)
        if len(runs) > 1:
            bands[name] = runs.min(axis=0), runs.max(axis=0)
    axes = {"xlabel": "position", "logx": 2 if doubling else False} | axes
    return lines(x, means, ax, band=bands, colors=colors, **axes)
