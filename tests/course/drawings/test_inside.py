"""Drawings of looking inside, and a phase change: what is drawn is what was given."""

import matplotlib

matplotlib.use("Agg")

import pytest
import torch

from tinytf_course.drawings.inside import (
    draw_ablations,
    draw_hook,
    draw_induction,
    draw_probe,
    noun_bars,
    phase_change,
    role_map,
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


def test_a_role_that_a_head_cant_have_is_hatched():
    scores = torch.tensor([[0.25, float("nan")], [-0.5, 1.0], [0.0, 0.5]])
    ax = role_map(scores, ["previous", "noun"], ["a", "b", "c"])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b", "c"]
    hatched = [patch for patch in ax.patches if patch.get_hatch()]
    assert [patch.get_xy() for patch in hatched] == [(-0.5, 0.5)]


def test_bars_of_nouns_fill_the_row():
    ax = noun_bars({"as it is": (0.5, 0.25), "zero": (0.0, 0.125)})
    assert [bar.get_width() for bar in ax.patches] == [0.5, 0.0, 0.25, 0.125, 0.25, 0.875]
    assert [bar.get_x() for bar in ax.patches[4:]] == [0.75, 0.125]
