"""The picture of severities: a row a bug, sorted, a point a seed, and its verdict in colour."""

import matplotlib.pyplot as plt
import pytest

from tinytf.viz.spoken import spoken
from tinytf_course.drawings.clinic import LOOKS, draw_severity


def test_bugs_are_sorted_and_every_seed_is_a_point():
    gaps = {"a": [0.1, 0.2], "b": [3.0, 5.0], "c": [-0.1, -0.2]}
    verdicts = {"a": "mild", "b": "deadly", "c": "helps"}
    ax = draw_severity(gaps, verdicts, {"b": "the mask"})
    assert [t.get_text() for t in ax.get_yticklabels()] == ["c", "a", "the mask"]
    points = [line for line in ax.lines if line.get_linestyle() == "None" and len(line.get_xdata())]
    assert [list(line.get_xdata()) for line in points] == [[-0.1, -0.2], [0.1, 0.2], [3.0, 5.0]]
    assert points[2].get_color() == LOOKS["deadly"][0]
    said = spoken(ax.figure)
    assert "3 silent bugs" in said
    assert "1 deadly, 1 mild, 1 helps. The worst is the mask (4.00)" in said
    plt.close("all")


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="no bug"):
        draw_severity({}, {}, {})
    with pytest.raises(ValueError, match="no colour for \\['odd'\\]"):
        draw_severity({"a": [1.0]}, {"a": "odd"}, {})


def test_each_verdict_has_its_own_colour_and_marker():
    assert len({look[0] for look in LOOKS.values()}) == len(LOOKS)
    assert len({look[1] for look in LOOKS.values()}) == len(LOOKS)
