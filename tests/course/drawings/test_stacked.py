"""Bars of parts on each other, and counts as dots: what they draw and what they refuse."""

from itertools import pairwise

import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_hex

from tinytf.viz.style import legible
from tinytf_course import drawings as viz

matplotlib.use("agg")


def test_stacked_bars_are_shares():
    counts = {"small": {"a": 1, "b": 3}, "large": {"a": 50, "c": 50}}
    ax = viz.stacked_bars(counts, ylabel="share", colors={"b": 4})
    heights = [patch.get_height() for patch in ax.patches]
    assert heights == pytest.approx([0.25, 0.75, 0, 0.5, 0, 0.5])
    assert [patch.get_y() for patch in ax.patches] == pytest.approx([0, 0.25, 1, 0, 0.5, 0.5])
    drawn = [to_hex(patch.get_facecolor()) for patch in ax.patches]
    assert drawn == [viz.CYCLE[place] for place in (0, 4, 2, 0, 4, 2)]
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["25", "75", "4", "50", "50", "100"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["c", "b", "a"]


def test_shares_are_written_inside_their_bars():
    axes = plt.subplots(1, 3, figsize=(13, 4.6))[1]
    ax = viz.stacked_bars({f"bar {n}": {"a": 97, "b": 3} for n in range(7)}, axes[0], total="")
    legible(ax.figure).canvas.draw()
    for bar, text in zip(ax.patches[::2], (t for t in ax.texts if t.get_text()), strict=True):
        written, box = text.get_window_extent(), bar.get_window_extent()
        assert written.x0 > box.x0
        assert written.x1 < box.x1


def test_long_totals_do_not_touch():
    values = {f"bar {n}": {"a": 10**9, "b": n} for n in range(4)}
    ax = viz.stacked_bars(values)
    ax.figure.canvas.draw()
    totals = [t.get_window_extent() for t in ax.texts if "," in t.get_text()]
    assert len(totals) == 4
    assert all(left.x1 < right.x0 for left, right in pairwise(totals))


@pytest.mark.parametrize(
    ("values", "message"),
    [({}, "at least one"), ({"x": {"a": 0}}, "of 'x' must not"), ({"x": {"a": -1, "b": 3}}, "-1")],
)
def test_stacked_bars_refuse(values, message):
    with pytest.raises(ValueError, match=message):
        viz.stacked_bars(values)


def test_dot_histogram_stacks_every_name():
    values = {"cat": 8, "dog": 8, "see": 1, "red": None}
    kinds = {"cat": "noun", "dog": "noun", "see": "verb", "red": "adjective"}
    ax = viz.dot_histogram(values, (1, 8, 64), kinds=kinds, marked="dog")
    dots = sorted(tuple(line.get_xydata()[0]) for line in ax.lines if len(line.get_xdata()))
    assert dots == [(0, 0), (1, 0), (1, 0), (1, 1), (3, 0)]  # dog's is drawn twice
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "8", "64", "never"]
    assert [text.get_text() for text in ax.texts] == ["dog"]
    at = {
        tuple(line.get_xydata()[0]): line.get_color() for line in ax.lines if len(line.get_xdata())
    }
    assert [at[place] for place in ((1, 1), (0, 0), (3, 0))] == list(viz.CYCLE[:3])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "noun",
        "verb",
        "adjective",
    ]


def test_dot_histogram_refuses_other_places():
    with pytest.raises(ValueError, match=r"\[7\] are not among the places \[1, 8\]"):
        viz.dot_histogram({"a": 7}, (1, 8))
    with pytest.raises(ValueError, match="at least one"):
        viz.dot_histogram({}, (1, 8))
