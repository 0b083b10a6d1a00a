"""Drawings of BLEU: which words count, and how a score is made of its parts."""

from .diagram import Diagram

STEP = 1.75  # units from word to word


def draw_clipping(translation, reference):
    """Draw two lists of words, a line from each word that counts to the one that allows it."""
    counted = _links(translation, reference)
    many = max(len(translation), len(reference))
    d = Diagram(
        2.4 + STEP * many, 3.4,
        alt=f"The words of the translation, {' '.join(translation)}, above those of the reference, "
        f"{' '.join(reference)}. Of {len(translation)} words {len(counted)} have a line to a word "
        "of the reference that no other has taken; the others are pale.",
    )  # fmt: skip
    d.text(0.15, 2.6, "translation", align="left", size=10)
    d.text(0.15, 0.8, "reference", align="left", size=10)
    size = (1.4, 0.62)
    above = [
        d.box(3 + STEP * i, 2.6, word, role="output" if i in counted else "plain", size=size,
              faint=i not in counted)
        for i, word in enumerate(translation)
    ]  # fmt: skip
    taken = set(counted.values())
    below = [
        d.box(3 + STEP * j, 0.8, word, role="value" if j in taken else "plain", size=size,
              faint=j not in taken)
        for j, word in enumerate(reference)
    ]  # fmt: skip
    for i, j in counted.items():
        d.arrow(above[i].bottom, below[j].top, role="value")
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
