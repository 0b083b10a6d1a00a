"""A search drawn as a tree: which beginnings were kept, which ended, which were dropped."""

import math

from .style import CYCLE, FAINT, GOLD, INK, PAPER, label, new_axes

FATES = {"kept": CYCLE[0], "ended": CYCLE[2], "dropped": FAINT}


def beam_tree(steps, ax=None, *, best=None, pinyin=None, title=None):
    """Draw the steps of a beam search from left to right; returns the Axes.

    steps: a list per step of (prefix, log-probability in nats, fate), where a prefix is a tuple of
    words and its fate one of "kept", "ended" and "dropped". A node shows its last word and the
    probability of the whole prefix; likelier ones stand higher. best: the prefix that won, whose
    path is outlined. pinyin: {word: its sound or gloss}, by default the phrasebook's sounds.
    Raises ValueError for no steps, an unknown fate, or a prefix whose parent is not among the step
    before.
    """
    if not steps or not all(steps):
        raise ValueError("beam_tree needs at least one step with at least one prefix")
    tallest = max(map(len, steps))
    ax = new_axes(ax, (min(2.2 + 1.35 * len(steps), 14), 0.52 * tallest + 1.1))
    places = {(): (0.0, 0.0)}
    winners = {tuple(best[:n]) for n in range(len(best) + 1)} if best else set()
    ax.plot(0, 0, "o", color=INK, markersize=8)
    for column, nodes in enumerate(steps, start=1):
        ranked = sorted(nodes, key=lambda node: -node[1])
        for rank, (prefix, log_prob, fate) in enumerate(ranked):
            if fate not in FATES:
                raise ValueError(f"fate={fate!r} of {prefix} is not one of {tuple(FATES)}")
            if prefix[:-1] not in places:
                raise ValueError(f"the parent of {prefix} is not in the step before")
            at = column, (len(nodes) - 1) / 2 - rank
            _node(ax, places[prefix[:-1]], at, prefix, log_prob, fate, prefix in winners, pinyin)
            places[prefix] = at
    ax.set(xlim=(-0.3, len(steps) + 0.55), ylim=(-tallest / 2 - 0.25, tallest / 2 + 0.25))
    ax.axis("off")
    seen = {node[2] for step in steps for node in step}
    for fate in (fate for fate in FATES if fate in seen):
        ax.plot([], [], "s", color=FATES[fate], label=fate)
    ax.legend(loc="upper left", ncols=1, fontsize=10)
    if title:
        ax.set_title(title)
    return ax


def _node(ax, start, at, prefix, log_prob, fate, wins, pinyin):
    color = GOLD if wins else FATES[fate]
    width = 2.6 if wins else 0.9 if fate == "dropped" else 1.5
    ax.plot([start[0], at[0]], [start[1], at[1]], color=color, linewidth=width, zorder=1)
    word = label(prefix[-1], (pinyin or {}).get(prefix[-1]))
    text = f"{word}  {_probability(log_prob)}"
    box = {"boxstyle": "round,pad=0.25", "facecolor": PAPER, "edgecolor": color, "linewidth": width}
    dark = FAINT if fate == "dropped" else FATES[fate]
    ax.text(*at, text, ha="center", va="center", fontsize=10, color=dark, bbox=box, zorder=2)


def _probability(log_prob):
    """Two digits that count: 0.60, 0.024, 0.0018; below 0.0001 as a power of ten."""
    p = math.exp(log_prob)
    return f"{p:.2f}" if p >= 0.1 else f"{p:.2g}".replace("e-0", "e-")
