"""Controls redraw a figure, leave a still, and show failures."""

import matplotlib.pyplot as plt
import pytest

from tinytf.viz import style
from tinytf_course import drawings as viz


def scale_line(k=1.0):
    return viz.lines(None, {"y": [0, k]})


def test_explore_leaves_a_still_and_redraws(shown):
    explored = viz.explore(scale_line, k=(0.0, 4.0, 1.0))
    still = shown[-1]["image/png"]
    assert explored.controls["k"].value == 2.0
    assert plt.get_fignums() == []
    explored.controls["k"].value = 4.0
    assert len(shown) == 3
    assert shown[-1]["image/png"] != still
    assert "k=4.0" in shown[-1]["text/plain"]
    assert shown.about["image/png"]["alt"].startswith("y: from 0 to 4,")


def test_explore_enlarges_small_type(shown):
    titles = []

    def draw(k):
        ax = scale_line(k)
        titles.append(ax.set_title("small", fontsize=3))
        return ax

    viz.explore(draw, k=(0, 3))
    assert titles[0].get_size() == style.least_type(titles[0].figure)


def test_explore_fails_the_cell_when_the_first_drawing_fails(shown):
    with pytest.raises(ZeroDivisionError):
        viz.explore(lambda k: 1 / 0, k=(0, 3))
    with pytest.raises(TypeError, match="Figure or Axes"):
        viz.explore(lambda k: None, k=(0, 3))
    assert shown == []
    assert plt.get_fignums() == []


def test_explore_shows_a_later_failure_beside_the_controls(shown, monkeypatch):
    import ipywidgets

    messages = [ipywidgets.HTML()]
    monkeypatch.setattr(ipywidgets, "HTML", lambda: messages[0])

    def draw(k):
        if k > 2:
            raise ValueError(f"k={k} is too great")
        return scale_line(k)

    explored = viz.explore(draw, k=(0, 4, 1))
    pictures = []
    monkeypatch.setattr(explored.handle, "update", lambda data, **_: pictures.append(data))
    explored.controls["k"].value = 4
    assert "k=4 is too great" in messages[0].value
    assert explored.picture["image/png"] in pictures[0]["text/html"]  # the last one, faded
    assert "opacity" in pictures[0]["text/html"]
    assert "image/png" not in pictures[0]
    explored.controls["k"].value = 1
    assert messages[0].value == ""
    assert pictures[1] == explored.picture


def test_explore_names_a_control_it_cannot_make(shown):
    with pytest.raises(ValueError, match="k=<object"):
        viz.explore(scale_line, k=object())
    with pytest.raises(ValueError, match="at least one control"):
        viz.explore(scale_line)
