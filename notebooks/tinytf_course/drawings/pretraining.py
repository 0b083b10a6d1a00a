"""Drawings of pretraining: a text as examples and as blocks, a step from several batches."""

import matplotlib.pyplot as plt
import torch

from tinytf.viz.statistics import lines
from tinytf.viz.style import COLOURS, CYCLE
from tinytf_course.drawings.diagram import Diagram


def draw_questions(tokens):
    """Draw the training examples in a text: each beginning of it, and the token that follows.

    `tokens` are the text's. Returns the Axes.
    """
    count, cell = len(tokens) - 1, 1.75
    said = [f"After {' '.join(tokens[: i + 1])} comes {tokens[i + 1]}." for i in range(count)]
    d = Diagram(
        cell * (count + 1) + 3.2, 0.85 * count + 0.6,
        alt=f"A text as training examples, one a row. {' '.join(said)}",
    )  # fmt: skip
    for row in range(count):
        y = 0.85 * (count - row) - 0.2
        d.text(1.9, y, f"example {row + 1}", align="right", size=10)
        for i in range(row + 1):
            last = d.box(3.0 + i * cell, y, tokens[i], role="input", size=(1.6, 0.62))
        answer = d.box(3.0 + (count + 0.35) * cell, y, tokens[row + 1], role="output",
                       size=(1.6, 0.62))  # fmt: skip
        d.arrow(last, answer)
    return d.ax


def draw_text_blocks(tokens, length):
    """Draw a row of tokens cut into blocks: the inputs, and under them the targets.

    Blocks have `length` tokens; as many are drawn as have a token after them. Returns the Axes.
    """
    count, cell, gap = (len(tokens) - 1) // length, 1.42, 0.5
    used = tokens[: count * length + 1]
    d = Diagram(
        len(used) * cell + count * gap + 2.6, 4.3,
        alt=f"A text of {len(used)} tokens: {' '.join(used)}. It is cut into {count} blocks of "
        f"{length}. Under the inputs of a block are its targets, the same text one token later; "
        "the last target of a block is the first input of the next.",
    )  # fmt: skip
    hues = ("query", "value", "output", "key")

    def at(i):
        return 2.9 + i * cell + i // length * gap

    for name, y in (("the text", 3.75), ("inputs", 2.1), ("targets", 0.7)):
        d.text(1.9, y, name, align="right", size=10)
    for i, token in enumerate(used):
        owner = hues[i // length % 4] if i < count * length else "plain"
        d.box(at(i), 3.75, token, role=owner, size=(1.3, 0.62))
    for i in range(count * length):
        owner = hues[i // length % 4]
        read = d.box(at(i), 2.1, used[i], role=owner, size=(1.3, 0.62))
        following = hues[(i + 1) // length % 4] if i + 1 < count * length else "plain"
        say = d.box(at(i), 0.7, used[i + 1], role=following, size=(1.3, 0.62))
        d.arrow(read, say)
    return d.ax


def draw_pretraining_step(batches=3):
    """Draw one step: several small batches add to one gradient, and the weights move once.

    Returns the Axes.
    """
    d = Diagram(
        18.5, max(1.2 * batches, 4.2),
        alt=f"{batches} small batches pass through the model one after another. The loss of each, "
        "divided by the tokens of all, sends a gradient back, and the gradients add up. Their sum "
        "is clipped, AdamW takes the schedule's rate and moves the weights once.",
    )  # fmt: skip
    each, losses, (gradient,), (clipped,), (rate, step, groups) = d.columns(
        [(f"batch {i + 1}", None, "input") for i in range(batches)],
        [("loss ÷ all tokens", None, "loss")] * batches,
        [("gradient", "added up", "query")],
        [("clipped", "length at most 1", "norm")],
        [("schedule", "rate of this step", "key"), ("AdamW", "weights move once", "feedforward"),
         ("groups", "what decays", "key")],
    )  # fmt: skip
    for batch, loss in zip(each, losses, strict=True):
        d.arrow(batch, loss, "model")
        d.arrow(loss.right, gradient.left, "backward")
    d.chain(gradient, clipped, step)
    d.arrow(rate, step)
    d.arrow(groups, step)
    return d.ax


def known_levels(history, levels, smooth=3):
    """Draw a loss over the steps with {name: level} as dashed lines; returns the Axes.

    `history` is what training returns; a loss is averaged with `smooth` neighbours on either side.
    """
    losses = torch.tensor([row["loss"] for row in history])
    steps = [row["step"] for row in history]
    mean = [losses[max(0, i - smooth) : i + smooth + 1].mean().item() for i in range(len(losses))]
    ax = lines(steps, {"the model": mean}, xlabel="step", ylabel="loss, nats per token",
               markers=False, colors={"the model": 0})  # fmt: skip
    for style, (name, level) in zip((":", "--", "-.", (0, (1, 4))), levels.items(), strict=False):
        ax.axhline(level, color=COLOURS["plain"], linestyle=style, linewidth=1.5, zorder=1)
        ax.annotate(name, (1.01, level), xycoords=("axes fraction", "data"), va="center",
                    color=COLOURS["plain"], fontsize=11)  # fmt: skip
    if ax.get_legend():
        ax.get_legend().remove()
    return ax


def read_again(curves, readings, trained_on="its own text"):
    """Draw {run: (seeds, points)} twice over the epochs: on the training text, on other text.

    `curves` maps "train" and "validation" to the runs. Returns the two Axes.
    """
    axes = plt.subplots(1, 2, figsize=(12, 4.2), sharey=True)[1]
    titles = {"train": trained_on, "validation": "held-out text"}
    for ax, (split, runs) in zip(axes, curves.items(), strict=True):
        mean = {run: t.mean(dim=0) for run, t in runs.items()}
        band = {run: (t.amin(dim=0), t.amax(dim=0)) for run, t in runs.items()}
        hues = dict(zip(runs, (6, 7, 0)[: len(runs)], strict=True))
        lines(readings, mean, ax, band=band, colors=hues, title=titles[split],
              xlabel="epochs", ylabel="bits per byte")  # fmt: skip
    axes[1].get_legend().remove()
    axes[1].set_ylabel("")
    return list(axes)


def where_bits_go(bits, share):
    """Draw {kind of token: bits each} beside {kind: share of all bits}; returns the two Axes."""
    axes = plt.subplots(1, 2, figsize=(11, 0.5 * len(bits) + 1.2), sharey=True)[1]
    for ax, values, words in zip(
        axes, (bits, share), ("mean bits per token", "share of all bits"), strict=True
    ):
        drawn = ax.barh(range(len(values)), [float(v) for v in values.values()], 0.7,
                        color=CYCLE[3 if ax is axes[0] else 7])  # fmt: skip
        ax.bar_label(drawn, fmt="%.2f", padding=4)
        ax.set_yticks(range(len(values)), list(values))
        ax.set(xlabel=words, ylim=(len(values) - 0.4, -0.6))
        ax.margins(x=0.12)
    return list(axes)
