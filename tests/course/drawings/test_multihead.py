"""Drawings of multi-head attention."""

import pytest
import torch

from tinytf import causal_mask
from tinytf.viz.spoken import spoken
from tinytf_course.drawings import multihead


def words_of(ax):
    return [text.get_text() for text in ax.texts]


def test_one_head_says_every_shape():
    ax = multihead.draw_one_head(length=10, width=32)
    found = words_of(ax)
    assert found.count("(10, 32)") == 4  # X, Q, K, V
    assert {"scores (10, 10)", "weights (10, 10)", "output (10, 32)"} <= set(found)


def test_a_split_shows_each_number_in_its_slice_and_in_its_head():
    found = words_of(multihead.draw_split(torch.arange(18).reshape(3, 6), num_heads=3))
    assert all(found.count(str(n)) == 2 for n in range(18))
    assert "head 2 (3, 2)" in found


def test_heads_can_be_masks_whose_zeros_are_blank():
    masks = {"causal": causal_mask(2)[0].expand(3, 2, 2)}
    assert words_of(multihead.draw_heads(masks)).count("0") == 3
    ax = multihead.draw_heads(masks, blank=True)
    assert words_of(ax).count("0") == 0
    assert words_of(ax).count("1") == 9


def test_three_attentions_show_what_may_be_seen():
    source_mask = torch.tensor([[True, False]]).expand(2, 2)
    ax = multihead.draw_three_attentions(
        ["a", "b"], ["c", "d", "e"], source_mask, causal_mask(3)[0, 0]
    )
    assert words_of(ax).count("1") == 2 + 6 + 3
    assert words_of(ax).count("Q") == 3


@pytest.mark.parametrize(
    "draw",
    [
        lambda: multihead.draw_one_head(3, 4),
        lambda: multihead.draw_split(torch.ones(2, 4), 2),
        lambda: multihead.draw_heads({"a": torch.ones(2, 3, 4)}),
    ],
)
def test_drawings_are_described(draw):
    assert len(spoken(draw().figure)) > 30


@pytest.mark.parametrize("place", range(3))
def test_looks_go_from_the_chosen_word_to_what_each_head_looks_at(place):
    weights = torch.zeros(2, 3, 4)
    weights[0, :, 0], weights[0, :, 3] = 0.96, 0.04  # a line too thin to draw
    weights[1, torch.arange(3), 1 + torch.arange(3)] = 1.0
    ax = multihead.draw_looks(weights, list("abcd"), list("xyz"), place)
    lines = [line for line in ax.lines if line.get_xdata()[1] > 9]  # without those of the legend
    assert [line.get_linewidth() for line in lines] == pytest.approx([6 * 0.96, 6])
    height = {text.get_text(): text.get_position()[1] for text in ax.texts}
    for line, source in zip(lines, ("a", "bcd"[place]), strict=True):
        there, here = line.get_ydata()
        assert abs(there - height[source]) < 0.2
        assert abs(here - height["xyz"[place]]) < 0.2
    said = f"While {'xyz'[place]} is written, head 0 looks most at a (0.96), head 1 looks most at "
    assert said + "bcd"[place] in spoken(ax.figure)


def test_looks_refuse_a_place_outside_the_target():
    with pytest.raises(ValueError, match="place 3 is not one of 0 to 2"):
        multihead.draw_looks(torch.ones(1, 3, 2) / 2, list("ab"), list("xyz"), 3)
