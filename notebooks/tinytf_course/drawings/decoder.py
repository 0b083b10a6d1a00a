"""Drawings of a decoder layer, its cache, the leak test; checks of models, costs of parts."""

import matplotlib.pyplot as plt
import numpy as np

from tinytf.viz.style import COLOURS, CYCLE, FAINT, GOLD, INK, PAPER, as_array, label, new_axes

from .diagram import SMALL, Diagram

ALARM = "#fbe3cd"  # behind a number that gives a mistake away


def verdicts(results, limits, scores=None, *, title=None):
    """Draw a table of models against checks; a number above its check's limit is filled.

    results: {model: {check: number, 0 where all is well}}. limits: {check: the largest number that
    is only rounding}. scores: {model: {score: text or number}}, further columns, never filled.
    Raises KeyError if a model lacks a check or a score, ValueError if there are no models. Returns
    the Axes.
    """
    if not results:
        raise ValueError("there are no models to show")
    checks, names = list(limits), list(results)
    extra = list(next(iter(scores.values()))) if scores else []
    size = (3.0 + 1.5 * (len(checks) + len(extra)), 1.7 + 0.5 * len(names))
    ax = new_axes(size=size)
    gap = 0.35 if extra else 0
    for row, name in enumerate(names):
        for column, check in enumerate(checks):
            number = float(results[name][check])
            alarm = not number <= limits[check]
            if alarm:
                place = (column - 0.47, row - 0.43)
                ax.add_patch(plt.Rectangle(place, 0.94, 0.86, facecolor=ALARM, edgecolor=GOLD))
            weight, color = ("bold", INK) if alarm else ("normal", FAINT)
            text = _number(number)
            ax.text(column, row, text, ha="center", va="center", color=color, fontweight=weight)
        for column, score in enumerate(extra, len(checks)):
            value = scores[name][score]
            text = value if isinstance(value, str) else _number(float(value))
            ax.text(column + gap, row, text, ha="center", va="center", color=INK)
    if extra:
        ax.axvline(len(checks) - 0.5 + gap / 2, color=FAINT, linewidth=1)
    ax.set_xlim(-0.5, len(checks) + len(extra) - 0.5 + gap)
    ax.set_ylim(len(names) - 0.5, -0.5)
    places = [*range(len(checks)), *(gap + len(checks) + i for i in range(len(extra)))]
    ax.set_xticks(places, [*map(_wrapped, checks), *map(_wrapped, extra)])
    ax.set_yticks(range(len(names)), names)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    for row in range(1, len(names)):
        ax.axhline(row - 0.5, color="#e6e9ed", linewidth=1, zorder=0)
    if title:
        ax.set_title(title)
    return ax


def cost_dots(costs, ax=None, *, colors=None, xlabel="cost", title=None, decimals=None):
    """Draw a row per part and, in it, a line of dots per way of removing it; returns the Axes.

    costs: {part: {way: numbers, one per run}}; the band behind the dots spans them. colors:
    {way: place in the house cycle}. decimals: write each row's mean at the right with so many.
    Raises ValueError if a part has no runs or the parts have different ways.
    """
    parts = list(costs)
    ways = list(costs[parts[0]]) if parts else []
    if not ways or any(list(costs[part]) != ways for part in parts):
        raise ValueError(f"every part needs the same ways of removing it, got {costs!r}")
    colors = colors or {way: place for place, way in enumerate(ways)}
    ax = new_axes(ax, (9, 0.34 * len(parts) * len(ways) + 1.5))
    step = 0.8 / len(ways)
    for row, part in enumerate(parts):
        for index, way in enumerate(ways):
            runs = as_array(costs[part][way], f"{part!r}, {way!r}", ndim=1)
            if not runs.size:
                raise ValueError(f"{part!r}, {way!r} has no runs")
            at = row + (index - (len(ways) - 1) / 2) * step
            color = CYCLE[colors[way]]
            ax.hlines(at, runs.min(), runs.max(), color=color, alpha=0.35, linewidth=6)
            ax.plot(runs, np.full(runs.shape, at), "o", color=color, markersize=8,
                    markeredgecolor=PAPER, label=way if row == 0 else None)  # fmt: skip
            if decimals is not None:
                ax.annotate(
                    f"{runs.mean():.{decimals}f}", (1.01, at), xycoords=("axes fraction", "data"),
                    va="center", color=color, fontsize=12,
                )  # fmt: skip
        if row:
            ax.axhline(row - 0.5, color="#d5dae0", linewidth=1)
    ax.axvline(0, color=INK, linewidth=1)
    ax.set(ylim=(len(parts) - 0.5, -0.5), xlabel=xlabel)
    ax.set_yticks(range(len(parts)), parts)
    ax.grid(False, axis="y")
    if title:
        ax.set_title(title)
    ax.legend(loc="best")
    return ax


def _number(number):
    if number == 0:
        return "0"
    return f"{number:.2f}" if abs(number) >= 0.005 else f"{number:.0e}".replace("e-0", "e-")


def _wrapped(text, width=13):
    lines = [""]
    for word in str(text).split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def draw_decoder_layer():
    """Draw a Pre-LN decoder layer: the stream, and three sublayers beside it; returns the Axes."""
    d = Diagram(
        18.4, 5.6,
        "A stream of vectors x runs from left to right. Three times a copy leaves it, is "
        "normalised, goes through a sublayer and is added to the stream: first masked "
        "self-attention, then cross-attention, which takes its keys and values from the memory "
        "above, then the feed-forward network.",
    )  # fmt: skip
    stream = 0.7
    x = d.box(1.0, stream, "x", "(B, T, C)", role="residual")
    out = d.box(17.4, stream, "out", "(B, T, C)", role="residual")
    before, middle = x, None
    sublayers = (("masked\nself-attention", "decoder"), ("cross-attention", "memory"),
                 ("feed-forward", "feedforward"))  # fmt: skip
    for i, (name, role) in enumerate(sublayers):
        left = 3.3 + 4.7 * i
        plus = d.box(left + 2.6, stream, "+", role="residual", size=(0.5, 0.5))
        d.arrow(before, plus, role="residual")
        norm = d.box(left, 1.95, "norm", role="norm", size=(1.5, 0.62))
        sublayer = d.box(left, 3.2, name, role=role, size=(2.6, 0.95))
        d.arrow((left, stream), norm)
        d.arrow(norm, sublayer)
        d.ax.plot([sublayer.right[0], plus.x], [3.2, 3.2], color=INK, linewidth=1.5)
        d.arrow((plus.x, 3.2), plus)
        before, middle = plus, sublayer if i == 1 else middle
    d.arrow(before, out, role="residual")
    memory = d.box(middle.x, 4.95, "memory", "(B, S, C)", role="memory", size=(2.6, None))
    d.arrow(memory, middle, "keys and values", role="memory")
    for left, question in ((3.3, "what has been written?"), (12.7, "what follows from it?")):
        d.text(left, 4.05, question, size=SMALL)
    d.text(middle.x + 1.5, 4.95, "what does the source contain?", size=SMALL, align="left")
    return d.ax


def draw_layer_cache(words, source):
    """Draw what one decoder layer keeps while it writes `words`, reading `source`.

    Of self-attention's keys and values one row is new at each step; those of the source's words
    are made at the first step. What was kept is pale. Returns the Axes.
    """
    steps, high = len(words), max(len(words), len(source))
    d = Diagram(
        5.4 * steps + 0.4, 0.6 * high + 2.0,
        f"{steps} steps. At each, one new word goes into the layer. Beside it stand the keys and "
        "values of the words written: one new row a step, the others kept; and those of the "
        f"{len(source)} words of the source: all new at the first step, all kept later.",
    )  # fmt: skip
    top = 0.6 * high + 0.8
    for step in range(steps):
        at = 0.4 + 5.4 * step
        d.text(at + 2.3, top + 0.85, f"step {step}: only {label(words[step])} goes in")
        for x, name, row, new in (
            (1.2, "of self-attention", words[: step + 1], {step}),
            (3.4, "of cross-attention", source, set(range(len(source))) if step == 0 else set()),
        ):
            d.text(at + x, top + 0.35, name, size=SMALL)
            for i, word in enumerate(row):
                d.box(at + x, top - 0.2 - 0.6 * i, f"k, v of {label(word)}",
                      role="memory" if x > 2 else "decoder", faint=i not in new,
                      size=(2.05, 0.52))  # fmt: skip
        d.text(at + 2.3, 0.3, f"{step} kept, 1 new" + (f"; {len(source)} "
               + ("new" if step == 0 else "kept")), size=SMALL)  # fmt: skip
    return d.ax


def draw_newest_column(words, num_layers=3):
    """Draw a stack as columns, one a word: only the last is computed, the others are read.

    Returns the Axes.
    """
    last = len(words) - 1
    d = Diagram(
        3.2 * len(words) + 3.4, 1.5 * num_layers + 2.1,
        f"{len(words)} columns of {num_layers} layers, over the words "
        f"{', '.join(map(label, words))}. All but the last column are pale, and arrows lead from "
        "them, at each layer, into the last, the only one that is computed.",
    )  # fmt: skip
    columns = []
    for t, word in enumerate(words):
        x, old = 3.9 + 3.2 * t, t < last
        column = [d.box(x, 0.65, label(word), role="embedding", size=(1.8, 0.65), faint=old)]
        for level in range(1, num_layers + 1):
            column.append(d.box(x, 0.65 + 1.5 * level, f"layer {level}", role="decoder",
                                size=(1.8, 0.75), faint=old))  # fmt: skip
        columns.append(column)
    newest = columns[-1]
    for level in range(1, num_layers + 1):
        d.arrow(newest[level - 1], newest[level])
        for column in columns[:-1]:
            d.arrow(column[level - 1].top, newest[level].left, role="memory")
    top = 1.5 * num_layers + 1.7
    d.arrow(newest[-1].top, (newest[-1].x, top))
    d.text(2.6, 0.65, "words", align="right")
    d.text((columns[0][0].x + columns[-2][0].x) / 2 if last else 3.9, top, "done, and kept")
    d.text(newest[-1].x, top + 0.2, "computed now")
    return d.ax


def draw_let_through(inputs, labels, position, masked=True):
    """Draw which words of the decoder's input reach the label at a position, masked or not.

    Raises ValueError for a `position` that the input does not have. Returns the Axes.
    """
    if not 0 <= position < len(inputs):
        raise ValueError(f"position {position} is not one of 0 to {len(inputs) - 1}")
    cell, open_to = 2.05, range(position + 1 if masked else len(inputs))
    leaks = position + 1 in open_to
    hidden = "; the rest is hidden" if len(open_to) < len(inputs) else ""
    end = f", and so by {labels[position]}, the answer" if leaks else hidden
    d = Diagram(
        len(inputs) * cell + 3.2, 3.7,
        alt=f"The decoder's input is {' '.join(inputs)}. Position {position}, whose label is "
        f"{labels[position]}, is reached by {' '.join(inputs[i] for i in open_to)}{end}.",
    )  # fmt: skip
    d.text(2.55, 2.9, "decoder input", align="right", size=10)
    d.text(2.55, 0.7, "label", align="right", size=10)
    columns, size = [3.8 + i * cell for i in range(len(inputs))], (1.85, 0.72)
    answer = d.box(columns[position], 0.7, label(labels[position]), role="output", size=size)
    for i, word in enumerate(inputs):
        role = "loss" if leaks and i == position + 1 else "decoder"
        box = d.box(columns[i], 2.9, label(word), role=role, size=size,
                    faint=i not in open_to)  # fmt: skip
        if i in open_to:
            d.arrow(box.bottom, answer.top, role=role)
    if leaks:
        d.text(columns[position + 1], 3.5, "the answer itself", size=10, color=COLOURS["loss"])
    return d.ax


def draw_leak_test(length=5, changed=2):
    """Draw which of `length` outputs may move when one input is changed; returns the Axes."""
    if not 0 <= changed < length:
        raise ValueError(f"input {changed} is none of the {length} inputs, 0 to {length - 1}")
    d = Diagram(
        3.0 * length + 3.2, 4.6,
        f"{length} inputs below, {length} outputs above. Each output is reached by arrows from its "
        f"own input and those before it. Input {changed} is changed: outputs {changed} to "
        f"{length - 1} may move, those before it may not.",
    )  # fmt: skip
    d.text(2.3, 3.7, "outputs", align="right")
    d.text(2.3, 0.9, "inputs", align="right")
    ins, outs = [], []
    for t in range(length):
        x, moved = 3.9 + 3.0 * t, t >= changed
        name = f"input {t}" + ("\nchanged" if t == changed else "")
        role = "loss" if t == changed else "input"
        ins.append(d.box(x, 0.9, name, role=role, size=(1.9, 0.95)))
        words = "may move" if moved else "must not move"
        outs.append(d.box(x, 3.7, f"output {t}", words, role="decoder" if moved else "plain",
                          size=(2.3, None)))  # fmt: skip
    for s, start in enumerate(ins):
        for end in outs[s:]:
            d.arrow(start.top, end.bottom, role="loss" if s == changed else "plain")
    for end in outs[:changed]:
        d.arrow(ins[changed].top, end.bottom, dashed=True, role="loss")
    if changed:
        x, y = ins[changed].top
        first = outs[0].bottom
        d.text(0.72 * first[0] + 0.28 * x, 0.72 * first[1] + 0.28 * y, "a leak", SMALL, backed=True)
    return d.ax
