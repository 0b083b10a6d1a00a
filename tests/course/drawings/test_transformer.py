"""Drawings of the whole Transformer."""

import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch

from tinytf.viz.spoken import spoken
from tinytf.viz.style import COLOURS
from tinytf_course.drawings.transformer import (
    asked_for,
    by_length,
    confidence,
    draw_adam,
    draw_teacher_forcing,
    draw_training_step,
    draw_transformer,
    draw_unfolded,
    score_to_loss,
    warm_up_curves,
    who_looks,
)  # fmt: skip


def written(ax):
    return "\n".join(text.get_text() for text in ax.texts)


def test_the_frame_says_shapes_and_what_is_missing():
    ax = draw_transformer(placeholders=("encoder", "decoder"), shapes={"src": [2, 5]})
    assert "(2, 5)" in written(ax)
    assert "(B, T, V)" in written(ax)
    assert "Still placeholders: encoder and decoder." in spoken(ax.figure)
    assert "placeholders" not in spoken(draw_transformer().figure)


def test_every_decoder_layer_reads_the_memory():
    ax = draw_unfolded(3, {"memory": (2, 5, 64)})
    words = written(ax)
    assert words.count("cross-") == 3
    assert "decoder layer 3\n(B, T, C)" in words
    assert "encoder layer 1\n(2, 5, 64)" in words
    into = [arrow for arrow in ax.patches if arrow.get_edgecolor()[:3] == to_rgb(COLOURS["memory"])
            and isinstance(arrow, FancyArrowPatch)]  # fmt: skip
    assert len(into) == 3


def test_the_loss_stands_over_the_right_words_bar():
    left, right = score_to_loss({"a": 0.0, "b": 0.0, "c": -1e3}, "b")
    assert [bar.get_height() for bar in left.patches] == [0.0, 0.0, -1e3]
    assert [bar.get_height() for bar in right.patches] == [0.5, 0.5, 0.0]
    assert "−ln 0.5 = 0.693" in written(right)


def test_what_is_said_is_read_one_place_later():
    ax = draw_teacher_forcing(["two", "cats", "<eos>"], ["<bos>", "两", "只"], ["两", "只", "猫"])
    assert "decoder input" in written(ax)
    assert "the decoder's <bos> 两 只. The labels are 两 只 猫" in spoken(ax.figure)


def test_a_step_names_its_parts():
    words = written(draw_training_step())
    assert all(part in words for part in ("batch", "loss", "AdamW", "schedule"))


def test_adams_boxes_hold_each_weights_numbers():
    one = {"small": 0.001, "large": 10.0}
    rows = {"small": [0.002, 0.001], "large": [30.0, 10.0]}
    ax = draw_adam(rows, {n: v / 2 for n, v in one.items()}, one, {"small": 0.98, "large": 1.02})
    assert all(number in written(ax) for number in ("0.002, 0.001", "0.0005", "0.98", "1.02"))
    assert "large: gradients 30, 10, step 1.0" in spoken(ax.figure)


def test_masks_and_targets_stand_side_by_side():
    mask = torch.tensor([[True, False], [True, True]])
    axes = who_looks({"a": (mask, ["p", "q"], ["x", "y"]), "b": (mask[:, :1], ["p", "q"], ["z"])})
    assert [ax.get_title() for ax in axes] == ["a", "b"]
    columns = [[word.get_text() for word in ax.get_xticklabels()] for ax in axes]
    assert columns == [["x", "y"], ["z"]]
    tables = {"plain": torch.eye(2), "smoothed": torch.full((2, 2), 0.5)}
    axes = asked_for(tables, ["x", "y"], ["x", "y"])
    assert [ax.get_title() for ax in axes] == ["plain", "smoothed"]


def test_norms_keep_their_colours_and_no_warm_up_is_dashed():
    rows = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}]
    ax = warm_up_curves({("Pre-LN", True): rows, ("Post-LN", False): rows})
    drawn = {line.get_label(): line for line in ax.lines}
    assert drawn["Pre-LN, with"].get_color() == COLOURS["Pre-LN"]
    assert drawn["Post-LN, without"].get_color() == COLOURS["Post-LN"]
    assert drawn["Post-LN, without"].get_linestyle() == "--"


def test_lengths_are_drawn_over_what_training_showed():
    ax = by_length({2: 1.0, 3: 0.5}, trained=2)
    assert ax.lines[0].get_ydata().tolist() == [1.0, 0.5]
    assert len(ax.patches) == 1


def test_only_a_least_value_inside_is_marked():
    ax = confidence([0.5, 0.7, 0.9], {"falls": [3, 2, 1], "turns": [3, 1, 2]})
    assert written(ax) == "least at 0.70"
    with pytest.raises(ValueError, match="3"):
        confidence([0.5, 0.7], {"falls": [3, 2, 1]})
