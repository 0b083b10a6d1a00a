"""Pictures of sampling draw what they are given, and name bad input."""

import matplotlib

matplotlib.use("Agg")

import pytest
import torch

from tinytf import viz

pytestmark = pytest.mark.usefixtures("house_style")


def test_token_bars_stand_in_order_of_what_was_and_hatch_what_is_out():
    before, after = torch.tensor([0.1, 0.5, 0.3, 0.1]), torch.tensor([0.0, 0.6, 0.4, 0.0])
    ax = viz.token_bars(before, after, ["a", "b", " c", "\n"], most=3)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["b", "c", "a"]
    filled, hatched = ax.containers
    assert [bar.get_height() for bar in filled] == pytest.approx([0.6, 0.4, 0.0])
    assert [bar.get_height() for bar in hatched] == pytest.approx([0.1])
    assert hatched[0].get_x() + hatched[0].get_width() / 2 == pytest.approx(2)
    names = {text.get_text() for text in ax.get_legend().get_texts()}
    assert names == {"before", "after", "ruled out"}
    ax.figure.canvas.draw()


def test_token_bars_refuse_what_does_not_match():
    with pytest.raises(ValueError, match="4 probabilities before and 3 after for 4 tokens"):
        viz.token_bars(torch.ones(4), torch.ones(3), "abcd")


def test_strips_show_each_token_of_each_text():
    losses = {"human": torch.tensor([0.0, 5.0, 2.0]), "greedy": torch.tensor([1.0, 0.0, 0.0])}
    ax = viz.text_strips(losses, title="two texts")
    assert ax.images[0].get_array().tolist() == [[0.0, 5.0, 2.0], [1.0, 0.0, 0.0]]
    assert ax.images[0].get_clim() == (0, 8)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["human", "greedy"]
    ax.figure.canvas.draw()


@pytest.mark.parametrize("losses", [{}, {"a": [1.0, 2.0], "b": [1.0]}])
def test_strips_are_of_one_length(losses):
    with pytest.raises(ValueError, match="the strips need one length, got"):
        viz.text_strips(losses)


def test_a_plane_holds_each_setting_and_the_star():
    families = {"top-k": {"1": (1.0, 0.5), "40": (2.0, 0.1)}, "top-p": {"0.9": (3.0, 0.2)}}
    ax = viz.settings_plane(families, (2.5, 0.15), colors={"top-p": 4})
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["top-k"].get_xydata().tolist() == [[1.0, 0.5], [2.0, 0.1]]
    assert lines["top-p"].get_color() == viz.CYCLE[4]
    assert lines["human"].get_xydata().tolist() == [[2.5, 0.15]]
    assert [text.get_text() for text in ax.texts] == ["1", "40", "0.9"]
    assert not viz.settings_plane(families, (2.5, 0.15), notes=False).texts
    few = viz.settings_plane(families, (2.5, 0.15), notes={"1", "0.9"})
    assert [text.get_text() for text in few.texts] == ["1", "0.9"]
    ax.figure.canvas.draw()


def test_a_plane_needs_a_family():
    with pytest.raises(ValueError, match="families needs at least one"):
        viz.settings_plane({}, (0, 0))
