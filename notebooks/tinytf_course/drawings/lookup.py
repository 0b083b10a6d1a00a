"""Attention drawn as small matrices with their numbers: maps, scores, mask, softmax, mix."""

import math

import numpy as np

from tinytf.viz.style import as_array, label

from .diagram import Diagram


def draw_maps(x, maps, words):
    """Draw x (T, C) times each of three maps (C, D), as {"Q": w_q, "K": w_k, "V": w_v}.

    Every number stands in its cell; words are the names of x's rows, and of every product's.
    """
    x = as_array(x, "x", ndim=2)
    maps = {name: as_array(w, name, ndim=2) for name, w in maps.items()}
    cell, high = 0.62, 0.62 * len(x) + 1.0
    d = Diagram(
        11.6, high * len(maps),
        alt=f"X, {_rounded(x)}, times "
        + "; times ".join(f"W_{name}, {_rounded(w)}, is {name}, {_rounded(x @ w)}"
                          for name, w in maps.items()) + ".",
    )  # fmt: skip
    middle = high * len(maps) / 2
    left = d.matrix(2.6, middle, x, words, title=f"X {x.shape}", cell=cell, role="input")
    for i, (role, (name, w)) in enumerate(
        zip(("query", "key", "value"), maps.items(), strict=True)
    ):
        y = high * (len(maps) - i - 0.5) - 0.2
        by = d.matrix(6.2, y, w, title=f"W_{name} {w.shape}", role=role, cell=cell)
        out = d.matrix(10.0, y, x @ w, words, title=f"{name} {(x @ w).shape}", role=role, cell=cell)
        d.arrow((left.right[0] + 0.2, middle), (by.left[0] - 0.5, y), role=role)
        d.text(by.left[0] - 0.25, y, "×", size=14)
        d.text((by.right[0] + out.left[0]) / 2 - 0.5, y, "=", size=14)
    return d.ax


def draw_steps(q, k, v, mask=None, words=None, keys=None):
    """Draw attention step by step for q (T, D), k (S, D), v (S, C): every matrix, every number.

    mask (T, S): True = may attend. words: names of the rows, which are queries; keys: names of
    the rows of v where another sentence answers.
    """
    q, k, v = (as_array(x, name, ndim=2) for x, name in ((q, "q"), (k, "k"), (v, "v")))
    hidden = None if mask is None else as_array(mask, "mask", ndim=2) == 0
    words = (
        [f"word {t}" for t in range(len(q))] if words is None else [label(word) for word in words]
    )
    keys = keys and [label(word) for word in keys]
    scores = q @ k.T / math.sqrt(q.shape[1])
    seen = scores if hidden is None else np.where(hidden, -np.inf, scores)
    weights = np.exp(seen - seen.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    cell, top = 0.66, 0.33 * max(len(q), len(k)) + 0.75
    wide = [len(k) * cell, len(k) * cell, v.shape[1] * cell, v.shape[1] * cell]
    places = _in_a_row(1.6, 1.7, wide)
    mix = weights @ v
    d = Diagram(
        places[-1] + v.shape[1] * cell / 2 + 0.5, 2 * top + 0.5,
        alt=f"Scores {_rounded(scores)} become weights {_rounded(weights)}, whose rows sum to 1. "
        f"Times V, {_rounded(v)}, they give {_rounded(mix)}.",
    )  # fmt: skip
    shown = (
        ("Q Kᵀ / √d", scores, "key", hidden),
        ("weights", weights, None, hidden),
        ("V", v, "value", None),
        ("weights · V", mix, "output", None),
    )
    boxes = [
        d.matrix(
            x,
            top,
            values,
            {0: words, 2: keys}.get(i),
            title=title,
            role=role,
            hidden=grey,
            cell=cell,
        )
        for i, (x, (title, values, role, grey)) in enumerate(zip(places, shown, strict=True))
    ]
    for left, right, sign in zip(boxes, boxes[1:], ("softmax", "×", "="), strict=False):
        start, end = left.right[0], right.left[0]
        if sign == "softmax":
            d.arrow((start + 0.1, top), (end - 0.1, top))
            d.text((start + end) / 2, top + 0.3, sign, size=9)
        else:
            d.text((start + end) / 2, top, sign, size=14)
    return d.ax


def _rounded(matrix):
    return matrix.round(2).tolist()


def _in_a_row(left, gap, widths):
    """The middles of things of these widths, `gap` between them."""
    starts = [left + sum(widths[:i]) + gap * i for i in range(len(widths))]
    return [start + width / 2 for start, width in zip(starts, widths, strict=True)]
