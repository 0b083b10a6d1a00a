"""Following an answer through a model: the logit lens, attribution, patching, and the route."""

from matplotlib.patches import Rectangle

from tinytf.viz.style import ATTENTION, COLOURS, INK, PAPER, as_array, label, new_axes

from .diagram import SMALL, Diagram


def draw_lens(layers=3):
    """Draw the residual stream through its layers, read after each one; returns the Axes."""
    width = 4.4 + 3.3 * layers
    d = Diagram(
        width, 5.0,
        f"A line, the residual stream, runs from the embedding through {layers} layers to the "
        "output. After the last layer it goes through the final norm and the output matrix, which "
        "give logits. Dashed arrows lead from earlier points through the same norm and matrix.",
    )  # fmt: skip
    start = d.box(1.3, 1.2, "embedding", shape="(T, C)", role="embedding")
    read = d.box(width / 2 + 0.8, 3.0, "final norm, then output matrix", role="output",
                 size=(width - 3.4, None))  # fmt: skip
    before = start
    for i in range(layers):
        layer = d.box(4.0 + 3.3 * i, 1.2, f"layer {i}", shape="(T, C)", role="decoder")
        d.arrow(before, layer, role="residual")
        x = 4.0 + 3.3 * i + 1.65
        d.arrow((x, 1.2), (x, read.bottom[1]), dashed=i < layers - 1)
        d.arrow((x, read.top[1]), (x, 4.2), dashed=i < layers - 1)
        last = i == layers - 1
        early = f"what the model would\npredict after layer {i}"
        d.text(x, 4.5, "the prediction" if last else early, size=SMALL)
        before = layer
    d.arrow(before, (width - 0.6, 1.2), role="residual")
    return d.ax


def draw_sum():
    """Draw a logit as a sum: parts of the stream, each through norm and matrix; the Axes."""
    d = Diagram(
        14.4, 5.4,
        "The embedding, the heads of each layer and each feed-forward network all add a vector to "
        "the residual stream. The stream is divided by its standard deviation, multiplied with the "
        "norm's gain and then with the direction of a word, which gives the logit. Done to each "
        "vector alone it gives that part's share, and the shares add up to the logit.",
    )  # fmt: skip
    parts = [("embedding", "embedding"), ("head 0 of layer 0", "attention"), ("…", "plain"),
             ("FFN of layer 1", "feedforward")]  # fmt: skip
    heights = (4.6, 3.4, 2.2, 1.0)
    for (name, role), y in zip(parts, heights, strict=True):
        part = d.box(1.9, y, name, shape="(C,)", role=role, size=(3.0, None))
        scale = d.box(6.4, y, "− mean, ÷ std, × gain", shape="std of the whole stream", role="norm")
        dot = d.box(10.4, y, "· direction", role="output")
        d.arrow(part, scale)
        d.arrow(scale, dot)
        d.arrow(dot, (12.6, 2.8 + (y - 2.8) * 0.15), role=role)
    d.box(13.4, 2.8, "logit", role="output")
    return d.ax


def draw_patch(word, other):
    """Draw the two runs and the patched one: one vector goes across; returns the Axes.

    word, other: the words in which the clean and the corrupted sentence differ.
    """
    d = Diagram(
        14.2, 6.6,
        f"Three runs, each of five vectors through three rows. The clean run reads {word}, the "
        f"corrupted one {other}. The third run reads {other} too, but one vector in its middle row "
        "is that of the clean run, and what is computed from it above has a third colour. An arrow "
        "leads there. All three end in a number: how much the first noun is preferred.",
    )  # fmt: skip
    runs = (
        ("clean", word, "value", "1"), ("corrupted, patched", other, "mask", "?"),
        ("corrupted", other, "mask", "0"),
    )  # fmt: skip
    taken = {}
    for run, (name, last, role, score) in enumerate(runs):
        left = 0.6 + 4.7 * run
        d.text(left + 1.5, 6.25, name)
        for row in range(3):
            for place in range(5):
                x, y = left + place * 0.75, 1.3 + row * 1.25
                changed = place == 4 or (row > 0 and place == 3)
                inside = row == 1 and place == 4
                paint = role if changed else "plain"
                if run == 1 and changed and (inside or row == 2):  # put in, or computed from it
                    paint = "value" if inside else "query"
                box = d.box(x, y, " ", role=paint, size=(0.55, 0.7), faint=not changed)
                if inside:
                    taken[run] = box
        d.text(left + 1.5, 0.5, f"… too {last}", size=SMALL)
        d.arrow((left + 1.5, 4.3), (left + 1.5, 4.9))
        d.text(left + 1.5, 5.3, f"score {score}")
    d.arrow(taken[0].bottom, taken[1].bottom, "put in", bend=0.12, role="value")
    return d.ax


def draw_route():
    """Draw the route that patching found, from the adjective to the predicted noun; the Axes."""
    d = Diagram(
        14.6, 6.2,
        "Below, the source: cat, wall, because, it, was, too, tired. Above, the decoder's position "
        "where the noun is predicted. Layer 0's cross-attention brings from tired which of the "
        "two nouns is meant. With this, layer 1's cross-attention attends to cat and fetches the "
        "noun. No arrow comes from it.",
    )  # fmt: skip
    words = ("the cat", "did not climb", "the wall", "because", "it", "was too", "tired")
    places = {}
    for i, word in enumerate(words):
        read = word in ("the cat", "tired")
        places[word] = d.box(1.3 + 2.0 * i, 0.9, word, role="memory", faint=not read)
    first = d.box(10.6, 3.0, "cross-attention 0", shape="which of the two?", role="query")
    second = d.box(5.6, 3.0, "cross-attention 1", shape="its Chinese name", role="value")
    said = d.box(2.0, 5.3, "猫", shape="the noun, repeated", role="output")
    d.arrow(places["tired"].top, first.bottom, "which noun", role="query")
    d.arrow(first, second, "as its query", role="query")
    d.arrow(places["the cat"].top, second.bottom, "cat", bend=0.1, role="value")
    d.arrow(second.top, said.right, role="value")
    d.text(9.3, 1.75, "not read", size=SMALL)
    return d.ax


def draw_stories():
    """Draw three ways in which the noun that `it` stands for could be found; returns the Axes."""
    d = Diagram(
        16.2, 5.6,
        "Three times the words cat, wall, it, tired of the source, and above them the decoder, "
        "which predicts 猫. In story A arrows lead from tired and cat to it, and from it to the "
        "decoder. In story B arrows lead from tired to the decoder, and then from cat to the "
        "decoder. In story C an arrow leads from tired to cat, and one from cat to the decoder.",
    )  # fmt: skip
    stories = {
        "A: “it” collects": ([("tired", "it"), ("cat", "it")], ["it"]),
        "B: first which, then what": ([], ["tired", "cat"]),
        "C: the right noun is marked": ([("tired", "cat")], ["cat"]),
    }
    for i, (name, (inside, read)) in enumerate(stories.items()):
        left = 0.4 + 5.5 * i
        d.text(left + 2.2, 5.25, name)
        top = d.box(left + 2.2, 4.1, "decoder predicts 猫", role="output")
        words = {}
        for j, word in enumerate(("cat", "wall", "it", "tired")):
            used = word in read or any(word in pair for pair in inside)
            x = left + 0.5 + 1.2 * j
            words[word] = d.box(x, 1.7, word, role="memory", size=(0.95, 0.7), faint=not used)
        for start, end in inside:
            bend = -0.45 if start == "tired" else 0.45
            d.arrow(words[start].bottom, words[end].bottom, bend=bend, role="attention")
        for order, word in enumerate(read, 1):
            said = f"{order}" if len(read) > 1 else None
            d.arrow(words[word].top, top.bottom, said, role="value" if word == "cat" else "query")
    return d.ax


def lens_table(rows, tokens, words, chances, ax=None, title=None):
    """Write what the lens reads into a table, a row per layer, the first at the bottom; the Axes.

    rows: the layers' names. tokens: the inputs, under the columns. words and chances:
    (L, T), the likeliest token and its probability, which shades the cell.
    """
    chances = as_array(chances, "chances", 2)
    if chances.shape != (len(rows), len(tokens)) or len(words) != len(rows):
        raise ValueError(
            f"chances {chances.shape} do not fit {len(rows)} rows and {len(tokens)} tokens"
        )
    ax = new_axes(ax, (1.15 * len(tokens) + 2.4, 0.52 * len(rows) + 1.3))
    for y, (line, shares) in enumerate(zip(words, chances, strict=True)):
        for x, (word, share) in enumerate(zip(line, shares, strict=True)):
            ax.add_patch(
                Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=ATTENTION(share), edgecolor=PAPER)
            )
            ink = PAPER if share > 0.55 else INK
            ax.text(x, y, label(word), ha="center", va="center", size=11, color=ink)
    ax.set(xlim=(-0.5, len(tokens) - 0.5), ylim=(-0.5, len(rows) - 0.5), xlabel="input token")
    ax.set_xticks(range(len(tokens)), [label(token) for token in tokens])
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    if title:
        ax.set_title(title)
    return ax


def part_bars(parts, ax=None, xlabel="added to the logit difference"):
    """Draw what each part adds, {name: number}, a bar each, the first on top; returns the Axes."""
    ax = new_axes(ax, (8.5, 0.28 * len(parts) + 1.2))
    names, values = list(parts), [float(v) for v in parts.values()]
    kinds = {"embedding": "embedding", "feed_forward": "feedforward"}
    for y, (name, value) in enumerate(zip(names, values, strict=True)):
        role = next((role for kind, role in kinds.items() if kind in name), "attention")
        ax.barh(y, value, color=COLOURS[role])
        side = "left" if value >= 0 else "right"
        ax.text(value, y, f" {value:.2f} ", ha=side, va="center", size=9, color=INK)
    ax.axvline(0, color=COLOURS["plain"], linewidth=1)
    low, high = min(0, *values), max(0, *values)
    room = (high - low) * 0.12
    ax.set(xlim=(low - room * (low < 0), high + room), xlabel=xlabel)
    ax.set_yticks(range(len(names)), names, size=10)
    ax.invert_yaxis()
    return ax
