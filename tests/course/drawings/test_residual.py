"""The drawings of chapter 10."""

import matplotlib
import pytest

from tinytf.viz.spoken import spoken
from tinytf_course import drawings as viz

matplotlib.use("Agg")


def words(ax):
    return [text.get_text() for text in ax.texts]


def test_the_gradient_at_each_place_is_that_of_both_ways():
    shown = words(viz.draw_shortcut(slopes=(0.5, -0.5)))
    assert {"0.75", "0.5", "1"} <= set(shown)
    assert "shortcut" in shown


def test_the_norm_stands_on_the_stream_or_on_the_branch():
    ax = viz.draw_norm_places()
    assert words(ax).count("norm") == 2
    assert {"Post-LN", "Pre-LN", "on the stream", "on the branch"} <= set(words(ax))
    assert "Post-LN" in spoken(ax)


@pytest.mark.parametrize(("norm", "count"), [("LayerNorm", "6 "), ("BatchNorm", "3 × 5 = 15 ")])
def test_the_numbers_that_share_their_statistics_are_counted(norm, count):
    ax = viz.draw_averaged(norm, sizes=(3, 5, 6))
    assert any(text.startswith(count) for text in words(ax))
    colour = matplotlib.colors.to_rgba(viz.COLOURS[norm])
    filled = [patch for patch in ax.patches if patch.get_facecolor() == colour]
    # the front and what of the side and the top belongs to it
    assert len(filled) == {"LayerNorm": 6 + 1, "BatchNorm": 5 + 3 + 15}[norm]
