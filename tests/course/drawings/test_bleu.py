"""Drawings of BLEU."""

import pytest
from matplotlib.patches import FancyArrowPatch

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


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("translation", ["the the cat sat the", "the mat sat on the cat"])
def test_runs_of_every_length_are_counted_as_the_package_counts(translation, n):
    translation, reference = translation.split(), ["the", "cat", "sat", "on", "the", "mat"]
    ax = bleu.draw_clipping(translation, reference, n)
    matches, total = clipped_matches(translation, [reference], n)
    assert sum(isinstance(patch, FancyArrowPatch) for patch in ax.patches) == matches
    found = [text.get_text() for text in ax.texts]
    assert " ".join(translation[-n:]) in found
    assert n == 1 or f"{n}-grams: {matches} of {total} count" in found
    assert f"Of {total} {'words' if n == 1 else f'{n}-grams'} {matches} have" in spoken(ax.figure)


def test_too_few_words_for_a_run_are_refused():
    with pytest.raises(ValueError, match="2 and 3 words, but a run takes 3"):
        bleu.draw_clipping(["a", "b"], ["a", "b", "c"], 3)
