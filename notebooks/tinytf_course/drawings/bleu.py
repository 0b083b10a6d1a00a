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
        14, 1.2 * many,
        alt=f"{many} precisions, {', '.join(f'{p:.0f} %' for p in bleu.precisions)}, give their "
        f"geometric mean, {mean:.1f}. {bleu.length} words for {bleu.reference_length} give the "
        f"brevity penalty, {bleu.brevity_penalty:.2f}. The product is BLEU, {bleu.score:.1f}.",
    )  # fmt: skip
    parts, (middle, short), (score,) = d.columns(
        [(f"{matched} of {total} = {p:.0f} %", f"{n + 1}-grams that count", "output")
         for n, (matched, total, p) in enumerate(
             zip(bleu.matches, bleu.totals, bleu.precisions, strict=True))],
        [(f"{mean:.1f}", "their geometric mean", "output"),
         (f"{bleu.brevity_penalty:.2f}", f"{bleu.length} words for {bleu.reference_length}",
          "mask")],
        [(f"BLEU {bleu.score:.1f}", "mean × brevity", "value")],
    )  # fmt: skip
    for part in parts:
        d.arrow(part.right, middle.left)
    for factor in (middle, short):
        d.arrow(factor.right, score.left)
    return d.ax


def _links(translation, reference):
    """{place in the translation: place in the reference} of the words that count, clipped."""
    links = {}
    places = {word: [j for j, other in enumerate(reference) if other == word] for word in reference}
    for i, word in enumerate(translation):
        if places.get(word):
            links[i] = places[word].pop(0)
    return links
