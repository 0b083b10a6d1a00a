"""Drawings of how a public translator differs: its choices, its features, its start."""

from tinytf_course.drawings.diagram import Diagram

CHOICES = (
    ("word ids", "input", "<pad> 0,\n<eos> 2", "<eos> 0,\n<pad> last", "order"),
    ("embedding", "embedding", "rows by\nour ids", "rows by\ntheir ids", "order"),
    ("+ positions", "position", "sine, cosine,\nsine, …", "sines,\nthen cosines", "order"),
    ("6 + 6 layers", "encoder", "ReLU", "swish", "new"),
    ("output", "output", "no bias", "a bias\nper word", "new"),
    ("start", "decoder", "a row\nof its own", "the row\nof <pad>", "order"),
)


def draw_choices():
    """Draw a translator's parts in a row, our choice above each and Marian's below it.

    A difference of order only is dashed; a computation that ours lacks is in the mask's colour.
    Returns the Axes.
    """
    told = "; ".join(
        f"{part}: ours {ours}, theirs {theirs}" for part, _, ours, theirs, _ in CHOICES
    )
    told = told.replace("\n", " ")
    d = Diagram(
        17.9, 5.0,
        alt=f"Six parts of a translator in a row, with our choice and Marian's. {told}. "
        "Activation and bias are other computations, the rest is a matter of order.",
    )  # fmt: skip
    for name, y in (("ours", 4.2), ("Marian's", 0.75)):
        d.text(1.3, y, name, align="right")
    before = None
    for i, (part, role, ours, theirs, kind) in enumerate(CHOICES):
        x = 3.0 + 2.7 * i
        box = d.box(x, 2.6, part, role=role, size=(2.25, 0.9))
        d.text(x, 4.2, ours)
        below = d.box(x, 0.75, theirs, size=(2.25, 1.0), role="mask" if kind == "new" else "plain")
        d.arrow(below, box, dashed=kind == "order", role="mask" if kind == "new" else None)
        if before and part != "start":
            d.arrow(before, box)
        before = box
    return d.ax


def draw_reorder(writer, stream, reader, order):
    """Draw a layer that writes a stream and one that reads it, before and after a reordering.

    `writer` is (C, inputs), `stream` the C numbers it writes, `reader` (outputs, C), `order` the
    positions that the features are taken from. Returns the Axes.
    """
    names = [f"{i}" for i in range(len(stream))]
    moved = [names[i] for i in order]
    d = Diagram(
        19.4, 7.9,
        alt="Two rows. Above, a layer of four rows writes a stream of four features, and one of "
        f"four columns reads it. Below the same with the features in the order {', '.join(moved)}: "
        "the writer's rows, the stream and the reader's columns have moved alike.",
    )  # fmt: skip
    for y, now, words in ((5.6, range(len(stream)), names), (1.8, order, moved)):
        now = list(now)
        first = d.matrix(3.3, y, writer[now], rows=words, role="feedforward", cell=0.7)
        middle = d.matrix(8.6, y, stream[now][:, None], rows=words, role="residual", cell=0.7)
        last = d.matrix(14.0, y, reader[:, now], columns=words, role="attention", cell=0.7)
        d.arrow(first, middle, "writes")
        read = d.matrix(17.9, y, (reader @ stream)[:, None], role="output", cell=0.7)
        d.arrow(middle, last, "reads")
        d.arrow(last, read)
    for x, head in ((3.3, "writer: a row per feature"), (8.6, "stream: C features"),
                    (14.0, "reader: a column per feature"), (17.9, "result")):  # fmt: skip
        d.text(x, 7.55, head)
    return d.ax


def draw_start():
    """Draw the two jobs of Marian's <pad>, and the two rows of our table; returns the Axes."""
    d = Diagram(
        14, 5,
        alt="Left, Marian's table: one row, pad, does two jobs. It starts every translation, where "
        "the decoder reads it, and it fills short ones up, where a mask hides it. Right, our "
        "table has two rows, one vector: row 1 starts and is read, row 0 fills up, hidden.",
    )  # fmt: skip
    (theirs,), (start, fill), (ours, pad) = d.columns(
        [("<pad>", "their row 65000", "embedding")],
        [("starts a translation", "read like a word", "decoder"),
         ("fills up a short one", "hidden by the mask", "mask")],
        [("<start>", "our row 1", "embedding"), ("<pad>", "our row 0", "embedding")],
        high=4.2,
    )  # fmt: skip
    for job, row in ((start, ours), (fill, pad)):
        d.arrow(theirs.right, job.left)
        d.arrow(row, job)
    d.arrow(ours, pad, "the same vector", dashed=True)
    for box, head in ((theirs, "Marian"), (start, "two jobs"), (ours, "our Transformer")):
        d.text(box.x, 4.5, head)
    return d.ax
