"""What a sampling rule does: to one distribution, to a text, to the statistics of many."""

import itertools
from collections.abc import Mapping

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from tinytf.viz.axes import set_axes
from tinytf.viz.style import (
    ATTENTION,
    COLOURS,
    CYCLE,
    GOLD,
    INK,
    MASKED,
    PAPER,
    as_array,
    label,
    new_axes,
)

from .diagram import SMALL, Diagram


def draw_writing_loop(text, words, logits, chosen):
    """Draw how a model writes on: text, logits, rules, a draw, and back; returns the Axes.

    text: what stands there; words and logits: the vocabulary and a logit for each; chosen: the word
    that is drawn and joins the text.
    """
    d = Diagram(
        15.6, 6.1,
        f"A loop: the text “{text}” goes into the model, which gives a logit to each of the words "
        f"{', '.join(words)}. Rules change the logits, a draw picks one word, {chosen}, and this "
        "word is appended to the text, with which the loop begins anew.",
    )  # fmt: skip
    y = 3.6
    so_far = d.box(1.6, y, text, shape="(1, T)", role="input")
    model = d.box(4.6, y, "the model", shape="chapter 18", role="decoder")
    table = [[value] for value in logits]
    scores = d.matrix(7.6, y, table, rows=words, title="logits (1, V)", role="output", digits=1)
    rules = d.box(10.0, y, "rules", shape="(1, V) → (1, V)", role="mask")
    draw = d.box(12.4, y, "draw", shape="(1, V) → (1,)", role="attention")
    new = d.box(14.7, y, chosen, shape="(1,)", role="input")
    chain = (so_far, model, scores, rules, draw, new)
    for start, end in itertools.pairwise(chain):
        d.arrow(start, end)
    d.arrow(new.bottom, so_far.bottom, "append, and once more", bend=-0.3)
    return d.ax


def draw_interval(words, probabilities, points):
    """Draw the interval from 0 to 1 cut into a piece a word, and points that hit it; the Axes.

    points: numbers in [0, 1), each an arrow to the piece it falls into.
    """
    p = as_array(probabilities, "probabilities", 1)
    ends = np.cumsum(p)
    hits = [words[min(int((ends <= point).sum()), len(words) - 1)] for point in points]
    pieces = ", ".join(f"{word} {share:.2f}" for word, share in zip(words, p, strict=True))
    d = Diagram(
        15, 3.5,
        f"The interval from 0 to 1 is cut into pieces as long as the probabilities: {pieces}. "
        + " ".join(f"The number {u:.2f} falls on {word}." for u, word in zip(points, hits)),
    )  # fmt: skip
    left, long, low, high = 0.5, 14.0, 0.9, 0.8
    for i, (word, share) in enumerate(zip(words, p, strict=True)):
        start = left + (ends[i] - share) * long
        paint = _pale(COLOURS["attention"], 0.6 if i % 2 else 0.85)
        d.ax.add_patch(
            Rectangle((start, low), share * long, high, facecolor=paint, edgecolor=PAPER, zorder=2)
        )
        middle = start + share * long / 2
        if share > 0.05:
            d.text(middle, low + high / 2, word)
            d.text(middle, low - 0.3, f"{share:.3f}", size=SMALL)
        elif share > 0.015:
            d.text(middle, low - 0.3, word, size=SMALL)
        elif share > 0:  # a thin stroke: its name stands below those beside it
            d.ax.plot([middle, middle], [low - 0.5, low], color="#6b7280", linewidth=1)
            d.text(middle, low - 0.68, word, size=SMALL)
    for value, side in ((0, "0"), (1, "1")):
        d.text(left + value * long + (0.2 if value else -0.2), low + high / 2, side, size=SMALL)
    for point, word in zip(points, hits, strict=True):
        x = left + point * long
        d.arrow((x, 2.75), (x, low + high), role="loss")
        d.text(x, 3.05, f"{point:.2f}: {word}", size=SMALL)
    return d.ax


def draw_nucleus(words, probabilities, p):
    """Draw top-p: ranked, summed until p is held, and put back in its own order; the Axes."""
    probs = as_array(probabilities, "probabilities", 1)
    order = np.argsort(-probs, kind="stable")
    totals = np.cumsum(probs[order])
    size = int((totals < p).sum()) + 1
    kept = [words[i] for i in order[:size]]
    d = Diagram(
        14.6, 6.4,
        f"The words from the likeliest down: {', '.join(words[i] for i in order)}. Their running "
        f"sum reaches {p:g} after {size}: {', '.join(kept)}. These stay; below, all words stand in "
        "their own order again, and the others are ruled out.",
    )  # fmt: skip
    places = [3.0 + 2.05 * i for i in range(len(words))]
    for y, said in ((5.3, "ranked"), (4.1, "held so far"), (1.2, "own order")):
        d.text(0.1, y, said, align="left", size=SMALL)
    for rank, i in enumerate(order):
        stays = rank < size
        role = "value" if stays else "plain"
        top = d.box(places[rank], 5.3, words[i], f"{probs[i]:.3f}", role, (1.7, None), not stays)
        d.text(places[rank], 4.1, f"{totals[rank]:.4f}", color=INK if stays else "#6b7280")
        note = f"{probs[i]:.3f}" if stays else "−∞"
        low = d.box(places[i], 1.2, words[i], note, role, (1.7, None), not stays)
        d.arrow((top.x, 3.8), low.top, role=role, dashed=not stays)
    edge = (places[size - 1] + places[size]) / 2 if size < len(words) else places[-1] + 1.0
    d.ax.plot([edge, edge], [3.75, 5.9], color=COLOURS["loss"], linestyle="--", linewidth=1.5)
    d.text(edge, 6.12, f"{p:g} is held", size=SMALL, backed=True)
    return d.ax


def rule_table(words, columns, ax=None):
    """Draw a table of probabilities: a row a word, a column a rule, blank where it rules out.

    words: the vocabulary; columns: {rule: logits (V,) or (1, V), −inf where ruled out}. Returns the
    Axes. Raises ValueError if a column is not of the vocabulary's length.
    """
    import seaborn as sns  # takes a second, so that only this figure waits for it

    table = []
    for name, logits in columns.items():
        z = as_array(logits.flatten(), name, 1).astype(float)
        if len(z) != len(words):
            raise ValueError(f"{name} has {len(z)} logits for {len(words)} words")
        odds = np.exp(z - z.max())
        table.append(odds / odds.sum())
    p = np.array(table).T
    ax = new_axes(ax, (1.3 * len(columns) + 2.2, 0.55 * len(words) + 1.3))
    out = p == 0
    ax.set_facecolor(MASKED)
    sns.heatmap(p, mask=out, annot=True, fmt=".3f", cmap=ATTENTION, vmin=0, vmax=1, linewidths=1,
                linecolor=PAPER, cbar=False, ax=ax)  # fmt: skip
    ax.set_xticks(np.arange(len(columns)) + 0.5, list(columns), rotation=30, ha="right")
    ax.set_yticks(np.arange(len(words)) + 0.5, [label(word) for word in words], rotation=0)
    ax.tick_params(length=0)
    return ax


def _pale(colour, paper):
    return tuple(part + (1 - part) * paper for part in to_rgb(colour))


def token_bars(before, after, tokens, ax=None, *, most=20, ylim=None, title=None):
    """Draw a distribution before (outline) and after (filled) a rule; returns the Axes.

    before, after: probabilities (V,), 0 after where a token is ruled out; those bars are hatched.
    tokens: the V tokens as text, shown without the spaces around them. Shows the `most` likeliest
    before, in that order. Raises ValueError where the three differ in length.
    """
    before, after = as_array(before, "before", 1), as_array(after, "after", 1)
    if not len(before) == len(after) == len(tokens):
        raise ValueError(
            f"{len(before)} probabilities before and {len(after)} after for {len(tokens)} tokens"
        )
    order = np.argsort(-before, kind="stable")[:most]
    ax = new_axes(ax, (10, 4.0))
    at, out = np.arange(len(order)), after[order] <= 0
    ax.bar(at, after[order], 0.82, color=CYCLE[0], label="after")
    ax.bar(at[out], before[order][out], 0.82, facecolor=MASKED, edgecolor="#9aa3ad", hatch="///",
           linewidth=0, label="ruled out")  # fmt: skip
    ax.step(np.arange(len(order) + 1) - 0.5, [*before[order], before[order][-1]], where="post",
            color=INK, linewidth=1.6, label="before")  # fmt: skip
    names = [label(tokens[i].strip(" ") or tokens[i]) for i in order]
    ax.set_xticks(at, names, rotation=55, ha="right", rotation_mode="anchor")
    ax.tick_params(axis="x", length=0)
    ax.grid(False, axis="x")
    ax.set(ylabel="probability", xlim=(-0.6, len(order) - 0.4), ylim=ylim)
    ax.legend(loc="upper right")
    if title:
        ax.set_title(title)
    return ax


def text_strips(losses, ax=None, *, scale=(0, 8), xlabel="token", title=None):
    """Draw texts as strips, a cell a token, dark where the token was surprising; returns the Axes.

    losses: {name: -log p of each token, in nats}, all of one length. Raises ValueError if there is
    none, or if they differ in length.
    """
    lengths = {name: len(values) for name, values in losses.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"the strips need one length, got {lengths}")
    table = as_array(list(losses.values()), "losses", 2)
    ax = new_axes(ax, (12, 0.9 + 0.5 * len(table)))
    drawn = ax.imshow(table, aspect="auto", cmap=ATTENTION, vmin=scale[0], vmax=scale[1],
                      interpolation="nearest")  # fmt: skip
    ax.set_yticks(range(len(table)), [label(name) for name in losses])
    for row in range(1, len(table)):
        ax.axhline(row - 0.5, color="white", linewidth=4)
    ax.tick_params(axis="y", length=0)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    bar = ax.figure.colorbar(drawn, ax=ax, pad=0.01, extend="max")
    bar.set_label("nats")
    bar.outline.set_visible(False)
    ax.set(xlabel=xlabel)
    if title:
        ax.set_title(title)
    return ax


def settings_plane(families, human, ax=None, *, star="human", colors=None, notes=True, **axes):
    """Draw families of settings as lines in a plane of two measures; returns the Axes.

    families: {family: {setting: (x, y)}}, drawn in the order given, each point with its setting's
    name where it covers least; notes: False for none, or the names to show. human: (x, y), a star
    with lines through it, which the legend calls `star`.
    colors: {family: its place in CYCLE, or a colour of `COLOURS`}. axes: as for `set_axes`.
    Raises ValueError if there are no families.
    """
    if not isinstance(families, Mapping) or not families:
        raise ValueError(f"families needs at least one {{family: settings}}, got {families!r}")
    ax = new_axes(ax, (8, 5.2))
    named = []
    for index, (family, points) in enumerate(families.items()):
        x, y = as_array(list(points.values()), family, 2).T
        color = (colors or {}).get(family, index)
        color = color if isinstance(color, str) else CYCLE[color % len(CYCLE)]
        ax.plot(x, y, "o-", color=color, linewidth=1.8, markersize=6, label=label(family))
        shown = set(points) if notes is True else set(notes or ())
        named += [(n, at, color) for n, at in zip(points, zip(x, y, strict=True)) if n in shown]
    lines = [line.get_xydata() for line in ax.lines]
    ax.axvline(human[0], color=GOLD, linewidth=1, linestyle=":")
    ax.axhline(human[1], color=GOLD, linewidth=1, linestyle=":")
    ax.plot(*human, "*", color=GOLD, markersize=19, markeredgecolor="white", label=star, zorder=5)
    set_axes(ax, **axes)
    _name_points(ax, named, lines)
    ax.legend()
    return ax


def _name_points(ax, named, lines):
    """Write each point's name beside it, where it covers least: (name, point, colour) each."""
    ax.autoscale_view()
    points = 72 / ax.figure.dpi  # from pixels

    def place(xy):
        return ax.transData.transform(xy) * points

    low, high = ax.get_window_extent().get_points() * points
    marks = place([at for _, at, _ in named]) if named else np.empty((0, 2))
    along = np.linspace(0, 1, 60)[:, None]
    pairs = [pair for line in lines for pair in itertools.pairwise(place(line))]
    drawn = np.concatenate([marks, *(a + (b - a) * along for a, b in pairs)])
    boxes = []
    for (name, at, color), spot in zip(named, marks, strict=True):
        half = np.array([4.0 * len(name), 6.0])  # of a name in bold letters of 12 points

        def cost(away, spot=spot, half=half):
            middle = spot + away
            covered = (np.abs(drawn - middle) < half + 1.5).all(axis=1).sum()
            met = sum((np.abs(middle - m) < half + h).all() for m, h in boxes)
            outside = (middle - half < low).any() or (middle + half > high).any()
            return covered + 40 * met + 200 * outside + 0.1 * np.abs(away).sum()

        side, up = half[0] + 6, half[1] + 6
        ways = [(i, j) for i in (-1, -0.5, 0, 0.5, 1) for j in (1, -1, 0) if j or abs(i) == 1]
        aways = [np.array([i * (side + far), j * (up + far)]) for far in (0, 7) for i, j in ways]
        best = min(aways, key=cost)
        boxes.append((spot + best, half))
        ax.annotate(name, at, xytext=best, textcoords="offset points", ha="center", va="center",
                    color=color, fontsize=12, fontweight="bold")  # fmt: skip
