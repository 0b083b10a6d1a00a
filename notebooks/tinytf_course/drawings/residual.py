"""Drawings of chapter 10: the shortcut, where the norm goes, which numbers a norm averages."""

import itertools

from matplotlib.colors import to_rgb
from matplotlib.patches import Polygon

from tinytf.viz.style import COLOURS, INK, PAPER

from .diagram import LINE, SMALL, TEXT, Diagram

LEAN, RISE = 0.42, 0.3  # how far the next sentence of a cube lies to the right, and up


def draw_shortcut(slopes=(0.5, 0.5)):
    """Draw two blocks x + F(x), and going backward the gradient at each point; returns the Axes.

    slopes: how much the output of each F moves when its input moves, as if both were numbers.
    """
    a, b = slopes
    after = [(1 + a) * (1 + b), 1 + b, 1.0]
    d = Diagram(
        14.6, 5.0,
        "Two residual blocks. Forward: x goes through F1 and past it on the shortcut, and the two "
        "are added; then the same with F2. Backward: the gradient 1 passes F2 on the shortcut "
        f"unchanged and goes through F2 times {b:g}, which makes {after[1]:g}; before the first "
        f"block it is {after[0]:g}.",
    )  # fmt: skip
    d.text(0.1, 3.5, "forward", align="left")
    _blocks(d, 3.5, ["$x_0$", "$x_1$", "$x_2$"], ["$F_1$", "$F_2$"], back=False)
    d.text(0.1, 0.95, "backward", align="left")
    _blocks(
        d, 0.95, [_plain(size) for size in after], [f"× {_plain(a)}", f"× {_plain(b)}"], back=True
    )
    for x, size, slope in ((2.6, after[1], a), (8.0, after[2], b)):
        d.text(x, 0.3, f"{_plain(size)} × 1 + {_plain(size)} × {_plain(slope)}", size=SMALL)
    d.text(13.4, 0.3, "as it arrives", size=SMALL)
    return d.ax


def _blocks(d, y, states, inside, back):
    """Two blocks on one line, with a way around each; `back`: read from the right."""
    role = "loss" if back else "residual"
    places = [d.box(x, y, text, role=role) for x, text in zip((2.6, 8.0, 13.4), states)]
    for left, right, text in zip(places, places[1:], inside):
        middle = (left.x + right.x) / 2
        f = d.box(middle - 0.5, y, text, role="feedforward")
        plus = d.box(right.x - 1.4, y, "+" if not back else "•", role="plain", size=(0.45, 0.45))
        road = [(left, f), (f, plus), (plus, right)]
        for start, end in road if not back else [pair[::-1] for pair in road[::-1]]:
            d.arrow(start, end, role=role if back else None)
        ends = (left.x + 0.1, left.top[1]), plus.top
        bend = -0.33 if not back else 0.33
        d.arrow(*(ends if not back else ends[::-1]), bend=bend, role=role)
        d.text(middle - 0.6, y + 0.92, "× 1" if back else "shortcut", size=SMALL, backed=True)


def draw_norm_places():
    """Draw one block of Post-LN and one of Pre-LN side by side, read upwards; returns the Axes."""
    d = Diagram(
        14.2, 6.9,
        "Left, Post-LN: the stream x goes into the sublayer and around it, dropout acts on what "
        "the sublayer returns, both are added, and the sum is normalised: the norm is on the "
        "stream. Right, Pre-LN: the norm is on the branch, before the sublayer; on the stream "
        "there is only the addition.",
    )  # fmt: skip
    plus = _block(d, 2.0, "Post-LN", ["sublayer", "dropout"], meet=4.25)
    norm = d.box(2.0, 5.25, "norm", role="norm", size=(1.5, 0.62))
    d.arrow(plus, norm, role="residual")
    d.arrow(norm.top, (2.0, 6.2), role="residual")
    d.text(norm.right[0] + 0.15, norm.y, "on the stream", size=SMALL, align="left")
    plus = _block(d, 8.9, "Pre-LN", ["norm", "sublayer", "dropout"], meet=4.75)
    d.arrow(plus.top, (8.9, 6.2), role="residual")
    d.text(12.3, 1.85, "on the branch", size=SMALL, align="left")
    return d.ax


def _block(d, left, name, branch, meet):
    """A stream upwards from x, and a branch of boxes that meets it in a sum; returns that."""
    d.ax.text(
        left + 0.9, 6.55, name, ha="center", va="center", size=TEXT + 2, weight="bold",
        color=_dark(COLOURS[name]),
    )  # fmt: skip
    x = d.box(left, 0.5, "x", shape="(B, T, C)", role="residual")
    plus = d.box(left, meet, "+", role="residual", size=(0.5, 0.5))
    d.arrow(x, plus, role="residual")
    d.text(left - 0.2, 2.6, "the stream", size=SMALL, align="right")
    roles = {"norm": "norm", "sublayer": "attention", "dropout": "plain"}
    boxes = [
        d.box(left + 2.3, 1.85 + 0.95 * i, word, role=roles[word], size=(1.9, 0.62))
        for i, word in enumerate(branch)
    ]
    d.ax.plot([left, boxes[0].x], [1.25, 1.25], color=INK, linewidth=1.5)
    d.arrow((boxes[0].x, 1.25), boxes[0])
    for below, above in itertools.pairwise(boxes):
        d.arrow(below, above)
    d.ax.plot([boxes[-1].x] * 2, [boxes[-1].top[1], meet], color=INK, linewidth=1.5)
    d.arrow((boxes[-1].x, meet), plus)
    return plus


def draw_averaged(*norms, sizes=(3, 5, 6)):
    """Draw a cube of `sizes` = (B, T, C) for each norm, coloured where numbers share a mean.

    norms: of "LayerNorm", "RMSNorm" and "BatchNorm"; each cube shows the numbers that are used to
    normalise one of them, framed. Returns the Axes.
    """
    b, t, c = sizes
    said = {
        "LayerNorm": "all features of one token of one sentence",
        "RMSNorm": "all features of one token of one sentence",
        "BatchNorm": "one feature at every position of every sentence",
    }
    apart = c * 0.5 + b * LEAN + 2.0
    d = Diagram(
        apart * len(norms) + 0.6, t * 0.5 + b * RISE + 2.5,
        f"A block of numbers, {b} sentences deep, {t} positions high and {c} features wide, for "
        "each norm. " + " ".join(f"{norm}: coloured are {said[norm]}." for norm in norms),
    )  # fmt: skip
    for i, norm in enumerate(norms):
        _cube(d, 1.7 + i * apart, norm, sizes, i == 0)
    return d.ax


def _cube(d, left, norm, sizes, named):
    """One block of numbers seen from the front: the last sentence is drawn first."""
    b, t, c = sizes
    floor = 1.35
    chosen = COLOURS[norm]

    def at(x, y, z):  # feature, position from above, sentence from the front
        return left + 0.5 * x + LEAN * z, floor + 0.5 * (t - y) + RISE * z

    def face(corners, coloured, framed=False):
        edge, width = (INK, 2.4) if framed else (PAPER, 1.0)
        d.ax.add_patch(
            Polygon(
                [at(*corner) for corner in corners], facecolor=chosen if coloured else "#dfe4ea",
                edgecolor=edge, linewidth=width, zorder=3 if framed else 2,
            )
        )  # fmt: skip

    token, feature = 1, c - 1
    batch = norm == "BatchNorm"
    for z in reversed(range(b)):
        for y in range(t):  # the side: positions of the last feature
            face([(c, y, z), (c, y, z + 1), (c, y + 1, z + 1), (c, y + 1, z)],
                 batch or (y == token and z == 0))  # fmt: skip
        for x in range(c):  # the top: features of the first position
            face([(x, 0, z), (x, 0, z + 1), (x + 1, 0, z + 1), (x + 1, 0, z)],
                 batch and x == feature)  # fmt: skip
    for y in range(t):
        for x in range(c):
            inside = x == feature if batch else y == token
            corners = [(x, y, 0), (x + 1, y, 0), (x + 1, y + 1, 0), (x, y + 1, 0)]
            face(corners, inside, framed=(x, y) == (feature, token))
    middle = at(c / 2, t, 0)
    d.ax.text(middle[0] + LEAN * b / 2, at(0, 0, b)[1] + LINE * 1.6, norm, ha="center", va="center",
              size=TEXT + 2, weight="bold", color=_dark(chosen))  # fmt: skip
    d.text(middle[0], middle[1] - LINE, "C features", size=SMALL)
    if named:
        d.text(left - 0.15, at(0, t / 2, 0)[1], "T\npositions", size=SMALL, align="right")
        x, y = at(0, 0, b)
        d.text(x - 0.3, y - 0.1, "B sentences", size=SMALL, align="right")
    count = f"{b} × {t} = {b * t}" if batch else str(c)
    what = "a mean square" if norm == "RMSNorm" else "mean and variance"
    d.text(middle[0], middle[1] - LINE * 2.4, f"{count} numbers share {what}", size=SMALL)


def _plain(number):
    """A number with a minus that is a minus."""
    return f"{number:g}".replace("-", "−")


def _dark(colour):
    """A colour for words: as dark as paper needs."""
    return tuple(0.7 * part for part in to_rgb(colour))
