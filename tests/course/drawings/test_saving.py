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


@pytest.mark.parametrize(
    ("bits", "kind"),
    [((5, 10), torch.float16), ((8, 7), torch.bfloat16), ((5, 2), torch.float8_e5m2)],
)
def test_numbers_are_rounded_as_torch_rounds_them(bits, kind):
    near = torch.logspace(-9, 6, 2000)
    ties = torch.arange(1, 2000).float() / 256
    numbers = torch.cat([near, -near, ties, torch.zeros(1)])
    rounded = torch.tensor(saving.rounded(numbers, *bits))
    assert torch.equal(rounded, numbers.to(kind).double())


@pytest.mark.parametrize("exponent", [2, 4, 8])
@pytest.mark.parametrize("fraction", [0, 3, 10])
def test_a_format_shows_its_numbers_and_its_error(exponent, fraction):
    above, below = saving.draw_format(exponent, fraction)
    values = [segment[0][0] for segment in above.collections[0].get_segments()]
    between = [value for value in values if 1 <= value < 2]
    assert len(between) == 2**fraction
    worst = 1 / (2 ** (fraction + 1) + 1) if exponent == 8 else 1
    off = below.lines[-1].get_ydata()
    assert off.max() == pytest.approx(worst, rel=0.05)
    said = spoken(above.figure)
    assert f"{exponent} of exponent and {fraction} of fraction" in said
    assert f"it has {len(values)} values" in said
