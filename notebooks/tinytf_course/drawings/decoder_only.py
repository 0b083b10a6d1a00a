"""Drawings of a decoder-only model: what is left out, what it is made of, whose weights fit it."""

from itertools import pairwise

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Rectangle

from tinytf.viz.attention import heatmap
from tinytf.viz.style import COLOURS, PAPER, SIGNED, label, new_axes
from tinytf_course.drawings.diagram import Diagram

GONE = "dropped"
TEXT_OF_STEP = 10  # points
COLUMNS = {  # a layer's sublayers, from the input upwards, each with its colour
    "encoder layer": (("self-attention\nall to all", "attention"), ("feed-forward", "feedforward")),
    "decoder layer": (
        ("self-attention\ncausal", "attention"),
        ("cross-attention", "memory"),
        ("feed-forward", "feedforward"),
    ),
    "what remains": (("self-attention\ncausal", "attention"), ("feed-forward", "feedforward")),
}


def draw_what_remains():
    """Draw the layers of encoder, decoder and decoder-only model side by side; returns the Axes."""
    d = Diagram(
        16.4, 6.6,
        alt="Three layers side by side. The encoder's: self-attention in which all look at all, "
        "then feed-forward. The decoder's: causal self-attention, cross-attention to a memory, "
        "feed-forward. The third is the decoder's without cross-attention and memory: causal "
        "self-attention, then feed-forward.",
    )  # fmt: skip
    for column, (name, sublayers) in enumerate(COLUMNS.items()):
        x = 2.3 + 5.5 * column
        d.text(x, 6.2, name)
        below = d.box(x, 0.6, "vectors", "(B, T, C)", role="input", size=(2.6, None))
        for words, role in sublayers:
            gone = role == "memory"
            y = {"attention": 2.15, "memory": 3.65, "feedforward": 5.05}[role]
            box = d.box(x, y, words, role=role, size=(3.0, 0.95), faint=gone)
            d.arrow(below, box)
            below = box
            if gone:
                memory = d.box(x + 2.85, y, "memory", role=role, size=(1.6, 0.7), faint=True)
                d.arrow(memory, box, dashed=True)
                for a, b in ((box.left, box.right), (memory.left, memory.right)):
                    d.ax.plot([a[0], b[0]], [a[1] - 0.35, b[1] + 0.35], color=COLOURS["mask"])
                d.text(x + 2.85, y + 0.75, GONE, size=9)
    return d.ax


def draw_writing(prompt, written, layers=3):
    """Draw the steps in which a decoder-only model writes: a column of layers for every token.

    `prompt` and `written` are tokens; a step is drawn for each of `written`. Columns computed in an
    earlier step are pale: their keys and values are kept. Returns the Axes. Raises ValueError where
    either is empty.
    """
    if not prompt or not written:
        raise ValueError(f"{len(prompt)} tokens of a prompt and {len(written)} written: no step")
    counts = [len(prompt) + step for step in range(len(written))]
    wide, tall, gap = 1.4, 0.85, 1.1
    high = 1.3 + tall * layers
    d = Diagram(
        sum(counts) * wide + gap * len(counts), high + 2.0,
        alt=f"{len(written)} steps of writing. Each token is a column that goes up through "
        f"{layers} layers. In the first step the {len(prompt)} columns of the prompt are computed; "
        "in each further one a single column, that of the token just written, which looks at the "
        "pale columns to its left. The token that comes out on its top stands at the bottom of the "
        "next step's new column.",
    )  # fmt: skip
    left = gap / 2
    for step, count in enumerate(counts):
        tokens = [*prompt, *written[:step]]
        d.text(left + count * wide / 2, high + 1.65, f"step {step + 1}", size=TEXT_OF_STEP)
        for column, token in enumerate(tokens):
            x, old = left + (column + 0.5) * wide, bool(step) and column < count - 1
            role = "output" if step and column == count - 1 else "input"
            below = d.box(x, 0.5, _word(token), size=(wide - 0.12, 0.6), role=role, faint=old)
            for layer in range(layers):
                y = 1.5 + tall * layer
                box = d.box(x, y, "k v", size=(0.8, 0.5), role="attention", faint=old)
                if not old:
                    d.arrow(below, box)
                if column and column == count - 1:
                    d.arrow((left + wide / 2, y), box.left, role="attention")
                below = box
            if column == count - 1:
                answer = d.box(x, high + 0.75, _word(written[step]), size=(wide - 0.12, 0.6),
                               role="output")  # fmt: skip
                d.arrow(below, answer)
        left += count * wide + gap
    return d.ax


@torch.no_grad()
def draw_step(writer, text, seed=0, shown=3, numbers=7):
    """Draw one step of a writer, from a text at the bottom to the token drawn after it.

    Of each vector the first few `numbers` are drawn, and of the probabilities the largest few
    (`shown`). The text begins a document. Returns the Axes.
    """
    model, vocabulary = writer.model, writer.tokenizer
    ids = torch.tensor([writer.end_id, *vocabulary.encode(text)], device=model.device)
    entering = model.positions(model.embedding(ids[None]))
    leaving = model.decoder(entering)
    odds = model.output(leaving)[0, -1].softmax(-1).cpu()
    drawn = torch.multinomial(odds, 1, generator=torch.Generator().manual_seed(seed)).item()
    best = odds.topk(shown).indices.tolist()
    best = best if drawn in best else [*best, drawn]
    tokens = ["<end>", *(vocabulary.decode([id]) for id in ids[1:].tolist())]
    names, layers = [_word(vocabulary.decode([id])) for id in best], len(model.decoder.layers)
    listed = ", ".join(f"{n} {odds[id]:.2f}" for n, id in zip(names, best, strict=True))
    wide, start = 1.5, 2.7  # of a column, and where the first begins
    end, top = start + wide * len(tokens), 4.35 + 0.75 * layers  # `top` is above the layers
    d = Diagram(
        end + 3.1, top + 4.8,
        alt=f"The text {text!r} is cut into {len(tokens)} tokens, each of them an id and then a "
        f"vector. The vectors go up through {layers} causal layers. What leaves the last position "
        f"becomes logits, and these probabilities: {listed}. One token is drawn, "
        f"{vocabulary.decode([drawn])!r}, and appended: it is the next step's new column.",
    )  # fmt: skip
    rows = ((0.5, "text"), (1.4, "tokens"), (2.25, "ids"), (3.3, "vectors"), (top + 0.5, "vectors"),
            (top + 1.8, "logits"), (top + 4, "probabilities"))  # fmt: skip
    for y, name in rows:
        d.text(start - 0.2, y, name, align="right")
    middle, size = (start + end) / 2, (wide - 0.15, 0.55)
    d.text(middle, 0.5, text)
    for layer in range(layers):
        words = f"layer {layer + 1}: causal self-attention, then feed-forward"
        d.box(middle, 4.6 + 0.75 * layer, words, role="decoder", size=(end - start - 0.15, 0.55))
    for column, (token, id) in enumerate(zip(tokens, ids.tolist(), strict=True)):
        x, last = start + wide * (column + 0.5), column == len(tokens) - 1
        d.box(x, 1.4, _word(token), size=size, role="input")
        d.text(x, 2.25, str(id), size=TEXT_OF_STEP)
        _strip(d, x, 3.3, entering[0, column, :numbers])
        _strip(d, x, top + 0.5, leaving[0, column, :numbers], faint=not last)
        for low, high in ((1.7, 2.1), (2.43, 2.86), (3.74, 4.31), (top - 0.47, top + 0.06)):
            d.arrow((x, low), (x, high))
    scores = d.box(x, top + 1.8, f"{len(odds):,} scores", size=(2.0, 0.55), role="embedding")
    d.arrow((x, top + 0.94), scores.bottom)
    d.arrow(scores.top, (x, top + 3.1), "softmax")
    for row, (name, id) in enumerate(zip(names, best, strict=True)):
        y, share = top + 4.4 - 0.42 * row, odds[id].item()
        d.ax.barh(y, 1.6 * share, 0.3, left=x, color=COLOURS["output"])
        d.text(x - 0.1, y, f"{name} {share:.2f}", size=TEXT_OF_STEP, align="right")
        if id == drawn:
            chosen = d.box(end + 2.15, y, name, size=size, role="output")
            d.arrow((x + 1.6 * share + 0.1, y), chosen.left, "drawn")
            d.arrow(chosen.bottom, (chosen.x, 1.7), "appended", role="output", dashed=True)
            d.box(chosen.x, 1.4, name, size=size, role="output", faint=True)
    return d.ax


def _word(token):
    """A token in a box, where the space that it begins with would only take room."""
    return label(token).strip()


def _strip(d, x, y, numbers, faint=False):
    """A few numbers as a column of colours around (x, y), each by its size beside the largest."""
    values, high = numbers / numbers.abs().max(), 0.84 / len(numbers)
    for row, value in enumerate(values.tolist()):
        corner = (x - 0.3, y + 0.42 - high * (row + 1))
        d.ax.add_patch(
            Rectangle(corner, 0.6, high, facecolor=SIGNED(0.5 + 0.5 * value), edgecolor=PAPER,
                      alpha=0.35 if faint else 1, zorder=2)
        )  # fmt: skip


def draw_gpt(placeholders=(), shapes=None):
    """Draw ids on their way through a GPT to logits; returns the Axes.

    The parts named in `placeholders` ("positions", "stack", "norm") are pale: not there yet.
    `shapes` maps "ids", "x", "hidden", "logits" to what is written under them, by default the
    letters of the course.
    """
    letters = {"ids": "(B, T)", "x": "(B, T, C)", "hidden": "(B, T, C)", "logits": "(B, T, V)"}
    shapes = letters | {name: str(tuple(shape)) for name, shape in (shapes or {}).items()}
    missing = " and ".join(placeholders)
    d = Diagram(
        15, 2.8,
        alt="A row of boxes: ids, the embedding, positions added to it, a stack of layers under a "
        "causal mask, a last norm, and the output layer, whose matrix is the embedding's, "
        "which gives logits." + (f" Still placeholders: {missing}." if missing else ""),
    )  # fmt: skip
    row = [
        ("ids", shapes["ids"], "input", False),
        ("embedding", shapes["x"], "embedding", False),
        ("+ positions", shapes["x"], "position", "positions" in placeholders),
        ("L layers,\ncausal", shapes["hidden"], "decoder", "stack" in placeholders),
        ("last norm", shapes["hidden"], "norm", "norm" in placeholders),
        ("output layer\nlogits", shapes["logits"], "output", False),
    ]
    boxes = [box for (box,) in d.columns(*([one] for one in row), low=0.9)]
    for i, (start, end) in enumerate(pairwise(boxes)):
        d.arrow(start, end, dashed=row[i + 1][3])
    low, ends = 0.5, (boxes[1], boxes[-1])
    d.ax.plot(
        [ends[0].x, ends[0].x, ends[1].x, ends[1].x],
        [ends[0].bottom[1], low, low, ends[1].bottom[1]],
        color=COLOURS["embedding"], linestyle="--",
    )  # fmt: skip
    d.text((ends[0].x + ends[1].x) / 2, low, "one matrix (V, C) for both", size=9, backed=True)
    return d.ax


def draw_name_table(turned):
    """Draw which of a GPT-2 file's tensors in a layer holds which of ours; returns the Axes.

    `turned` are the names of theirs whose matrix has to be transposed.
    """
    table = (
        ("ln_1", ("residual_1.norm",), "norm"),
        ("attn.c_attn", tuple(f"self_attention.w_{x}" for x in "qkv"), "attention"),
        ("attn.c_proj", ("self_attention.w_o",), "attention"),
        ("ln_2", ("residual_2.norm",), "norm"),
        ("mlp.c_fc", ("feed_forward.w_1",), "feedforward"),
        ("mlp.c_proj", ("feed_forward.w_2",), "feedforward"),
    )
    theirs = {"attn.c_attn": "(C, 3C)", "attn.c_proj": "(C, C)", "mlp.c_fc": "(C, 4C)",
              "mlp.c_proj": "(4C, C)"}  # fmt: skip
    said = "; ".join(f"{one} is {', '.join(names)}" for one, names, _ in table)
    d = Diagram(
        15.6, 8.4,
        alt=f"Two columns of names. {said}. Stored the other way round: {', '.join(turned)}.",
    )  # fmt: skip
    d.text(2.6, 8.05, "in their file")
    d.text(12.2, 8.05, "in our model")
    y = 7.35
    for one, names, role in table:
        middle = y - 0.45 * (len(names) - 1)
        shape = theirs.get(one, "(C)")
        left = d.box(2.6, middle, f"{one}   {shape}", role=role, size=(4.4, 0.72))
        for name in names:
            shape = {"w_1": "(4C, C)", "w_2": "(C, 4C)"}.get(name[-3:], "(C, C)")
            shape = "(C)" if "norm" in name else shape
            right = d.box(12.2, y, f"{name}   {shape}", role=role, size=(5.9, 0.72))
            split = "split" if len(names) > 1 and name == names[1] else ""
            turn = "transposed" if one in turned and (split or len(names) == 1) else ""
            d.arrow(left.right, right.left, " and ".join(filter(None, (turn, split))))
            y -= 0.9
        y -= 0.1
    return d.ax


def who_hears(influences, tokens=None):
    """Draw {title: influence (T, T)} side by side on one scale; returns the Axes, in order.

    A row is an output position, a column an input position. Where the influence is exactly 0, the
    cell is grey.
    """
    most = max(float(heard.max()) for heard in influences.values())
    axes = plt.subplots(1, len(influences), figsize=(4.3 * len(influences), 4.2))[1]
    for ax, (title, heard) in zip(axes, influences.items(), strict=True):
        heatmap(
            heard, tokens, tokens, ax, mask=heard > 0, scale=(0, most), colorbar=False,
            annotate=False,
        )  # fmt: skip
        ax.set(title=title, xlabel="input position", ylabel="output position")
    return list(axes)


def gaps(values, unnoticed=1e-4):
    """Draw {what was done: largest difference} as dots on a logarithmic axis; returns the Axes.

    Differences below `unnoticed` are rounding and drawn in grey.
    """
    ax = new_axes(size=(9, 0.5 * len(values) + 1.1))
    for row, size in enumerate(values.values()):
        colour = COLOURS["plain"] if size < unnoticed else COLOURS["loss"]
        ax.plot([1e-8, max(size, 1e-8)], [row, row], color=colour, linewidth=2)
        ax.plot(max(size, 1e-8), row, "o", color=colour, markersize=9)
        ax.annotate(f"{size:.2g}", (max(size, 1e-8), row), xytext=(10, 0),
                    textcoords="offset points", va="center")  # fmt: skip
    ax.set_xscale("log")
    ax.set_yticks(range(len(values)), [label(name) for name in values])
    ax.set(xlim=(1e-8, 100), ylim=(len(values) - 0.5, -0.5), xlabel="largest difference of a logit")
    ax.grid(False, axis="y")
    return ax
