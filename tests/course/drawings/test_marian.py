"""Drawings of a public translator's choices."""

import torch

from tinytf.viz.spoken import spoken
from tinytf_course.drawings.marian import CHOICES, draw_choices, draw_reorder, draw_start


def written(ax):
    return [text.get_text() for text in ax.texts]


def test_each_choice_is_shown_for_both():
    ax = draw_choices()
    assert {word for _, _, ours, theirs, _ in CHOICES for word in (ours, theirs)} <= {*written(ax)}
    assert "6 + 6 layers: ours ReLU, theirs swish" in spoken(ax.figure)
    ax.figure.canvas.draw()


def test_a_new_order_moves_rows_and_columns_and_not_what_is_read():
    writer, reader = torch.tensor([[1.0], [2], [7]]), torch.tensor([[3.0, 4, 5]])
    ax = draw_reorder(writer, writer[:, 0], reader, [2, 0, 1])
    numbers = [word for word in written(ax) if word.isdigit()]
    assert numbers.count("46") == 2  # 1·3 + 2·4 + 7·5, before and after
    assert "in the order 2, 0, 1" in spoken(ax.figure)


def test_the_start_has_two_jobs_and_two_rows():
    ax = draw_start()
    assert "<start>" in written(ax)
    assert written(ax).count("<pad>") == 2
    assert "two jobs" in spoken(ax.figure)
