"""The house style: fonts, labels that never box, figures on axes that are given."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib import font_manager
from viz_support import GOLD, PINYIN, SOURCE, TARGET, drawn, example, ticks, weights

from tinytf.viz import font, style
from tinytf_course import drawings as viz


def test_without_a_chinese_font_pinyin_stands_in(no_cjk):
    assert viz.labels(TARGET, PINYIN) == PINYIN
    assert viz.label("？") == "?"
    assert viz.label("𰻞").startswith("U+")
    words = list(zip(TARGET, PINYIN, strict=True))
    ax = viz.heatmap(weights(6, 6), words, words)
    drawn(ax)  # a boxed glyph would warn, and warnings are errors here
    assert ticks(ax.yaxis) == PINYIN


def test_chinese_is_shown_with_its_pinyin():
    assert viz.labels(TARGET, PINYIN)[:2] == ["猫 māo", "坐 zuò"]
    assert viz.labels(TARGET)[:2] == ["猫 māo", "坐 zuò"]  # the phrasebook's, where none is given
    assert viz.labels(TARGET, PINYIN)[-1] == "<eos>"
    assert viz.label("2021", "2021") == "2021"
    assert viz.label("？") == "？"
    assert viz.label("猫𰻞", "māo biáng") == "māo biáng"  # half a word is not shown


@pytest.mark.parametrize(
    ("token", "shown"), [("\n", "↵"), (" ", "␣"), ("$x$", r"\$x\$"), ("Ġthe", "Ġthe")]
)
def test_odd_tokens_stay_visible(token, shown):
    assert viz.label(token) == shown
    plt.figure().text(0, 0, viz.label(token)).figure.canvas.draw()


def test_labels_count_their_pinyin():
    with pytest.raises(ValueError, match="1 pinyin entries for 2 tokens"):
        viz.labels(["猫", "坐"], ["māo"])


def test_every_figure_draws_on_axes_that_are_given():
    calls = [
        lambda ax: viz.heatmap(weights(3, 3), ax=ax),
        lambda ax: viz.alignment_grid(weights(6, 7), GOLD, SOURCE, TARGET, ax, pinyin=PINYIN),
        lambda ax: viz.layer_head_scores([[0.5, 0.1]], ax),
        lambda ax: viz.positional_heatmap(np.eye(4), ax),
        lambda ax: viz.positional_curves(np.eye(4), [0], ax),
        lambda ax: viz.lines(None, {"a": [1, 2]}, ax),
        lambda ax: viz.bars({"a": 1}, ax),
        lambda ax: viz.histogram({"a": [1, 2]}, ax),
        lambda ax: viz.activation_statistics({"a": [1.0, 2.0]}, ax),
        lambda ax: viz.learning_curve([{"step": 0, "loss": 1}], ax=ax),
        lambda ax: viz.attention_still(example(), 1, 2, ax),
    ]
    for call in calls:
        figure, ax = plt.subplots()
        assert call(ax) is ax
        assert plt.get_fignums() == [figure.number]
        plt.close(figure)


@pytest.mark.parametrize(("inches", "points"), [(13, 12.67), (8, 7.87), (5, 7.85)])
def test_the_least_type_grows_with_a_figure_that_is_wider_than_the_page(inches, points):
    """9 points of 1/72 inch are 12 pixels of the page; at 110 pixels to an inch 7.85 points."""
    assert style.least_type(plt.figure(figsize=(inches, 2))) == pytest.approx(points, abs=0.005)


def test_a_face_that_is_not_drawn_does_not_count(monkeypatch):
    """Of a family's faces the thin one may lack what the regular one has."""
    regular = next(f for f in font_manager.fontManager.ttflist if f.name == style.BASE_FONT)
    thin = replace(regular, fname=str(font.FONT), weight=200)
    fonts = [*font_manager.fontManager.ttflist, thin]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)
    style._covered.cache_clear()
    assert viz.label(" ") == "␣"
    style._covered.cache_clear()
