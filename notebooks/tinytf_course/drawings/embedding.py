"""Text cut into tokens, words as points of a plane, and the nearest of a word."""

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from tinytf.related.word2vec import nearest
from tinytf.viz.spoken import alt
from tinytf.viz.style import CYCLE, INK, as_array, label, new_axes

_COLUMNS = 96  # of text on a row
_TURN = (0, 1, 2, 4)  # colours that neighbours take in turn
_TURNS = [math.radians(angle) for angle in (30, -30, 150, -150, 90, -90, 0, 180)]
_FAR = (8, 16, 26, 38)  # points, from a dot to its word


def token_rows(rows, *, title=None):
    """Draw each {heading: tokens} as a line of coloured pieces; returns the Axes.

    A token is text, or bytes: what is no whole character is shown by its byte values. A space is
    drawn as ·, a line end as ↵. Long lines are broken.
    """
    if not isinstance(rows, Mapping) or not rows:
        raise ValueError(f"rows needs at least one {{heading: tokens}}, got {rows!r}")
    placed, y = [], 0.0
    for heading, tokens in rows.items():
        placed.append((heading, None, 0.0, y, 0))
        x, y = 0.0, y + 1.0
        for index, token in enumerate(tokens):
            shown = _visible(token)
            width = len(shown) + 0.7
            if x and x + width > _COLUMNS:
                x, y = 0.0, y + 1.05
            placed.append((shown, CYCLE[_TURN[index % len(_TURN)]], x, y, width))
            x += width
        y += 1.35
    ax = plt.subplots(figsize=(11.5, 0.34 * y + (0.45 if title else 0.1)))[1]
    for text, color, x, top, width in placed:
        if color is None:
            ax.text(0, top + 0.45, text, fontsize=11, va="center", color=INK)
            continue
        box = Rectangle((x, top), width - 0.12, 0.9, facecolor=color, alpha=0.28, linewidth=0)
        ax.add_patch(box)
        ax.text(
            x + width / 2 - 0.06, top + 0.47, text, ha="center", va="center", fontsize=11,
            family=["DejaVu Sans Mono", *plt.rcParams["font.family"]],
        )  # fmt: skip
    ax.set(xlim=(-0.3, _COLUMNS + 0.3), ylim=(y - 0.3, -0.1))
    ax.axis("off")
    if title:
        ax.set_title(title, loc="left")
    cut = (f"{name}: {' | '.join(map(_visible, tokens))}" for name, tokens in rows.items())
    return alt(ax, f"Text cut into tokens. {'. '.join(cut)}.")


def _visible(token):
    if isinstance(token, bytes):
        try:
            token = token.decode()
        except UnicodeDecodeError:
            return "".join(f"‹{byte:02x}›" for byte in token)
    body = token.strip(" ")
    if not body:
        return "·" * len(token)
    left = len(token) - len(token.lstrip(" "))
    return "·" * left + label(body) + "·" * (len(token) - left - len(body))


def plane(vectors):
    """Project (N, C) on the two directions in which they vary most: (N, 2)."""
    vectors = as_array(vectors, "vectors", ndim=2)
    centred = vectors - vectors.mean(axis=0)
    directions = np.linalg.svd(centred, full_matrices=False)[2]
    return centred @ directions[:2].T


def word_map(groups, ax=None, *, title=None, links=None):
    """Draw {group: {word: (x, y)}}, a colour a group, words beside their points.

    links: pairs of points to join by a thin line, as ((x, y), (x, y)).
    """
    if not isinstance(groups, Mapping) or not groups:
        raise ValueError(f"groups needs at least one {{group: {{word: point}}}}, got {groups!r}")
    ax = new_axes(ax, (10.5, 6.2))
    for one, other in links or ():
        (x, y), (u, v) = as_array(one, "link"), as_array(other, "link")
        ax.plot([x, u], [y, v], color="#9aa3ad", linewidth=0.9, zorder=1)
    named = []
    for index, (name, words) in enumerate(groups.items()):
        at = as_array(list(words.values()), f"points of {name!r}", ndim=2)
        color = CYCLE[index % len(CYCLE)]
        ax.scatter(at[:, 0], at[:, 1], s=30, color=color, label=name, zorder=2)
        named += [(label(word), point, color) for word, point in zip(words, at, strict=True)]
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
    ax.margins(0.1)
    if title:
        ax.set_title(title)
    if len(groups) > 1:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    _write_beside(ax, named)
    lists = (f"{name}: {', '.join(words)}" for name, words in groups.items())
    joined = f" Lines join points: {len(links)}." if links else ""
    return alt(ax, f"Words as points of a plane. {'; '.join(lists)}.{joined}")


def nearest_words(tables, words, word, *, count=6):
    """Draw the words whose vectors have the largest cosine to that of `word`; returns the Axes.

    tables: {name: vectors (V, C)}, a chart for each. words: the V words. Raises ValueError if
    `word` is none of them.
    """
    words = list(words)
    if word not in words:
        raise ValueError(f"{word!r} is none of the {len(words)} words, such as {words[-1]!r}")
    size = (4.6 * len(tables), 0.38 * count + 1.2)
    figure, axes = plt.subplots(1, len(tables), figsize=size, squeeze=False, layout="constrained")
    said = []
    for ax, (name, vectors) in zip(axes[0], tables.items(), strict=True):
        ids, cosines = (found.tolist() for found in nearest(vectors, words.index(word), count))
        bars = ax.barh(range(count), cosines, 0.74, color=CYCLE[0])
        ax.bar_label(bars, fmt="%.2f", padding=4, fontsize=11)
        ax.set_yticks(range(count), [label(words[i]) for i in ids])
        ax.set(xlim=(0, 1.15), ylim=(count - 0.4, -0.6), xlabel=f"cosine with {word}", title=name)
        ax.tick_params(axis="y", length=0)
        ax.grid(False, axis="y")
        found = (f"{words[i]} {cosine:.2f}" for i, cosine in zip(ids, cosines, strict=True))
        said.append(f"{name}: {', '.join(found)}")
    alt(figure, f"The words nearest to {word}, with their cosines. {'; '.join(said)}.")
    return axes[0]


def _write_beside(ax, named):
    """Write each (text, point, color) beside its point, where no other text or point is."""
    ax.figure.draw_without_rendering()  # settles where the points are
    dots = [ax.transData.transform(point) for _, point, _ in named]
    taken = [Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in dots]
    places = [(math.cos(turn), math.sin(turn), far) for far in _FAR for turn in _TURNS]
    for text, point, color in named:
        best = None
        for cos, sin, far in places:
            beside = ax.annotate(
                text, point, xytext=(far * cos, far * sin), textcoords="offset points",
                fontsize=11, color=color, va="center", annotation_clip=False,
                ha="left" if cos > 0.1 else "right" if cos < -0.1 else "center",
            )  # fmt: skip
            box = beside.get_window_extent()
            clash = sum(_overlap(box, other) for other in taken)
            if best is None or clash < best[0]:
                if best is not None:
                    best[1].remove()
                best = clash, beside, box
            else:
                beside.remove()
            if clash == 0:
                break
        taken.append(best[2])


def _overlap(one, other):
    both = Bbox.intersection(one, other)
    return 0.0 if both is None else both.width * both.height
