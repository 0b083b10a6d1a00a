"""What a sampling rule does: to one distribution, to a text, to the statistics of many."""

from collections.abc import Mapping

import numpy as np

from .axes import set_axes
from .style import ATTENTION, CYCLE, GOLD, INK, MASKED, as_array, label, new_axes


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


def settings_plane(families, human, ax=None, *, colors=None, notes=True, **axes):
    """Draw families of settings as lines in a plane of two measures; returns the Axes.

    families: {family: {setting: (x, y)}}, drawn in the order given, each point with its setting's
    name; notes: False for none, or the names to show. human: (x, y), a star with lines through it.
    colors: {family: its place in CYCLE}. axes: as for `set_axes`. Raises ValueError if there are no
    families.
    """
    if not isinstance(families, Mapping) or not families:
        raise ValueError(f"families needs at least one {{family: settings}}, got {families!r}")
    ax = new_axes(ax, (8, 5.2))
    for index, (family, points) in enumerate(families.items()):
        x, y = as_array(list(points.values()), family, 2).T
        color = CYCLE[(colors or {}).get(family, index) % len(CYCLE)]
        ax.plot(x, y, "o-", color=color, linewidth=1.8, markersize=6, label=label(family))
        # two lines that keep close read best with their notes on either side
        away, side = ((-6, 6), "right") if index % 2 == 0 else ((7, -12), "left")
        shown = set(points) if notes is True else set(notes or ())
        for name, where in zip(points, zip(x, y, strict=True), strict=True):
            if name in shown:
                ax.annotate(name, where, xytext=away, textcoords="offset points", ha=side,
                            color=color, fontsize=12, fontweight="bold")  # fmt: skip
    ax.axvline(human[0], color=GOLD, linewidth=1, linestyle=":")
    ax.axhline(human[1], color=GOLD, linewidth=1, linestyle=":")
    ax.plot(
        *human, "*", color=GOLD, markersize=19, markeredgecolor="white", label="human", zorder=5
    )
    set_axes(ax, **axes)
    ax.legend()
    return ax
