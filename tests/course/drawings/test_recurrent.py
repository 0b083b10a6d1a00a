"""The drawings of recurrent reading show what they are given, and say it."""

import matplotlib
import matplotlib.pyplot as plt
import pytest
from viz_support import inside, written

from tinytf.viz.spoken import spoken
from tinytf_course.drawings.recurrent import (
    draw_gates,
    draw_gru,
    draw_two_networks,
    draw_unrolled,
)

matplotlib.use("Agg")

SOURCE, TARGET = ["the", "cat", "slept"], ["猫", "睡", "了"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: draw_unrolled(SOURCE, [[1, 0], [0, 1], [1, 1]], [[0.5, 0.25], [-0.5, 1], [0, 0]]),
        lambda: draw_gates(1),
        lambda: draw_gates(2),
        draw_gates,
        draw_gru,
        lambda: draw_two_networks(SOURCE, TARGET),
        lambda: draw_two_networks(SOURCE, TARGET, [0.1, 0.2, 0.7]),
        lambda: draw_two_networks(SOURCE, TARGET, [0.1, 0.2, 0.7], 3),
    ],
    ids=[
        "unrolled",
        "one gate",
        "two gates",
        "gates",
        "gru",
        "one vector",
        "attention",
        "step 3",
    ],
)
def test_everything_stands_on_the_page_and_is_said(draw):
    drawing = draw()
    assert inside(drawing)
    assert len(spoken(drawing.ax.figure)) > 100
    plt.close("all")


def test_an_unrolled_network_has_its_words_numbers_and_waits():
    drawing = draw_unrolled(SOURCE, [[1, 0], [0, 1], [1, 1]], [[0.5, 0.25], [-0.5, 1], [0, 0]])
    texts = written(drawing)
    assert {*SOURCE, "[0.5, 0.25]", "[−0.5, 1]", "waits for nothing", "waits for $h_2$"} <= {*texts}


def test_one_vector_feeds_all_and_attention_has_weights():
    assert "one vector" in written(draw_two_networks(SOURCE, TARGET))
    drawing = draw_two_networks(SOURCE, TARGET, [0.1, 0.2, 0.7])
    assert {"0.10", "0.20", "0.70", "context"} <= {*written(drawing)}
    assert "the thickest goes to slept" in spoken(drawing.ax.figure)
