"""Drawings of what makes a model cheaper."""

import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from tinytf.viz.spoken import spoken
from tinytf_course.drawings import saving


def cells(ax, kind):
    """The cells of a kind, with the one in the legend."""
    fills = [to_hex(p.get_facecolor()) for p in ax.patches if isinstance(p, Rectangle) and p.fill]
    return fills.count(to_hex(saving.FILLS[kind]))


def test_what_is_carried_is_the_softmax_sum():
    ax = saving.draw_carried([2.0, 1.0, 4.0, 3.0], 2)
    total = (torch.tensor([2.0, 1.0, 4.0, 3.0]) - 4).exp().sum()
    assert f"{total:.3f}" in [text.get_text() for text in ax.texts]
    assert f"the sum {total:.3f}" in spoken(ax.figure)
    with pytest.raises(ValueError, match="3 scores are not whole tiles of 2"):
        saving.draw_carried([1.0, 2.0, 3.0], 2)


def test_tiles_that_nobody_sees_are_grey():
    ax = saving.draw_tiles({"causal": torch.ones(4, 4).tril().bool()}, 2)
    assert [cells(ax, kind) for kind in saving.FILLS] == [10 + 1, 2 + 1, 4 + 1]
    assert "3 of 4 tiles" in spoken(ax.figure)
    with pytest.raises(ValueError, match="not whole tiles of 3"):
        saving.draw_tiles({"all": torch.ones(4, 4).bool()}, 3)


def test_memories_orders_bits_and_processes_say_what_they_show():
    assert "n by n scores come up" in spoken(saving.draw_two_memories().figure)
    assert "D by D" in spoken(saving.draw_product_order().figure)
    assert "8 and 7" in spoken(saving.draw_bits().figure)
    assert "averaged" in spoken(saving.draw_data_parallel().figure)
