"""The figures of today's block."""

import pytest
import torch
from matplotlib.patches import Rectangle

from tinytf.viz.spoken import spoken
from tinytf_course import drawings as viz
from tinytf_course.drawings.llama import (
    draw_experts,
    draw_row_order,
    draw_sharing,
    draw_swaps,
)


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


def test_swaps_are_five_and_say_which_are_made():
    ax = draw_swaps(done=(1, 3))
    words = [text.get_text() for text in ax.texts]
    assert {w for w in words if w.startswith("swap")} == {f"swap {n}" for n in range(1, 6)}
    assert words.count("+") == 5  # GPT adds positions, and each block two sublayers
    assert "Done so far: 1, 3." in spoken(ax.figure)
    assert "Done so far: none." in spoken(draw_swaps().figure)


def test_sharing_has_a_panel_for_each_number_of_key_heads():
    axes = draw_sharing(6, (6, 3, 1))
    titles = [ax.get_title(loc="left") for ax in axes]
    assert titles == ["multi-head: one each", "grouped: 3 groups", "multi-query: one for all"]
    assert [len(ax.patches) for ax in axes] == [6 + 12, 6 + 6, 6 + 2]


def test_rows_stand_where_the_order_of_the_package_puts_them():
    from tinytf.relative import half_split_order

    ax = draw_row_order(6)
    rows = [t for t in ax.texts if t.get_text().startswith("row ")]
    below = sorted((t for t in rows if t.get_position()[1] < 2), key=lambda t: t.get_position()[0])
    assert [int(t.get_text()[4:]) for t in below] == half_split_order(6).tolist()
    with pytest.raises(ValueError, match="a width of 7 is odd"):
        draw_row_order(7)


def test_a_token_passes_through_the_two_experts_with_the_highest_scores():
    ax = draw_experts((0.0, 3.0, 1.0, 2.0))
    words = [text.get_text() for text in ax.texts]
    assert [w for w in words if w.startswith("expert ")] == [f"expert {e}" for e in range(4)]
    assert [w for w in words if w.startswith("· ")] == ["· 0.73", "· 0.27"]  # softmax of 3 and 2
    assert "0.73 times expert 1 and 0.27 times expert 3" in spoken(ax.figure)
    with pytest.raises(ValueError, match="a token needs two experts, got 1 scores"):
        draw_experts((1.0,))
