"""What a language model reads, says and finds hard: text drawn token by token."""

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

from tinytf.viz.spoken import alt
from tinytf.viz.style import ATTENTION, CYCLE, as_array, label, new_axes, readable_on

COLUMNS = 104  # of text on a row
MONO = "DejaVu Sans Mono"


def ranking(values, ax=None, *, colors=None, xlabel=None, title=None, decimals=2):
    """Draw (name, number) pairs, or {name: number}, as horizontal bars in their order.

    colors: {name: place in CYCLE}; the others are grey. Returns the Axes. Raises ValueError if
    there is nothing to draw.
    """
    pairs = list(values.items() if hasattr(values, "items") else values)
    if not pairs:
        raise ValueError("ranking needs at least one (name, number), got none")
    ax = new_axes(ax, (9, 0.38 * len(pairs) + 1.1))
    numbers = [float(number) for _, number in pairs]
    hues = [CYCLE[(colors or {})[name]] if name in (colors or {}) else "#a3abb5"
            for name, _ in pairs]  # fmt: skip
    drawn = ax.barh(range(len(pairs)), numbers, 0.74, color=hues)
    ax.bar_label(drawn, fmt=f"%.{decimals}f", padding=4, fontsize=11)
    ax.set_yticks(range(len(pairs)), [label(name) for name, _ in pairs])
    ax.set(ylim=(len(pairs) - 0.4, -0.6), xlabel=xlabel)
    ax.margins(x=0.1)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    if title:
        ax.set_title(title)
    return ax


def next_tokens(odds, tokens, text, ax=None, *, most=10):
    """Draw the likeliest tokens after `text` as bars; returns the Axes.

    odds: a probability for each of the V `tokens`. Raises ValueError if the two differ in number.
    """
    odds = as_array(odds, "odds", ndim=1)
    if len(odds) != len(tokens):
        raise ValueError(f"{len(odds)} probabilities for {len(tokens)} tokens")
    best = (-odds).argsort(kind="stable")[:most]
    shown = [(repr(tokens[i]), odds[i]) for i in best]
    ax = ranking(shown, ax, colors={shown[0][0]: 0}, xlabel="probability", title=f"after {text!r}")
    ax.set_xlim(0, 1)
    listed = ", ".join(f"{name} {share:.2f}" for name, share in shown)
    return alt(ax, f"The likeliest tokens after {text!r}, with their probabilities: {listed}.")


def text_bits(tokens, bits, *, top=10.0, title=None):
    """Write a text with each token on the colour of its bits, from 0 to `top`; returns the Axes.

    A space is drawn as it is, a line end as ↵ and a new line. Raises ValueError if tokens and bits
    differ in number.
    """
    bits = as_array(bits, "bits", ndim=1)
    if len(tokens) != len(bits) or not len(bits):
        raise ValueError(f"{len(tokens)} tokens for {len(bits)} numbers of bits")
    placed, x, y = [], 0, 0.0
    for token, amount in zip(tokens, bits, strict=True):
        shown = token.replace("\n", "↵")
        if x and x + len(shown) > COLUMNS:
            x, y = 0, y + 1
        placed.append((shown, x, y, amount))
        x += len(shown)
        if token.endswith("\n"):
            x, y = 0, y + 1
    rows = int(max(y for _, _, y, _ in placed)) + 1
    width = max(60, *(x + len(shown) for shown, x, _, _ in placed))
    fig, ax = plt.subplots(figsize=(0.12 * width, 0.29 * rows + 0.9), layout="constrained")
    for shown, x, y, amount in placed:
        shade = ATTENTION(min(amount / top, 1.0))
        weight = "bold" if amount / top > 0.4 else "normal"  # thin letters are lost on middle blue
        ax.add_patch(Rectangle((x, y), len(shown), 0.92, facecolor=shade, edgecolor="white"))
        for i, char in enumerate(shown):  # a place of its own for each, whatever the font's width
            ax.text(x + i + 0.5, y + 0.5, char.replace("$", r"\$"), ha="center", va="center",
                    family=MONO, fontsize=10, weight=weight,
                    color=readable_on(shade[:3]))  # fmt: skip
    ax.set(xlim=(0, width), ylim=(rows, -0.1), xticks=[], yticks=[])
    _bare(ax)
    scale = plt.cm.ScalarMappable(plt.Normalize(0, top), ATTENTION)
    bar = fig.colorbar(scale, ax=ax, orientation="horizontal", shrink=0.4, aspect=30, pad=0.02)
    bar.set_label(f"bits ({top:g} or more at the right)")
    bar.outline.set_visible(False)
    if title:
        ax.set_title(title, loc="left")
    return ax


def _bare(ax):
    ax.grid(False)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
