"""Drawings of BLEU."""

import pytest

from tinytf.metrics.bleu import clipped_matches, corpus_bleu
from tinytf.viz.spoken import spoken
from tinytf_course.drawings import bleu


@pytest.mark.parametrize(
    ("translation", "reference"),
    [("the the cat sat the", "the cat sat on the mat"), ("a b", "c d"), ("a a", "a a a")],
)
def test_a_line_for_each_word_that_counts(translation, reference):
    translation, reference = translation.split(), reference.split()
    links = bleu._links(translation, reference)
    assert len(links) == clipped_matches(translation, [reference], 1)[0]
    assert len(set(links.values())) == len(links)
    assert all(translation[i] == reference[j] for i, j in links.items())
    assert f"{len(links)} have a line" in spoken(bleu.draw_clipping(translation, reference).figure)


def test_a_score_is_drawn_with_its_parts():
    score = corpus_bleu([list("abcdef")], [[list("abcdefgh")]])
    ax = bleu.draw_bleu(score)
    found = [text.get_text() for text in ax.texts]
    assert "6 of 6 = 100 %" in found
    assert "6 words for 8" in found
    assert f"BLEU {score.score:.1f}" in found
    assert "geometric mean" in spoken(ax.figure)
