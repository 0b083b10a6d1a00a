"""Figures of what a language model reads and says: what is drawn is what was given."""

import pytest
from matplotlib.colors import to_rgba

from tinytf.viz.spoken import spoken
from tinytf.viz.style import ATTENTION, CYCLE
from tinytf_course import drawings as viz


def texts(ax):
    return [t.get_text() for t in ax.texts]


def test_ranking_keeps_order_and_colours():
    ax = viz.ranking([("table", 2.0), ("model", 1.0), ("model", 0.5)], colors={"model": 3})
    assert [t.get_text() for t in ax.get_yticklabels()] == ["table", "model", "model"]
    assert [round(p.get_width(), 3) for p in ax.patches] == [2.0, 1.0, 0.5]
    hues = [p.get_facecolor() for p in ax.patches]
    assert hues[1] == hues[2] == to_rgba(CYCLE[3]) != hues[0]
    with pytest.raises(ValueError, match="at least one"):
        viz.ranking({})


def test_text_bits_colours_tokens_and_breaks_lines():
    ax = viz.text_bits(["ab", " c\n", "d"], [0.0, 5.0, 40.0])
    assert "".join(texts(ax)) == "ab c↵d"
    a, _, d = ax.patches[0], ax.patches[1], ax.patches[2]
    assert a.get_facecolor() == pytest.approx(ATTENTION(0.0))
    assert ax.patches[1].get_facecolor() == pytest.approx(ATTENTION(0.5))
    assert d.get_facecolor() == pytest.approx(ATTENTION(1.0))
    assert (a.get_y(), d.get_x(), d.get_y()) == (0, 0, 1)


def test_text_bits_goes_on_in_a_new_row_and_draws_a_dollar():
    ax = viz.text_bits(["x" * 60, "y" * 44, "$", "z" * 103], [1.0] * 4)
    assert [(p.get_x(), p.get_y()) for p in ax.patches] == [(0, 0), (60, 0), (0, 1), (1, 1)]
    assert r"\$" in texts(ax)


def test_text_bits_refuses_what_differs_in_number():
    with pytest.raises(ValueError, match="2 tokens for 1 numbers"):
        viz.text_bits(["a", "b"], [1.0])


def test_next_tokens_are_the_likeliest_in_order():
    ax = viz.next_tokens([0.1, 0.6, 0.3], ["a", " b", "\n"], "x", most=2)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["' b'", r"'\n'"]
    assert [round(p.get_width(), 3) for p in ax.patches] == [0.6, 0.3]
    assert r"after 'x', with their probabilities: ' b' 0.60, '\n' 0.30." in spoken(ax.figure)
    with pytest.raises(ValueError, match="3 probabilities for 2 tokens"):
        viz.next_tokens([0.1, 0.6, 0.3], ["a", "b"], "x")
