"""Drawings of what costs: a product, the square, what a token meets, what a step keeps, a wait."""

from matplotlib.patches import Rectangle

from tinytf.viz.style import COLOURS, INK, PAPER

from .diagram import LINE, Diagram

CELL = 0.5
PALE = "#e8ebef"
WEIGHTS, PAIRS = COLOURS["feedforward"], COLOURS["attention"]


def draw_product(rows, inner, columns):
    """Draw (rows, inner) times (inner, columns), and what one number of the result takes.

    Raises ValueError for a size below 1.
    """
    if min(rows, inner, columns) < 1:
        raise ValueError(f"a product needs sizes of at least 1, got {(rows, inner, columns)}")
    width, height = (inner + 2 * columns) * CELL + 4.2, (max(rows, inner)) * CELL + 2.3
    d = Diagram(
        width, height,
        alt=f"A table of {rows} by {inner} times one of {inner} by {columns} gives one of {rows} "
        f"by {columns}. One number of the result takes a row and a column of {inner} numbers: "
        f"{inner} multiplications and {inner} additions.",
    )  # fmt: skip
    middle = height / 2 + 0.35
    left = 0.6
    marks = (
        (rows, inner, lambda i, j: i == 0, "query"),
        (inner, columns, lambda i, j: j == columns - 1, "key"),
        (rows, columns, lambda i, j: i == 0 and j == columns - 1, "output"),
    )
    for (m, n, marked, role), sign in zip(marks, ("×", "=", ""), strict=True):
        for i in range(m):
            for j in range(n):
                fill = COLOURS[role] if marked(i, j) else PALE
                _square(d, left + j * CELL, middle + m * CELL / 2 - (i + 1) * CELL, CELL, fill)
        d.text(left + n * CELL / 2, middle + m * CELL / 2 + LINE, f"({m}, {n})", size=10)
        left += n * CELL + 0.7
        d.text(left - 0.35, middle, sign, size=16)
        left += 0.7
    each = f"one number: {inner} multiplications and {inner} additions"
    d.text(width / 2, 0.75, each)
    d.text(width / 2, 0.3, f"all {rows} · {columns} of them: 2 · {rows} · {inner} · {columns}")
    return d.ax


def draw_square(lengths, width):
    """Draw, for texts of these lengths, a table of a vector a token beside one of all pairs.

    Raises ValueError for a length or width below 1.
    """
    if min(lengths) < 1 or width < 1:
        raise ValueError(f"lengths and width must be at least 1, got {lengths} and {width}")
    cell, gap = 0.26, 1.7
    whole = sum((width + n) * cell + 1.0 for n in lengths) + gap * len(lengths)
    d = Diagram(
        whole, max(lengths) * cell + 2.1,
        alt="For " + ", ".join(f"{n}" for n in lengths) + " tokens: the table with a vector for "
        "each token grows downwards alone; the table of pairs grows down and to the right.",
    )  # fmt: skip
    left, high = gap / 2, max(lengths) * cell + 1.05
    for n in lengths:
        for columns, fill, name in ((width, WEIGHTS, f"{n} × {width}"), (n, PAIRS, f"{n} × {n}")):
            for i in range(n):
                for j in range(columns):
                    _square(d, left + j * cell, high - (i + 1) * cell, cell, fill)
            d.text(left + columns * cell / 2, high - n * cell - 0.25, name, size=9)
            left += columns * cell + 0.5
        d.text(left - 0.75 - (width + n) * cell / 2, high + 0.35, f"{n} tokens")
        left += gap
    for x, fill, words in (
        (gap / 2, WEIGHTS, "a number per token and feature"),
        (gap / 2 + 6.2, PAIRS, "a number per pair"),
    ):
        _square(d, x, 0.2, 0.3, fill)
        d.text(x + 0.45, 0.35, words, size=10, align="left")
    return d.ax


def draw_token_meets(lengths, width):
    """Draw, to scale, the weights that one token's vector meets in a layer, and keys and values.

    The areas are multiplications: `width` high, and 12 widths long for the weights (four
    projections of attention, eight widths of a feed-forward network of 4 `width`), two of each
    text's length for keys and values. Raises ValueError for a length or width below 1.
    """
    if min(lengths) < 1 or width < 1:
        raise ValueError(f"lengths and width must be at least 1, got {lengths} and {width}")
    longest = 12 * width + 2 * max(lengths)
    unit = 15.0 / longest
    tall = max(width * unit, 0.5)
    d = Diagram(
        18.6, (tall + 0.55) * len(lengths) + 1.25,
        alt=f"One token of width {width}: the weights it meets are {12 * width} wide for any text; "
        "the keys and values it meets are "
        + ", ".join(f"{2 * n} for {n} tokens" for n in lengths) + ".",
    )  # fmt: skip
    y = (tall + 0.55) * len(lengths) + 0.55
    for n in lengths:
        y -= tall + 0.55
        d.text(2.9, y + 0.9 + tall / 2, f"{n:,} tokens", align="right")
        _block(d, 3.1, y + 0.9, 12 * width * unit, tall, WEIGHTS)
        _block(d, 3.1 + 12 * width * unit, y + 0.9, 2 * n * unit, tall, PAIRS)
    for x, fill, words in (
        (3.1, WEIGHTS, "weights, 12 d² numbers"),
        (9.3, PAIRS, "keys and values, 2 n d numbers"),
    ):
        _square(d, x, 0.25, 0.3, fill)
        d.text(x + 0.45, 0.4, words, size=10, align="left")
    return d.ax


def draw_kept():
    """Draw a Pre-LN layer with its fused kernel, and how many numbers a token leaves at each step.

    Shaded are the tensors that the backward pass will read; d is the width, d_ff is 4 d.
    """
    d = Diagram(
        19.6, 5.0,
        alt="The two halves of a layer as chains of boxes. Attention keeps its norm's input, the "
        "normed vector, q, k, v and the weighted sum: 6 d numbers a token. The feed-forward "
        "network keeps its norm's input, the normed vector, the hidden units before and after the "
        "activation: 10 d. The outputs of the last linear layers keep nothing, and each sum is "
        "counted as the next norm's input.",
    )  # fmt: skip
    chains = (
        (3.9, "attention: 6 d a token", (
            ("stream", "d", 1), ("normed", "d", 1), ("q, k, v", "3 d", 1), ("weighted sum", "d", 1),
            ("w_o's output", "nothing", 0), ("sum", "the next\nnorm's input", 0))),
        (1.5, "feed-forward: 10 d a token", (
            ("stream", "d", 1), ("normed", "d", 1), ("hidden", "4 d", 1),
            ("after GELU", "4 d", 1), ("w_2's output", "nothing", 0),
            ("sum", "the next\nnorm's input", 0))),
    )  # fmt: skip
    steps = ("norm", "projections", "kernel", "w_o", "+")
    other = ("norm", "w_1", "GELU", "w_2", "+")
    for (y, title, boxes), words in zip(chains, (steps, other), strict=True):
        role = "attention" if "attention" in title else "feedforward"
        placed = []
        for number, (name, kept, is_kept) in enumerate(boxes):
            x = 1.3 + number * 3.4
            placed.append(d.box(x, y, name, role=role if is_kept else "plain", faint=not is_kept))
            d.text(x, y - 0.62 - 0.12 * kept.count("\n"), kept, size=9,
                   color=INK if is_kept else "#6b7280")  # fmt: skip
        for a, b, word in zip(placed, placed[1:], words, strict=False):
            d.arrow(a, b)
            d.text((a.right[0] + b.left[0]) / 2, y + 0.28, word, size=9)
        d.text(0.5, y + 0.75, title, align="left")
    return d.ax


def draw_wait(prompt, written):
    """Draw a prefill of `prompt` tokens and `written` - 1 steps in time, with the two waits.

    Raises ValueError for fewer than two tokens written.
    """
    if written < 2 or prompt < 1:
        raise ValueError(f"{prompt} tokens read and {written} written show no two waits")
    first, step = 5.2, 1.9
    width = first + step * (written - 1) + 1.6
    d = Diagram(
        width, 4.4,
        alt=f"A line of time. First one long pass reads {prompt} tokens at once: the time to the "
        f"first token. Then {written - 1} short passes follow, one token in and one out each: the "
        "time per token.",
    )  # fmt: skip
    d.text(0.6, 3.95, "a pass reads", size=10, align="left")
    x = 0.6
    for number in range(written):
        wide = first if number == 0 else step
        fill = WEIGHTS if number == 0 else PAIRS
        _block(d, x, 2.1, wide - 0.12, 0.8, fill)
        name = f"prefill: {prompt} at once" if number == 0 else "step"
        d.text(x + wide / 2 - 0.06, 2.5, name, color=PAPER)
        if number == 0:
            for i in range(8):
                _square(d, x + 0.35 + i * 0.55, 3.2, 0.4, COLOURS["embedding"])
        else:
            _square(d, x + wide / 2 - 0.26, 3.2, 0.4, COLOURS["embedding"])
        x += wide
        d.arrow((x - 0.12, 2.1), (x - 0.12, 1.45))
        d.text(x - 0.12, 1.25, f"token {number + 1}", size=9)
    waits = ((0.6, 0.6 + first - 0.12, "time to first token"), (0.6 + first - 0.12,
             0.6 + first + step - 0.12, "per token"))  # fmt: skip
    for left, right, words in waits:
        d.ax.plot([left, right], [0.75, 0.75], color=INK, linewidth=1.2)
        for end in (left, right):
            d.ax.plot([end, end], [0.63, 0.87], color=INK, linewidth=1.2)
        d.text((left + right) / 2, 0.4, words, size=10)
    return d.ax


def _square(d, x, y, size, fill):
    _block(d, x, y, size, size, fill)


def _block(d, x, y, width, height, fill):
    d.ax.add_patch(Rectangle((x, y), width, height, facecolor=fill, edgecolor=PAPER, linewidth=1.0))
