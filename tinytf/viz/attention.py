"""Attention maps: one fixed scale from 0 to 1, words on the axes, one look for the whole course."""

import math

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from .axes import set_axes
from .style import (
    ATTENTION,
    GOLD,
    MASKED,
    PAPER,
    SIGNED,
    as_array,
    cell_text,
    label,
    new_axes,
    readable_on,
)


def heatmap(weights, queries=None, keys=None, ax=None, *, mask=None, scale="attention", **look):
    """Draw one (T, S) matrix, a row per query and a column per key; returns the Axes.

    queries, keys: words, or pairs (word, its sound) for where no font draws it.
    mask: boolean, True = may attend, as everywhere in tinytf; what may not is grey and hatched.
    scale: "attention" is the fixed 0..1 of weights; "signed" is centred on 0 (scores,
    similarities); "data" runs from the least value to the greatest; (low, high) fixes both ends.
    look: annotate=True or False, the numbers (by default where they fit); colorbar=False, or its
    label; title, xlabel and the like (`set_axes`).
    """
    annotate, colorbar = look.pop("annotate", None), look.pop("colorbar", True)
    weights = as_array(weights, "weights", ndim=2)
    rows, columns = weights.shape
    allowed = _allowed(mask, weights.shape)
    cmap, low, high = _scale(weights[allowed], scale)
    query_names = _names("queries", queries, rows, "rows")
    key_names = _names("keys", keys, columns, "columns")
    size = (min(max(0.52 * columns + 2.6, 4.2), 12), min(max(0.52 * rows + 1.7, 3.2), 11))
    ax = new_axes(ax, size)

    small = max(rows, columns) <= 32
    mesh = ax.pcolormesh(
        np.arange(columns + 1) - 0.5,
        np.arange(rows + 1) - 0.5,
        np.ma.masked_where(~allowed, weights),
        cmap=cmap,
        vmin=low,
        vmax=high,
        edgecolors=PAPER if small else "none",
        linewidth=0.8 if small else 0,
        rasterized=not small,
    )
    for row, column in np.argwhere(~allowed):
        _cell(ax, row, column, facecolor=MASKED, edgecolor="#b4bac2", hatch="////", linewidth=0)
    ax.invert_yaxis()
    ax.set_aspect("equal")
    _name_axis(ax.xaxis, key_names, columns)
    _name_axis(ax.yaxis, query_names, rows)
    set_axes(ax, **{"xlabel": "key", "ylabel": "query"} | look)
    _bare(ax)
    if annotate is None:
        annotate = max(rows, columns) <= 10
    if annotate:
        _write_numbers(ax, weights, allowed, mesh)
    if colorbar:
        name = colorbar if isinstance(colorbar, str) else _scale_name(scale)
        _colorbar(ax.figure, mesh, ax, name)
    return ax


def head_grid(
    weights, queries=None, keys=None, *, max_columns=4, title=None, titles=None, mask=None
):
    """Draw the (H, T, S) maps of all heads side by side; returns the array of H Axes."""
    weights = as_array(weights, "weights", ndim=3)
    heads, rows, columns = weights.shape
    if titles is None:
        titles = [f"head {head}" for head in range(heads)]
    if len(titles) != heads:
        raise ValueError(f"{len(titles)} titles for {heads} heads: {list(titles)}")
    if max_columns < 1:
        raise ValueError(f"max_columns={max_columns} must be at least 1")
    across = min(heads, max_columns)
    down = math.ceil(heads / across)
    cell = min(0.32, 3.4 / max(rows, columns))
    cell = max(cell, 1.9 / max(rows, columns))
    width = min(across * (cell * columns + 0.35) + 2.0, 16)
    height = min(down * (cell * rows + 0.5) + 1.5, 18)
    figure, grid = plt.subplots(
        down, across, figsize=(width, height), squeeze=False, layout="constrained"
    )
    axes = grid.ravel()
    for head, ax in enumerate(axes[:heads]):
        left, bottom = head % across == 0, head + across >= heads
        heatmap(
            weights[head], queries, keys, ax, mask=mask,
            title=titles[head], annotate=False, colorbar=False, xlabel="", ylabel="",
        )  # fmt: skip
        ax.title.set_size(12)
        points = min(11, 72 * 0.78 * cell)
        ax.tick_params(labelsize=points, labelleft=left, labelbottom=bottom)
    for ax in axes[heads:]:
        ax.set_visible(False)
    figure.supxlabel("key", fontsize=12)
    figure.supylabel("query", fontsize=12)
    if title:
        figure.suptitle(title, fontweight=plt.rcParams["axes.titleweight"], fontsize=14)
    _colorbar(figure, axes[0].collections[0], list(axes[:heads]), "attention weight", shrink=0.8)
    return axes[:heads]


def alignment_grid(weights, gold, source, target, ax=None, *, pinyin=None, **look):
    """Draw (T, S) attention with the gold links (source index, target index) outlined.

    `weights[t, s]` is how much the model looks at source word s while it writes target word t.
    pinyin: the target words' sounds. look: as for `heatmap`.
    """
    weights = as_array(weights, "weights", ndim=2)
    names = {"xlabel": "source word", "ylabel": "target word"}
    ax = heatmap(weights, sounded(target, pinyin), source, ax, **names | look)
    for s, t in check_links(gold, source=weights.shape[1], target=weights.shape[0]):
        _cell(ax, t, s, inset=0.04, facecolor="none", edgecolor=GOLD, linewidth=2.6, zorder=4)
    if gold is not None and len(gold):
        handle = Rectangle((0, 0), 1, 1, facecolor="none", edgecolor=GOLD, linewidth=2.6)
        ax.legend(
            [handle],
            ["gold link"],
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            borderaxespad=0.2,
            handlelength=1.0,
            handleheight=1.0,
            fontsize=11,
        )
        title = ax.get_title()
        ax.set_title("", loc="center")
        ax.set_title(title, loc="left", pad=24)  # above the legend
    return ax


def layer_head_scores(matrix, ax=None, *, title=None, score="score", scale=None, decimals=2):
    """Draw one number per layer (row) and head (column), written in its cell."""
    matrix = as_array(matrix, "matrix", ndim=2)
    layers, heads = matrix.shape
    if scale is None:
        scale = (0, 1) if matrix.min() >= 0 and matrix.max() <= 1 else "data"
    ax = new_axes(ax, (min(0.85 * heads + 2.8, 13), min(0.7 * layers + 1.7, 11)))
    heatmap(
        matrix, list(map(str, range(layers))), list(map(str, range(heads))), ax, scale=scale,
        title=title, annotate=False, xlabel="head", ylabel="layer", colorbar=score,
    )  # fmt: skip
    _write_numbers(ax, matrix, np.ones(matrix.shape, bool), ax.collections[0], decimals, 12)
    return ax


def check_links(gold, source, target):
    """The links as a list of pairs; ValueError names one outside `source` by `target` words."""
    links = [] if gold is None else [tuple(int(index) for index in link) for link in gold]
    for link in links:
        if len(link) != 2:
            raise ValueError(f"a gold link is (source index, target index), got {link}")
        if not (0 <= link[0] < source and 0 <= link[1] < target):
            raise ValueError(
                f"gold link {link} is outside {source} source words and {target} target words; "
                "links are (source index, target index)"
            )
    return links


def _allowed(mask, shape):
    if mask is None:
        return np.ones(shape, bool)
    mask = as_array(mask, "mask") > 0
    while mask.ndim > 2 and mask.shape[0] == 1:  # (1, 1, T, S), as tinytf.masks builds them
        mask = mask[0]
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"mask of shape {mask.shape} does not fit weights {shape}") from None


def _scale(values, scale):
    if values.size == 0 or not np.isfinite(values).all():
        bad = np.count_nonzero(~np.isfinite(values))
        raise ValueError(f"weights hold {bad} NaN or infinite values of {values.size}")
    low, high = values.min(), values.max()
    if scale == "attention":
        if low < -1e-4 or high > 1 + 1e-4:
            raise ValueError(
                f"attention weights lie in 0..1, got {low:.4g} to {high:.4g}; "
                'for scores pass scale="signed"'
            )
        return ATTENTION, 0, 1
    if scale == "signed":
        end = max(abs(low), abs(high)) or 1.0
        return SIGNED, -end, end
    if scale == "data":
        return ATTENTION, low, high if high > low else low + 1
    if isinstance(scale, tuple | list) and len(scale) == 2 and scale[0] < scale[1]:
        return (SIGNED if scale[0] == -scale[1] else ATTENTION), *scale
    raise ValueError(f'scale={scale!r} is none of "attention", "signed", "data", (low, high)')


def _scale_name(scale):
    return "attention weight" if scale == "attention" else "value"


def sounded(tokens, pinyin):
    """Pair words with their sounds; `pinyin` may be None for none. ValueError if one is missing."""
    if pinyin is None:
        return tokens
    tokens, pinyin = list(tokens), list(pinyin)
    if len(pinyin) != len(tokens):
        raise ValueError(
            f"{len(pinyin)} pinyin entries for {len(tokens)} tokens: {pinyin} for {tokens}"
        )
    return list(zip(tokens, pinyin, strict=True))


def _names(what, tokens, count, side):
    if tokens is None:
        return None
    if isinstance(tokens, str):
        raise ValueError(f"{what} is a list of tokens, got the string {tokens!r}; split it first")
    tokens = list(tokens)
    if len(tokens) != count:
        raise ValueError(f"weights have {count} {side} but {len(tokens)} {what}: {tokens}")
    pairs = [token if isinstance(token, tuple) else (token, None) for token in tokens]
    return [label(*pair) for pair in pairs]


def _name_axis(axis, names, count):
    if names is None:
        if count <= 16:
            axis.set_ticks(np.arange(count))
        else:  # as many as there is room for
            axis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        return
    crowded = axis.axis_name == "x" and sum(len(name) + 2 for name in names) > 5 * count
    turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    axis.set_ticks(np.arange(count), names, **turned)


def _bare(ax):
    ax.grid(False)
    ax.tick_params(length=0, pad=4)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _cell(ax, row, column, inset=0.0, **style):
    side = 1 - 2 * inset
    corner = (column - 0.5 + inset, row - 0.5 + inset)
    ax.add_patch(Rectangle(corner, side, side, **style))


def _write_numbers(ax, values, shown, mesh, decimals=2, points=None):
    points = points or max(7.5, min(11, 110 / max(values.shape)))
    for row, column in np.argwhere(shown):
        value = values[row, column]
        if text := cell_text(value, decimals):
            color = readable_on(mesh.cmap(mesh.norm(value))[:3])
            ax.text(column, row, text, ha="center", va="center", fontsize=points, color=color)


def _colorbar(figure, mesh, axes, name, shrink=0.9):
    bar = figure.colorbar(mesh, ax=axes, shrink=shrink, pad=0.02, aspect=22)
    bar.outline.set_visible(False)
    bar.set_label(name)
    if (mesh.norm.vmin, mesh.norm.vmax) == (0, 1):
        bar.set_ticks([0, 0.5, 1])
