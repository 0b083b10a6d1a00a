"""The drawings of who reaches whom show what they are given, and say it."""

import matplotlib
import matplotlib.pyplot as plt
import pytest
from viz_support import inside, written

from tinytf.viz.spoken import spoken
from tinytf_course.drawings.reach import draw_average, draw_reach

matplotlib.use("Agg")
AVERAGE = [[2.0, 0.0], [4, 4]], [[1.0, 0], [2, 2]], [1, -1], [0.5, -1], [0.8, 0.2]


@pytest.mark.parametrize(
    "draw", [lambda: draw_average(*AVERAGE), draw_reach, lambda: draw_reach(4)],
    ids=["average", "reach", "reach of 4"],
)  # fmt: skip
def test_everything_stands_on_the_page_and_is_said(draw):
    drawing = draw()
    assert inside(drawing)
    assert len(spoken(drawing.ax.figure)) > 100
    plt.close("all")


def test_an_average_shows_its_weights_and_their_sum():
    texts = written(draw_average(*AVERAGE))
    assert {"0.80", "0.20", "sum", "context"} <= {*texts}
    assert "[2.4, 0.8]" in texts  # 0.8 times the first state and 0.2 times the second


def test_the_steps_are_counted():
    assert {"RNN: 3 steps", "convolution: 3 layers", "attention: 1 step"} <= {
        *written(draw_reach(4))
    }
