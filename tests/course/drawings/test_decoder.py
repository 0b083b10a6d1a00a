"""Figures of the decoder's chapter draw what they are given."""

import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib.patches import FancyArrowPatch

from tinytf.viz.spoken import spoken
from tinytf_course import drawings as viz

matplotlib.use("Agg")


def test_verdicts_fills_what_is_above_its_limit():
    found = {"right": {"a": 0.0, "b": 1e-7}, "wrong": {"a": 2.0, "b": float("nan")}}
    scores = {"right": {"score": "9 %"}, "wrong": {"score": 0.5}}
    ax = viz.verdicts(found, {"a": 0, "b": 1e-5}, scores, title="t")
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["0", "1e-7", "9 %", "2.00", "nan", "0.50"]
    assert len(ax.patches) == 2
    assert [label.get_text() for label in ax.get_yticklabels()] == ["right", "wrong"]
    with pytest.raises(KeyError):
        viz.verdicts({"right": {"a": 0}}, {"a": 0, "b": 0})
    with pytest.raises(ValueError, match="no models"):
        viz.verdicts({}, {"a": 0})
    plt.close("all")


def test_cost_dots_draws_every_run():
    costs = {"part": {"zero": [1.0, 2, 3], "mean": [0.5, 1]}, "other": {"zero": [0], "mean": [2]}}
    ax = viz.cost_dots(costs, decimals=1, colors={"zero": 2, "mean": 4})
    dots = [line.get_xdata().tolist() for line in ax.lines if line.get_marker() == "o"]
    assert dots == [[1, 2, 3], [0.5, 1], [0], [2]]
    assert ax.lines[0].get_color() == viz.CYCLE[2]
    assert [text.get_text() for text in ax.texts] == ["2.0", "0.8", "0.0", "2.0"]
    with pytest.raises(ValueError, match="the same ways"):
        viz.cost_dots({"a": {"zero": [1]}, "b": {"mean": [1]}})
    with pytest.raises(ValueError, match="has no runs"):
        viz.cost_dots({"a": {"zero": []}})
    plt.close("all")


def written(ax):
    return "\n".join(text.get_text() for text in ax.texts)


def test_a_layer_has_three_sublayers_and_one_reads_the_memory():
    ax = viz.draw_decoder_layer()
    parts = ("masked\nself-attention", "cross-attention", "feed-forward", "keys and values")
    assert all(part in written(ax) for part in parts)
    assert "cross-attention, which takes its keys and values from the memory" in spoken(ax.figure)
    plt.close("all")


def test_a_cache_keeps_what_was_written_and_read():
    ax = viz.draw_layer_cache(["<bos>", "a"], ["x", "y", "z"])
    words = written(ax)
    assert words.count("k, v of <bos>") == 2
    assert words.count("k, v of z") == 2
    assert "0 kept, 1 new; 3 new" in words
    assert "1 kept, 1 new; 3 kept" in words
    assert "2 steps" in spoken(ax.figure)
    plt.close("all")


@pytest.mark.parametrize(("changed", "may"), [(0, 4), (2, 2), (3, 1)])
def test_what_comes_before_a_change_must_not_move(changed, may):
    ax = viz.draw_leak_test(4, changed)
    assert written(ax).count("may move") == may
    assert written(ax).count("must not move") == 4 - may
    plt.close("all")


def test_a_change_is_one_of_the_inputs():
    with pytest.raises(ValueError, match="input 4 is none of the 4"):
        viz.draw_leak_test(4, 4)


def test_only_the_newest_column_is_computed():
    ax = viz.draw_newest_column(["<bos>", "a", "b"], num_layers=2)
    words = [text.get_text() for text in ax.texts]
    assert words.count("layer 2") == 3
    into = [arrow for arrow in ax.patches if isinstance(arrow, FancyArrowPatch)]
    assert len(into) == 2 * 2 + 2 + 1  # from each kept word at each layer, upwards, and out


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("place", range(3))
def test_what_the_mask_lets_through_has_an_arrow(place, masked):
    reads, says = ["<bos>", "one", "two"], ["one", "two", "<eos>"]
    ax = viz.draw_let_through(reads, says, place, masked)
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    assert len(arrows) == (place + 1 if masked else 3)
    leak = not masked and place < 2  # the last answer is never read
    assert ("the answer itself" in [text.get_text() for text in ax.texts]) == leak
    said = spoken(ax.figure)
    assert f"Position {place}, whose label is {says[place]}, is reached by <bos>" in said
    assert said.endswith("the answer.") == leak
    assert said.endswith("hidden.") == (masked and place < 2)


def test_only_a_place_that_is_read_can_be_chosen():
    with pytest.raises(ValueError, match="position 2 is not one of 0 to 1"):
        viz.draw_let_through(["<bos>", "a"], ["a", "<eos>"], 2)
