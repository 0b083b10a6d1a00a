"""Figures of costs: what is drawn is what was given."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_rgba

from tinytf.viz.style import CYCLE
from tinytf_course import drawings as viz
from tinytf_course.drawings.cost import size_text


def texts(ax):
    return [t.get_text().strip() for t in ax.texts]


@pytest.mark.parametrize(
    ("number", "text"),
    [(24.92e9, "24.9 GB"), (999.9e6, "1 GB"), (4e12, "4 TB"), (0, "0 B"), (512, "512 B")],
)
def test_sizes_are_written_in_their_unit(number, text):
    assert size_text(number) == text


def test_byte_bars_stack_their_parts():
    bars = {"one": {"weights": 2e9, "moments": 4e9}, "two": {"moments": 1e9}}
    ax = viz.byte_bars(bars, colors={"moments": 3, "weights": 1}, limit=("a card", 5e9))
    boxes = [(p.get_x(), p.get_y() + 0.35, p.get_width()) for p in ax.patches]
    expected = [(0, 0, 2), (2, 0, 4), (0, 1, 0), (0, 1, 1)]
    for box, want in zip(boxes, expected, strict=True):
        assert box == pytest.approx(want)
    assert [p.get_facecolor() for p in ax.patches[:2]] == [to_rgba(CYCLE[i]) for i in (1, 3)]
    assert texts(ax) == ["6 GB", "1 GB", "a card"]
    assert ax.lines[0].get_xdata()[0] == 5
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["weights", "moments"]
    with pytest.raises(ValueError, match="at least one bar"):
        viz.byte_bars({"none": {}})
    with pytest.raises(ValueError, match="'one' must not be negative"):
        viz.byte_bars({"one": {"a": -1}})


def test_roofline_bends_where_reading_stops_to_be_the_limit():
    points = {"decoding": (0.5, 4e9), "training": (60.0, 90e9)}
    ax = viz.roofline(points, rate=100e9, bandwidth=10e9, colors={"training": 4})
    x, y = ax.lines[0].get_data()
    slow, fast = x < 9.9, x > 14.1
    assert y[slow] == pytest.approx(10 * x[slow])
    assert y[fast] == pytest.approx(100)
    assert ax.lines[1].get_xdata()[0] == pytest.approx(10)
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [(d.get_xdata()[0], d.get_ydata()[0]) for d in dots] == [(0.5, 4.0), (60.0, 90.0)]
    assert to_rgba(dots[1].get_color()) == to_rgba(CYCLE[4])
    assert texts(ax)[-2:] == ["decoding", "training"]
    left, right = ax.get_xlim()
    assert left < 0.5
    assert right > 60
    with pytest.raises(ValueError, match="above 0"):
        viz.roofline({"a": (0.0, 1.0)}, 1.0, 1.0)
    with pytest.raises(ValueError, match="needs points"):
        viz.roofline({}, 1.0, 1.0)


def test_rung_table_shows_speeds_and_shares():
    speeds = {"plain": (1, 1, 1), "fused": (1.2, 1.5, 1.6)}
    shares = {"plain": {"attention": 0.3, "the rest": 0.7}, "fused": {"attention": 1.0}}
    left, right = viz.rung_table(speeds, shares, colors={"attention": 2})
    assert [p.get_width() for p in left.patches] == [1, 1.5]
    assert [list(line.get_xdata()) for line in left.lines[:2]] == [[1, 1], [1.2, 1.6]]
    assert texts(left) == ["1.00", "1.50"]
    boxes = [(p.get_x(), p.get_width()) for p in right.patches]
    assert boxes == [(0, 0.3), (0.3, 0.7), (0, 1), (1, 0)]
    assert texts(right) == ["30%", "70%", "100%"]
    assert right.patches[0].get_facecolor() == to_rgba(CYCLE[2])
    assert [t.get_text() for t in left.get_yticklabels()] == ["plain", "fused"]
    with pytest.raises(ValueError, match="but shares of"):
        viz.rung_table(speeds, {"plain": {}})
    plt.close("all")
