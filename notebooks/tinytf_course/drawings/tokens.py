"""Drawings of chapters 3 and 4: text to vectors, merges of bytes, a lookup as a product, CBOW."""

from itertools import pairwise

from tinytf.viz.style import as_array, label
from tinytf_course.drawings.diagram import Diagram

__all__ = ["draw_cbow", "draw_lookup", "draw_merges", "draw_text_to_vectors"]


def draw_text_to_vectors(text, tokens, ids, vectors):
    """Draw a text, its T tokens, their ids and their vectors (T, C), one under the other.

    Returns the Axes. Raises ValueError unless there is an id and a vector for each token.
    """
    vectors = as_array(vectors, "vectors", ndim=2)
    count, width = vectors.shape
    if not len(tokens) == len(ids) == count:
        raise ValueError(f"{len(tokens)} tokens, {len(ids)} ids and {count} vectors: need as many")
    cell, step = 0.62, 1.55
    left, low = 2.1, width * cell / 2 + 0.25
    places = [left + step * (i + 0.5) for i in range(count)]
    middle = left + step * count / 2
    heights = {"vectors": low, "ids": low + width * cell / 2 + 1.0}
    heights |= {"tokens": heights["ids"] + 1.35, "text": heights["ids"] + 2.7}
    drawing = Diagram(
        left + step * count + 3.1, heights["text"] + 0.6,
        alt=f"Four rows under one another: the text {text!r}; its {count} tokens, each in a box; "
        f"under each token its id, {', '.join(map(str, ids))}; under each id a vector of {width} "
        "numbers. The tokenizer leads from text to ids, the embedding from ids to vectors.",
    )  # fmt: skip
    whole = drawing.box(middle, heights["text"], text, role="input", size=(step * count - 0.4, 0.7))
    for x, token, i, vector in zip(places, tokens, ids, vectors, strict=True):
        top = drawing.box(x, heights["tokens"], token, role="input", size=(step - 0.3, 0.62))
        drawing.arrow((x, whole.bottom[1]), top)
        number = drawing.box(x, heights["ids"], str(i), role="plain", size=(step - 0.3, 0.62))
        drawing.arrow(top, number)
        drawing.arrow(
            number, drawing.matrix(x, low, vector[:, None], role="embedding", digits=1, cell=cell)
        )
    end = left + step * count + 0.15
    sizes = {"text": "a string", "tokens": f"T = {count} strings", "ids": f"({count},)  is  (T,)",
             "vectors": f"({count}, {width})  is  (T, C)"}  # fmt: skip
    for name, size in sizes.items():
        drawing.text(1.7, heights[name], name, align="right")
        drawing.text(end, heights[name], size, align="left")
    for above, below, name in (("text", "tokens", "1  cut"), ("tokens", "ids", "2  number")):
        y = (heights[above] + heights[below]) / 2
        drawing.text(1.7, y, name, size=9, align="right")
    y = (heights["ids"] - 0.31 + low + width * cell / 2) / 2
    drawing.text(1.7, y, "3  look up", size=9, align="right")
    return drawing.ax


def draw_merges(word, merges, tokens):
    """Draw how merges, {pair of ids: new id}, join a word's bytes: a tree that grows upwards.

    The earliest merge is done first, and each step is drawn higher than the one before. `tokens`
    gives an id's bytes. Returns the Axes.
    """
    step, rise = 1.25, 1.15
    letters = list(word.encode())
    steps = _steps(letters, merges)
    width, height = 4.4 + step * len(letters), 1.3 + rise * len(steps)
    made = [f"{_name(tokens[a])} and {_name(tokens[b])}" for _, (a, b), _ in steps]
    drawing = Diagram(
        width, height,
        alt=f"The letters of {word!r} stand in a row; above them each merge joins two neighbours: "
        f"{', then '.join(made) or 'none'}.",
    )  # fmt: skip
    row = []
    for i, letter in enumerate(letters):
        x = 1.9 + step * (i + 0.5)
        row.append((letter, drawing.box(x, 0.45, _name(tokens[letter]), role="input")))
    drawing.text(1.7, 0.45, "bytes", size=9, align="right")
    for number, (place, _, new) in enumerate(steps, start=1):
        y = 0.45 + rise * number
        (_, one), (_, other) = row[place : place + 2]
        box = drawing.box(
            (one.x + other.x) / 2, y, _name(tokens[new]), shape=f"id {new}", role="embedding"
        )
        for child in (one, other):
            drawing.arrow(child.top, box.bottom)
        drawing.text(1.7, y, f"step {number}:\nmerge {new - 255}", size=9, align="right")
        row[place : place + 2] = [(new, box)]
    cut = " | ".join(_name(tokens[i]) for i, _ in row)
    drawing.text(width - 2.2, height - 0.85, f"result:\n{cut}", align="left")
    return drawing.ax


def _steps(ids, merges):
    """(place, pair, new id) of each merge, in the order in which they are done."""
    ids, done = list(ids), []
    while True:
        pairs = list(pairwise(ids))
        known = [pair for pair in pairs if pair in merges]
        if not known:
            return done
        pair = min(known, key=merges.__getitem__)
        place = pairs.index(pair)
        ids[place : place + 2] = [merges[pair]]
        done.append((place, pair, merges[pair]))


def _name(token):
    try:
        return label(token.decode())
    except UnicodeDecodeError:
        return "".join(f"‹{byte:02x}›" for byte in token)


def draw_lookup(one_hot, table, ids):
    """Draw one-hot rows (T, V) times a table (V, C): the product (T, C) is the table's rows.

    Returns the Axes.
    """
    one_hot, table = as_array(one_hot, "one_hot", ndim=2), as_array(table, "table", ndim=2)
    (count, vocab), width = one_hot.shape, table.shape[1]
    cell = 0.62
    height = max(vocab, count) * cell + 1.0
    y, x = height / 2 - 0.25, 1.1 + vocab * cell / 2
    total = 1.1 + vocab * cell + 2 * (1.5 + width * cell) + 0.3
    drawing = Diagram(
        total, height,
        alt=f"A matrix of {count} one-hot rows, with a 1 in columns {', '.join(map(str, ids))}, "
        f"times a table of {vocab} rows and {width} columns gives {count} rows: the table's rows "
        f"{', '.join(map(str, ids))}.",
    )  # fmt: skip
    names = [f"id {i}" for i in ids]
    drawing.matrix(x, y, one_hot, rows=names, columns=map(str, range(vocab)),
                   title=f"one-hot ({count}, {vocab})", cell=cell)  # fmt: skip
    x += vocab * cell / 2 + 0.65
    drawing.text(x - 0.1, y, "×", size=16)
    x += 0.85 + width * cell / 2
    drawing.matrix(x, y, table, rows=map(str, range(vocab)), role="embedding",
                   digits=1, title=f"table ({vocab}, {width})")  # fmt: skip
    x += width * cell / 2 + 0.35
    drawing.text(x, y, "=", size=16)
    x += 0.75 + width * cell / 2
    drawing.matrix(x, y, one_hot @ table, rows=map(str, ids), role="embedding",
                   digits=1, title=f"vectors ({count}, {width})")  # fmt: skip
    return drawing.ax


def draw_cbow(before, middle, after, vocab_size, d_model):
    """Draw CBOW on one window: the words around the middle one, and what is computed from them.

    Returns the Axes.
    """
    words = [*before, *after]
    drawing = Diagram(
        16, 0.95 * (len(words) + 1) + 0.2,
        alt=f"The neighbours {', '.join(words)} are looked up, each becomes a vector of {d_model} "
        f"numbers; their mean, {d_model} numbers, times the output table gives a score for each of "
        f"{vocab_size} words; softmax makes probabilities; the loss is how improbable "
        f"{middle!r} was, the word in the gap.",
    )  # fmt: skip
    around = [*before, None, *after]
    here, rows, *after = drawing.columns(
        [(word, None, "input") if word else ("?", None, "loss") for word in around],
        [word and (f"row of {word}  ({d_model},)", None, "embedding") for word in around],
        [("mean", f"({d_model},)", "embedding")],
        [("scores", f"({vocab_size},)", "output")],
        [("probabilities", f"({vocab_size},)", "weights")],
        [(f"loss:\n−ln p({middle})", None, "loss")],
    )
    (mean,), (scores,), (odds,), (loss,) = after
    for word, row in zip(here, rows, strict=True):
        if row:
            drawing.arrow(word, row)
            drawing.arrow(row.right, mean.left)
    drawing.arrow(mean, scores, "times\noutput\ntable")
    drawing.arrow(scores, odds, "softmax")
    drawing.arrow(odds, loss)
    return drawing.ax
