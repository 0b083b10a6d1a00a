"""The figures of the feed-forward chapter: what they draw and what they refuse."""

import matplotlib
import pytest
import torch
from matplotlib.patches import FancyArrowPatch

from tinytf.viz.spoken import spoken
from tinytf_course import drawings as viz
from tinytf_course.drawings.feedforward import (
    draw_gate,
    draw_layer,
    draw_mirror,
    draw_network,
    draw_units,
    draw_weights,
    target_in_context,
    verdict_planes,
)
from tinytf_course.phrasebook import Phrasebook

matplotlib.use("agg")


def test_unit_card_draws_contexts_and_words():
    left, right = viz.unit_card(
        ["the *cat*", "a *dog*"], torch.tensor([3.0, 2.0]), {"猫": 1, "b": -2}
    )
    assert [text.get_text() for text in left.texts] == ["the *cat*", "a *dog*"]
    assert [patch.get_width() for patch in left.patches] == [3, 2]
    assert [patch.get_width() for patch in right.patches] == [1, -2]


def test_unit_card_refuses():
    with pytest.raises(ValueError, match="2 contexts for 1 activities"):
        viz.unit_card(["a", "b"], [1.0], {"a": 1})
    with pytest.raises(ValueError, match="at least one"):
        viz.unit_card(["a"], [1.0], {})


def words(ax):
    return [text.get_text() for text in ax.texts]


X, W_1, B_1 = torch.tensor([1.0, -1.0]), torch.tensor([[1.0, -1, 1], [-1, 1, 1]]), [0.0, 0, -1]
W_2, B_2 = torch.tensor([[1.0, 0], [1, 0], [0, 1]]), [-1.0, 0]


def test_a_network_shows_all_its_numbers():
    ax = draw_network(X, W_1, B_1, W_2, B_2)
    shown = words(ax)
    assert {"word", "sums", "ReLU", "hidden", "out"} <= set(shown)
    assert shown[shown.index("sums") - 3 : shown.index("sums")] == ["2", "−2", "−1"]
    assert "becomes [1.0, 0.0]" in spoken(ax)


def test_units_write_their_values_as_often_as_they_are_active():
    ax = draw_units([1.0, 1.0], W_1, B_1, W_2)
    assert {"unit 0", "unit 2", "keys", "activity", "values", "written", "sum"} <= set(words(ax))
    assert "activities are [0.0, 0.0, 1.0]" in spoken(ax)
    assert "the sum is [0.0, 1.0]" in spoken(ax)


def test_weights_are_drawn_to_scale():
    ax = draw_weights(2, 8)
    areas = [patch.get_width() * patch.get_height() for patch in ax.patches]
    assert areas[-1] == pytest.approx(4 * areas[0])
    assert {"16 weights, 33%", "32 weights, 67%"} <= set(words(ax))


def test_a_layer_gives_each_word_one_network_and_attention_to_all():
    ax = draw_layer(["the", "cat", "sat"])
    assert words(ax).count("FFN") == 3
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    assert len(arrows) == 3 * 2 + 3 * 3


def test_the_gate_is_multiplied_with_what_may_pass():
    shown = words(draw_gate())
    assert shown.count("w_1") == shown.count("w_2") == 2
    assert {"silu", "w_3", "×", "how far open"} <= set(shown)


def test_a_mirror_names_both_words():
    ax = draw_mirror("one", "other")
    assert {"one", "other", "value", "mirrored"} <= set(words(ax))
    assert "towards other" in spoken(ax)


def test_phrases_in_one_place_share_a_label():
    planes = {("a", "x", "y"): [[0, 0], [0, 1]], ("b", "x", "y"): [[2, 2], [2, 2]]}
    first, second = verdict_planes(planes, [0, 1], ["bad", "good"])
    assert words(first) == ["bad", "good"]
    assert words(second) == ["bad / good"]
    assert [t.get_text() for t in second.get_legend().get_texts()] == ["praise", "no praise"]


def test_a_target_is_between_asterisks():
    pair = Phrasebook().translate("the cat sat on the mat")
    assert target_in_context(pair, 0) == "*猫 māo*   (the cat sat on the mat)"
    assert "*<eos>*" in target_in_context(pair, len(pair.target))
