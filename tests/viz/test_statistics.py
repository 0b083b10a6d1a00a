"""Lines, bars and histograms draw the numbers they are given."""

import numpy as np
import pytest
import torch

from tinytf_course import drawings as viz


def test_lines_keep_the_colour_of_a_thing():
    one = viz.lines(None, {"a": [1, 2], "b": [2, 1]}, colors={"b": 5, "elsewhere": 2})
    assert [line.get_color() for line in one.get_lines()] == [viz.CYCLE[0], viz.CYCLE[5]]


def test_lines_take_the_colour_of_a_role_and_dashes_for_a_variant():
    own = {"a": "#0d6cb0", "b": "#0d6cb0"}
    ax = viz.lines(None, {"a": [1, 2], "b": [2, 1]}, colors=own, dashed=["b"])
    assert [line.get_color() for line in ax.get_lines()] == ["#0d6cb0"] * 2
    assert [line.get_linestyle() for line in ax.get_lines()] == ["-", "--"]


def test_violins_draw_a_distribution_each():
    samples = {"cat": torch.randn(50), "dog": 3 * torch.randn(50)}
    ax = viz.violins(samples, color={"cat": "#0d6cb0", "dog": "#de8f05"}, ylim=(-4, 4))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["cat", "dog"]
    assert len(ax.collections) == 2
    assert ax.get_ylim() == (-4, 4)
    with pytest.raises(ValueError, match="needs at least one"):
        viz.violins({})


def test_lines_draw_each_series_with_its_band():
    series = {"a": torch.tensor([1.0, 2.0, 4.0]), "b": [3, 2, 1]}
    ax = viz.lines([64, 128, 256], series | {"chance": 1}, logx=2, band={"a": 0.5})
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [1, 2, 4])
    assert ax.get_xscale() == "log"
    assert len(ax.collections) == 1
    assert len(ax.lines) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "chance"]
    ax.figure.canvas.draw()


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


def test_two_levels_have_two_dashes():
    ax = viz.lines(None, {"a": [1.0, 2.0], "low": 0.5, "high": 1.5})
    low, high = (line for line in ax.get_lines() if line.get_label() in ("low", "high"))
    assert low.get_linestyle() != high.get_linestyle()
