"""Drawings of a mechanism: boxes for tensors, arrows for what is computed, matrices with numbers.

A drawing is made of few things, so that all chapters draw alike: a box says what it is and under
that its shape, an arrow leads to what is made of it, a small matrix shows its numbers. Colours are
by role (`COLOURS`), one for the whole course.
"""

from itertools import pairwise
from typing import NamedTuple

import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from tinytf.viz.spoken import alt as describe
from tinytf.viz.style import ATTENTION, COLOURS, INK, MASKED, PAPER, as_array, least_type

UNIT = 0.62  # inches to a unit of the drawing
TEXT, SMALL = 11, 9  # points
PADDING = 0.16  # units between a box's text and its edge
LINE = 0.3  # units, the height of a line of text


class Box(NamedTuple):
    """Where something stands in a drawing: its middle and its size, in units."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self):
        """The middle of its left side, (x, y)."""
        return self.x - self.width / 2, self.y

    @property
    def right(self):
        """The middle of its right side, (x, y)."""
        return self.x + self.width / 2, self.y

    @property
    def top(self):
        """The middle of its upper side, (x, y)."""
        return self.x, self.y + self.height / 2

    @property
    def bottom(self):
        """The middle of its lower side, (x, y)."""
        return self.x, self.y - self.height / 2


class Diagram:
    """A drawing `width` × `height` units large; x goes to the right, y upwards.

    `alt` says the drawing to who can't see it. `ax` is the matplotlib Axes it is drawn on::

        d = viz.Diagram(8, 3, alt="X is mapped to Q")
        x = d.box(1, 1, "X", shape="(B, T, C)")
        q = d.box(4, 1, "Q", shape="(B, T, D)", role="query")
        d.arrow(x, q, "W_Q")

    Raises ValueError for a size of 0 or less.
    """

    def __init__(self, width, height, alt, title=None):
        """Open an empty drawing."""
        if width <= 0 or height <= 0:
            raise ValueError(f"a drawing of {width} × {height} units has no room")
        head = LINE * 2 if title else 0
        figure = plt.figure(figsize=(width * UNIT, (height + head) * UNIT), layout="none")
        self.width, self.height, self.least = width, height, least_type(figure)
        self.ax = figure.add_axes((0, 0, 1, 1))
        self.ax.set(xlim=(0, width), ylim=(0, height + head))
        self.ax.axis("off")
        if title:
            self.ax.text(
                width / 2, height + head / 2, title, ha="center", va="center",
                size=TEXT + 1, weight="bold",
            )  # fmt: skip
        describe(figure, alt)

    def box(self, x, y, text, shape=None, role="plain", size=(None, None), faint=False):
        """Draw a box around (x, y) with its text and, smaller, its shape; return its Box.

        `role` is a key of `COLOURS`; `size` is (width, height) in units, None for what the text
        needs, which it has in any case; `faint` draws it pale, for what stands by.
        """
        above, below = self._high(text, TEXT), self._high(shape, SMALL)
        width, height = self._needed(text, shape)
        if size[0] is not None:
            width = max(width - PADDING, size[0])
        if size[1] is not None:
            height = max(height - 1.5 * PADDING, size[1])
        place = Box(x, y, width, height)
        edge = COLOURS[role]
        self.ax.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - height / 2), width, height,
                boxstyle="round,pad=0,rounding_size=0.1",
                facecolor=_mixed(edge, 0.93 if faint else 0.82),
                edgecolor=_mixed(edge, 0.55 if faint else 0), linewidth=1.5, zorder=2,
            )
        )  # fmt: skip
        ink = _mixed(INK, 0.45) if faint else INK
        self.text(x, y + below / 2, text, color=ink)
        if shape:
            self.text(x, y - above / 2, shape, size=SMALL, color=_mixed(ink, 0.15))
        return place

    def columns(self, *columns, low=0.0, high=None):
        """Draw boxes in columns, evenly spread over the drawing from `low` to `high`; return them.

        A column is a list, from the top, of (text, shape, role) or (text, shape, role, faint), and
        of None where a place is empty. Boxes of a column are equally wide. Where columns have
        equally many places they make rows, of boxes equally high::

            (x, _), (q, k) = d.columns([("X", None, "input"), None],
                                       [("Q", None, "query"), ("K", None, "key")])
        """
        sizes = [[one and self._needed(*one[:2]) for one in column] for column in columns]
        wide = [max(size[0] for size in column if size) for column in sizes]
        tall = {}
        for column in sizes:
            for row, size in enumerate(column):
                place = (row + 0.5) / len(column)
                tall[place] = max(tall.get(place, 0), size[1] if size else 0)
        apart = (self.width - sum(wide)) / len(wide)
        top, made = self.height if high is None else high, []
        for i, column in enumerate(columns):
            x = sum(wide[:i]) + wide[i] / 2 + apart * (i + 0.5)
            places = [(row + 0.5) / len(column) for row in range(len(column))]
            made.append([
                one and self.box(x, top - (top - low) * place, *one[:3], (wide[i], tall[place]),
                                 *one[3:])
                for one, place in zip(column, places, strict=True)
            ])  # fmt: skip
        return made

    def chain(self, *boxes):
        """Draw an arrow from each box to the next."""
        for start, end in pairwise(boxes):
            self.arrow(start, end)

    def arrow(self, start, end, text=None, bend=0.0, role=None, dashed=False):
        """Draw an arrow from a Box or (x, y) to another, with a word on it.

        Between boxes it leaves and meets the sides that face each other. `bend` curves it (0.3 is
        a gentle arc); `dashed` is for what may not flow, or is only counted.
        """
        start, end = _ends(start, end)
        colour = COLOURS[role] if role else INK
        self.ax.add_patch(
            FancyArrowPatch(
                start, end, arrowstyle="-|>", mutation_scale=13, linewidth=1.5, color=colour,
                connectionstyle=f"arc3,rad={bend}", linestyle="--" if dashed else "-",
                shrinkA=1, shrinkB=1, zorder=1.5,
            )
        )  # fmt: skip
        if text:
            dx, dy = end[0] - start[0], end[1] - start[1]
            # The middle of the arc: half of `bend` to the right of the way.
            x, y = (start[0] + end[0] + bend * dy) / 2, (start[1] + end[1] - bend * dx) / 2
            self.text(x, y, text, size=SMALL, backed=True)

    def text(self, x, y, text, size=TEXT, color=INK, align="center", backed=False):
        """Write `text` around (x, y); `backed` puts paper behind it, for a word on a line."""
        paper = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5} if backed else None
        self.ax.text(
            x, y, text, ha=align, va="center", size=max(size, self.least), color=color, bbox=paper,
            zorder=4,
        )  # fmt: skip

    def frame(self, boxes, text=None, role="plain", margin=0.25):
        """Draw a dashed frame around boxes, its name above; return its Box."""
        left = min(box.left[0] for box in boxes) - margin
        right = max(box.right[0] for box in boxes) + margin
        low = min(box.bottom[1] for box in boxes) - margin
        high = max(box.top[1] for box in boxes) + margin
        self.ax.add_patch(
            FancyBboxPatch(
                (left, low), right - left, high - low, boxstyle="round,pad=0,rounding_size=0.15",
                facecolor="none", edgecolor=COLOURS[role], linewidth=1.2, linestyle="--", zorder=1,
            )
        )  # fmt: skip
        if text:
            self.text((left + right) / 2, high + LINE * 0.6, text, size=SMALL)
        return Box((left + right) / 2, (low + high) / 2, right - left, high - low)

    def matrix(self, x, y, values, rows=None, columns=None, title=None, role=None, hidden=None,
               digits=2, cell=0.62):  # fmt: skip
        """Draw a matrix around (x, y), its numbers in its cells; return its Box.

        `values` is (N, M). Cells are pale in the colour of `role`; with None they are shaded as
        attention is, from 0 to 1. Where `hidden` (N, M) is True a cell is grey and blank. `rows`
        and `columns` are their words, which its Box holds too; `title` stands above.
        """
        values = as_array(values, ndim=2)
        height, width = values.shape
        left, high = x - width * cell / 2, y + height * cell / 2
        for i in range(height):
            for j in range(width):
                masked = hidden is not None and bool(hidden[i][j])
                value = float(values[i, j])
                shade = ATTENTION(min(max(value, 0), 1))[:3] if role is None else None
                fill = MASKED if masked else shade or _mixed(COLOURS[role], 0.85)
                corner = left + j * cell, high - (i + 1) * cell
                self.ax.add_patch(
                    Rectangle(corner, cell, cell, facecolor=fill, edgecolor=PAPER, zorder=2)
                )
                if not masked:
                    dark = sum(to_rgb(fill)) < 1.5
                    self.text(
                        corner[0] + cell / 2, corner[1] + cell / 2, _short(value, digits),
                        size=SMALL, color=PAPER if dark else INK,
                    )  # fmt: skip
        for i, word in enumerate(rows or ()):
            self.text(left - 0.08, high - (i + 0.5) * cell, word, size=SMALL, align="right")
        for j, word in enumerate(columns or ()):
            self.text(left + (j + 0.5) * cell, high + LINE * 0.5, word, size=SMALL)
        if title:
            self.text(x, high + LINE * (1.5 if columns else 0.6), title)
        words = max((self._wide(word, SMALL) for word in rows or ()), default=-0.08) + 0.08
        above = LINE if columns else 0
        return Box(x - words / 2, y + above / 2, width * cell + words, height * cell + above)

    def _needed(self, text, shape):
        """The width and height that a box needs for its text and its shape, in units."""
        wide = max(self._wide(text, TEXT), self._wide(shape or "", SMALL))
        high = self._high(text, TEXT) + self._high(shape, SMALL)
        return max(wide + 2 * PADDING, 0.7), high + 2 * PADDING

    def _wide(self, text, size):
        """How wide a text of this size is, in units."""
        drawn = self.ax.text(0, 0, text, size=max(size, self.least))
        box = drawn.get_window_extent(self.ax.figure.canvas.get_renderer())
        drawn.remove()
        return box.width / self.ax.figure.dpi / UNIT

    def _high(self, text, size):
        """How high the lines of a text of this size are together, in units; 0 for no text."""
        return (text.count("\n") + 1) * LINE * max(size, self.least) / TEXT if text else 0


def _ends(start, end):
    """Where an arrow leaves and arrives: the sides that face each other, or the points given."""
    a, b = (Box(*place, 0, 0) if len(place) == 2 else place for place in (start, end))
    beside = abs(b.x - a.x) - (a.width + b.width) / 2
    above = abs(b.y - a.y) - (a.height + b.height) / 2
    if beside >= above:
        return (a.right, b.left) if b.x > a.x else (a.left, b.right)
    return (a.top, b.bottom) if b.y > a.y else (a.bottom, b.top)


def _short(value, digits):
    """A number as a cell shows it: whole ones without a point, a minus that is a minus."""
    text = f"{value:.0f}" if value == round(value) else f"{value:.{digits}f}"
    return text.replace("-", "−")


def _mixed(colour, paper):
    """A colour with this share of paper in it."""
    return tuple(c * (1 - paper) + p * paper for c, p in zip(to_rgb(colour), to_rgb(PAPER)))
