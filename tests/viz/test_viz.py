"""Figures draw what they are given, labels never box, bad input is named, the explorer is whole."""

import json
import re
from html.parser import HTMLParser

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from tinytf import viz
from tinytf.viz import example as example_module
from tinytf.viz import explorer, style

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


# Attention maps --------------------------------------------------------------------------------


def test_heatmap_draws_the_weights_on_the_fixed_scale():
    w = weights(6, 7)
    ax = viz.heatmap(w, list(zip(TARGET, PINYIN, strict=True)), SOURCE)
    np.testing.assert_allclose(drawn(ax), w)
    assert ax.collections[0].get_clim() == (0, 1)
    assert ticks(ax.xaxis) == SOURCE
    assert [text.get_text() for text in ax.texts] == [f"{x:.2f}" for x in w.flatten().tolist()]
    assert ax.yaxis_inverted()


@pytest.mark.parametrize(
    "convert",
    [
        lambda w: w.tolist(),
        lambda w: w.numpy(),
        lambda w: w.requires_grad_(),
        lambda w: w.bfloat16(),
        list,
    ],
    ids=["lists", "numpy", "grad", "bfloat16", "list of tensors"],
)
def test_heatmap_accepts_any_container(convert):
    w = torch.tensor([[0.25, 0.75], [1.0, 0.0]])
    np.testing.assert_allclose(drawn(viz.heatmap(convert(w.clone()))), w)


def test_heatmap_hides_what_may_not_be_attended():
    mask = torch.ones(4, 4).tril().bool()[None, None]
    scores = torch.randn(4, 4).masked_fill(~mask[0, 0], 99.0)  # a hidden value sets no scale
    ax = viz.heatmap(scores, scale="signed", mask=mask)
    hidden = ax.collections[0].get_array().mask
    assert (hidden == ~mask[0, 0].numpy()).all()
    assert len(ax.patches) == 6
    assert len(ax.texts) == 10
    low, high = ax.collections[0].get_clim()
    assert low == -high == -scores[mask[0, 0]].abs().max().item()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(6, 7) / 7, TARGET[:5], SOURCE), r"6 rows but 5 queries"),
        ((torch.ones(6, 7) / 7, TARGET, SOURCE[1:]), r"7 columns but 6 keys"),
        ((torch.ones(1, 6, 7) / 7,), r"2 dimensions, got shape \(1, 6, 7\)"),
        ((torch.tensor([[1.5, -0.5]]),), r"-0.5 to 1.5"),
        ((torch.tensor([[torch.nan, 1.0]]),), r"1 NaN or infinite values of 2"),
        ((torch.ones(1, 3) / 3, None, "the cat sat"), r"got the string 'the cat sat'"),
        (([[1.0], [0.5, 0.5]],), r"not a rectangular block"),
    ],
)
def test_heatmap_names_what_disagrees(arguments, message):
    with pytest.raises(ValueError, match=message):
        viz.heatmap(*arguments)


def test_heatmap_refuses_a_mask_and_a_scale_it_cannot_use():
    with pytest.raises(ValueError, match=r"mask of shape \(5, 5\) does not fit weights \(4, 4\)"):
        viz.heatmap(weights(4, 4), mask=torch.ones(5, 5))
    with pytest.raises(ValueError, match="scale='log'"):
        viz.heatmap(weights(4, 4), scale="log")


def test_head_grid_draws_every_head_in_its_place():
    w = weights(5, 6, 7)
    axes = viz.head_grid(w, list(zip(TARGET, PINYIN, strict=True)), SOURCE, max_columns=3)
    assert len(axes) == 5
    assert [ax.get_title() for ax in axes][4] == "head 4"
    for head, ax in enumerate(axes):
        np.testing.assert_allclose(drawn(ax), w[head])
        assert ax.collections[0].get_clim() == (0, 1)
    with pytest.raises(ValueError, match="2 titles for 5 heads"):
        viz.head_grid(w, titles=["a", "b"])
    with pytest.raises(ValueError, match="3 dimensions"):
        viz.head_grid(w[0])


def test_alignment_grid_outlines_the_gold_links():
    ax = viz.alignment_grid(weights(6, 7), GOLD, SOURCE, TARGET, pinyin=PINYIN)
    drawn(ax)
    centres = {
        (round(p.get_x() + p.get_width() / 2), round(p.get_y() + p.get_height() / 2))
        for p in ax.patches
    }
    assert centres == set(GOLD)  # x is the source word, y the target word
    with pytest.raises(ValueError, match=r"gold link \(2, 6\) is outside 7 source words and 6"):
        viz.alignment_grid(weights(6, 7), [(2, 6)], SOURCE, TARGET)


def test_layer_head_scores_writes_every_number():
    scores = np.array([[0.1, 0.25], [0.5, 1.0], [0.0, 0.33]])
    ax = viz.layer_head_scores(scores)
    assert [text.get_text() for text in ax.texts] == [f"{x:.2f}" for x in scores.ravel()]
    assert ticks(ax.yaxis) == ["0", "1", "2"]


def test_attention_ramp_darkens_steadily_so_order_survives_grey_print():
    lightness = viz.ATTENTION(np.linspace(0, 1, 64))[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(lightness) < 0).all()


# Labels ----------------------------------------------------------------------------------------


def test_without_a_chinese_font_pinyin_stands_in(no_cjk):
    assert viz.labels(TARGET, PINYIN) == PINYIN
    assert viz.label("？") == "?"
    assert viz.label("𰻞").startswith("U+")
    words = list(zip(TARGET, PINYIN, strict=True))
    ax = viz.heatmap(weights(6, 6), words, words)
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


# Curves and statistics -------------------------------------------------------------------------


def test_lines_keep_the_colour_of_a_thing():
    one = viz.lines(None, {"a": [1, 2], "b": [2, 1]}, colors={"b": 5, "elsewhere": 2})
    assert [line.get_color() for line in one.get_lines()] == [viz.CYCLE[0], viz.CYCLE[5]]


def test_lines_draw_each_series_with_its_band():
    series = {"a": torch.tensor([1.0, 2.0, 4.0]), "b": [3, 2, 1]}
    ax = viz.lines([64, 128, 256], series | {"chance": 1}, logx=2, band={"a": 0.5})
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [1, 2, 4])
    assert ax.get_xscale() == "log"
    assert len(ax.collections) == 1
    assert len(ax.lines) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "chance"]
    ax.figure.canvas.draw()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: viz.lines([1, 2], {"a": [1, 2, 3]}), "'a' has 3 values for 2 x values"),
        (lambda: viz.lines([1], {}), "at least one"),
        (lambda: viz.lines({"b": [1]}, {"a": [1]}), "no x for series 'a'"),
        (lambda: viz.lines(None, {"a": [1, 2]}, band={"a": [1, 2, 3]}), r"shape \(3,\) for 2"),
        (lambda: viz.lines(None, {"a": [1]}, band={"b": 1}), r"band for \['b'\]"),
        (lambda: viz.bars({"a": 1, "b": {"c": 2}}), "either every bar is a group"),
        (lambda: viz.histogram({"a": [np.nan, 1]}), "1 NaN or infinite values of 2"),
        (lambda: viz.activation_statistics({"a": []}), "'a' is empty"),
        (lambda: viz.learning_curve([{"step": 1}]), r"both 'step' and 'loss'; it has \['step'\]"),
        (lambda: viz.positional_curves(np.zeros((4, 8)), [8]), "dimension 8 is outside .* width 8"),
    ],
)
def test_curves_name_what_disagrees(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_bars_show_their_numbers_plain_and_grouped():
    ax = viz.bars({"LSTM": 0.62, "Transformer": 0.98}, errors={"LSTM": 0.03})
    assert [p.get_height() for p in ax.patches] == [0.62, 0.98]
    assert {"0.62", "0.98"} <= {text.get_text() for text in ax.texts}
    ax = viz.bars({"2k": {"CNN": 0.1, "LSTM": 0.2}, "20k": {"CNN": 0.5, "LSTM": 0.6}})
    assert [p.get_height() for p in ax.patches] == [0.1, 0.5, 0.2, 0.6]
    ax.figure.canvas.draw()


def test_activation_statistics_draw_mean_and_spread():
    x = torch.randn(2, 5, 8, dtype=torch.float64) * 3 + 1
    ax = viz.activation_statistics({"layer 0": x, "layer 1": x * 2})
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [x.mean(), 2 * x.mean()])
    low, high = ax.collections[0].get_segments()[0][:, 1]
    np.testing.assert_allclose(high - low, 2 * x.std(correction=0))


def test_histogram_shares_its_bins():
    ax = viz.histogram({"before": torch.randn(500) * 3, "after": torch.randn(500)})
    outlines = [patch.get_xy()[:, 0] for patch in ax.patches]
    assert outlines[0].min() == outlines[2].min()
    assert outlines[0].max() == outlines[2].max()


def test_learning_curve_passes_over_records_without_the_value():
    history = [
        {"step": s, "loss": 10 - s} | ({"exact_match": s / 10} if s % 2 else {}) for s in range(6)
    ]
    ax = viz.learning_curve({"run": history}, y="exact_match")
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [1, 3, 5])
    smooth = viz.learning_curve(history, smooth=1)
    np.testing.assert_allclose(smooth.lines[0].get_ydata()[:2], [9.5, 9])
    np.testing.assert_allclose(smooth.lines[1].get_ydata(), [10, 9, 8, 7, 6, 5])


def test_positional_figures_draw_the_table():
    table = np.sin(np.arange(20)[:, None] / 10 ** (np.arange(8) / 8))
    ax = viz.positional_heatmap(table)
    np.testing.assert_allclose(ax.images[0].get_array(), table)
    low, high = ax.images[0].get_clim()
    assert low == -high
    ax = viz.positional_curves(table, [0, 7])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), table[:, 7])


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


# The explorer ----------------------------------------------------------------------------------


class Page(HTMLParser):
    """The tags with their attributes, and the text outside scripts and style sheets."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.inside = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside not in ("script", "style"):
            self.words.append(data.strip())


def test_explorer_carries_the_weights_to_three_digits():
    given = example()
    packed = viz.attention_explorer([given]).payload["examples"][0]["maps"]
    for kind, w in given["attention"].items():
        letters = packed[kind]["weights"]
        numbers = [explorer._ALPHABET.index(letter) for letter in letters]
        read = np.array(numbers[0::2]) * 64 + np.array(numbers[1::2])
        np.testing.assert_allclose(read.reshape(w.shape) / 1000, w, atol=5.01e-4)
    assert packed["decoder"]["causal"]
    assert not packed["encoder"]["causal"]


def test_explorer_is_one_self_contained_page_element():
    shown = viz.attention_explorer([example()])._repr_html_()
    assert not re.search(r"https?://(?!www\.w3\.org/)|@import|<link|src=|url\(", shown)
    tags = Page(shown).tags
    root = tags[0][1]
    assert root["class"] == "tinytf-explorer"
    assert [tag for tag, _ in tags].count("script") == 1
    hooks = ("sentence-select", "layer-button", "head-button", "query-token")
    assert all(name in shown for name in hooks)
    assert "stopPropagation" in shown
    assert "aria-" in shown


def test_explorer_opens_on_the_head_that_aligns():
    root = Page(viz.attention_explorer([example()]).html).tags[0][1]
    state = {name: root[f"data-{name}"] for name in ("sentence", "kind", "layer", "head", "query")}
    assert state == {"sentence": "0", "kind": "cross", "layer": "1", "head": "2", "query": "0"}
    chosen = viz.attention_explorer([example()], kind="encoder", layer=0, head="mean", query=3)
    root = Page(chosen.html).tags[0][1]
    assert (root["data-kind"], root["data-head"], root["data-query"]) == ("encoder", "mean", "3")


def test_explorer_leaves_a_still_where_no_script_runs():
    page = Page(viz.attention_explorer([example()]).html)
    words = " ".join(page.words)
    assert "the cat sat on the mat" in words
    assert "猫 māo" in words
    cells = [a for tag, a in page.tags if tag == "td" and "background-color" in a.get("style", "")]
    assert len(cells) == len(TARGET) * len(SOURCE)
    assert sum("outline" in cell["style"] for cell in cells) == len(GOLD)
    assert page.words.count("0.96") == len(GOLD)  # 0.95 on the link and a share of the rest


def test_explorer_escapes_tokens():
    bad = "</script><b>"
    given = example(source=[bad, *SOURCE[1:]], target=["<i>", *TARGET[1:]])
    shown = viz.attention_explorer([given], title='a "quoted" <title>').html
    assert bad not in shown
    assert "<i>" not in shown
    assert "<title>" not in shown
    payload = re.search(r"const DATA = (.*?); const UID", shown).group(1)
    assert json.loads(payload)["examples"][0]["source"][0] == bad


def test_two_explorers_of_the_same_data_do_not_meet():
    assert viz.attention_explorer([example()]).uid != viz.attention_explorer([example()]).uid


def test_ten_sentences_stay_small():
    many = [example(layers=4, heads=8) for _ in range(10)]
    assert len(viz.attention_explorer(many).html.encode()) < 400_000


def test_explorer_decoder_looks_at_what_was_already_written():
    packed = viz.attention_explorer([example()]).payload["examples"][0]
    assert packed["read"] == ["<bos>", "猫", "坐", "在", "垫子", "上"]
    assert packed["read_pinyin"][:2] == ["<bos>", "māo"]


def test_explorer_takes_an_explanation():
    class Explanation:
        source, target, pinyin = SOURCE, TARGET, "māo zuò zài diànzi shàng"
        attention = {  # noqa: RUF012
            "encoder.layers.0.self_attention": weights(4, 7, 7),
            "decoder.layers.1.cross_attention": weights(4, 6, 7, seed=1),
            "decoder.layers.0.cross_attention": weights(4, 6, 7, seed=0),
            "decoder.layers.0.self_attention": weights(4, 6, 6),
        }

    checked = example_module.checked(Explanation())
    assert checked["attention"]["cross"].shape == (2, 4, 6, 7)
    np.testing.assert_allclose(checked["attention"]["cross"][1], weights(4, 6, 7, seed=1))
    assert checked["pinyin"] == PINYIN
    assert "猫 māo" in viz.attention_explorer(Explanation()).html
    by_layer = {"source": SOURCE, "target": TARGET, "attention": Explanation.attention}
    again = example_module.checked(by_layer | {"gold": GOLD})
    np.testing.assert_array_equal(again["attention"]["cross"], checked["attention"]["cross"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"source": SOURCE[:6], "gold": None},
            r"cross attention has shape \(2, 4, 6, 7\), but 6 target and 6 source tokens",
        ),
        ({"pinyin": ["māo"]}, "2 pinyin entries for 6 target tokens"),
        ({"gold": [(7, 0)]}, r"example 0: gold link \(7, 0\) is outside 7 source"),
        ({"source": "the cat"}, "list of tokens, got 'the cat'"),
        ({"attention": {"croos": weights(1, 1, 6, 7)}}, "'croos' is none of"),
        ({"attention": {"cross": weights(4, 6, 7)}}, r"4 dimensions, got shape \(4, 6, 7\)"),
        ({"attention": {"cross": weights(1, 1, 6, 7) * 2}}, r"must lie in 0..1, got"),
        ({"attention": {"cross": torch.full((1, 1, 6, 7), torch.nan)}}, r"must lie in 0..1, got"),
    ],
)
def test_explorer_names_what_disagrees(changes, message):
    with pytest.raises(ValueError, match=message):
        viz.attention_explorer([example(**changes)])


def test_attention_as_recorded_of_a_batch_of_one():
    """`record` keeps the batch's axis; more than one sentence is refused."""
    recorded = {f"decoder.layers.{i}.cross_attention": weights(1, 4, 6, 7) for i in range(2)}
    made = example_module.checked({"source": SOURCE, "target": TARGET, "attention": recorded})
    assert made["attention"]["cross"].shape == (2, 4, 6, 7)
    recorded = {"decoder.layers.0.cross_attention": weights(2, 4, 6, 7)}
    with pytest.raises(ValueError, match=r"needs 3 dimensions, got shape \(2, 4, 6, 7\)"):
        example_module.checked({"source": SOURCE, "target": TARGET, "attention": recorded})


def test_explorer_names_a_choice_it_does_not_have():
    with pytest.raises(ValueError, match="needs at least one example"):
        viz.attention_explorer([])
    with pytest.raises(ValueError, match=r"lacks \['attention', 'target'\]"):
        viz.attention_explorer([{"source": SOURCE}])
    for choice, message in [
        ({"layer": 2}, "layer=2 is outside the 2 layers"),
        ({"head": 4}, "head=4 is neither"),
        ({"kind": "self"}, "kind='self' is none of"),
        ({"query": 6}, "query=6 is outside the 6 words"),
    ]:
        with pytest.raises(ValueError, match=message):
            viz.attention_explorer([example()], **choice)


def test_attention_still_draws_the_chosen_map(no_cjk):
    given = example()
    ax = viz.attention_still(given, 0, "mean")
    np.testing.assert_allclose(drawn(ax), given["attention"]["cross"][0].mean(0), atol=1e-6)
    ax = viz.attention_still(given, 1, 3, kind="decoder")
    shown = drawn(ax)
    np.testing.assert_allclose(shown[5], given["attention"]["decoder"][1, 3][5], atol=1e-6)
    assert ticks(ax.xaxis)[:2] == ["<bos>", "māo"]
    with pytest.raises(ValueError, match="layer=9"):
        viz.attention_still(given, 9)


def test_explorer_saves_a_page(tmp_path):
    path = tmp_path / "page.html"
    viz.attention_explorer([example()]).save(path)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


# Widgets ---------------------------------------------------------------------------------------


def scale_line(k=1.0):
    return viz.lines(None, {"y": [0, k]})


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


def test_explore_leaves_a_still_and_redraws(shown):
    explored = viz.explore(scale_line, k=(0.0, 4.0, 1.0))
    still = shown[-1]["image/png"]
    assert explored.controls["k"].value == 2.0
    assert plt.get_fignums() == []
    explored.controls["k"].value = 4.0
    assert len(shown) == 3
    assert shown[-1]["image/png"] != still
    assert "k=4.0" in shown[-1]["text/plain"]


def test_explore_fails_the_cell_when_the_first_drawing_fails(shown):
    with pytest.raises(ZeroDivisionError):
        viz.explore(lambda k: 1 / 0, k=(0, 3))
    with pytest.raises(TypeError, match="Figure or Axes"):
        viz.explore(lambda k: None, k=(0, 3))
    assert shown == []
    assert plt.get_fignums() == []


def test_explore_shows_a_later_failure_beside_the_controls(shown, monkeypatch):
    import ipywidgets

    messages = [ipywidgets.HTML()]
    monkeypatch.setattr(ipywidgets, "HTML", lambda: messages[0])

    def draw(k):
        if k > 2:
            raise ValueError(f"k={k} is too great")
        return scale_line(k)

    explored = viz.explore(draw, k=(0, 4, 1))
    explored.controls["k"].value = 4
    assert "k=4 is too great" in messages[0].value
    explored.controls["k"].value = 1
    assert messages[0].value == ""


def test_explore_names_a_control_it_cannot_make(shown):
    with pytest.raises(ValueError, match="k=<object"):
        viz.explore(scale_line, k=object())
    with pytest.raises(ValueError, match="at least one control"):
        viz.explore(scale_line)


@pytest.mark.parametrize("chapter", range(18))
def test_course_map_marks_the_chapter_and_no_other(chapter):
    def marked(number):
        boxes = viz.course_map(number).patches
        plt.close("all")
        return {i for i, box in enumerate(boxes) if box.get_linewidth() > 2}

    assert marked(chapter)
    assert marked(chapter) != marked((chapter + 1) % 18) or {chapter, chapter + 1} == {3, 4}


def test_course_map_refuses_a_chapter_that_is_not_there():
    with pytest.raises(ValueError, match="18"):
        viz.course_map(18)
