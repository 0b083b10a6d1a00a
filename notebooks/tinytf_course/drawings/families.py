"""What noise does to a text, which targets three families have, and how a blank is filled."""

from matplotlib.patches import FancyBboxPatch

from tinytf.viz.style import ATTENTION, GOLD, INK, label, new_axes

from .diagram import Diagram


def spoiled_rows(rows, ax=None, *, length=None, title=None):
    """Draw texts word by word, each word in the colour of its position in the original text.

    rows: {name: [(word, place)]}, place counted from 0, None for a token that noise put there
    (orange). So a word that stays keeps its colour, and a text out of order is a ramp out of order.
    length: of the original; by default as far as the places go. Returns the Axes; raises ValueError
    if there is nothing to draw.
    """
    if not rows or not all(len(row) for row in rows.values()):
        raise ValueError(f"rows needs at least one word in each text, got {rows!r}")
    places = [place for row in rows.values() for _, place in row if place is not None]
    last = (length or max(places, default=0) + 1) - 1
    width = {
        name: [0.42 + (0.16 if place is None else 0.13) * len(label(word)) for word, place in row]
        for name, row in rows.items()
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


def draw_three_questions(words, hidden, span):
    """Draw the inputs and the targets of three families for one text.

    hidden: the positions masked for the encoder-only model; span: (first, last) of the stretch
    dropped for the encoder-decoder, the last word included. Returns the Axes.
    """
    first, last = span
    masked = ["<mask>" if i in hidden else word for i, word in enumerate(words)]
    kept = [*words[:first], "<0>", *words[last + 1 :]]
    target = ["<0>", *words[first : last + 1], "<1>"]
    d = Diagram(
        4.2 + 1.75 * (len(words) + 1), 9.0,
        alt=f"The text {' '.join(words)} in three families. Encoder-only: the input is "
        f"{' '.join(masked)}, and the targets at the masks are "
        f"{' and '.join(words[i] for i in hidden)}. Decoder-only: the input is "
        f"{' '.join(words[:-1])}, and the target at each word is the next one. Encoder-decoder: "
        f"the encoder reads {' '.join(kept)}, and the decoder's target is {' '.join(target)}.",
    )  # fmt: skip

    def row(y, name, said, role, offset=0):
        d.text(3.3, y, name, align="right", size=10)
        places = [4.4 + 1.75 * (i + offset) for i in range(len(said))]
        return [
            d.box(x, y, word, role="mask" if word[0] == "<" else role, size=(1.6, 0.62))
            for x, word in zip(places, said, strict=True)
        ]

    for y, name in ((8.7, "encoder-only"), (5.7, "decoder-only"), (2.7, "encoder-decoder")):
        d.text(0.3, y, name, align="left", size=12)
    read = row(6.8, "input", masked, "encoder")
    d.text(3.3, 8.0, "target", align="right", size=10)
    for i in hidden:
        d.arrow(read[i], d.box(read[i].x, 8.0, words[i], role="output", size=(1.6, 0.62)))
    read = row(3.8, "input", words[:-1], "decoder")
    for before, after in zip(read, row(5.0, "target", words[1:], "output"), strict=True):
        d.arrow(before, after)
    read = row(0.8, "encoder input", kept, "encoder")
    says = row(2.0, "decoder target", target, "output", offset=first)
    d.arrow(read[first], says[0], dashed=True)  # the same gap
    return d.ax


def draw_dropped_spans(words, noise, sentinels):
    """Draw a text, the input that T5's encoder gets of it and the target of its decoder.

    noise is True at the words to drop; sentinels in the order of use. Returns the Axes.
    """
    marks, left, target, before = iter(sentinels), [], [], False
    for place, (word, dropped) in enumerate(zip(words, noise, strict=True)):
        if dropped and not before:
            mark = next(marks)
            left.append((mark, None))
            target.append((mark, None))
        (target if dropped else left).append((word, place))
        before = dropped
    target.append((next(marks), None))
    rows = ("the text", list(zip(words, range(len(words)), strict=True))), (
        "encoder input", left), ("decoder target", target)  # fmt: skip
    d = Diagram(
        3.6 + 1.6 * len(words), 4.9,
        alt=f"The text {' '.join(words)}. The encoder reads {' '.join(w for w, _ in left)}. The "
        f"decoder writes {' '.join(w for w, _ in target)}.",
    )  # fmt: skip
    above = {}
    for y, (name, row) in zip((4.3, 2.5, 0.7), rows, strict=True):
        d.text(3.2, y, name, align="right", size=10)
        for i, (word, place) in enumerate(row):
            role = "mask" if place is None else "output" if noise[place] else "encoder"
            box = d.box(4.2 + 1.6 * i, y, word, role=role, size=(1.5, 0.62))
            if place is None:
                above.setdefault(word, box)
                if above[word] is not box:
                    d.arrow(above[word].bottom, box.top, dashed=True)
    return d.ax


def draw_rescoring(left, candidates, right, chances):
    """Draw how a model that sees the left alone fills a blank: it scores the row with each word.

    chances: for each candidate (after the left, of the right, of both normalised). Returns the
    Axes.
    """
    d = Diagram(
        17.0, 1.15 * len(candidates) + 2.2,
        alt=f"A blank between {left!r} and {right!r}. "
        + " ".join(
            f"{word}: {a:.3f} after the left, times {b:.2g} for the right, is {c:.0%} of the sum."
            for word, (a, b, c) in zip(candidates, chances, strict=True)
        ),
    )  # fmt: skip
    high = 1.15 * len(candidates) + 0.9
    d.text(0.2, high + 0.75, f"{left} ___ {right}", align="left", size=12)
    heads = (2.0, "word"), (6.0, "P(word | left)"), (10.8, "P(right | left, word)"), (
        15.0, "share of the sum")  # fmt: skip
    for x, text in heads:
        d.text(x, high, text, size=10)
    for i, (word, (a, b, c)) in enumerate(zip(candidates, chances, strict=True)):
        y = high - 0.85 - 1.15 * i
        blank = d.box(2.0, y, word, role="output", size=(2.4, 0.7))
        before = d.box(6.0, y, f"{a:.3f}", role="decoder", size=(2.4, 0.7))
        after = d.box(10.8, y, f"{b:.0e}", role="decoder", size=(2.4, 0.7))
        share = d.box(15.0, y, f"{c:.0%}", role="weights", size=(2.4, 0.7))
        d.arrow(blank, before)
        d.arrow(before, after, "×")
        d.arrow(after, share)
    return d.ax


def draw_prompts(prompts):
    """Draw prompts side by side, and below each, in another colour, its continuation.

    prompts: {name: (lines, continuation)}; the last line is the one that is continued. Returns the
    Axes.
    """
    most = max(len(lines) for lines, _ in prompts.values())
    wide, high = 6.0, 0.5 * most + 0.4
    d = Diagram(
        wide * len(prompts), high + 2.6,
        alt=" ".join(
            f"{name}: the prompt is {' / '.join(lines)}, and the model continues: {answer}."
            for name, (lines, answer) in prompts.items()
        ),
    )  # fmt: skip
    for i, (name, (lines, answer)) in enumerate(prompts.items()):
        x = wide * (i + 0.5)
        d.text(x, high + 2.2, name, size=12)
        prompt = d.box(x, high / 2 + 1.6, "", role="decoder", size=(wide - 0.5, high))
        for k, line in enumerate(lines):
            y = prompt.top[1] - 0.5 * (k + 0.5) - 0.2
            d.text(x - wide / 2 + 0.5, y, line, align="left", size=12)
        d.arrow(prompt, d.box(x, 0.5, answer, role="weights", size=(2.6, 0.7)), "continues")
    return d.ax
