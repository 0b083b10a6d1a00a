"""Positional encodings, as a table of values and as waves."""

from .statistics import lines
from .style import SIGNED, as_array, new_axes


def positional_heatmap(table, ax=None, *, title=None):
    """Draw a (positions, d_model) table, signed and centred on 0; returns the Axes."""
    table = as_array(table, "table", ndim=2)
    ax = new_axes(ax, (9, 4.4))
    end = max(abs(table.min()), abs(table.max())) or 1.0
    image = ax.imshow(table, cmap=SIGNED, vmin=-end, vmax=end, aspect="auto", interpolation="none")
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02, aspect=22)
    bar.set_label("value")
    bar.outline.set_visible(False)
    ax.grid(False)
    ax.set(xlabel="dimension", ylabel="position")
    if title:
        ax.set_title(title)
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
