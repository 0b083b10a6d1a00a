"""The house style: fonts, labels that never box, figures on axes that are given."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from tinytf import viz
from tinytf.viz import style

matplotlib.use("Agg")


SOURCE = ["the", "cat", "sat", "on", "the", "mat", "<eos>"]


TARGET = ["猫", "坐", "在", "垫子", "上", "<eos>"]


PINYIN = ["māo", "zuò", "zài", "diànzi", "shàng", "<eos>"]


GOLD = [(1, 0), (2, 1), (3, 2), (5, 3), (3, 4), (6, 5)]


pytestmark = pytest.mark.usefixtures("house_style")


@pytest.fixture
def no_cjk(monkeypatch):
    monkeypatch.setattr(style, "find_cjk_font", lambda: None)
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
    ax = viz.heatmap(weights(6, 6), TARGET, TARGET, query_pinyin=PINYIN, key_pinyin=PINYIN)
    drawn(ax)  # a boxed glyph would warn, and warnings are errors here
    assert ticks(ax.yaxis) == PINYIN


def test_with_a_chinese_font_both_are_shown(monkeypatch):
    monkeypatch.setattr(style, "can_draw", lambda text: True)
    assert viz.labels(TARGET, PINYIN)[:2] == ["猫 māo", "坐 zuò"]
    assert viz.labels(TARGET, PINYIN)[-1] == "<eos>"
    assert viz.label("2021", "2021") == "2021"


def test_a_found_font_joins_the_family_behind_the_base_font(monkeypatch):
    monkeypatch.setattr(style, "find_cjk_font", lambda: "Some CJK")
    viz.use_house_style()
    assert plt.rcParams["font.family"] == ["DejaVu Sans", "Some CJK"]


def test_titles_are_bold_only_where_every_font_in_use_has_a_bold_face(monkeypatch):
    monkeypatch.setattr(style, "find_cjk_font", lambda: "Thin CJK")  # has no face here at all
    viz.use_house_style()
    assert plt.rcParams["axes.titleweight"] == "normal"
    monkeypatch.setattr(style, "find_cjk_font", lambda: "DejaVu Sans")
    viz.use_house_style()
    assert plt.rcParams["axes.titleweight"] == "bold"


def test_a_chinese_font_is_chosen_by_what_it_covers():
    assert style.find_cjk_font.__wrapped__("abc") is not None
    # matplotlib's last-resort font has a box for every character and must not count
    assert "Last Resort" not in str(style.find_cjk_font.__wrapped__())


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
