"""Drawings of positions: counting, clock hands, a turned pair, where positions come in, a bias."""

import math

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Arc, Circle

from tinytf.viz.attention import heatmap
from tinytf.viz.positional import rotations
from tinytf.viz.spoken import alt
from tinytf.viz.style import COLOURS, INK, PAPER, as_array, label

from .diagram import SMALL, Diagram

HANDS = ("position", "plain")  # colours of the hands of a clock, the fast one first
WIDE = 2.9  # units from clock to clock


def draw_counting(digits, waves):
    """Draw digits (N, K) of 0 to N - 1, the fastest column first, beside N rows of K waves."""
    digits, waves = as_array(digits, "digits", ndim=2), as_array(waves, "waves", ndim=2)
    if digits.shape != waves.shape:
        raise ValueError(f"digits {digits.shape} and waves {waves.shape} are not of one shape")
    count, columns = digits.shape
    figure, axes = plt.subplots(1, 2, figsize=(9, 0.28 * count + 1.7))
    powers = [f"{2**k}s" for k in range(columns)]
    rows = [str(number) for number in range(count)]
    heatmap(digits, rows, powers, axes[0], annotate=False, colorbar=False, xlabel="digit",
            ylabel="position", title="counting in binary")  # fmt: skip
    for (row, column), digit in np.ndenumerate(digits):
        axes[0].text(
            column, row, f"{digit:.0f}", ha="center", va="center", size=SMALL,
            color=PAPER if digit else INK,
        )  # fmt: skip
    numbers = [str(k) for k in range(columns)]
    heatmap(waves, rows, numbers, axes[1], annotate=False, scale="signed", colorbar="sine",
            xlabel="wave", ylabel="", title="the same with waves")  # fmt: skip
    alt(
        figure,
        f"Two tables with a row for each number from 0 to {count - 1}. In binary the first digit "
        "changes at every step, the next at every second step, the next at every fourth. In the "
        "table of sines each column is a wave half as fast as the one before: the same pattern "
        "with soft edges.",
    )
    return axes


def draw_clocks(angles):
    """Draw a clock for each position with its hands, and each hand's sine and cosine below.

    angles is (positions, hands), in radians from 12 o'clock, clockwise; at most two hands.
    """
    angles = as_array(angles, "angles", ndim=2)
    count, hands = angles.shape
    d = Diagram(
        WIDE * count + 1.6, 3.9 + 0.5 * hands,
        alt=f"{count} clocks for the positions 0 to {count - 1}, with {hands} hands each. "
        + " ".join(
            f"Hand {i} turns by {angles[1, i] - angles[0, i]:.2f} radians from clock to clock."
            for i in range(hands)
        )
        + " Below each clock are the sine and the cosine of each hand.",
    )  # fmt: skip
    for i in range(hands):
        d.text(1.5, 0.5 * (hands - i), f"hand {i}", color=COLOURS[HANDS[i]], align="right")
    d.text(1.5, 0.5 * (hands + 1), "sine, cosine", size=SMALL, align="right")
    for position, row in enumerate(angles):
        x, y = 1.6 + WIDE * (position + 0.5), 2.1 + 0.5 * hands
        d.ax.add_patch(Circle((x, y), 1.1, facecolor="none", edgecolor=INK, linewidth=1.2))
        for i, angle in enumerate(row):
            long = 1.05 if i == 0 else 0.75
            tip = (x + long * math.sin(angle), y + long * math.cos(angle))
            d.arrow((x, y), tip, role=HANDS[i])
            numbers = f"{math.sin(angle):+.2f}  {math.cos(angle):+.2f}".replace("-", "−")
            d.text(x, 0.5 * (hands - i), numbers, color=COLOURS[HANDS[i]])
        d.text(x, y + 1.45, f"position {position}")
    return d.ax


def draw_turned(pairs, title="{names}: score {score:.2f}"):
    """Draw panels of a query's pair and a key's, with the angle between them.

    pairs is {names: (query, key)}, each of two numbers.
    """
    figure, axes = plt.subplots(1, len(pairs), figsize=(4.3 * len(pairs), 4.6), squeeze=False)
    said = []
    for ax, (names, (query, key)) in zip(axes[0], pairs.items(), strict=True):
        query, key = as_array(query, ndim=1), as_array(key, ndim=1)
        caption = title.format(names=names, score=query @ key)
        between = _arrows(query, key, ax, caption)
        said.append(f"{names}: the query is {between:.0f} degrees ahead of the key")
    alt(figure, "Arrows of a query and a key in the plane. " + ". ".join(said) + ".")
    return axes[0]


def _arrows(query, key, ax, title):
    """Draw both arrows and the angle between; returns by how many degrees the query is ahead."""
    rotations({"query": query, "key": key}, ax, title=title)
    first, second = (math.degrees(math.atan2(y, x)) for x, y in (key, query))
    between = (second - first + 180) % 360 - 180
    low = first if between >= 0 else second
    size = 0.7 * min(np.hypot(*query), np.hypot(*key))
    ax.add_patch(Arc((0, 0), size, size, theta1=low, theta2=low + abs(between), color=INK))
    return between


def draw_distance(query, key, speed, distance, furthest=20):
    """Draw a pair of features at a distance: the arrows, and the score at every distance.

    The query is `distance` positions after the key (before it, if negative) and is turned by that
    times `speed`, in radians. Raises ValueError for a distance beyond `furthest`. Returns two Axes.
    """
    if abs(distance) > furthest:
        raise ValueError(f"distance {distance} is beyond {furthest}")
    query, key = as_array(query, ndim=1), as_array(key, ndim=1)

    def scores(places):
        cos, sin = np.cos(speed * places), np.sin(speed * places)
        x, y = query[0] * cos - query[1] * sin, query[0] * sin + query[1] * cos
        return np.stack([x, y], axis=-1), x * key[0] + y * key[1]

    turned, score = scores(np.asarray(distance))
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, 4.4), width_ratios=(4, 6), layout="constrained"
    )
    between = _arrows(turned, key, left, f"turned by {speed * distance:.3g} radians")
    fine, places = np.linspace(-furthest, furthest, 801), np.arange(-furthest, furthest + 1)
    right.axhline(0, color=COLOURS["plain"], linewidth=1)
    right.plot(fine, scores(fine)[1], color=COLOURS["weights"], alpha=0.45)
    right.plot(places, scores(places)[1], "o", color=COLOURS["weights"], markersize=5)
    right.plot(distance, score, "o", color=COLOURS["position"], markersize=13)
    most = 1.1 * np.hypot(*query) * np.hypot(*key)  # one scale for all speeds
    right.set(xlabel="distance: position of the query − position of the key", ylabel="score",
              ylim=(-most, most), title=f"distance {distance}: score {score:.2f}")  # fmt: skip
    alt(figure, f"On the left the arrows of a query and a key: the query has turned by "
        f"{speed * distance:.3g} radians and is {between:.0f} degrees ahead of the key. On the "
        f"right the score at distances from {-furthest} to {furthest}, a cosine, with a dot at "
        f"distance {distance}, score {score:.2f}.")  # fmt: skip
    return left, right


def draw_ways():
    """Draw where three kinds of positions come into attention."""
    d = Diagram(
        18.4, 5.7,
        alt="From left to right: words, their queries and keys and values, scores, weights, "
        "output. A table of positions is added to the words before the projections. RoPE rotates "
        "queries and keys. ALiBi is added to the scores.",
    )  # fmt: skip
    x = d.box(2.1, 2.1, "words", shape="(B, T, C)")
    q, k, v = (
        d.box(6.8, y, name, shape="(B, H, T, D)", role=role)
        for y, name, role in ((3.5, "Q", "query"), (2.1, "K", "key"), (0.7, "V", "value"))
    )
    for place, name, role in ((q, "w_q", "query"), (k, "w_k", "key"), (v, "w_v", "value")):
        d.arrow(x.right, place.left, name, role=role)
    scores = d.box(11.4, 2.8, "scores", shape="(B, H, T, T)", role="weights")
    weights = d.box(14.8, 2.8, "weights", shape="(B, H, T, T)", role="weights")
    out = d.box(17.3, 0.7, "output", shape="(B, T, C)", role="output")
    for start, end in ((q.right, scores.left), (k.right, scores.left)):
        d.arrow(start, end)
    d.arrow(scores, weights, "softmax")
    d.arrow(weights.bottom, out.top)
    d.arrow(v, out)
    for at, top, name in (
        (2.1, x.top, "1. add a vector\n(sines, or learned)"),
        (6.8, q.top, "2. rotate Q and K\n(RoPE)"),
        (11.4, scores.top, "3. subtract a slope times\nthe distance (ALiBi)"),
    ):
        note = d.box(at, 5.0, name, role="position", size=(3.6, 0.95))
        d.arrow(note.bottom, top, role="position")
    d.arrow((8.4, 4.52), (k.right[0] - 0.2, k.top[1]), role="position")  # RoPE, past Q
    return d.ax


def draw_bias(scores, bias, words):
    """Draw scores + bias, their sum and its softmax for one head, each (T, T), with numbers."""
    scores, bias = (as_array(table, ndim=2) + 0.0 for table in (scores, bias))
    total = scores + bias + 0.0
    weights = np.exp(total) / np.exp(total).sum(axis=1, keepdims=True)
    words, cell = [label(word) for word in words], 0.82
    side = cell * len(words)
    step = side + 1.9
    d = Diagram(
        4 * step + 0.2, side + 1.7,
        alt="Four tables, a row for each query and a column for each key: the scores; the bias, 0 "
        "on the diagonal and more negative with every step away from it; their sum; and the "
        "weights, its softmax, largest near the diagonal.",
    )  # fmt: skip
    columns = (("scores", scores, "weights"), ("bias", bias, "position"),
               ("sum", total, "weights"), ("weights", weights, None))  # fmt: skip
    for i, (title, table, role) in enumerate(columns):
        x = 1.2 + step * i + side / 2
        d.matrix(x, side / 2 + 0.3, table, words if i == 0 else None, words, title, role, cell=cell)
        if i:
            sign = ("+", "=", "softmax\n→")[i - 1]
            d.text(x - side / 2 - 0.85, side / 2 + 0.3, sign)
    return d.ax
