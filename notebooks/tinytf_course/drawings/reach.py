"""Drawings of who reaches whom: an average by hand, and a network, a convolution, attention."""

from itertools import pairwise

from tinytf.viz.style import COLOURS

from .diagram import Diagram
from .recurrent import QUIET, numbers

__all__ = ["draw_average", "draw_reach"]


def draw_average(states, keys, query, scores, weights):
    """Draw one step of attention by hand, a row for each state: its key, score, weight and share.

    All are plain numbers; `scores` and `weights` hold one for each state. Returns the Diagram.
    """
    shares = [[w * number for number in state] for w, state in zip(weights, states, strict=True)]
    context = [sum(column) for column in zip(*shares, strict=True)]
    count = len(states)
    d = Diagram(
        14.0, 2.7 + 1.1 * count,
        f"One step of attention over {count} states, a row each. The state gives a key, key and "
        "query give a score, softmax over all scores gives the weight, and weight times state is "
        f"its share. The shares add up to the context, {numbers(context)}.",
    )  # fmt: skip
    columns = (1.2, 4.0, 7.2, 9.8, 12.5)
    names = ("state $h_j$", "key $U h_j$", "score $e_j$", "weight $α_j$", "$α_j h_j$")
    for x, name in zip(columns, names, strict=True):
        d.text(x, 2.2 + 1.1 * count, name, color=QUIET)
    asks = d.box(columns[1], 0.6, "query $W s$", shape=numbers(query), role="query")
    total = d.box(columns[4], 0.6, "context", shape=numbers(context), role="attention")
    d.text(columns[4] - 1.0, 1.35, "sum")
    rows = []
    for j in range(count):
        y = 1.05 + 1.1 * (count - j)
        row = [
            d.box(columns[0], y, numbers(states[j]), role="encoder"),
            d.box(columns[1], y, numbers(keys[j]), role="key"),
            d.box(columns[2], y, numbers([scores[j]])[1:-1]),
            d.box(columns[3], y, f"{weights[j]:.2f}", role="attention"),
            d.box(columns[4], y, numbers(shares[j]), role="encoder"),
        ]
        for k, (a, b) in enumerate(pairwise(row)):
            d.arrow(a, b, ("U", None, None, None)[k])
        d.arrow(asks.right, row[2].left)
        rows.append(row)
    d.frame([row[2] for row in rows] + [row[3] for row in rows])
    added = d.frame([row[4] for row in rows])
    d.text((columns[2] + columns[3]) / 2, 1.25, "softmax over all rows", size=9)
    d.arrow(added, total)
    return d


def draw_reach(words=6):
    """Draw how the last output depends on word 1: along a chain, through layers, and at once."""
    gap, apart = 0.86, 0.9
    panel = gap * (words - 1)
    width = 3 * panel + 2 * apart + 1.4
    d = Diagram(
        width, 4.7,
        f"How output {words} depends on word 1, three ways. RNN: along a chain of states, "
        f"{words - 1} steps, each waiting for the one before. Convolution of three: each "
        f"layer sees one position further on each side, so {words - 1} layers are needed. "
        "Attention: one arrow from every word to the last, 1 step.",
    )  # fmt: skip
    starts = [0.7 + k * (panel + apart) for k in range(3)]
    titles = (
        f"RNN: {words - 1} steps",
        f"convolution: {words - 1} layers",
        "attention: 1 step",
    )
    for start, title in zip(starts, titles, strict=True):
        d.text(start + panel / 2, 4.35, title)
    _chain(d, starts[0], words, gap)
    _layers(d, starts[1], words, gap)
    _at_once(d, starts[2], words, gap)
    return d


def _dots(d, left, height, count, gap, role, faint=()):
    return [
        d.box(left + gap * j, height, "", role=role, size=(0.4, 0.4), faint=j in faint)
        for j in range(count)
    ]


def _named(d, dots):
    for j, dot in enumerate(dots, start=1):
        d.text(dot.x, 0.3, str(j), size=9, color=QUIET)


def _chain(d, left, words, gap):
    read = _dots(d, left, 0.85, words, gap, "embedding")
    _named(d, read)
    states = _dots(d, left, 2.2, words, gap, "encoder")
    for low, high in zip(read, states, strict=True):
        d.arrow(low, high, role="mask" if low is read[0] else None)
    for a, b in pairwise(states):
        d.arrow(a, b, role="mask")


def _layers(d, left, words, gap):
    rise = 3.0 / (words - 1)
    rows = [
        _dots(d, left, 0.85 + rise * k, words, gap, "embedding" if k == 0 else "value")
        for k in range(words)
    ]
    _named(d, rows[0])
    for k, (low, high) in enumerate(pairwise(rows)):
        for j, dot in enumerate(high):
            for i in (j - 1, j, j + 1):
                if 0 <= i < words:
                    path = i == k and j == k + 1
                    d.ax.plot(
                        [low[i].x, dot.x], [low[i].top[1], dot.bottom[1]], zorder=3 if path else 1,
                        color=COLOURS["mask"] if path else "#c9ced6",
                        linewidth=2.2 if path else 0.9,
                    )  # fmt: skip


def _at_once(d, left, words, gap):
    read = _dots(d, left, 0.85, words, gap, "embedding")
    _named(d, read)
    out = _dots(d, left, 3.2, words, gap, "output", faint=range(words - 1))
    for low in read:
        d.arrow(low.top, out[-1].bottom, role="mask" if low is read[0] else None)
