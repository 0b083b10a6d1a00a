"""Drawings of what makes a model cheaper: tiles, another order of products, bits, two processes."""

import math

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from tinytf.viz.spoken import alt
from tinytf.viz.style import COLOURS, INK, MASKED, PAPER

from .diagram import SMALL, Box, Diagram

SEEN, WASTED, SKIPPED = "seen", "computed, then hidden", "tile never computed"
FILLS = {SEEN: COLOURS["weights"], WASTED: COLOURS["key"], SKIPPED: MASKED}
PARTS = {"sign": "mask", "exponent": "query", "fraction": "value"}
KINDS = {"float32": (8, 23), "float16": (5, 10), "bfloat16": (8, 7)}


def draw_carried(scores, tile):
    """Draw a row of scores in tiles, and under each what is carried on: largest, and the sum.

    Raises ValueError for a row that is not whole tiles.
    """
    if not scores or len(scores) % tile:
        raise ValueError(f"{len(scores)} scores are not whole tiles of {tile}")
    tiles = [scores[i : i + tile] for i in range(0, len(scores), tile)]
    wide = 5.2
    said = []
    d = Diagram(wide * len(tiles) + 0.4, 4.3, alt="to be said below")
    largest, total, before = -math.inf, 0.0, None
    for i, row in enumerate(tiles):
        x = 2.3 + i * wide
        seen = d.matrix(x, 3.4, [row], role="query", digits=1, cell=0.8, title=f"tile {i + 1}")
        new = max(largest, *row)
        total = total * math.exp(largest - new) + sum(math.exp(s - new) for s in row)
        text = f"largest {new:g}\nsum of exp(s − {new:g})"
        state = d.box(x, 0.95, text, f"{total:.3f}", role="output")
        d.arrow(seen, state)
        if before is not None:
            d.arrow(before, state, role="output")
            middle = (before.right[0] + state.left[0]) / 2
            d.text(middle, 1.25, f"sum × exp({largest:g} − {new:g})", size=SMALL)
        said.append(f"after tile {i + 1} the largest is {new:g} and the sum {total:.3f}")
        largest, before = new, state
    alt(d.ax.figure, f"A row of {len(scores)} scores in {len(tiles)} tiles: {'; '.join(said)}. "
        "Where the largest grows, the sum that is carried on is first made smaller.")  # fmt: skip
    return d.ax


def draw_tiles(masks, tile):
    """Draw {name: mask (T, S)} cut into tiles: what is seen, and which tiles nobody needs.

    A cell is a score, a heavy line goes around each tile. Raises ValueError where a side is not
    whole tiles.
    """
    cell, sizes = 0.34, [tuple(mask.shape) for mask in masks.values()]
    if any(side % tile for size in sizes for side in size):
        raise ValueError(f"masks of {sizes} are not whole tiles of {tile}")
    high, wide = max(h for h, _ in sizes) * cell, max(w for _, w in sizes) * cell + 1.2
    told = []
    d = Diagram(wide * len(masks) + 0.6, high + 2.1, alt="to be said below")
    for number, (name, mask) in enumerate(masks.items()):
        left, count = 0.9 + number * wide, 0
        height, width = mask.shape
        for t in range(0, height, tile):
            for s in range(0, width, tile):
                some = mask[t : t + tile, s : s + tile]
                count += bool(some.any())
                for i in range(tile):
                    for j in range(tile):
                        kind = SEEN if some[i, j] else WASTED if some.any() else SKIPPED
                        corner = left + (s + j) * cell, 0.95 + high - (t + i + 1) * cell
                        _square(d, corner, cell, kind)
                corner = left + s * cell, 0.95 + high - (t + tile) * cell
                d.ax.add_patch(
                    Rectangle(corner, tile * cell, tile * cell, fill=False, edgecolor=INK, zorder=3)
                )
        tiles = (height // tile) * (width // tile)
        d.text(left + width * cell / 2, high + 1.3, f"{name}: {count} of {tiles}")
        told.append(f"{name}, {count} of {tiles} tiles have something to see")
    x = 0.9
    for kind in FILLS:
        _square(d, (x, 0.3), 0.3, kind)
        d.text(x + 0.45, 0.45, kind, size=SMALL, align="left")
        x += 1.3 if kind == SEEN else 3.4
    alt(d.ax.figure, f"Squares of scores cut into tiles: {'; '.join(told)}.")
    return d.ax


def draw_two_memories():
    """Draw what travels between a large, slow memory and a small, fast one, and what in tiles."""
    d = Diagram(
        17.4, 6.2,
        alt="Two drawings of a large, slow memory above a small, fast one. Plainly: Q and K go "
        "down, the n by n scores come up, go down to the softmax, come up as n by n weights and "
        "go down again with V; the output comes up. In tiles: Q and the output travel once, K and "
        "V once for each row of tiles; tiles, scores and state are below.",
    )  # fmt: skip
    up, down = 4.4, 1.4
    for x, width, name in ((0.5, 10.3, "explicit attention"), (11.6, 5.3, "in tiles")):
        d.text(x + width / 2, 5.9, name)
        d.frame([Box(x + width / 2, up, width - 0.4, 1.1)], "main memory: large, slow")
        d.frame([Box(x + width / 2, down, width - 0.4, 1.1)])
        d.text(x + width / 2, 0.35, "in the processor: small, fast", size=SMALL)
    made = [("Q, K", "(n, D)", "key"), ("scores", "(n, n)", "mask"), ("weights", "(n, n)", "mask"),
            ("V", "(n, D)", "value"), ("out", "(n, D)", "output")]  # fmt: skip
    places = (1.5, 4.0, 6.3, 8.1, 9.8)
    kept = [d.box(x, up, *one[:2], role=one[2]) for x, one in zip(places, made, strict=True)]
    steps = [d.box(x, down, text, role="plain")
             for x, text in ((2.6, "Q times Kᵀ"), (5.2, "softmax"), (8.1, "times V"))]  # fmt: skip
    for start, end, aside in ((0, 0, 0), (1, 1, 0), (2, 2, -0.4), (3, 2, 0)):
        point = steps[end].x + aside, steps[end].top[1]
        d.arrow(kept[start].bottom, point, role="mask" if 0 < start < 3 else None)
    for start, end, aside in ((0, 1, 0), (1, 2, 0), (2, 4, 0.4)):
        point = steps[start].x + aside, steps[start].top[1]
        d.arrow(point, kept[end].bottom, role="mask" if end < 3 else None)
    q = d.box(12.6, up, "Q", "(n, D)", role="query")
    kv = d.box(14.2, up, "K, V", "(n, D)", role="key")
    out = d.box(15.8, up, "out", "(n, D)", role="output")
    tile = d.box(14.2, down, "tiles of Q, K and V,\ntheir scores, the state", role="weights",
                 size=(3.6, 1.1))  # fmt: skip
    for x, box, words in ((-1.4, q, "once"), (0, kv, "for each row\nof tiles")):
        d.arrow(box.bottom, (tile.x + x, tile.top[1]), words)
    d.arrow((tile.x + 1.4, tile.top[1]), out.bottom, "once")
    return d.ax


def _square(d, corner, size, kind):
    d.ax.add_patch(
        Rectangle(corner, size, size, facecolor=FILLS[kind], edgecolor=PAPER, linewidth=0.8)
    )


def draw_product_order():
    """Draw the same three factors multiplied from the left and from the right, with shapes."""
    d = Diagram(
        14.5, 5.2,
        alt="Multiplied from the left, phi of Q, (T, D), and phi of K make a table of T by T, "
        "which mixes V. Multiplied from the right, phi of K and V make a table of D by D, which "
        "phi of Q reads. Both end in (T, D).",
    )  # fmt: skip
    for y, pairs in ((4.0, 0), (1.3, 1)):
        q = d.box(1.3, y, "φ(Q)", "(T, D)", role="query")
        k = d.box(3.7, y, "φ(K)ᵀ", "(D, T)", role="key")
        v = d.box(6.1, y, "V", "(T, D)", role="value")
        size, words = ((2.7, 1.5), "weights") if pairs == 0 else ((1.5, 0.95), "state")
        shape = "(T, T)" if pairs == 0 else "(D, D)"
        table = d.box(9.7, y, words, shape, role="weights", size=size)
        out = d.box(13.2, y, "output", "(T, D)", role="output")
        inside = (q, k) if pairs == 0 else (k, v)
        frame = d.frame(inside, margin=0.18, role="weights")
        d.arrow(frame, table, bend=-0.42 if pairs == 0 else 0.0, role="weights")
        d.arrow(table, out)
        last = v if pairs == 0 else q
        d.arrow(last.bottom, out.bottom, bend=0.16 if pairs == 0 else 0.09,
                role="value" if pairs == 0 else "query")  # fmt: skip
        d.text(3.7, y + 0.95, "from the left" if pairs == 0 else "from the right")
    return d.ax


def draw_bits():
    """Draw which bits of float32, float16 and bfloat16 are sign, exponent and fraction."""
    cell = 0.36
    d = Diagram(
        33 * cell + 3.0, 4.4,
        alt="Rows of bits, each with one sign bit. float32 has 8 bits of exponent and 23 of "
        "fraction, float16 has 5 and 10, bfloat16 has 8 and 7: float32 cut off after 16 bits.",
    )  # fmt: skip
    for i, (name, (exponent, fraction)) in enumerate(KINDS.items()):
        y = 3.4 - i * 1.1
        d.text(2.0, y + cell / 2, name, align="right")
        parts = ["sign"] + ["exponent"] * exponent + ["fraction"] * fraction
        for j, part in enumerate(parts):
            d.ax.add_patch(
                Rectangle(
                    (2.3 + j * cell, y), cell, cell, facecolor=COLOURS[PARTS[part]],
                    edgecolor=PAPER,
                )
            )  # fmt: skip
        d.text(2.3 + (1 + exponent / 2) * cell, y - 0.22, f"{exponent}", size=SMALL)
        d.text(2.3 + (1 + exponent + fraction / 2) * cell, y - 0.22, f"{fraction}", size=SMALL)
    x = 2.3
    for part, role in PARTS.items():
        d.ax.add_patch(Rectangle((x, 0.2), 0.3, 0.3, facecolor=COLOURS[role]))
        d.text(x + 0.45, 0.35, part, size=SMALL, align="left")
        x += 2.2
    return d.ax


def rounded(numbers, exponent, fraction):
    """Round to the nearest number of `exponent` and `fraction` bits, as IEEE 754 has them.

    Ties go to the even one, small numbers lose bits and end at 0, large ones become infinite.
    """
    numbers = np.asarray(numbers, dtype=float)
    most = 2 ** (exponent - 1) - 1  # of the powers of two
    power = np.clip(np.frexp(numbers)[1] - 1, 1 - most, None)  # from 1 - most on they are even
    step = 2.0 ** (power - fraction)
    near = np.round(numbers / step) * step
    return np.where(np.abs(near) < 2.0 ** (most + 1), near, np.copysign(np.inf, near))


def draw_format(exponent, fraction):
    """Draw a floating-point format: the numbers it has up to 4, and its error at every size.

    Below, two known formats stand beside it. Returns the two Axes.
    """
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(9.5, 5.6), height_ratios=(1, 4), layout="constrained"
    )
    name = f"1 + {exponent} + {fraction} bits"
    grid = np.unique(rounded(np.linspace(0, 4, 4097), exponent, fraction))
    grid = grid[np.isfinite(grid)]
    above.eventplot(grid, colors=COLOURS["weights"], linewidths=1.2, lineoffsets=0, linelengths=1)
    above.set(xlim=(-0.05, 4.05), ylim=(-0.7, 0.7), yticks=[])
    above.set_title(f"{name}: the numbers from 0 to 4")
    above.grid(False)
    sizes = np.logspace(-9, 6, 1500)
    for format_, bits, style in (
        ("float16", KINDS["float16"], {"color": COLOURS["key"], "linewidth": 1.3}),
        ("bfloat16", KINDS["bfloat16"], {"color": COLOURS["query"], "linewidth": 1.3}),
        (name, (exponent, fraction), {"color": COLOURS["mask"], "linewidth": 2.6}),
    ):
        off = np.abs(rounded(sizes, *bits) - sizes) / sizes
        worst = np.minimum(off.reshape(-1, 30).max(axis=1), 1)
        below.plot(sizes[::30], worst, label=format_, **style)
    below.set(xscale="log", yscale="log", ylim=(1e-4, 2), xlabel="the number",
              ylabel="relative error of rounding")  # fmt: skip
    below.legend(loc="lower left")
    largest = (2 - 2.0**-fraction) * 2.0 ** (2 ** (exponent - 1) - 1)
    alt(figure, f"A number of 1 bit of sign, {exponent} of exponent and {fraction} of fraction. "
        f"From 0 to 4 it has {len(grid)} values, denser towards 0; the largest of all is "
        f"{largest:.3g}. In the middle, rounding is off by {1 / (2 ** (fraction + 1) + 1):.2g} of "
        "the number at most, at both ends by all of it.")  # fmt: skip
    return above, below


def draw_data_parallel():
    """Draw two processes with equal weights and half a batch each, which average gradients."""
    d = Diagram(
        15.5, 5.6,
        alt="A batch of eight rows is dealt out: process 0 takes rows 0, 2, 4, 6, process 1 the "
        "others. Each has all weights and computes a gradient. Both gradients are averaged, each "
        "process receives the average and takes the same step.",
    )  # fmt: skip
    batch = d.box(1.2, 2.8, "batch", "8 rows", role="input")
    middle = d.box(9.3, 2.8, "average", "all-reduce", role="loss")
    for y, rank, rows in ((4.4, 0, "rows 0 2 4 6"), (1.2, 1, "rows 1 3 5 7")):
        model = d.box(4.4, y, "all weights", f"process {rank}", role="weights")
        gradient = d.box(7.4, y, "gradient", "its own", role="loss")
        step = d.box(13.2, y, "the same step", f"process {rank}", role="weights")
        d.arrow(batch, model, rows)
        d.arrow(model, gradient)
        d.arrow(gradient.right, (middle.x - 0.3, middle.y + (0.4 if rank == 0 else -0.4)))
        d.arrow((middle.x + 0.3, middle.y + (0.4 if rank == 0 else -0.4)), step.left)
    return d.ax
