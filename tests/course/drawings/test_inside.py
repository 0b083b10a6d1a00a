"""Drawings of looking inside, and a phase change: what is drawn is what was given."""

import matplotlib

matplotlib.use("Agg")

import pytest

from tinytf_course.drawings.inside import (
    draw_ablations,
    draw_hook,
    draw_induction,
    draw_probe,
    phase_change,
)


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (draw_hook, "hook(module, inputs, out)"),
        (draw_probe, "layer.attention = ours"),
        (draw_ablations, "by another's pattern"),
        (draw_induction, "A, after B"),
    ],
)
def test_drawings_say_what_they_show(draw, said):
    ax = draw()
    assert said in {text.get_text() for text in ax.texts}
    ax.figure.canvas.draw()


def test_phase_change_draws_the_best_head_of_each_layer():
    rows = [
        {"step": 0, "loss": 4.0, "previous": [[0.1, 0.2], [0, 0]], "induction": [[0, 0], [0, 0.1]]},
        {"step": 9, "loss": 1.0, "previous": [[0.6, 0.3], [0, 0]], "induction": [[0, 0], [0.9, 0]]},
    ]
    left, right = phase_change(rows)
    assert left.lines[0].get_ydata().tolist() == [4.0, 1.0]
    assert [line.get_ydata().tolist() for line in right.lines] == [[0.2, 0.6], [0.1, 0.9]]
    left.figure.canvas.draw()
