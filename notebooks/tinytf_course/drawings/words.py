"""What words become, layer by layer, and which word may stand in a blank."""

from collections.abc import Mapping

import numpy as np

from tinytf.viz.style import CYCLE, INK, as_array, label, new_axes


def word_paths(paths, ax=None, *, title=None, colors=None):
    """Draw {name: (N, 1 + L, 2)}: N ways through a plane, a point after each layer.

    A thin line per way, and on it the mean of its name with the layers' numbers; where all begin
    at one point, the last name's disc covers the others'. colors: {name: place in CYCLE}. Returns
    the Axes.
    """
    if not isinstance(paths, Mapping) or not paths:
        raise ValueError(f"paths needs at least one {{name: points}}, got {paths!r}")
    ax = new_axes(ax, (8, 5.4))
    for index, (name, points) in enumerate(paths.items()):
        points = as_array(points, f"paths {name!r}", ndim=3)
        if points.shape[-1] != 2:
            raise ValueError(f"paths {name!r} have {points.shape[-1]} coordinates, expected 2")
        color = CYCLE[(colors or {}).get(name, index) % len(CYCLE)]
        for way in points:
            ax.plot(*way.T, color=color, linewidth=0.9, alpha=0.45, zorder=1)
        mean = points.mean(axis=0)
        ax.plot(*mean.T, color=color, linewidth=2.6, zorder=3, label=label(name))
        ax.scatter(*mean.T, s=190, color=color, zorder=4)
        for layer, at in enumerate(mean):
            ax.text(
                *at, str(layer), color="white", fontsize=11, ha="center", va="center_baseline",
                zorder=5,
            )  # fmt: skip
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
    if title:
        ax.set_title(title)
    if len(paths) > 1:
        ax.legend()
    return ax


def word_odds(odds, ax=None, *, top=8, title=None, truth=None, colors=None):
    """Draw {who says it: {word: probability}} for the likeliest words, bars side by side.

    The words are those that anyone gives most to, `top` of them, likeliest for the last one first;
    `truth` is a word to mark. The axis ends at 1, or at 0.5 where nobody gives any word more.
    colors: {who: place in CYCLE}. Returns the Axes.
    """
    if not isinstance(odds, Mapping) or not odds:
        raise ValueError(f"odds needs at least one {{who: {{word: probability}}}}, got {odds!r}")
    words = {word for probabilities in odds.values() for word in probabilities}
    most = {
        word: max(float(probabilities.get(word, 0.0)) for probabilities in odds.values())
        for word in words
    }
    last = list(odds.values())[-1]
    shown = sorted(words, key=lambda word: (-most[word], word))[:top]
    shown.sort(key=lambda word: (-float(last.get(word, 0.0)), -most[word], word))
    ax = new_axes(ax, (8, 0.42 * len(shown) + 1.5))
    height = 0.8 / len(odds)
    for index, (who, probabilities) in enumerate(odds.items()):
        at = np.arange(len(shown)) + (index - (len(odds) - 1) / 2) * height
        color = CYCLE[(colors or {}).get(who, index) % len(CYCLE)]
        values = [float(probabilities.get(word, 0.0)) for word in shown]
        ax.barh(at, values, height * 0.92, color=color, label=label(who))
    ax.set_yticks(range(len(shown)), [label(word) for word in shown])
    for tick, word in zip(ax.get_yticklabels(), shown, strict=True):
        tick.set(fontweight="bold" if word == truth else "normal", color=INK)
    end = 1 if max(most.values()) > 0.5 else 0.5
    ax.set(xlim=(0, end), ylim=(len(shown) - 0.5, -0.5), xlabel="probability")
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    if title:
        ax.set_title(title)
    if len(odds) > 1:
        ax.legend(loc="lower right")
    return ax
