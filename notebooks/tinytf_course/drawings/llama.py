"""Llama's block: its parts beside GPT's, shared keys, rows of weights, experts, runs of seeds."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from tinytf.viz.spoken import alt
from tinytf.viz.style import CYCLE, FAINT, INK, as_array, label, new_axes

from .diagram import SMALL, TEXT, Box, Diagram

# What is exchanged: its number, GPT's part, Llama's.
SWAPS = (
    (1, "LayerNorm", "RMSNorm"),
    (2, "a table of positions,\nadded once, at the bottom", "RoPE rotates queries\nand keys"),
    (3, "feed-forward:\nup, GELU, down", "feed-forward: up twice,\none a gate (SwiGLU), down"),
    (4, "linear layers have biases", "linear layers without biases"),
    (5, "attention: every head has\nkeys and values of its own",
     "attention: several heads\nshare keys and values"),
)  # fmt: skip
ATTENDS, FORWARD = 5.3, 8.9  # how high the sublayers stand


def draw_swaps(done=()):
    """Draw GPT's block and Llama's, each with its stream, and what is exchanged.

    Returns the Axes.

    The numbers in `done` are swaps that have been made: there the old part is pale, elsewhere the
    new one is.
    """
    said = "; ".join(f"{n}, {one} becomes {other}" for n, one, other in SWAPS)
    d = Diagram(
        19.2, 11.3,
        alt="Two blocks, GPT's and Llama's. In each a residual stream goes up; attention and "
        "feed-forward read it through a norm and add to it. "
        f"{said.replace(chr(10), ' ')}. Positions move from the bottom into each layer. "
        f"Done so far: {', '.join(map(str, done)) or 'none'}.",
    )  # fmt: skip
    old = _block(d, 1.1, 5.2, [one for _, one, _ in SWAPS], [n in done for n in range(1, 6)])
    new = _block(d, 18.1, 14.0, [it for _, _, it in SWAPS], [n not in done for n in range(1, 6)])
    pairs = zip((1, 1, 2, 3, 4, 4, 5), old, new, strict=True)
    for place, (number, before, after) in enumerate(pairs):
        (x, y), (to_x, to_y) = before.right, after.left
        d.arrow((x, y), (to_x, to_y), dashed=number not in done)
        way = {0: 0.4, 2: 0.3}.get(place, 0.5)  # these two arrows cross half-way
        d.text(
            x + way * (to_x - x), y + way * (to_y - y), f"swap {number}", size=SMALL, backed=True
        )
    d.text(5.2, 11.0, "GPT's block (2019)")
    d.text(14.0, 11.0, "Llama's block (2023)")
    return d.ax


def _block(d, stream, x, parts, pale):
    """Draw a layer's parts at x and the stream they add to; return the boxes, by their swap."""
    norm, position, forward, bias, attention = parts
    inside = x < stream  # Llama's positions are in the layer, GPT's below it
    start = d.box(stream, 0.5, "tokens", size=(1.7, 0.7))
    norms, maps = [], []
    for at, name, role, faint in (
        (ATTENDS, attention, "attention", pale[4]), (FORWARD, forward, "feedforward", pale[2])
    ):  # fmt: skip
        low = at - (2.5 if role == "attention" else 1.5)
        first = d.box(x, low, norm, role="norm", size=(3.0, 0.7), faint=pale[0])
        sublayer = d.box(x, at, name, role=role, size=(5.0, 1.0), faint=faint)
        d.arrow((stream, low), first)
        norms.append(first)
        maps.append(sublayer)
        d.arrow(sublayer, (stream + (0.25 if stream < x else -0.25), at))
    places = d.box(x, 4.05 if inside else 1.4, position, role="position",
                   size=(3.6 if inside else 5.0, 0.9), faint=pale[1])  # fmt: skip
    if inside:
        d.arrow(norms[0], places)
        d.arrow(places, maps[0])
    else:
        d.arrow(norms[0], maps[0])
        d.arrow(places, (stream + 0.25, 1.4))
    d.arrow(norms[1], maps[1])
    tags = [d.box(x, box.y + 0.78, bias, size=(4.2, 0.5), faint=pale[3]) for box in maps]
    d.frame([*norms, *maps, *tags, *([places] if inside else []), Box(stream, ATTENDS, 0.6, 1)])
    d.arrow(start, (stream, 10.7), role="residual")
    for height in (ATTENDS, FORWARD, *(() if inside else (1.4,))):
        d.ax.plot(stream, height, "o", markersize=15, color="white", markeredgecolor=INK, zorder=3)
        d.text(stream, height, "+")
    return [*norms, places, maps[1], *tags, maps[0]]


def draw_sharing(num_heads=8, key_heads=(8, 2, 1)):
    """Draw who shares keys and values with whom, a panel for each number of key heads.

    Returns the list of Axes.
    """
    figure, axes = plt.subplots(1, len(key_heads), figsize=(13, 2.6), layout="constrained")
    figure.get_layout_engine().set(wspace=0.06)
    names = {num_heads: "multi-head: one each", 1: "multi-query: one for all"}
    for ax, keys in zip(axes, key_heads, strict=True):
        head_groups(num_heads, keys, ax, title=names.get(keys, f"grouped: {keys} groups"))
    counts = ", ".join(str(keys) for keys in key_heads)
    alt(
        figure,
        f"{num_heads} query heads in a row, and below them {counts} heads of keys and values. "
        "Lines join each query head to the one that it reads, its neighbours to the same.",
    )
    return list(axes)


def draw_row_order(width=8):
    """Draw the rows of one head's map in two orders, who is turned with whom; returns the Axes.

    The boxes carry our numbers, and below the second line stand theirs. Raises ValueError for an
    odd width.
    """
    if width % 2:
        raise ValueError(f"rows are turned in pairs: a width of {width} is odd")
    half, step = width // 2, 1.5
    d = Diagram(
        3.6 + step * width, 4.6,
        alt=f"Two rows of {width} boxes. Above, ours: boxes 0 and 1 are a pair, 2 and 3 the next, "
        f"and so on. Below, theirs: the first of each pair stand in the left half, the second in "
        f"the right, so that a pair stands {half} apart. Arrows lead from each box to its place. "
        "Boxes carry our numbers; theirs, from left to right, stand below.",
    )  # fmt: skip
    order = [*range(0, width, 2), *range(1, width, 2)]
    d.text(1.5, 3.4, "ours:\nneighbours")
    d.text(1.5, 1.2, f"theirs:\n{half} apart")
    roles = ("query", "key", "value", "output")
    places = []
    for place in range(width):
        role = roles[place // 2 % len(roles)]
        places.append(d.box(3.4 + step * place, 3.4, f"row {place}", role=role, size=(1.3, 0.7)))
    for place, row in enumerate(order):
        role = roles[row // 2 % len(roles)]
        below = d.box(3.4 + step * place, 1.2, f"row {row}", role=role, size=(1.3, 0.7))
        d.arrow(places[row].bottom, below.top, role=role)
        d.text(below.x, 0.45, f"their {place}", size=9)
    for pair in range(half):
        here = [places[2 * pair], places[2 * pair + 1]]
        d.text((here[0].x + here[1].x) / 2, 4.15, f"pair {pair}", size=9)
    return d.ax


def draw_experts(scores=(0.3, 2.0, -0.6, 0.1, -1.2, 1.0, -0.2, 0.4)):
    """Draw one token's way through a mixture of experts: two compute, the others are pale.

    `scores` are the router's, one for each expert. Returns the Axes. Raises ValueError for fewer
    than two.
    """
    if len(scores) < 2:
        raise ValueError(f"a token needs two experts, got {len(scores)} scores")
    step, first = 1.75, 4.3
    middle = first + step * (len(scores) - 1) / 2
    two = sorted(np.argsort(scores)[-2:].tolist())
    gates = np.exp([scores[e] for e in two]) / np.exp([scores[e] for e in two]).sum()
    said = " and ".join(f"{gate:.2f} times expert {e}" for e, gate in zip(two, gates, strict=True))
    d = Diagram(
        first + step * len(scores) - 0.6, 6.6,
        alt=f"A token goes to a router, which scores {len(scores)} experts: "
        f"{', '.join(f'{score:.1f}' for score in scores)}. The token passes through the two with "
        f"the highest scores, and the output is {said}. The other experts are pale.",
    )  # fmt: skip
    token = d.box(middle, 0.5, "token x", role="input", size=(2.0, 0.7))
    router = d.box(1.3, 2.8, "router", role="weights", size=(1.9, 0.8))
    total = d.box(middle, 6.0, "output y", role="output", size=(2.2, 0.7))
    d.arrow(token.left, router.bottom)
    for e, score in enumerate(scores):
        x, chosen = first + step * e, e in two
        expert = d.box(x, 3.7, f"expert {e}", role="feedforward", size=(1.5, 0.9), faint=not chosen)
        number = f"{score:.1f}".replace("-", "−")
        d.text(x, 2.8, rf"$\mathbf{{{number}}}$" if chosen else number)
        if chosen:
            d.arrow(token.top, (x, 2.5))
            d.arrow(expert.top, total.bottom)
            d.text((x + middle) / 2, 4.95, f"· {gates[two.index(e)]:.2f}", size=TEXT, backed=True)
    d.arrow(router, (first - 0.55, 2.8))
    d.text((router.right[0] + first - 0.55) / 2, 3.1, "scores", size=SMALL)
    return d.ax


def head_groups(num_heads, num_kv_heads, ax=None, *, title=None):
    """Draw query heads in a row, the key and value heads below, and who reads which.

    A group has one colour; past the last colour they start again. Returns the Axes. Raises
    ValueError if the key heads can't serve equal groups.
    """
    if num_kv_heads < 1 or num_heads % num_kv_heads:
        raise ValueError(f"num_heads={num_heads} is not divisible by num_kv_heads={num_kv_heads}")
    ax = new_axes(ax, (9, 2.6))
    group = num_heads // num_kv_heads
    for key in range(num_kv_heads):
        color, middle = CYCLE[key % len(CYCLE)], key * group + (group - 1) / 2
        for query in range(key * group, (key + 1) * group):
            ax.plot([query + 0.5, middle + 0.5], [0.8, 0], color=color, linewidth=1, zorder=1)
            ax.add_patch(Rectangle((query + 0.12, 0.8), 0.76, 0.3, facecolor=color, zorder=2))
        for place, height in ((0.0, 0.3), (0.34, 0.3)):  # a key head and its value head
            y = -height - place
            ax.add_patch(Rectangle((middle + 0.12, y), 0.76, height, facecolor=color, zorder=2))
    for y, name in ((0.95, "queries"), (-0.15, "keys"), (-0.49, "values")):
        ax.text(-0.3, y, name, ha="right", va="center", fontsize=11)
    ax.set(xlim=(-0.1, num_heads), ylim=(-0.75, 1.2), xticks=[], yticks=[])
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if title:
        ax.set_title(title, loc="left")
    return ax


def seed_dots(values, ax=None, *, colors=None, band=None, xlabel=None, title=None):
    """Draw {name: numbers, one per seed} as dots on a line each, the mean as a stroke.

    colors: {name: place in CYCLE}; band: the name whose range of seeds is shaded for all lines.
    Returns the Axes. Raises ValueError if there is nothing to draw, or `band` is not among them.
    """
    if not values or not all(len(runs) for runs in values.values()):
        raise ValueError("seed_dots needs at least one name with at least one number")
    if band is not None and band not in values:
        raise ValueError(f"band={band!r} is not among {list(values)}")
    ax = new_axes(ax, (9, 0.42 * len(values) + 1.2))
    values = {name: as_array(runs, f"values of {name!r}", ndim=1) for name, runs in values.items()}
    if band is not None:
        low, high = values[band].min(), values[band].max()
        ax.axvspan(low, high, color=FAINT, alpha=0.22, linewidth=0, zorder=0)
    for row, (name, numbers) in enumerate(values.items()):
        color = CYCLE[(colors or {}).get(name, 0)]
        ax.plot(numbers, np.full(len(numbers), row), "o", color=color, alpha=0.55, markersize=7)
        ax.plot([numbers.mean()] * 2, [row - 0.3, row + 0.3], color=INK, linewidth=2)
    ax.set_yticks(range(len(values)), [label(name) for name in values])
    ax.set(ylim=(len(values) - 0.5, -0.5), xlabel=xlabel)
    ax.tick_params(axis="y", length=0)
    ax.grid(True, axis="x", alpha=0.3)
    if title:
        ax.set_title(title)
    return ax
