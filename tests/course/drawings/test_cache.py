"""Drawings of the key-value cache."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from tinytf.viz.spoken import spoken
from tinytf_course.drawings import cache


def cells(ax, kind):
    """The cells of a kind, with the one in the legend."""
    found = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    return sum(to_hex(patch.get_facecolor()) == to_hex(cache.FILLS[kind]) for patch in found)


def test_what_repeats_is_computed_again_without_a_cache_and_not_with_one():
    ax = cache.draw_repeats(["a", "b", "c", "d"])
    assert cells(ax, cache.AGAIN) == 6 + 1
    assert cells(ax, cache.KEPT) == 6 + 1
    assert cells(ax, cache.NEW) == 6 + 4 + 4 + 1
    assert "again" in spoken(ax.figure)


def test_a_prefill_computes_a_triangle_and_a_step_one_row():
    ax = cache.draw_prefill(["a", "b", "c", "d", "e"], prompt=3)
    assert cells(ax, cache.NEW) == 6 + 4 + 5 + 1
    assert cells(ax, cache.AGAIN) == 0
    assert "single row" in spoken(ax.figure)


def test_only_the_newest_word_asks_and_all_keys_and_values_are_kept():
    ax = cache.draw_kept(["a", "b", "c"])
    written = [text.get_text() for text in ax.texts]
    assert [name for name in written if name[:1] in "kqv" and name[1:].isdigit()] == [
        f"{kind}{i}" for i in range(3) for kind in "qkv"
    ]
    assert len(ax.lines) == 2  # the older queries are struck out
    assert "the 2 older queries" in spoken(ax.figure).lower()


def test_there_have_to_be_steps():
    with pytest.raises(ValueError, match="1 words make no two steps"):
        cache.draw_repeats(["a"])
    with pytest.raises(ValueError, match="1 words: nothing is kept yet"):
        cache.draw_kept(["a"])
    with pytest.raises(ValueError, match="a prompt of 2 words of 2"):
        cache.draw_prefill(["a", "b"], prompt=2)
