"""The figures of today's block."""

import pytest
import torch
from matplotlib.patches import Rectangle

from tinytf import viz

pytestmark = pytest.mark.usefixtures("house_style")


@pytest.mark.parametrize(("heads", "keys"), [(8, 2), (4, 4), (6, 1)])
def test_every_query_head_is_joined_to_its_key_head(heads, keys):
    ax = viz.head_groups(heads, keys)
    boxes = [p for p in ax.patches if isinstance(p, Rectangle)]
    assert len(boxes) == heads + 2 * keys
    ends = [tuple(line.get_xdata()) for line in ax.lines]
    assert len(ends) == heads
    group = heads // keys
    for query, key in ends:
        first = int(query) // group * group
        assert key == pytest.approx(first + group / 2)


def test_groups_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="num_heads=6 is not divisible by num_kv_heads=4"):
        viz.head_groups(6, 4)


def test_seeds_are_dots_and_their_mean_a_stroke():
    ax = viz.seed_dots({"a": torch.tensor([1.0, 2.0, 6.0]), "b": [4.0]}, band="a", xlabel="bits")
    dots, stroke = ax.lines[:2]
    assert dots.get_xdata().tolist() == [1.0, 2.0, 6.0]
    assert set(dots.get_ydata()) == {0}
    assert list(stroke.get_xdata()) == [3.0, 3.0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]
    shade = ax.patches[0]
    assert (shade.get_x(), shade.get_width()) == (1.0, 5.0)


@pytest.mark.parametrize(
    ("values", "band", "message"),
    [
        ({}, None, "at least one name"),
        ({"a": []}, None, "at least one name"),
        ({"a": [1.0]}, "b", r"band='b' is not among \['a'\]"),
    ],
)
def test_nothing_to_draw_is_refused(values, band, message):
    with pytest.raises(ValueError, match=message):
        viz.seed_dots(values, band=band)
