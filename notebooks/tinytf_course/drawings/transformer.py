"""Drawings of the whole Transformer, of its inputs and labels, and of a training step."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from tinytf.viz.attention import heatmap
from tinytf.viz.curves import learning_curve
from tinytf.viz.spoken import alt
from tinytf.viz.statistics import lines
from tinytf.viz.style import COLOURS, CYCLE, MASKED, label
from tinytf_course.drawings.diagram import SMALL, Diagram


def draw_transformer(placeholders=(), shapes=None):
    """Draw source and target ids on their way through a Transformer; returns the Axes.

    The parts named in `placeholders` ("encoder", "decoder", "positions") are pale: not there yet.
    `shapes` maps "src", "tgt", "memory", "hidden", "logits" to what is written under them, by
    default the letters of the course.
    """
    letters = {
        "src": "(B, S)", "tgt": "(B, T)", "x": "(B, S, C)", "y": "(B, T, C)",
        "memory": "(B, S, C)", "hidden": "(B, T, C)", "logits": "(B, T, V)",
    }  # fmt: skip
    shapes = letters | {name: str(tuple(shape)) for name, shape in (shapes or {}).items()}
    missing = " and ".join(placeholders)
    d = Diagram(
        15, 4.4,
        alt="Two rows of boxes. Above, source ids are embedded, given positions and read by the "
        "encoder, which makes the memory: states and mask. Below, target ids are embedded, given "
        "positions and read by the decoder, which also reads the memory; a projection gives "
        "logits." + (f" Still placeholders: {missing}." if missing else ""),
    )  # fmt: skip
    rows = [
        (("src\nsource ids", "src", "input"), ("embedding", "x", "embedding"),
         ("+ positions", "x", "position", "positions"), ("encoder", "memory", "encoder", "encoder"),
         ("Memory\nstates and mask", "memory", "memory", "encoder")),
        (("tgt\ntarget ids so far", "tgt", "input"), ("embedding", "y", "embedding"),
         ("+ positions", "y", "position", "positions"), ("decoder", "hidden", "decoder", "decoder"),
         ("projection\nlogits", "logits", "output")),
    ]  # fmt: skip
    rows = [
        [(words, shapes[shape], role, bool(part) and part[0] in placeholders)
         for words, shape, role, *part in row]
        for row in rows
    ]  # fmt: skip
    made = list(zip(*d.columns(*zip(*rows, strict=True)), strict=True))
    for row, boxes in zip(rows, made, strict=True):
        for i, (start, end) in enumerate(pairwise(boxes)):
            d.arrow(start, end, dashed=row[i + 1][3] or row[i][3])
    (*_, memory), (*_, decoder, _) = made
    d.arrow(memory.bottom, decoder.top, "keys and values", dashed=rows[1][3][3], role="memory")
    return d.ax


def draw_unfolded(num_layers=2, shapes=None):
    """Draw the layers inside encoder and decoder, and the memory on its way; returns the Axes.

    `shapes` maps "src", "memory", "tgt", "hidden", "logits" to what is written there, by default
    the letters of the course.
    """
    letters = {
        "src": "(B, S)", "tgt": "(B, T)", "memory": "(B, S, C)", "hidden": "(B, T, C)",
        "logits": "(B, T, V)",
    }  # fmt: skip
    shapes = letters | {name: str(tuple(shape)) for name, shape in (shapes or {}).items()}
    cell, apart, first = 1.65, 0.35, 5.2  # a sublayer, the way to the next, the first one's side
    widest = 3 * cell + 2 * apart
    d = Diagram(
        first + num_layers * (widest + 1.0) + 2.7, 7.1,
        alt=f"Above, {num_layers} encoder layers in a row, each of self-attention and "
        f"feed-forward, after the last of them the memory. Below, {num_layers} decoder layers, "
        "each of masked self-attention, cross-attention and feed-forward. An arrow leads from the "
        "memory to the cross-attention of every decoder layer. The output layer gives logits.",
    )  # fmt: skip
    masked = ("masked\nself-\nattention", "attention")
    attention, cross = ("self-\nattention", "attention"), ("cross-\nattention", "memory")
    forward = ("feed-\nforward", "feedforward")
    rows = {
        "encoder": (5.4, "src", "memory", (attention, forward)),
        "decoder": (1.75, "tgt", "hidden", (masked, cross, forward)),
    }
    ends, readers = {}, []
    for part, (y, ids, states, sublayers) in rows.items():
        start = d.box(1.1, y, ids, shapes[ids], role="input", size=(1.6, 1.15))
        last = d.box(3.5, y, "embedding\n+ positions", shapes[states], role="embedding",
                     size=(2.2, 1.35))  # fmt: skip
        d.arrow(start, last)
        side = first
        for number in range(1, num_layers + 1):
            boxes = []
            for text, role in sublayers:
                box = d.box(side + cell / 2, y, text, role=role, size=(cell, 1.35))
                d.arrow(last, box)
                boxes.append(box)
                last, side = box, side + cell + apart
            readers += boxes[1:2] if part == "decoder" else []
            around = d.frame(boxes, role=part, margin=0.2)
            above = y + 1.3 if part == "encoder" else y - 1.3
            d.text(around.x, above, f"{part} layer {number}\n{shapes[states]}", size=SMALL)
            side += 1.0 - apart
        ends[part] = last
    x = first + num_layers * (widest + 1.0) + 1.35
    output = d.box(x, 1.75, "projection\nlogits", shapes["logits"], role="output", size=(2.3, 1.35))
    d.arrow(ends["decoder"], output)
    memory = d.box(x, 5.4, "Memory", shapes["memory"], role="memory", size=(2.3, 1.15))
    d.arrow(ends["encoder"], memory)
    rail, far = 3.6, readers[0].x
    line = {"color": COLOURS["memory"], "linewidth": 1.5, "zorder": 1}
    d.ax.plot([x, x, far], [memory.bottom[1], rail, rail], **line)
    for reader in readers:
        d.arrow((reader.x, rail), reader, role="memory")
    d.text((readers[-1].x + x) / 2, rail, "keys and values", size=SMALL, backed=True)
    return d.ax


def score_to_loss(logits, right):
    """Draw {word: logit} and the probabilities made of them; returns the two Axes.

    The bar of the word `right` is dark, and the loss stands over its probability.
    """
    scores = np.array(list(logits.values()))
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    axes = plt.subplots(1, 2, figsize=(9, 2.9))[1]
    words, place = [label(word) for word in logits], list(logits).index(right)
    colors = [CYCLE[0] if word == right else MASKED for word in logits]
    for ax, title, values in zip(axes, ("logits", "probabilities"), (scores, shares), strict=True):
        bars = ax.bar(words, values, color=colors, edgecolor=COLOURS["plain"])
        ax.bar_label(bars, fmt="%.3g", padding=2)
        ax.set_title(title)
        low, high = min(values.min(), 0), max(values.max(), 0)
        room = 0.2 * (high - low)  # for the numbers
        ax.set_ylim(low - room * (low < 0), high + room)
        ax.grid(False, axis="x")
    axes[0].axhline(0, color=COLOURS["plain"], linewidth=1)
    loss = -np.log(shares[place])
    axes[1].annotate(
        f"−ln {shares[place]:.3g} = {loss:.3g}", (place, shares[place]), xytext=(0, 22),
        textcoords="offset points", ha="center",
    )  # fmt: skip
    given = ", ".join(f"{word} {share:.3g}" for word, share in zip(logits, shares, strict=True))
    alt(axes[0].figure, f"Logits, and probabilities {given}; the loss of {right} is {loss:.3g}.")
    return list(axes)


def draw_teacher_forcing(source, reads, says, pinyin=None):
    """Draw the encoder's input, and under it the decoder's input and its labels.

    `pinyin` maps a word to its sound, for the words that have one. Returns the Axes.
    """
    sounds = pinyin or {}
    cell = 2.05
    width = max(len(source), len(reads)) * cell + 3.2
    d = Diagram(
        width, 4.5,
        alt=f"The encoder's input is {' '.join(source)}, the decoder's {' '.join(reads)}. "
        f"The labels are {' '.join(says)}: the same tokens, one position earlier.",
    )  # fmt: skip
    rows = (
        (3.95, "encoder input", source, "input"),
        (2.3, "decoder input", reads, "decoder"),
        (0.65, "labels", says, "output"),
    )
    boxes = {}
    for y, name, row, role in rows:
        d.text(2.55, y, name, align="right", size=10)
        boxes[name] = [
            d.box(3.8 + i * cell, y, label(word, sounds.get(word)), role=role, size=(1.85, 0.72))
            for i, word in enumerate(row)
        ]
    below = boxes["labels"]
    for i, box in enumerate(boxes["decoder input"]):
        d.arrow(box, below[i])
    for i in range(1, len(reads)):
        d.arrow(below[i - 1].top, boxes["decoder input"][i].bottom, dashed=True)
    return d.ax


def draw_training_step():
    """Draw one training step as a circle of what is computed; returns the Axes."""
    d = Diagram(
        16, 4,
        alt="A circle: the model reads a batch, its logits and the labels give the loss, "
        "the loss gives gradients, these are clipped, and AdamW, at the learning rate of the "
        "schedule, moves the weights.",
    )  # fmt: skip
    (batch, rate), (model, step), (loss, _), (gradients, clipped) = d.columns(
        [("batch", "src, tgt_in, tgt_out", "input"), ("schedule", "learning rate", "key")],
        [("model", "its weights", "decoder"), ("AdamW", "a step for each weight", "feedforward")],
        [("loss", "nats per token", "loss"), None],
        [("gradients", "one per weight", "query"), ("clipped", "length at most 1", "norm")],
    )
    d.chain(batch, model, loss)
    d.arrow(loss, gradients, "backward")
    d.chain(gradients, clipped, step)
    d.arrow(rate, step)
    d.arrow(step, model, "moves the weights")
    return d.ax


def draw_adam(gradients, means, squares, steps):
    """Draw how Adam makes a step of each weight's gradient; returns the Axes.

    Each argument maps a weight's name to its gradients, a list, or to a number: the running mean of
    these, that of their squares (both scaled up to full size), and the step, in learning rates.
    """
    height = 1.9 * len(gradients) + 0.8
    given = {name: ", ".join(f"{g:g}" for g in row) for name, row in gradients.items()}
    told = "; ".join(f"{name}: gradients {given[name]}, step {steps[name]:.2f}" for name in given)
    d = Diagram(
        15.4, height,
        alt="For each weight a row: its gradients go into two running means, of them and of their "
        f"squares; the first divided by the root of the second is the step. {told}.",
    )  # fmt: skip
    for x, head in ((2.0, "gradients"), (7.6, "two running means"), (13.2, "m / √v")):
        d.text(x, height - 0.4, head)
    for row, name in enumerate(gradients):
        y = height - 1.75 - 1.9 * row
        g = d.box(2.0, y, given[name], name, role="query", size=(3.6, 1.0))
        step = d.box(13.2, y, f"{steps[name]:.2f}", "learning rates", role="feedforward",
                     size=(2.9, 1.0))  # fmt: skip
        for y_mean, words in ((y + 0.42, f"m = {means[name]:.3g}"),
                              (y - 0.42, f"v = {squares[name]:.3g}")):  # fmt: skip
            mean = d.box(7.6, y_mean, words, size=(3.3, 0.6))
            d.arrow(g, mean)
            d.arrow(mean, step)
    return d.ax


def confidence(shares, losses, ax=None):
    """Draw losses against the share that the model gives to the right word.

    `losses` maps a name to its values at `shares`; the least of each is marked. Returns the Axes.
    """
    ax = lines(shares, losses, ax, markers=False, xlabel="probability given to the right word",
               ylabel="loss, nats", ylim=(0, None))  # fmt: skip
    for line, values in zip(ax.lines, losses.values(), strict=True):
        best = min(range(len(values)), key=lambda i: float(values[i]))
        if best == len(values) - 1:  # it falls to the end
            continue
        ax.plot(float(shares[best]), float(values[best]), "o", color=line.get_color(), zorder=5)
        ax.annotate(
            f"least at {float(shares[best]):.2f}", (float(shares[best]), float(values[best])),
            xytext=(-14, 22), textcoords="offset points", ha="right", color=COLOURS["plain"],
            arrowprops={"arrowstyle": "-", "color": COLOURS["plain"]},
        )  # fmt: skip
    return ax


def who_looks(masks):
    """Draw {title: (boolean mask, who, at what)} side by side; returns the Axes, in order."""
    axes = plt.subplots(1, len(masks), figsize=(4 * len(masks), 3.6), squeeze=False)[1][0]
    for ax, (title, (mask, who, what)) in zip(axes, masks.items(), strict=True):
        heatmap(mask.float(), who, what, ax, mask=mask, colorbar=None, annotate=False)
        ax.set(title=title, xlabel="key", ylabel="query")
    return list(axes)


def asked_for(targets, said, vocabulary):
    """Draw {title: distribution (T, V)} asked for at each position; returns the Axes, in order."""
    axes = plt.subplots(1, len(targets), figsize=(6.5 * len(targets), 4.4))[1]
    for ax, (title, asked) in zip(axes, targets.items(), strict=True):
        heatmap(asked, said, vocabulary, ax, annotate=True, colorbar=None)
        ax.set(title=title, xlabel="vocabulary", ylabel="position (its label)")
    return list(axes)


def warm_up_curves(histories):
    """Draw losses of {(norm, with warm-up): history}; a norm has its colour, without is dashed."""
    named = {f"{norm}, {'with' if warm else 'without'}": h for (norm, warm), h in histories.items()}
    colors = {name: CYCLE.index(COLOURS[name.partition(",")[0]]) for name in named}
    ax = learning_curve(named, smooth=5, ylabel="smoothed loss, nats per word", colors=colors)
    for line in ax.lines:
        line.set_linestyle("--" if "without" in line.get_label() else "-")
    ax.legend(title="warm-up")
    return ax


def by_length(shares, trained):
    """Draw {words: share right}, lengths up to `trained`, the longest trained on, in grey."""
    right = {"right": list(shares.values())}
    words = {"xlabel": "words in the English sentence", "ylabel": "share without a mistake"}
    ax = lines(list(shares), right, legend=False, ylim=(0, 1.05), **words)
    ax.axvspan(min(shares) - 0.3, trained + 0.3, color=MASKED, zorder=0)
    return ax
