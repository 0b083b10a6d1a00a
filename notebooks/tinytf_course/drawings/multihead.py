"""Drawings of multi-head attention: one head, the split, the three attentions."""

import numpy as np
from matplotlib.patches import Rectangle

from tinytf.viz.style import ATTENTION, CYCLE, PAPER, as_array, label

from .diagram import Diagram

ROLES = ("query", "key", "value")


def draw_one_head(length, width):
    """Draw attention with one head, `length` words of `width` numbers: every tensor's shape."""
    row, square = f"({length}, {width})", f"({length}, {length})"
    d = Diagram(
        15, 4.8,
        alt=f"X, {row}, goes through the projections w_q, w_k and w_v to Q, K and V, each {row}. "
        f"Q and K give scores, {square}, and a softmax the weights, {square}. Weights times V is "
        f"the output, {row}.",
    )  # fmt: skip
    (x,), (q, k, v), (scores, _), (weights, out) = d.columns(
        [("X", row, "plain")],
        [(name, row, role) for name, role in zip("QKV", ROLES, strict=True)],
        [("Q Kᵀ / √d", f"scores {square}", "weights"), None],
        [("softmax", f"weights {square}", "weights"), ("weights · V", f"output {row}", "output")],
    )
    for place, name, role in zip((q, k, v), ("w_q", "w_k", "w_v"), ROLES, strict=True):
        d.arrow(x.right, place.left, f"{name} ({width}, {width})", role=role)
    d.arrow(q.right, scores.left)
    d.arrow(k.right, scores.left)
    d.chain(scores, weights, out)
    d.arrow(v.right, out.left)
    return d.ax


def draw_split(table, num_heads):
    """Draw how heads share a table (T, C): its slices, one head each, and how they are joined."""
    table = as_array(table, "table", ndim=2)
    words, width = table.shape
    slices = np.split(table, num_heads, axis=1)
    narrow, row = f"({words}, {width // num_heads})", f"({words}, {width})"
    d = Diagram(
        18, 2.6 * num_heads,
        alt=f"A table {row} is cut into {num_heads} slices of columns, {narrow} each. Each slice "
        f"goes to an attention of its own; the outputs, {narrow} each, are concatenated, "
        f"{row}, and w_o mixes them.",
    )  # fmt: skip
    cell, middle = 0.56, 1.3 * num_heads
    step = cell * width / num_heads + 0.14
    for h, part in enumerate(slices):
        x = 1.3 + step * (h + 0.5)
        d.matrix(x, middle, part, [f"token {t}" for t in range(words)] if h == 0 else None,
                 role="query", cell=cell)  # fmt: skip
    wide = 1.3 + step * num_heads
    d.text(1.3 + step * num_heads / 2, middle + 0.5 * words * cell + 0.35, f"x @ W_q {row}")
    for h, part in enumerate(slices):
        y = 2.6 * num_heads - 1.5 - 2.6 * h
        head = d.matrix(wide + 2.2, y, part, title=f"head {h} {narrow}", role="query", cell=cell)
        d.arrow((wide + 0.15, middle), (wide + 2.2 - head.width / 2 - 0.1, y))
        attention = d.box(wide + 5.2, y, "attention", shape=f"its own {words} × {words} weights",
                          role="weights")  # fmt: skip
        d.arrow((head.right[0] + 0.1, y), attention.left)
        d.arrow(attention.right, (wide + 8.5, middle + 0.28 * ((num_heads - 1) / 2 - h)))
    joined = d.box(wide + 9.4, middle, "concatenated", shape=row)
    out = d.box(wide + 11.9, middle, "output", shape=row, role="output")
    d.arrow(joined, out, "w_o")
    return d.ax


def draw_heads(named, blank=False, shaded=False):
    """Draw heads as tables of the numbers they hold: {name: (H, T, D)}, a row for each name.

    With `blank`, cells that hold 0 are grey and empty, as in a mask. With `shaded`, each number has
    a shade of its own, from pale for the least to dark for the greatest.
    """
    tables = {name: as_array(heads, name, ndim=3) for name, heads in named.items()}
    shapes = [table.shape for table in tables.values()]
    across, words, width = (max(shape[axis] for shape in shapes) for axis in range(3))
    cell, role = 0.56, "weights" if blank else "query"
    step, high = cell * width + 1.3, cell * words + 1.1
    says = ". ".join(f"{name}: {_spoken(heads)}" for name, heads in tables.items())
    d = Diagram(3.0 + step * across, high * len(tables), alt=says)
    for i, (name, heads) in enumerate(tables.items()):
        y = high * (len(tables) - i - 0.5) - 0.2
        d.text(0.3, y, name, align="left")
        for h, table in enumerate(heads):
            x, hidden = 3.0 + step * (h + 0.4), table == 0 if blank else None
            d.matrix(x, y, table, title=f"head {h}", role=role, hidden=hidden, cell=cell)
            if shaded:
                _shade(d, x, y, table / max(t.max() for t in tables.values()), cell)
    return d.ax


def _shade(d, x, y, shares, cell):
    """Lay shades (0 to 1, up to half of the darkest) under a matrix's numbers, around (x, y)."""
    height, width = shares.shape
    for (i, j), share in np.ndenumerate(shares):
        corner = x + (j - width / 2) * cell, y + (height / 2 - i - 1) * cell
        shade = ATTENTION(0.5 * share)
        d.ax.add_patch(Rectangle(corner, cell, cell, facecolor=shade, edgecolor=PAPER, zorder=2.5))


def _spoken(heads):
    """The rows of numbers that heads (H, T, D) hold, in words."""
    rows = [", ".join(" ".join(f"{n:g}" for n in row) for row in table) for table in heads]
    return "; ".join(f"head {h} has the rows {row}" for h, row in enumerate(rows))


def draw_three_attentions(source, target, source_mask, target_mask):
    """Draw the Transformer's three attentions: who asks, who answers, what may be seen.

    source, target: words, as queries and keys of the masks (True = may attend), (S, S) and (T, T).
    Cross-attention's mask is the source's last row for each target word.
    """
    source_mask, target_mask = as_array(source_mask, ndim=2), as_array(target_mask, ndim=2)
    cross = np.repeat(source_mask[-1:], len(target), axis=0)
    source, target = [label(word) for word in source], [label(word) for word in target]
    d = Diagram(
        18.4, 8.2,
        alt="In the encoder's self-attention queries, keys and values come from the source, and "
        "its padding is hidden. In the decoder's self-attention all three come from the target, "
        "and what is later is hidden. In cross-attention queries come from the target, keys and "
        "values from the source as the encoder has read it, and the source's padding is hidden.",
    )  # fmt: skip
    columns = (
        ("encoder: self-attention", ("source",), "sss", source_mask, source, source),
        ("decoder: masked self-attention", ("target",), "ttt", target_mask, target, target),
        ("decoder: cross-attention", ("target", "source, encoded"), "tss", cross, target, source),
    )
    for at, (title, givers, gives, mask, queries, keys) in zip(
        (3, 9.1, 15.4), columns, strict=True
    ):
        _attention_column(d, at, title, givers, gives, mask, queries, keys)
    return d.ax


def _attention_column(d, at, title, givers, gives, mask, queries, keys):
    d.text(at, 7.9, title, size=12)
    spots = (at,) if len(givers) == 1 else (at - 1.5, at + 0.75)
    boxes = {
        name[0]: d.box(x, 0.6, name, role="memory" if name[0] == "s" else "output")
        for x, name in zip(spots, givers, strict=True)
    }
    attention = d.box(at, 3.2, "attention", role="weights", size=(3.6, 0.7))
    for x, name, role, giver in zip((-1.5, 0, 1.5), "QKV", ROLES, gives, strict=True):
        box = d.box(at + x, 1.9, name, role=role)
        d.arrow(boxes[giver].top, box.bottom, role=role)
        d.arrow(box.top, (at + x, attention.bottom[1]), role=role)
    d.matrix(at + 0.4, 5.6, mask, queries, None, role="weights", hidden=mask == 0, cell=0.6)
    for j, word in enumerate(keys):
        x = at + 0.4 + (j + 0.5 - len(keys) / 2) * 0.6
        top = 5.6 + len(queries) * 0.3 + 0.1
        d.ax.text(x, top, word, size=9, rotation=60, ha="left", va="bottom", rotation_mode="anchor")
    d.text(at + 0.4, 5.6 - len(queries) * 0.3 - 0.3, "1: may attend", size=9)


def draw_looks(weights, source, target, place):
    """Draw where each head looks in the source while it writes word number `place` of the target.

    weights is (H, T, S), of cross-attention; a line's width is its weight, and one below 0.05 is
    left out. Raises ValueError for a `place` outside the target.
    """
    weights = as_array(weights, "weights", ndim=3)
    if not 0 <= place < len(target):
        raise ValueError(f"place {place} is not one of 0 to {len(target) - 1}, the target's words")
    row, names = weights[:, place], [label(word) for word in target]  # (H, S)
    high = 0.62 * max(len(source), len(target))
    best = ", ".join(f"head {h} looks most at {source[w.argmax()]} ({w.max():.2f})"
                     for h, w in enumerate(row))  # fmt: skip
    d = Diagram(
        12.4, high + 1.7,
        alt=f"The source {' '.join(source)} on the left, the target {' '.join(target)} on the "
        f"right. While {target[place]} is written, {best}.",
    )  # fmt: skip
    middle, size = 0.85 + high / 2, (2.3, 0.48)
    left, right = (
        [middle + 0.62 * ((len(words) - 1) / 2 - i) for i in range(len(words))]
        for words in (source, target)
    )
    read = [d.box(1.5, y, word, role="memory", size=size)
            for y, word in zip(left, source, strict=True)]  # fmt: skip
    made = [d.box(10.9, y, name, role="output", size=size, faint=i != place)
            for i, (y, name) in enumerate(zip(right, names, strict=True))]  # fmt: skip
    for h, head in enumerate(row):
        shift = 0.09 * ((len(row) - 1) / 2 - h)
        for box, weight in zip(read, head, strict=True):
            if weight >= 0.05:
                d.ax.plot(
                    [box.right[0], made[place].left[0]], [box.y + shift, made[place].y + shift],
                    color=CYCLE[h], linewidth=6 * weight, solid_capstyle="butt", zorder=1,
                )  # fmt: skip
        x = 6.2 + 2.2 * (h - (len(row) - 1) / 2)
        d.ax.plot([x - 0.9, x - 0.3], [0.35, 0.35], color=CYCLE[h], linewidth=4)
        d.text(x - 0.15, 0.35, f"head {h}", size=10, align="left")
    d.text(1.5, high + 1.25, "source", size=10)
    d.text(10.9, high + 1.25, "target", size=10)
    return d.ax
