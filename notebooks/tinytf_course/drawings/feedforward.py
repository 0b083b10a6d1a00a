"""Chapter 11: drawings of the feed-forward network, its weights, and what its units do."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np

from tinytf.viz.style import COLOURS, CYCLE, GOLD, INK, as_array, label, labels

from .diagram import SMALL, Diagram


def target_in_context(pair, t):
    """Return the target at position t of a pair's translation, with its context, as one line.

    The target is between asterisks, as `unit_card` expects it, and the English in brackets.
    """
    said = [*labels(pair.target, pair.pinyin), "<eos>"]
    english = pair.english if len(pair.english) < 45 else pair.english[:44] + " …"
    around = [*said[max(0, t - 3) : t], f"*{said[t]}*"]
    return f"{' '.join(around)}   ({english})"


def unit_card(contexts, activity, scores, *, title=None):
    """Draw one hidden unit: the contexts that its key matches, and the words its value supports.

    contexts: lines of text, one per activity, the strongest first; a word between asterisks, *so*,
    is the position itself. scores: {word: how much the value raises it}, drawn in their order.
    Returns the two Axes. Raises ValueError if contexts and activities differ in number.
    """
    activity = [float(a) for a in activity]
    if len(contexts) != len(activity):
        raise ValueError(f"{len(contexts)} contexts for {len(activity)} activities")
    if not isinstance(scores, Mapping) or not scores:
        raise ValueError(f"scores needs at least one {{word: number}}, got {scores!r}")
    rows = max(len(contexts), len(scores))
    _, (left, right) = plt.subplots(
        1, 2, figsize=(12, 0.34 * rows + 1.3), layout="constrained", width_ratios=(3, 1)
    )
    at = np.arange(len(contexts))
    left.barh(at, activity, color=CYCLE[0], alpha=0.22, height=0.84)
    edge = max(activity, default=1.0)
    for y, line in zip(at, contexts, strict=True):
        left.text(0.012 * edge, y, label(line), va="center", fontsize=10.5)
    left.set(ylim=(len(contexts) - 0.4, -0.6), yticks=[], xlabel="activity")
    left.set_title("its key matches")
    numbers = [float(score) for score in scores.values()]
    colors = [CYCLE[0] if number >= 0 else GOLD for number in numbers]
    right.barh(range(len(numbers)), numbers, color=colors, height=0.7)
    right.set_yticks(range(len(numbers)), [label(word) for word in scores])
    right.set(ylim=(len(numbers) - 0.4, -0.6), xlabel="v · direction of the word")
    right.axvline(0, color=INK, linewidth=1)
    right.set_title("its value supports")
    for ax in (left, right):
        ax.grid(False, axis="y")
    if title:
        left.figure.suptitle(title, fontsize=13, fontweight="bold")
    return left, right


def draw_layer(words):
    """Draw one layer over a row of words: attention goes across, the networks up; returns the Axes.

    Every word goes into the attention of every word, and into one feed-forward network: its own.
    """
    apart, wide = 2.9, 2.9 * len(words)
    d = Diagram(
        wide + 2.2, 6.4,
        f"One layer, read upwards, over the words {', '.join(words)}. Arrows lead from every word "
        "to the attention of every word; above it each word has a feed-forward network to itself, "
        "and no arrow leads across. All these networks have the same weights.",
    )  # fmt: skip
    below, above = [], []
    for t, word in enumerate(words):
        x = 2.2 + apart * (t + 0.5)
        token = d.box(x, 0.5, word, shape="(C,)", role="residual", size=(1.5, 0.8))
        mix = d.box(x, 2.6, "attention", role="attention", size=(2.1, 0.7))
        network = d.box(x, 4.2, "FFN", role="feedforward", size=(2.1, 0.7))
        out = d.box(x, 5.8, "(C,)", role="residual", size=(1.5, 0.6))
        d.arrow(mix, network)
        d.arrow(network, out)
        below.append(token)
        above.append(mix)
    for token in below:
        for mix in above:
            role = "residual" if token.x == mix.x else "attention"
            d.arrow(token.top, mix.bottom, role=role)
    d.text(0.1, 1.55, "across the words", size=SMALL, align="left")
    d.text(0.1, 4.2, "each word by itself,\nthe same weights", size=SMALL, align="left")
    return d.ax


def draw_network(x, w_1, b_1, w_2, b_2):
    """Draw a feed-forward network at work on one word x (C,), all numbers shown; returns the Axes.

    w_1 is (C, d_ff), b_1 (d_ff,), w_2 (d_ff, C) and b_2 (C,).
    """
    x, b_1, b_2 = (
        as_array(part, name, ndim=1) for part, name in ((x, "x"), (b_1, "b_1"), (b_2, "b_2"))
    )
    w_1, w_2 = as_array(w_1, "w_1", ndim=2), as_array(w_2, "w_2", ndim=2)
    sums = x @ w_1 + b_1
    hidden = np.maximum(sums, 0)
    out = hidden @ w_2 + b_2
    cell, high = 0.7, 0.7 * max(w_1.shape) + 1.7
    d = Diagram(
        cell * 4 * (len(x) + len(sums)) + 7.0, high,
        f"A word {x.tolist()} times W 1 plus b 1 makes {sums.tolist()}, ReLU makes "
        f"{hidden.tolist()} of it, and times W 2 plus b 2 that becomes {out.tolist()}.",
    )  # fmt: skip
    y, left = (high - 0.6) / 2, 0.4
    shown = (
        ("word", x[None], "input", "×"), ("$W_1$", w_1, "feedforward", "+"),
        ("$b_1$", b_1[None], "feedforward", "="), ("sums", sums[None], "plain", "ReLU"),
        ("hidden", hidden[None], "output", "×"), ("$W_2$", w_2, "feedforward", "+"),
        ("$b_2$", b_2[None], "feedforward", "="), ("out", out[None], "input", None),
    )  # fmt: skip
    for title, values, role, sign in shown:
        width = values.shape[1] * cell
        d.matrix(left + width / 2, y, values, title=title, role=role, cell=cell)
        left += width
        if sign == "ReLU":
            d.arrow((left + 0.1, y), (left + 1.3, y))
            d.text(left + 0.7, y + 0.3, sign, size=SMALL)
            left += 1.4
        elif sign:
            d.text(left + 0.4, y, sign, size=14)
            left += 0.8
    return d.ax


def draw_weights(d_model, d_ff):
    """Draw the matrices of one encoder layer to scale, an area for a number; returns the Axes."""
    side, wide = 1.5, 1.5 * d_ff / d_model
    d = Diagram(
        4 * (side + 0.3) + 2 * (wide + 0.4) + 0.6, max(side, 1.5) + 1.7,
        f"To scale: four squares of {d_model} × {d_model} for attention's query, key, value and "
        f"output, and two rectangles of {d_model} × {d_ff} for the feed-forward network.",
    )  # fmt: skip
    left, first = 0.3, 0.3
    for i, name in enumerate(("$W_Q$", "$W_K$", "$W_V$", "$W_O$")):
        d.box(left + side / 2, 1.0 + side / 2, name, role="attention", size=(side, side))
        left += side + (0.3 if i < 3 else 0)
    attention = (first + left) / 2
    left += 0.6
    first = left
    for i, name in enumerate(("$W_1$", "$W_2$ᵀ")):
        d.box(left + wide / 2, 1.0 + side / 2, name, role="feedforward", size=(wide, side))
        left += wide + (0.3 if i == 0 else 0)
    network, total = (first + left) / 2, 4 * d_model**2 + 2 * d_model * d_ff
    for x, name, count in (
        (attention, "attention", 4 * d_model**2), (network, "feed-forward", 2 * d_model * d_ff)
    ):  # fmt: skip
        d.text(x, side + 1.45, name)
        d.text(x, 0.55, f"{count:,} weights, {count / total:.0%}", size=SMALL)
    return d.ax


def draw_gate():
    """Draw the plain network beside the gated one, from x to the output; returns the Axes."""
    d = Diagram(
        17.2, 4.4,
        "Left, the plain network: x goes through w 1, a ReLU and w 2. Right, SwiGLU: x goes "
        "through w 1 and silu, which is the gate, and beside that through w 3; the two are "
        "multiplied number by number, and the product goes through w 2.",
    )  # fmt: skip
    d.text(3.4, 4.0, "FeedForward")
    x = d.box(0.6, 2.1, "x", shape="(C,)", role="input")
    up = d.box(2.5, 2.1, "w_1", role="feedforward")
    bend = d.box(4.3, 2.1, "ReLU", role="plain")
    down = d.box(6.1, 2.1, "w_2", role="feedforward")
    for start, end in ((x, up), (up, bend), (bend, down), (down, (7.3, 2.1))):
        d.arrow(start, end)
    d.text(5.2, 2.75, "(d_ff,)", size=SMALL)
    d.text(12.6, 4.0, "SwiGLU")
    x = d.box(8.7, 2.1, "x", shape="(C,)", role="input")
    gate = d.box(10.6, 3.1, "w_1", role="feedforward")
    silu = d.box(12.4, 3.1, "silu", role="mask")
    through = d.box(10.6, 1.1, "w_3", role="feedforward")
    times = d.box(14.0, 2.1, "×", role="output", size=(0.6, 0.6))
    down = d.box(15.7, 2.1, "w_2", role="feedforward")
    for start, end in ((x, gate), (gate, silu), (x, through), (times, down), (down, (16.9, 2.1))):
        d.arrow(start, end)
    d.arrow(silu.right, times.top)
    d.arrow(through.right, times.bottom)
    d.text(13.6, 3.3, "how far open", size=SMALL, align="left")
    d.text(13.6, 0.9, "what may pass", size=SMALL, align="left")
    return d.ax


def draw_units(x, w_1, b_1, w_2):
    """Draw a network as a table with a row per unit: key, activity, value; returns the Axes.

    x (C,) is the token; w_1 (C, d_ff), b_1 (d_ff,) and w_2 (d_ff, C) are the weights.
    """
    x, b_1 = as_array(x, "x", ndim=1), as_array(b_1, "b_1", ndim=1)
    keys, values = as_array(w_1, "w_1", ndim=2).T, as_array(w_2, "w_2", ndim=2)
    activity = np.maximum(keys @ x + b_1, 0)
    written = activity[:, None] * values
    n, c, cell = len(keys), len(x), 0.72
    d = Diagram(
        3 * c * cell + 12.6, (n + 1) * cell + 2.3,
        f"A word {x.tolist()} is compared with the keys {keys.tolist()} of {n} units; their "
        f"activities are {activity.tolist()}. Each unit writes its value, {values.tolist()}, so "
        f"many times; the sum is {written.sum(axis=0).tolist()}.",
    )  # fmt: skip
    middle = cell * (n / 2 + 1) + 0.9
    named = [f"unit {i}" for i in range(n)]
    asks = d.matrix(0.4 + c * cell / 2, middle, x[None], title="the word", role="input", cell=cell)
    left = asks.right[0] + 3.0
    table = d.matrix(left + c * cell / 2, middle, keys, named, title="keys", role="key", cell=cell)
    d.arrow(asks.right, (table.left[0] - 0.1, middle), "key · x + b")
    left = table.right[0] + 1.9
    awake = d.matrix(left, middle, activity[:, None], title="activity", role="weights", cell=cell)
    d.arrow(table.right, awake.left, "ReLU")
    left = awake.right[0] + 0.9
    worth = d.matrix(left + c * cell / 2, middle, values, title="values", role="value", cell=cell)
    d.text((awake.right[0] + worth.left[0]) / 2, middle, "×", size=14)
    left = worth.right[0] + 1.9
    parts = d.matrix(
        left + c * cell / 2, middle, written, title="written", role="output", cell=cell
    )
    d.text((worth.right[0] + parts.left[0]) / 2, middle, "=", size=14)
    d.matrix(
        parts.x, middle - cell * (n / 2 + 1.2), written.sum(axis=0)[None], ["sum"], role="output",
        cell=cell,
    )  # fmt: skip
    return d.ax


def draw_mirror(one, other):
    """Draw how a value is mirrored between the directions of two words; returns the Axes.

    one, other: the words' names. What a value says for one becomes what it says for the other.
    """
    d = Diagram(
        10.5, 6.6,
        f"An arrow, the value, leans towards {one}, which lies to the left; its mirror image, as "
        f"long and as high, leans as far towards {other}, which lies to the right.",
    )  # fmt: skip
    foot, high, far = (5.2, 0.7), 4.6, 2.4
    d.ax.plot([5.2, 5.2], [0.5, 6.0], color=COLOURS["plain"], linestyle=":", linewidth=2)
    d.text(5.2, 6.3, "the mirror", size=SMALL)
    d.arrow((1.9, 1.2), (0.9, 1.2), role="key")
    d.text(2.0, 1.2, label(one), align="left")
    d.arrow((8.6, 1.2), (9.6, 1.2), role="output")
    d.text(8.5, 1.2, label(other), align="right")
    d.arrow(foot, (foot[0] - far, high), role="value")
    d.arrow(foot, (foot[0] + far, high), role="value", dashed=True)
    d.text(foot[0] - far, high + 0.35, "value")
    d.text(foot[0] + far, high + 0.35, "mirrored")
    d.arrow((foot[0] - far + 0.1, high), (foot[0] + far - 0.1, high), "the edit")
    return d.ax


def verdict_planes(planes, praise, named):
    """Draw four sentences in each {(title, x axis, y axis): points (4, 2)}; returns the Axes.

    praise: which of them are praise; named: the sentences. Points in one place share a label.
    """
    axes = plt.subplots(1, len(planes), figsize=(5.6 * len(planes), 4.2))[1]
    for ax, ((title, across, up), points) in zip(np.atleast_1d(axes), planes.items(), strict=True):
        points = as_array(points, title, ndim=2)
        places = {}
        for place, good, name in zip(points.tolist(), praise, named, strict=True):
            color, marker = (CYCLE[2], "o") if good else (CYCLE[3], "X")
            ax.plot(*place, marker, color=color, markersize=13, zorder=3)
            places.setdefault(tuple(place), []).append(name)
        for place, names in places.items():
            ax.annotate(" / ".join(names), place, (0, 13), textcoords="offset points", ha="center")
        ax.set(title=title, xlabel=across, ylabel=up)
        ax.margins(0.35)
        ax.set_aspect("equal", adjustable="datalim")
    ax = np.atleast_1d(axes)[-1]
    for marker, color, name in (("o", CYCLE[2], "praise"), ("X", CYCLE[3], "no praise")):
        ax.plot([], [], marker, color=color, markersize=10, label=name)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return list(np.atleast_1d(axes))
