"""What a figure says to who can't see it: the alternative text that a notebook saves with it.

Drawings say it themselves (`alt`). A computed figure is described from what is on it: its title,
its axes, each line's name with where it begins and ends, the range of a heat map.
"""

import weakref

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from tinytf.viz.style import legible

_SAID = weakref.WeakKeyDictionary()  # {Figure: what was said of it}


def alt(figure, text):
    """Say what `figure` (a Figure, or Axes on one) shows, in a sentence or two; return it.

    Raises ValueError for an empty text.
    """
    if not text.strip():
        raise ValueError("an empty alternative text says nothing")
    _SAID[_figure(figure)] = " ".join(text.split())
    return figure


def spoken(figure):
    """What was said of a figure with `alt`, or else a description of what is on it."""
    figure = _figure(figure)
    said = _SAID.get(figure)
    return said or " ".join(filter(None, map(_described, figure.axes))) or "A figure."


def speak_in_notebooks():
    """Show each figure with readable type and its alternative text, in a notebook's kernel."""
    try:
        from IPython import get_ipython
    except ImportError:
        return
    shell = get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None:
        return
    import matplotlib.pyplot as plt

    plt.switch_backend(plt.get_backend())  # registers its own way to show a figure: now, not later
    pictures = shell.display_formatter.formatters["image/png"]
    try:
        drawn = pictures.lookup_by_type(Figure)
    except KeyError:
        return
    if not getattr(drawn, "speaks", False):
        pictures.for_type(Figure, _speaking(drawn))


def _speaking(drawn):
    """A formatter like `drawn` that shows readable type, and gives the alternative text with it."""

    def speaking(figure):
        picture = drawn(legible(figure))
        data, about = picture if isinstance(picture, tuple) else (picture, {})
        return data and (data, {**about, "alt": spoken(figure)})

    speaking.speaks = True
    return speaking


def _figure(thing):
    if isinstance(thing, np.ndarray):  # a grid of Axes
        thing = thing.flat[0]
    return thing.get_figure(root=True) if isinstance(thing, Axes) else thing


def _described(ax):
    """An Axes in words, or nothing where there is nothing on it, or only a scale of colours."""
    if ax.get_label() == "<colorbar>":
        return ""
    axes = [name for name in (ax.get_xlabel(), ax.get_ylabel()) if name]
    parts = [_sentence(ax.get_title()), *_lines(ax), *_heat_maps(ax)]
    bars = [patch for container in ax.containers for patch in container.patches]
    if bars:
        words = [label.get_text() for label in ax.get_xticklabels()]
        heights = _range([bar.get_height() for bar in bars])
        named = f" for {', '.join(words)}" if 0 < len(words) <= 8 and all(words) else ""
        parts.append(f"{len(bars)} bars{named}, {heights}.")
    elif ax.collections and not any(isinstance(c, QuadMesh) for c in ax.collections):
        points = sum(len(c.get_offsets()) for c in ax.collections)
        parts.append(f"{points} points." if points > 1 else "")
    if not any(parts[1:]):  # words on boxes, or bars of a histogram
        words = [" ".join(text.get_text().split()) for text in ax.texts]
        words = ", ".join(filter(None, words))
        shapes = len(ax.patches) + len(ax.collections)
        parts.append(f"A drawing with {shapes} shapes." if shapes > 1 else "")
        parts.append(f"It reads: {words[:200]}{'…' * (len(words) > 200)}." if words else "")
    if axes and any(parts):
        parts.append(f"Axes: {', '.join(axes)}.".replace("\n", " "))
    return " ".join(part for part in parts if part)


def _lines(ax):
    """A sentence for each line that has a name, and how many have none."""
    lines = [line for line in ax.get_lines() if len(line.get_ydata()) > 1]
    named = [line for line in lines if not str(line.get_label()).startswith("_")]
    for line in named[:8]:
        y = np.asarray(line.get_ydata(), dtype=float)
        yield f"{line.get_label()}: from {y[0]:.3g} to {y[-1]:.3g}, {_range(y)}."
    unnamed = len(lines) - len(named[:8])
    if unnamed:
        yield f"{unnamed} {'further ' if named else ''}line{'s' * (unnamed > 1)}."


def _heat_maps(ax):
    """A sentence for each picture made of numbers."""
    for mesh in [*ax.images, *(c for c in ax.collections if isinstance(c, QuadMesh))]:
        values = np.ma.compressed(np.ma.masked_invalid(mesh.get_array()))
        if values.size:
            shape = " × ".join(map(str, mesh.get_array().shape))
            yield f"A heat map of {shape} values, {_range(values)}{_peak(ax, mesh.get_array())}."


def _peak(ax, values):
    """Where a heat map with words on both sides is largest."""
    values = np.ma.filled(np.ma.masked_invalid(values).astype(float), -np.inf)
    words = [[t.get_text() for t in axis.get_ticklabels()] for axis in (ax.yaxis, ax.xaxis)]
    if values.ndim != 2 or list(map(len, words)) != list(values.shape):
        return ""
    row, column = np.unravel_index(values.argmax(), values.shape)
    names = " ".join(words[0][row].split()), " ".join(words[1][column].split())
    return f", the largest in row {names[0]}, column {names[1]}" if all(names) else ""


def _range(values):
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    return f"between {values.min():.3g} and {values.max():.3g}" if values.size else "no numbers"


def _sentence(text):
    text = " ".join(text.split())
    return text if not text or text[-1] in ".!?" else f"{text}."
