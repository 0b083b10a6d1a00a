"""The explorer is one whole page element, with a still where no script runs."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from browser_support import offline_browser
from viz_support import GOLD, PINYIN, SOURCE, TARGET, drawn, example, ticks, weights

from tinytf.viz import example as example_module
from tinytf.viz import explorer
from tinytf_course import drawings as viz


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
    other = {"target": ["猫"], "read": ["狗"], "pinyin": ["māo"], "attention": {}, "source": ["a"]}
    assert example_module.checked(other)["read_pinyin"] == ["gǒu"]


@pytest.mark.browser
def test_without_a_chinese_font_nothing_is_a_box(tmp_path):
    given = example() | {"target": ["猫", "嗷"], "pinyin": ["māo", "嗷"], "gold": []}
    given["attention"] = {"cross": weights(2, 4, 2, 7), "decoder": weights(2, 4, 2, 2)}
    page_of = tmp_path / "explorer.html"
    page_of.write_text(f"<meta charset=utf-8>{viz.attention_explorer(given).html}", "utf-8")
    with offline_browser(width=900, height=900) as (page, faults):
        page.add_init_script("CanvasRenderingContext2D.prototype.getImageData = () => ({data: []})")
        page.goto(page_of.as_uri())
        page.wait_for_selector(".tinytf-explorer[data-ready='1']")
        shown = page.locator(".tinytf-explorer .app").inner_text()
        assert "māo" in shown
        assert "U+55F7" in shown
        assert not re.search("[\u4e00-\u9fff]", shown)
        assert not faults


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


def long_example(size, heads=2):
    maps = np.full((1, heads, size, size), 1 / size)
    tokens = [f"w{i}" for i in range(size)]
    return {"source": tokens, "target": tokens, "attention": {"cross": maps}}


def test_explorer_refuses_what_no_page_can_show():
    """500 x 500 would make 31 MB; the largest that is shown is looked at whole."""
    with pytest.raises(ValueError, match="example 0 has 500 source tokens, an explorer shows up t"):
        viz.attention_explorer([long_example(500)])
    wide = long_example(100)
    wide |= {"target": [f"w{i}" for i in range(129)]}
    wide["attention"] = {"cross": np.full((1, 1, 129, 100), 0.01)}
    with pytest.raises(ValueError, match="example 1 has 129 target tokens"):
        viz.attention_explorer([example(), wide])
    with pytest.raises(
        ValueError, match="the maps have 4915200 weights, an explorer holds up to 4"
    ):
        viz.attention_explorer([long_example(128, heads=150), long_example(128, heads=150)])
    assert len(viz.attention_explorer([long_example(128)]).html) < 5_000_000


@pytest.mark.parametrize("name", ["source", "target", "pinyin", "read", "title"])
def test_explorer_names_half_a_character(name):
    given, title = example(), None
    if name == "title":
        title = "a \ud800"
    else:
        tokens = list(given.get(name) or given["target"])
        given[name] = [*tokens[:-1], "a\udfff"]
    with pytest.raises(ValueError, match=rf"{name} has a lone surrogate in 'a ?\\ud") as caught:
        viz.attention_explorer([given], title=title)
    assert not isinstance(caught.value, UnicodeError)
