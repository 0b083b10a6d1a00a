"""Figures of what words become, and of what may stand in a blank."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from tinytf.viz.style import CYCLE
from tinytf_course import drawings as viz


def test_word_paths_draws_each_way_and_the_mean_with_its_layers():
    one, two = torch.randn(5, 4, 2), torch.randn(3, 4, 2)
    ax = viz.word_paths({"tired": one, "wide": two}, colors={"wide": 4})
    assert len(ax.lines) == 5 + 1 + 3 + 1
    mean = ax.lines[5]
    np.testing.assert_allclose(mean.get_xydata(), one.mean(dim=0), rtol=1e-5)
    assert (mean.get_color(), ax.lines[-1].get_color()) == (CYCLE[0], CYCLE[4])
    assert [text.get_text() for text in ax.texts] == [*"0123"] * 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["tired", "wide"]


def test_word_paths_takes_a_gpu_like_tensor_and_an_axes():
    ax = plt.subplots()[1]
    points = torch.randn(2, 3, 2, requires_grad=True)
    assert viz.word_paths({"it": points}, ax, title="a") is ax
    assert ax.get_legend() is None


def test_word_odds_shows_the_likeliest_of_anyone_in_the_last_ones_order():
    odds = {
        "model": {"cat": 0.6, "dog": 0.3, "river": 0.1, "wall": 0.0},
        "grammar": {"cat": 0.2, "dog": 0.7, "wall": 0.05},
    }
    ax = viz.word_odds(odds, top=3, truth="dog", colors={"model": 2})
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names == ["dog", "cat", "river"]
    assert [t.get_fontweight() for t in ax.get_yticklabels()] == ["bold", "normal", "normal"]
    widths = [patch.get_width() for patch in ax.patches]
    assert widths == pytest.approx([0.3, 0.6, 0.1, 0.7, 0.2, 0.0])
    assert ax.get_xlim() == (0, 1)
    low = viz.word_odds({"model": {"cat": 0.3, "dog": 0.2}})
    assert low.get_xlim() == (0, 0.5)
    first = ax.patches[0].get_facecolor()
    assert first == plt.matplotlib.colors.to_rgba(CYCLE[2])


@pytest.mark.parametrize(
    ("draw", "match"),
    [
        (lambda: viz.word_paths({}), "paths needs at least one"),
        (lambda: viz.word_paths({"it": torch.zeros(2, 3, 4)}), "4 coordinates, expected 2"),
        (lambda: viz.word_paths({"it": torch.zeros(3, 2)}), "it"),
        (lambda: viz.word_odds([]), "odds needs at least one"),
    ],
)
def test_bad_input(draw, match):
    with pytest.raises(ValueError, match=match):
        draw()
