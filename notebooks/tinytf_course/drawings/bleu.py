"""Drawings of BLEU: which words count, and how a score is made of its parts."""

from .diagram import Diagram


def draw_clipping(translation, reference, n=1):
    """Draw the n-grams of two lists of words, a line from each that counts to what allows it.

    Raises ValueError where one of the two has fewer than `n` words.
    """
    if min(len(translation), len(reference)) < n:
        raise ValueError(f"{len(translation)} and {len(reference)} words, but a run takes {n}")
    rows = [
        [" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]
        for words in (translation, reference)
    ]
    counted = _links(*rows)
    said, name = (" ", "word") if n == 1 else (", ", f"{n}-gram")
    wide = max(1.4, 0.32 + 0.15 * max(len(run) for row in rows for run in row))
    step = wide + 0.35
    d = Diagram(
        2.5 + wide + step * (max(map(len, rows)) - 1), 3.4,
        alt=f"The {name}s of the translation, {said.join(rows[0])}, above those of the reference, "
        f"{said.join(rows[1])}. Of {len(rows[0])} {name}s {len(counted)} have a line to a {name} "
        "of the reference that no other has taken; the others are pale.",
        title=f"{name}s: {len(counted)} of {len(rows[0])} count" if n > 1 else None,
    )  # fmt: skip
    boxes = []
    for y, title, row, role, used in (
        (2.6, "translation", rows[0], "output", counted),
        (0.8, "reference", rows[1], "value", set(counted.values())),
    ):
        d.text(0.15, y, title, align="left", size=10)
        boxes.append([
            d.box(2.3 + wide / 2 + step * i, y, run, role=role if i in used else "plain",
                  size=(wide, 0.62), faint=i not in used)
            for i, run in enumerate(row)
        ])  # fmt: skip
    for i, j in counted.items():
        d.arrow(boxes[0][i].bottom, boxes[1][j].top, role="value")
    return d.ax


def draw_bleu(bleu):
    """Draw how a `tinytf.metrics.bleu.BLEU` is made: precisions, their mean, brevity, the score."""
    many = len(bleu.precisions)
    mean = bleu.score / bleu.brevity_penalty if bleu.brevity_penalty else 0.0
    d = Diagram(
        15.6, 1.25 * many + 0.7,
        alt=f"{many} precisions, {', '.join(f'{p:.0f} %' for p in bleu.precisions)}, give their "
        f"geometric mean, {mean:.1f}. {bleu.length} words for {bleu.reference_length} give the "
        f"brevity penalty, {bleu.brevity_penalty:.2f}. The product is BLEU, {bleu.score:.1f}.",
    )  # fmt: skip
    high = 1.25 * many
    parts = [
        d.box(2.2, high - 0.4 - 1.25 * n, f"{matched} of {total} = {p:.0f} %",
              shape=f"{n + 1}-grams that count", role="output", size=(3.6, 0.95))
        for n, (matched, total, p) in enumerate(
            zip(bleu.matches, bleu.totals, bleu.precisions, strict=True)
        )
    ]  # fmt: skip
    middle = d.box(7.6, high - 0.4, f"{mean:.1f}", shape="their geometric mean", role="output",
                   size=(3.2, 0.95))  # fmt: skip
    for part in parts:
        d.arrow(part.right, middle.left)
    short = d.box(7.6, high - 0.4 - 1.25 * (many - 1), f"{bleu.brevity_penalty:.2f}",
                  shape=f"{bleu.length} words for {bleu.reference_length}", role="mask",
                  size=(3.2, 0.95))  # fmt: skip
    score = d.box(13.2, high - 0.4 - 0.625 * (many - 1), f"BLEU {bleu.score:.1f}",
                  shape="mean × brevity", role="value", size=(3.2, 0.95))  # fmt: skip
    d.arrow(middle.right, score.left)
    d.arrow(short.right, score.left)
    return d.ax


def _links(translation, reference):
    """{place in the translation: place in the reference} of the words that count, clipped."""
    links = {}
    places = {word: [j for j, other in enumerate(reference) if other == word] for word in reference}
    for i, word in enumerate(translation):
        if places.get(word):
            links[i] = places[word].pop(0)
    return links
