"""Pictures of following an answer draw what they are given, and name bad input."""

import matplotlib

matplotlib.use("Agg")

import pytest
import torch

from tinytf_course.drawings.following import (
    draw_lens,
    draw_patch,
    draw_route,
    draw_stories,
    draw_sum,
    lens_table,
    part_bars,
)


def said(ax):
    return [text.get_text() for text in ax.texts]


def test_drawings_say_what_they_show():
    ax = draw_lens(4)
    assert [f"layer {i}" in said(ax) for i in range(5)] == [True] * 4 + [False]
    assert said(ax).count("the prediction") == 1
    assert said(draw_sum()).count("− mean, ÷ std, × gain") == 4
    assert {"… too tired", "… too wide", "score ?", "put in"} <= set(
        said(draw_patch("tired", "wide"))
    )
    assert {"it", "tired", "cross-attention 0", "cross-attention 1"} <= set(said(draw_route()))
    assert said(draw_stories()).count("decoder predicts 猫") == 3


def test_a_lens_table_has_a_word_in_each_cell():
    chances = torch.tensor([[0.1, 0.9], [0.5, 0.2]])
    ax = lens_table(["embedding", "layer 0"], ["a", "b"], [["x", "y"], ["z", "w"]], chances)
    assert said(ax) == ["x", "y", "z", "w"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["embedding", "layer 0"]
    with pytest.raises(ValueError, match="do not fit 1 rows and 2 tokens"):
        lens_table(["one"], ["a", "b"], [["x", "y"]], chances)


def test_bars_stand_in_order_and_say_their_number():
    ax = part_bars({"embedding": 0.25, "layers.0.feed_forward": -1.0})
    assert [bar.get_width() for bar in ax.patches] == [0.25, -1.0]
    assert [text.strip() for text in said(ax)] == ["0.25", "-1.00"]
