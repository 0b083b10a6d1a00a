"""Drawings of chapter 12: a layer word by word, the stack, hidden words, two meanings that part."""

import matplotlib.pyplot as plt
import numpy as np

from tinytf.viz.attention import heatmap
from tinytf.viz.axes import set_axes
from tinytf.viz.style import COLOURS, INK, as_array, label

from .diagram import SMALL, Diagram


def draw_encoder_layer(words=("the", "cat", "slept")):
    """Draw a Post-LN encoder layer over a sentence, one column a word, read upwards.

    Returns the Axes.
    """
    apart, first = 3.1, 1.7
    columns = [first + i * apart for i in range(len(words))]
    middle, right = sum(columns) / len(words), columns[-1] + 1.7
    d = Diagram(
        right + 3.6, 7.8,
        f"Columns for the words {', '.join(words)}, read upwards. Self-attention is one box across "
        "all columns: here words attend to each other. Then each column has boxes of its own: add "
        "and normalise, feed-forward network, add and normalise. Residual connections around "
        "attention and around the network lead to the additions. Shapes are (B, S, C) throughout.",
    )  # fmt: skip
    wide = apart * (len(words) - 1) + 2.0
    attention = d.box(middle, 2.35, "self-attention", role="attention", size=(wide, 0.75))
    levels = (
        (4.9, "feed-forward", "feedforward"),
        (3.65, "+ norm", "norm"),
        (6.15, "+ norm", "norm"),
    )
    for x, word in zip(columns, words):
        start = d.box(x, 0.75, label(word), role="embedding", size=(1.5, 0.62))
        parts = {
            y: d.box(x, y, text, role=role, size=(1.9 if role == "norm" else 2.0, 0.62))
            for y, text, role in levels
        }
        d.arrow(start, (x, attention.bottom[1]))
        d.arrow((x, attention.top[1]), parts[3.65])
        d.arrow(parts[3.65], parts[4.9])
        d.arrow(parts[4.9], parts[6.15])
        d.arrow(parts[6.15].top, (x, 7.3))
        _around(d, start.left, parts[3.65].left, x - 1.3)
        _around(d, parts[3.65].right, parts[6.15].right, x + 1.3)
    for y, text in (
        (0.75, "x, (B, S, C)"), (2.35, "every word attends\nto every word"),
        (3.65, "(B, S, C)"), (4.9, "each word by itself,\nthe same weights for all"),
        (6.15, "(B, S, C)"), (7.3, "to the next layer"),
    ):  # fmt: skip
        d.text(right, y, text, size=SMALL + 1, align="left")
    return d.ax


def _around(d, start, end, side):
    """The residual connection around a sublayer, from a box's side to another's, by x = `side`."""
    (x, y), colour = start, COLOURS["residual"]
    d.ax.plot([x, side, side], [y, y, end[1]], color=colour, linewidth=1.5, zorder=4)
    d.arrow((side, end[1]), end, role="residual")


def draw_encoder_stack(num_layers=3, final="norm"):
    """Draw ids on their way through `num_layers` encoder layers; `final` stands at the end.

    Returns the Axes.
    """
    d = Diagram(
        10.4 + 1.9 * num_layers, 3.6,
        f"From left to right: ids, embedding, positions, {num_layers} layers with weights of their "
        f"own, {final}, and one vector per word. The padding mask, made from the ids, goes into "
        "every layer. After the embedding all shapes are (B, S, C).",
    )  # fmt: skip
    layers = [(f"layer {n + 1}", "(B, S, C)", "encoder") for n in range(num_layers)]
    after = (
        ("embedding", "(B, S, C)", "embedding"), ("+ positions", "(B, S, C)", "position"), *layers,
        (final, "(B, S, C)", "norm"), ("one vector\nper word", "(B, S, C)", "memory"),
    )  # fmt: skip
    (ids, mask), *after = d.columns(
        [("ids", "(B, S)", "input"), ("mask", "(B, 1, 1, S)", "mask")],
        *([one, None] for one in after),
    )
    after = [box for box, _ in after]
    d.chain(ids, *after)
    d.chain(ids, mask)
    masked = after[2:-2]
    d.ax.plot([mask.right[0], masked[-1].x], [mask.y, mask.y], color=COLOURS["mask"], linewidth=1.5,
              zorder=1)  # fmt: skip
    for layer in masked:
        d.arrow((layer.x, mask.y), layer.bottom, role="mask")
    d.text((masked[0].x + masked[-1].x) / 2, mask.y - 0.35, "which words are real", size=SMALL)
    return d.ax


def draw_masked_words(words, read, chosen):
    """Draw a sentence, the encoder's input made from it, and its targets; returns the Axes.

    `read` are the words as read; `chosen` is True where a word was chosen.
    """
    cell = 1.72
    said = [word for word, yes in zip(words, chosen, strict=True) if yes]
    d = Diagram(
        len(words) * cell + 2.9, 4.3,
        f"The sentence {' '.join(words)}. The encoder's input is {' '.join(read)}. The targets are "
        f"the chosen words: {', '.join(said)}.",
    )  # fmt: skip
    for y, name in ((3.7, "sentence"), (2.15, "input"), (0.6, "target")):
        d.text(2.45, y, name, align="right", size=10)
    for i, (word, seen, yes) in enumerate(zip(words, read, chosen, strict=True)):
        x = 3.5 + i * cell
        size = (cell - 0.14, 0.72)
        top = d.box(x, 3.7, label(word), role="input", size=size, faint=not yes)
        below = d.box(x, 2.15, label(seen), role="mask" if yes else "input", size=size,
                      faint=not yes)  # fmt: skip
        d.arrow(top, below)
        if yes:
            d.arrow(below, d.box(x, 0.6, label(word), role="output", size=size))
    return d.ax


def who_moves_whom(tables, words, scale=None):
    """Draw {title: (S, S) how far input s moves output t} side by side; returns the Axes, in order.

    0 is grey and hatched: nothing at all comes through. All panels share one scale, up to `scale`
    or the largest number.
    """
    tables = {title: as_array(table, title, ndim=2) for title, table in tables.items()}
    top = scale or max(float(table.max()) for table in tables.values())
    count = len(tables)
    axes = plt.subplots(1, count, figsize=(5.2 * count + 0.6, 4.4))[1]
    for ax, (title, table) in zip(np.atleast_1d(axes), tables.items(), strict=True):
        heatmap(
            table, words, words, ax, mask=table > 0, scale=(0, top), annotate=False, title=title,
            colorbar="moved by", xlabel="input that is changed", ylabel="output",
        )  # fmt: skip
    return list(np.atleast_1d(axes))


def parting(scores, meaning, names=("first noun", "second noun")):
    """Draw {title: scores (1 + L, N)} as violins, layer by layer, split by `meaning` (N,), 0 or 1.

    Above 0 a score says the second meaning. Returns the Axes, in order.
    """
    import seaborn as sns  # takes a second, so that only this figure waits for it

    meaning = np.asarray([names[int(m)] for m in meaning])
    axes = plt.subplots(1, len(scores), figsize=(6.2 * len(scores), 4.2), sharey=True)[1]
    for ax, (title, by_layer) in zip(np.atleast_1d(axes), scores.items(), strict=True):
        table = as_array(by_layer, title, ndim=2)
        layers = np.repeat(np.arange(len(table)), table.shape[1])
        sns.violinplot(
            x=layers, y=table.ravel(), hue=np.tile(meaning, len(table)), hue_order=names,
            split=True, inner="quart", cut=0, density_norm="width", gap=0.08, linewidth=1.1,
            palette=[COLOURS["query"], COLOURS["key"]], alpha=0.75, ax=ax,
        )  # fmt: skip
        ax.axhline(0, color=INK, linestyle="--", linewidth=1.2)
        set_axes(ax, title=title, xlabel="after layer (0: embedding)", ylabel="score")
        ax.legend(title="“it” is the", bbox_to_anchor=(1.0, 1.0), loc="upper left")
    for ax in np.atleast_1d(axes)[:-1]:
        ax.get_legend().remove()
    return list(np.atleast_1d(axes))
