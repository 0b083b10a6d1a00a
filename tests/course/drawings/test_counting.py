"""Drawings of what costs."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from tinytf.viz.spoken import spoken
from tinytf.viz.style import COLOURS
from tinytf_course.drawings import counting


def blocks(ax, colour):
    """The rectangles of a colour, legends among them."""
    found = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    return [patch for patch in found if to_hex(patch.get_facecolor()) == colour]


def words(ax):
    return [text.get_text() for text in ax.texts]


def test_a_number_of_a_product_takes_a_row_and_a_column():
    ax = counting.draw_product(3, 4, 5)
    assert len(blocks(ax, COLOURS["query"])) == 4
    assert len(blocks(ax, COLOURS["key"])) == 4
    assert len(blocks(ax, COLOURS["output"])) == 1
    assert len(blocks(ax, counting.PALE)) == 12 + 20 + 15 - 9
    assert "all 3 · 5 of them: 2 · 3 · 4 · 5" in words(ax)
    assert "4 multiplications and 4 additions" in spoken(ax.figure)
    with pytest.raises(ValueError, match="at least 1"):
        counting.draw_product(3, 0, 5)


def test_a_table_of_pairs_grows_with_the_square():
    ax = counting.draw_square((3, 6), width=4)
    assert len(blocks(ax, counting.WEIGHTS)) == 3 * 4 + 6 * 4 + 1
    assert len(blocks(ax, counting.PAIRS)) == 9 + 36 + 1
    assert max(patch.get_x() + patch.get_width() for patch in ax.patches) < ax.get_xlim()[1]
    with pytest.raises(ValueError, match="at least 1"):
        counting.draw_square((0, 3), width=4)


def test_at_six_widths_a_token_meets_as_many_keys_and_values_as_weights():
    ax = counting.draw_token_meets((8, 48), width=8)
    weights = [patch.get_width() for patch in blocks(ax, counting.WEIGHTS)]
    pairs = [patch.get_width() for patch in blocks(ax, counting.PAIRS)]
    assert weights[0] == pytest.approx(weights[1])
    assert pairs[:2] == pytest.approx([weights[0] / 6, weights[0]])
    with pytest.raises(ValueError, match="at least 1"):
        counting.draw_token_meets((8,), width=0)


def test_what_a_layer_keeps_is_written_below_it():
    ax = counting.draw_kept()
    assert words(ax).count("d") == 5
    assert words(ax).count("4 d") == 2
    assert words(ax).count("nothing") == 2
    assert "6 d numbers a token" in spoken(ax.figure)


def test_the_first_token_waits_for_the_prefill():
    ax = counting.draw_wait(prompt=512, written=4)
    assert words(ax).count("step") == 3
    assert "prefill: 512 at once" in words(ax)
    assert {"time to first token", "per token", "token 4"} <= set(words(ax))
    assert "3 short passes" in spoken(ax.figure)
    with pytest.raises(ValueError, match="no two waits"):
        counting.draw_wait(prompt=5, written=1)
