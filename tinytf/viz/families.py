"""What noise does to a text."""

from matplotlib.patches import FancyBboxPatch

from .style import ATTENTION, GOLD, INK, label, new_axes


def spoiled_rows(rows, ax=None, *, length=None, title=None):
    """Draw texts word by word, each word on the colour of its place in the original text.

    rows: {name: [(word, place)]}, place counted from 0, None for a mark that noise put there
    (orange). So a word that stays keeps its colour, and a text out of order is a ramp out of order.
    length: of the original; by default as far as the places go. Returns the Axes; raises ValueError
    if there is nothing to draw.
    """
    if not rows or not all(len(row) for row in rows.values()):
        raise ValueError(f"rows needs at least one word in each text, got {rows!r}")
    places = [place for row in rows.values() for _, place in row if place is not None]
    last = (length or max(places, default=0) + 1) - 1
    width = {
        name: [0.42 + 0.13 * len(label(word)) for word, _ in row] for name, row in rows.items()
    }
    longest = max(sum(w) for w in width.values())
    ax = new_axes(ax, (12.5, 0.35 + 0.5 * len(rows)))
    for y, (name, row) in enumerate(rows.items()):
        x = 0.0
        for (word, place), wide in zip(row, width[name], strict=True):
            face = GOLD if place is None else ATTENTION(0.08 + 0.5 * place / max(1, last))
            shape = {"boxstyle": "round,pad=0,rounding_size=0.08", "edgecolor": "none"}
            box = FancyBboxPatch((x + 0.05, y - 0.34), wide - 0.1, 0.68, facecolor=face, **shape)
            ax.add_patch(box)
            ax.text(x + wide / 2, y, label(word), ha="center", va="center", fontsize=10.5,
                    color="white" if place is None else INK)  # fmt: skip
            x += wide
    ax.set_yticks(range(len(rows)), [label(name) for name in rows])
    ax.set(xlim=(0, longest), ylim=(len(rows) - 0.45, -0.55), xticks=[])
    ax.tick_params(axis="y", length=0)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if title:
        ax.set_title(title, loc="left")
    return ax
