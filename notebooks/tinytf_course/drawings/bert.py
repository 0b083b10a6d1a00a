"""BERT, its input and its heads drawn, a tagger's probabilities, and results for each seed."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.patches import Rectangle

from tinytf.viz.style import CYCLE, INK, as_array, label, new_axes

from .diagram import Diagram

__all__ = [
    "draw_bert", "draw_heads", "draw_masked_words", "draw_two_steps", "group_dots", "input_card",
    "tag_bars",
]  # fmt: skip

BEGINS, INSIDE = INK, "#9aa3ad"  # apart from every line's colour


def input_card(tokens: Sequence[str], segments: Sequence[int], ax=None):
    """Draw what is added up at each position: a row of words, one of positions, one of segments.

    tokens and segments have one length; cells of a segment share a colour. Returns the Axes.
    """
    if len(tokens) != len(segments):
        raise ValueError(f"{len(tokens)} tokens do not match {len(segments)} segments")
    if not tokens:
        raise ValueError("there are no tokens to draw")
    widths = [max(1.0, 0.17 * len(label(token)) + 0.45) for token in tokens]
    ax = new_axes(ax, (min(13, 1.2 + 0.62 * sum(widths)), 2.3))
    left = 0.0
    for place, (token, segment, width) in enumerate(zip(tokens, segments, widths, strict=True)):
        for row, text in enumerate((label(token), str(place), str(int(segment)))):
            color = CYCLE[int(segment) % len(CYCLE)]
            box = (left + 0.05, -row - 0.42)
            ax.add_patch(
                Rectangle(box, width - 0.1, 0.84, facecolor=color, alpha=0.22, linewidth=0)
            )
            ax.text(left + width / 2, -row, text, ha="center", va="center", fontsize=11, color=INK)
        left += width
    ax.set(xlim=(0, left), ylim=(-2.6, 0.6))
    ax.set_yticks([0, -1, -2], ["word", "position", "segment"])
    ax.set_xticks([])
    ax.grid(False)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    return ax


def tag_bars(words: Sequence[str], probabilities, ax=None, *, title=None):
    """Draw how likely each word is to begin a date or be inside one: probabilities (S, 3), O, B, I.

    Returns the Axes.
    """
    p = as_array(probabilities, "probabilities", ndim=2)
    if p.shape != (len(words), 3):
        raise ValueError(f"{len(words)} words need probabilities ({len(words)}, 3), got {p.shape}")
    ax = new_axes(ax, (min(13, max(7.0, 0.95 * len(words))), 3.2))
    at = np.arange(len(words))
    ax.bar(at, p[:, 1], 0.7, color=BEGINS, label="B: a date begins")
    ax.bar(at, p[:, 2], 0.7, bottom=p[:, 1], color=INSIDE, label="I: inside a date")
    ax.set_xticks(at, [label(word) for word in words])
    ax.set(ylim=(0, 1.05), ylabel="probability")
    ax.grid(False, axis="x")
    ax.tick_params(axis="x", length=0)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.22), ncols=2)
    if title:
        ax.set_title(title, pad=30)
    return ax


def group_dots(
    values: Mapping[str, Mapping[str, Sequence[float]]],
    ax=None,
    *,
    reference: Mapping[str, float] | None = None,
    ylabel: str | None = None,
    colors: Mapping[str, int] | None = None,
):
    """Draw groups {label: {series: values over seeds}}: a dot a seed, and a line at their mean.

    reference: {label: y} draws dashed level lines. colors: {series: its place in CYCLE}.
    Returns the Axes.
    """
    if not values or not all(values.values()):
        raise ValueError(f"every group needs a series, got {values!r}")
    names = list(dict.fromkeys(name for group in values.values() for name in group))
    ax = new_axes(ax, (min(13, 3 + 2.1 * len(values)), 4.2))
    for name, level in (reference or {}).items():
        ax.axhline(float(level), color="#6b7280", linestyle="--", linewidth=1.5, label=label(name))
    for index, name in enumerate(names):
        color = CYCLE[(colors or {}).get(name, index) % len(CYCLE)]
        shown = label(name)
        for place, group in enumerate(values.values()):
            if name not in group:
                continue
            y = as_array(group[name], name, ndim=1)
            middle = place + (index - (len(names) - 1) / 2) * 0.7 / len(names)
            x = middle + np.linspace(-0.06, 0.06, len(y)) if len(y) > 1 else [middle]
            ax.plot(x, y, "o", color=color, markersize=8, alpha=0.75, label=shown)
            ax.plot([middle - 0.1, middle + 0.1], [y.mean()] * 2, color=color, linewidth=2.5)
            shown = None
    ax.set_xticks(range(len(values)), [label(name) for name in values])
    ax.set(xlim=(-0.5, len(values) - 0.5), ylabel=ylabel)
    ax.grid(False, axis="x")
    ax.tick_params(axis="x", length=0)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def draw_bert():
    """Draw ids, positions and segments on their way through BERT's body; returns the Axes."""
    d = Diagram(
        16, 4.8,
        alt="Word ids, positions and segments each select a row from a table of their own. The "
        "three rows are added, and the sum is normalised. An encoder without a causal mask "
        "computes a state for each token.",
    )  # fmt: skip
    first, tables, *after = d.columns(
        [("ids\nwhich word", "(B, S)", "input"), ("positions\n0, 1, 2, …", "(B, S)", "input"),
         ("segments\nwhich sentence", "(B, S)", "input")],
        [("word rows", "(B, S, C)", "embedding"), ("position rows", "(B, S, C)", "position"),
         ("segment rows", "(B, S, C)", "embedding")],
        [("+", "(B, S, C)", "residual")],
        [("norm", "(B, S, C)", "norm")],
        [("encoder\nwithout a\ncausal mask", None, "encoder")],
        [("states", "(B, S, C)", "output")],
    )  # fmt: skip
    after = [box for (box,) in after]
    for ids, table in zip(first, tables, strict=True):
        d.arrow(ids, table)
        d.arrow(table.right, after[0].left)
    d.chain(*after)
    return d.ax


def draw_two_steps():
    """Draw how a body is pretrained on plain text and tuned on few labels; returns the Axes."""
    d = Diagram(
        16.8, 7.4,
        alt="Two halves. Left, pretraining: many unlabelled sentences, one word of each hidden, go "
        "through BERT's body, and a head for words above it predicts the hidden word. An arrow "
        "copies the body to the right half, fine-tuning: a few sentences whose dates are labelled "
        "go through the copied body, and a new head above it predicts for each word whether it "
        "belongs to a date.",
    )  # fmt: skip
    halves = (
        (3.9, "pretraining, once", "12,000 unlabelled sentences",
         "the cat [MASK] asleep", "a head for words", "which word was hidden?", "was"),
        (12.9, "fine-tuning, for each task", "32 labelled sentences",
         "he came on 2 march", "a new head for tags", "which words are a date?", "2 march"),
    )  # fmt: skip
    bodies = []
    for x, step, data, example, head, asks, answer in halves:
        d.text(x, 7.0, step, size=14)
        read = d.box(x, 0.9, f"{data}\n{example}", role="input", size=(6.6, None))
        body = d.box(x, 3.0, "BERT's body", "(B, S) -> (B, S, C)", role="encoder", size=(6.6, 1.7))
        top = d.box(x, 4.85, head, role="attention" if bodies else "output", size=(3.4, None))
        says = d.box(x, 6.2, f'{asks}  "{answer}"', role="loss", size=(6.6, None))
        d.arrow(read, body)
        d.arrow(body, top)
        d.arrow(top, says)
        bodies.append(body)
    d.arrow(*bodies, text="copy")
    return d.ax


def draw_masked_words(words, reads):
    """Draw inputs and targets of a masked language model for the text `words`.

    `reads` maps the chosen positions to their input. Raises ValueError for a position that no word
    has.
    """
    if beyond := [place for place in reads if not 0 <= place < len(words)]:
        raise ValueError(f"place {beyond[0]} is not one of {len(words)} words")
    wide = 1.9
    chosen = ", ".join(f"{words[i]} as {read}" for i, read in reads.items())
    d = Diagram(
        wide * len(words) + 1.6, 5.6,
        alt=f"A row of {len(words)} words goes through BERT. Some are chosen, and their input is "
        f"another one or the same: {chosen}. Only at the chosen positions is there a head, whose "
        "target is the original word.",
    )  # fmt: skip
    left = 1.5 + wide / 2
    body = d.box(left + wide * (len(words) - 1) / 2, 2.6, "BERT", role="encoder",
                 size=(wide * len(words) - 0.3, None))  # fmt: skip
    d.text(0.75, 0.7, "input", size=9)
    d.text(0.75, 4.9, "target", size=9)
    for i, word in enumerate(words):
        x = left + wide * i
        read = d.box(x, 0.7, reads.get(i, word), role="mask" if i in reads else "input",
                     size=(1.6, None))  # fmt: skip
        d.arrow(read, (x, body.bottom[1]))
        if i in reads:
            head = d.box(x, 3.8, "head", role="output", size=(1.2, None))
            d.arrow((x, body.top[1]), head)
            d.arrow(head, d.box(x, 4.9, word, role="loss", size=(1.6, None)))
    return d.ax


def draw_heads():
    """Draw one body with the heads that its tasks put on it; returns the Axes."""
    d = Diagram(
        16.6, 6.0,
        alt="One BERT computes a state for each token. Three heads get them: a classifier gets "
        "the state of [CLS] alone, through a pooler; a tagger reads each word's state; a span "
        "finder gives each word two scores, for the first and for the last word of an answer.",
    )  # fmt: skip
    tokens = ("[CLS]", "word", "word", "word", "[SEP]")
    d.box(3.5, 1.9, "BERT", role="encoder", size=(6.6, None))
    for i, token in enumerate(tokens):
        x = 0.9 + 1.3 * i
        d.arrow(d.box(x, 0.5, token, role="input", size=(1.15, None)), (x, 1.55))
        d.arrow((x, 2.25), (x, 3.0))
    states = d.box(3.5, 3.4, "states", "(B, S, C)", role="output", size=(6.6, None))
    heads = (
        (5.2, "pooler and linear layer\non [CLS] alone", "a class for the text", "(B, classes)"),
        (3.4, "linear layer\non each word, 3 tags", "a tag for each word", "(B, S, 3)"),
        (1.6, "linear layer\non each word, 2 scores", "first and last word", "(B, S, 2)"),
    )
    for y, says, made, shape in heads:
        head = d.box(10.0, y, says, role="attention", size=(3.4, None))
        bend = 0 if y == 3.4 else -0.15 if y > 3.4 else 0.15
        d.arrow(states.right, head.left, bend=bend)
        d.arrow(head, d.box(14.5, y, made, shape, role="output", size=(3.6, None)))
    return d.ax
