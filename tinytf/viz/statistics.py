"""Curves, bars and distributions: what a number does as something else changes."""

from collections.abc import Mapping
from itertools import cycle

import numpy as np

from .axes import count_in_whole_numbers, name_bars, set_axes
from .style import CYCLE, INK, as_array, dash_beside, label, new_axes


def lines(x, series, ax=None, *, band=None, markers=None, colors=None, **axes):
    """Draw {label: y} over a shared x, or over {label: x}; returns the Axes.

    x: None counts from 0. A y that is one number draws a dashed level line.
    band: {label: spread} or {label: (low, high)} shades a spread around that line.
    markers: mark the measured points (by default where there are at most 20).
    colors: {label: its place in CYCLE, or a colour of `COLOURS`}, so that a thing keeps its colour
    from figure to figure; lines without one take their own place's.
    axes: title, xlabel, logx and the like (`set_axes`); legend=False leaves the legend out;
    dashed=[labels] gives lines dashes, for a variant that keeps its thing's colour; lines whose
    colours some eye takes for one get different dashes of themselves.
    """
    if not isinstance(series, Mapping) or not series:
        raise ValueError(f"series needs at least one {{label: values}}, got {series!r}")
    legend, dashed = axes.pop("legend", True), axes.pop("dashed", ())
    levels = {name: y for name, y in series.items() if _is_number(y)}
    entries = len(series)
    series = {name: y for name, y in series.items() if name not in levels}
    if unknown := set(band or {}) - set(series):
        raise ValueError(f"band for {sorted(unknown)}, but the lines are {list(series)}")
    ax, drawn = new_axes(ax), []
    for index, (name, values) in enumerate(series.items()):
        y = as_array(values, f"series {name!r}", ndim=1)
        if isinstance(x, Mapping) and name not in x:
            raise ValueError(f"no x for series {name!r}; x has {list(x)}")
        along = x[name] if isinstance(x, Mapping) else np.arange(len(y)) if x is None else x
        along = as_array(along, "x", ndim=1)
        if len(along) != len(y):
            raise ValueError(f"series {name!r} has {len(y)} values for {len(along)} x values")
        color = (colors or {}).get(name, index)
        color = color if isinstance(color, str) else CYCLE[color % len(CYCLE)]
        dots = len(y) <= 20 if markers is None else markers
        # Past the last colour the dash changes, so two lines never look alike.
        dash = "--" if name in dashed else ("-", "--", ":")[index // len(CYCLE) % 3]
        dash = dash_beside(color, dash, drawn)
        drawn.append((color, dash))
        marker = "o" if dots else None
        ax.plot(along, y, label=label(name), color=color, marker=marker, linestyle=dash)
        if band and name in band:
            low, high = _spread(band[name], y, name)
            ax.fill_between(along, low, high, color=color, alpha=0.18, linewidth=0)
    for (name, level), dash in zip(levels.items(), cycle(("--", ":", "-."))):  # none look alike
        dash = dash_beside("#6b7280", dash, drawn)
        drawn.append(("#6b7280", dash))
        ax.axhline(float(level), color="#6b7280", linestyle=dash, linewidth=1.5, label=label(name))
    set_axes(ax, **axes)
    if not axes.get("logx"):
        count_in_whole_numbers(ax)
    if legend and entries > 6:  # a long list would cover the lines
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    elif legend and entries > 1:
        ax.legend()
    return ax


def bars(values, ax=None, *, errors=None, decimals=2, **axes):
    """Draw {label: number}, or groups {label: {series: number}}, each bar with its number.

    errors: {label: half-width} for plain bars. axes: title, ylabel and the like (`set_axes`).
    """
    if not isinstance(values, Mapping) or not values:
        raise ValueError(f"values needs at least one {{label: number}}, got {values!r}")
    grouped = [isinstance(value, Mapping) for value in values.values()]
    if any(grouped) and not all(grouped):
        raise ValueError(f"either every bar is a group or none is, got {dict(values)!r}")
    if unknown := set(errors or {}) - set(values):
        raise ValueError(f"errors for {sorted(unknown)}, but the bars are {list(values)}")
    groups = values if grouped[0] else {name: {"": value} for name, value in values.items()}
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    width = 0.8 / len(names)
    ax = new_axes(ax, (min(max(7.5, 1.0 * len(groups) * max(1, len(names) / 2)), 13), 4.2))
    for index, name in enumerate(names):
        at = [i for i, group in enumerate(groups.values()) if name in group]
        height = [float(as_array(group[name], name)) for group in groups.values() if name in group]
        place = np.array(at) + (index - (len(names) - 1) / 2) * width
        spread = [float((errors or {}).get(list(groups)[i], 0)) for i in at] if errors else None
        drawn = ax.bar(
            place,
            height,
            width * 0.92,
            label=label(name),
            yerr=spread,
            color=CYCLE[index % 8],
            error_kw={"ecolor": INK, "elinewidth": 1.6, "capsize": 4},
        )
        if decimals is not None:
            ax.bar_label(drawn, fmt=f"%.{decimals}f", padding=3, fontsize=11)
    name_bars(ax, [label(name) for name in groups])
    ax.tick_params(axis="x", length=0)
    ax.margins(y=0.12)
    set_axes(ax, **axes)
    if len(names) > 1:
        ax.legend(ncols=min(len(names), 4))
    return ax


def histogram(samples, ax=None, *, bins=60, clip=None, **axes):
    """Draw the distributions {label: tensor} over shared bins, e.g. before and after a layer.

    clip: (low, high) leaves out what lies beyond, for long tails. axes: as for `set_axes`.
    """
    if not isinstance(samples, Mapping) or not samples:
        raise ValueError(f"samples needs at least one {{label: values}}, got {samples!r}")
    flat = {name: _finite(values, name) for name, values in samples.items()}
    low, high = clip or (min(v.min() for v in flat.values()), max(v.max() for v in flat.values()))
    if not low < high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    ax = new_axes(ax)
    for index, (name, values) in enumerate(flat.items()):
        color = CYCLE[index % len(CYCLE)]
        digits = ".2f" if values.std() >= 0.05 else ".1e"
        text = f"{label(name)}: mean {values.mean():{digits}}, std {values.std():{digits}}"
        style = {"bins": edges, "density": True, "color": color}
        ax.hist(values, histtype="stepfilled", alpha=0.25, linewidth=0, **style)
        ax.hist(values, histtype="step", linewidth=2.2, label=text, **style)
    set_axes(ax, **{"xlabel": "value", "ylabel": "density"} | axes)
    ax.margins(y=0.1)
    ax.legend()
    return ax


def violins(samples, ax=None, *, color=CYCLE[0], **axes):
    """Draw the distribution of each {name: tensor} as a violin, its quartiles inside.

    color: one for all, or {name: colour}. axes: title, ylabel and the like (`set_axes`).
    """
    import seaborn as sns  # takes a second, so that only this figure waits for it

    if not isinstance(samples, Mapping) or not samples:
        raise ValueError(f"samples needs at least one {{name: values}}, got {samples!r}")
    flat = [_finite(values, name) for name, values in samples.items()]
    colors = [color[name] if isinstance(color, Mapping) else color for name in samples]
    ax = new_axes(ax, (min(max(7.5, 0.8 * len(flat)), 13), 4.2))
    sns.violinplot(
        flat, ax=ax, palette=colors, inner="quart", cut=0, density_norm="width", linewidth=1.2,
        inner_kws={"linewidth": 1.2}, alpha=0.75,
    )  # fmt: skip
    ax.axhline(0, color="#b4bac2", linewidth=1.2, zorder=0)
    name_bars(ax, [label(name) for name in samples])
    set_axes(ax, **axes)
    return ax


def activation_statistics(activations, ax=None, *, xlabel=None, ylabel="activation", title=None):
    """Draw mean (dot) and one standard deviation either side (bar) of each {name: tensor}."""
    if not isinstance(activations, Mapping) or not activations:
        raise ValueError(f"activations needs at least one {{name: tensor}}, got {activations!r}")
    flat = {name: _finite(values, name) for name, values in activations.items()}
    means = np.array([values.mean() for values in flat.values()])
    spreads = np.array([values.std() for values in flat.values()])
    at = np.arange(len(flat))
    ax = new_axes(ax, (min(max(7.5, 0.8 * len(flat)), 13), 4.2))
    ax.axhline(0, color="#b4bac2", linewidth=1.2)
    ax.vlines(at, means - spreads, means + spreads, color=CYCLE[0], alpha=0.35, linewidth=11)
    ax.plot(at, means, "o", color=CYCLE[0], markersize=9)
    for place, mean, spread in zip(at, means, spreads, strict=True):
        ax.annotate(
            f"σ {spread:.3g}", (place, mean + spread), xytext=(0, 5), textcoords="offset points",
            ha="center", fontsize=10.5,
        )  # fmt: skip
    names = [label(name) for name in flat]
    name_bars(ax, names)
    ax.set_xlim(-0.6, len(flat) - 0.4)
    ax.margins(y=0.14)
    ax.set(xlabel=xlabel, ylabel=f"{ylabel}: mean ± std")
    if title:
        ax.set_title(title)
    return ax


def _finite(values, name):
    values = as_array(values, f"{name!r}").ravel()
    if values.size == 0:
        raise ValueError(f"{name!r} is empty")
    if bad := np.count_nonzero(~np.isfinite(values)):
        raise ValueError(f"{name!r} holds {bad} NaN or infinite values of {values.size}")
    return values


def _is_number(value):
    return isinstance(value, int | float) or getattr(value, "ndim", None) == 0


def _spread(band, y, name):
    ends = band if isinstance(band, tuple) else (band,)
    ends = [as_array(end, f"band of {name!r}") for end in ends]
    for end in ends:
        if end.shape not in ((), y.shape):
            raise ValueError(f"band of {name!r} has shape {end.shape} for {len(y)} points")
    return (y - ends[0], y + ends[0]) if len(ends) == 1 else ends
