"""Spoiled rows word by word; what families are asked; both factors of a blank."""

import matplotlib.pyplot as plt
import pytest

from tinytf.viz.spoken import spoken
from tinytf_course import drawings as viz
from tinytf_course.drawings.families import draw_dropped_spans, draw_rescoring, draw_three_questions
from tinytf_course.studies import families as lab


@pytest.fixture(scope="module")
def text():
    return lab.Text(40)


def test_spoiled_rows_draws_every_word_and_mark():
    ax = viz.spoiled_rows({"text": [("a", 0), ("b", 1)], "noised": [("<mask>", None), ("b", 1)]})
    assert [t.get_text() for t in ax.texts] == ["a", "b", "<mask>", "b"]
    colors = [patch.get_facecolor() for patch in ax.patches]
    assert colors[1] == colors[3] != colors[0]
    assert colors[2] == pytest.approx(plt.matplotlib.colors.to_rgba(viz.style.GOLD))
    plt.close("all")
    with pytest.raises(ValueError, match="at least one word in each text"):
        viz.spoiled_rows({"empty": []})


def written(ax):
    return [t.get_text() for t in ax.texts]


def test_three_families_are_asked_for_their_own_words():
    ax = draw_three_questions(list("abcdef"), hidden=[1, 4], span=(2, 3))
    said = written(ax)
    assert said.count("<mask>") == 2
    assert said.count("<0>") == 2  # where the encoder reads it, and before the span
    assert said[-4:] == ["<0>", "c", "d", "<1>"]
    assert "the encoder reads a b <0> e f, and the decoder's target is <0> c d <1>" in spoken(
        ax.figure
    )
    plt.close("all")


def test_what_is_dropped_stands_behind_its_mark():
    noise = [False, True, True, False, True]
    ax = draw_dropped_spans(list("abcde"), noise, ["<0>", "<1>", "<2>"])
    said = spoken(ax.figure)
    assert "The encoder reads a <0> d <1>. The decoder writes <0> b c <1> e <2>." in said
    plt.close("all")


def test_rescoring_shows_both_factors_and_their_share():
    ax = draw_rescoring(
        "it ate", ["grass", "meat"], "quickly", [(0.5, 0.02, 0.8), (0.25, 0.01, 0.2)]
    )
    assert [t for t in written(ax) if t[0].isdigit()] == [
        "0.500", "2e-02", "80%", "0.250", "1e-02", "20%"]  # fmt: skip
    assert written(ax)[0] == "it ate ___ quickly"
    plt.close("all")
