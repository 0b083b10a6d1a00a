"""A drawing of attention as small matrices with their numbers: scores, mask, softmax, mix."""

import math

import numpy as np

from .diagram import Diagram
from .style import as_array


def draw_steps(q, k, v, mask=None, words=None):
    """Draw attention step by step for q (T, D), k (S, D), v (S, C): every matrix, every number.

    mask (T, S): True = may attend. words: names of the rows, which are queries and keys.
    """
    q, k, v = (as_array(x, name, ndim=2) for x, name in ((q, "q"), (k, "k"), (v, "v")))
    hidden = None if mask is None else as_array(mask, "mask", ndim=2) == 0
    words = [f"word {t}" for t in range(len(q))] if words is None else list(words)
    scores = q @ k.T / math.sqrt(q.shape[1])
    seen = scores if hidden is None else np.where(hidden, -np.inf, scores)
    weights = np.exp(seen - seen.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    cell, top = 0.66, 0.33 * len(q) + 0.75
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
            words if i == 0 else None,
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
