"""The house style: fonts, labels that never box, figures on axes that are given."""

from dataclasses import replace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib import font_manager

from tinytf import viz
from tinytf.viz import font, style

matplotlib.use("Agg")


SOURCE = ["the", "cat", "sat", "on", "the", "mat", "<eos>"]


TARGET = ["猫", "坐", "在", "垫子", "上", "<eos>"]


PINYIN = ["māo", "zuò", "zài", "diànzi", "shàng", "<eos>"]


GOLD = [(1, 0), (2, 1), (3, 2), (5, 3), (3, 4), (6, 5)]


pytestmark = pytest.mark.usefixtures("house_style")


@pytest.fixture
def no_cjk(monkeypatch):
    monkeypatch.setattr(style.font, "register", lambda: style.BASE_FONT)
    viz.use_house_style()


def weights(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).softmax(-1)


def example(layers=2, heads=4, **changes):
    t, s = len(TARGET), len(SOURCE)
    cross = weights(layers, heads, t, s)
    links = torch.zeros(t, s)
    for source, target in GOLD:
        links[target, source] = 1
    cross[1, 2] = 0.05 / s + 0.95 * links  # one head is the aligner
    scores = torch.randn(layers, heads, t, t, generator=torch.Generator().manual_seed(1))
    future = torch.ones(t, t).triu(1).bool()
    decoder = scores.masked_fill(future, -torch.inf).softmax(-1)
    attention = {"cross": cross, "encoder": weights(layers, heads, s, s), "decoder": decoder}
    whole = {"source": SOURCE, "target": TARGET, "pinyin": PINYIN, "gold": GOLD}
    return whole | {"attention": attention} | changes


def drawn(ax):
    """The axes' matrix, after a real rendering (which is where a missing glyph would warn)."""
    ax.figure.canvas.draw()
    return np.asarray(ax.collections[0].get_array())


def ticks(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]


# Labels ----------------------------------------------------------------------------------------


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


@pytest.fixture
def shown(monkeypatch):
    ipywidgets = pytest.importorskip("ipywidgets")
    displayed = []

    class Handle:
        def update(self, data, raw):
            displayed.append(data)

    def display(data, raw, display_id=None):
        displayed.append(data)
        return Handle() if display_id else None

    monkeypatch.setattr("IPython.display.display", display)
    assert ipywidgets
    return displayed


def test_a_face_that_is_not_drawn_does_not_count(monkeypatch):
    """Of a family's faces the thin one may lack what the regular one has."""
    regular = next(f for f in font_manager.fontManager.ttflist if f.name == style.BASE_FONT)
    thin = replace(regular, fname=str(font.FONT), weight=200)
    fonts = [*font_manager.fontManager.ttflist, thin]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)
    style._covered.cache_clear()
    assert viz.label(" ") == "␣"
    style._covered.cache_clear()
