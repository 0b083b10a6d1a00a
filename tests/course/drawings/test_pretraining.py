"""Drawings of pretraining: what they say is what they were given."""

import pytest
import torch

from tinytf.viz.spoken import spoken
from tinytf_course.drawings.pretraining import (
    draw_pretraining_step,
    draw_questions,
    draw_text_blocks,
    known_levels,
    read_again,
    where_bits_go,
)


def written(ax):
    return [text.get_text() for text in ax.texts]


def test_every_beginning_is_an_example():
    ax = draw_questions(["a", "b", "c"])
    assert written(ax) == ["example 1", "a", "b", "example 2", "a", "b", "c"]
    assert "After a b comes c." in spoken(ax.figure)


def test_targets_are_the_text_one_token_later():
    ax = draw_text_blocks(list("abcdefg"), 3)  # two blocks of three, and g to be said
    assert written(ax)[3:10] == list("abcdefg")
    assert written(ax)[10::2] == list("abcdef")
    assert written(ax)[11::2] == list("bcdefg")
    assert "cut into 2 blocks of 3" in spoken(ax.figure)


def test_a_step_has_all_its_batches():
    words = written(draw_pretraining_step(batches=4))
    assert [word for word in words if word.startswith("batch ")] == [
        f"batch {i}" for i in (1, 2, 3, 4)
    ]
    assert "clipped" in words


def test_levels_are_named_and_losses_averaged():
    history = [{"step": i + 1, "loss": loss} for i, loss in enumerate([4.0, 2.0, 0.0])]
    ax = known_levels(history, {"guess": 5.0, "table": 3.0}, smooth=1)
    assert ax.lines[0].get_ydata() == pytest.approx([3.0, 2.0, 1.0])
    assert [line.get_ydata()[0] for line in ax.lines[1:]] == [5.0, 3.0]
    assert written(ax) == ["guess", "table"]


def test_two_texts_stand_side_by_side():
    runs = {"small": torch.tensor([[3.0, 2.0], [1.0, 0.0]]), "whole": torch.ones(2, 2)}
    axes = read_again({"train": runs, "validation": runs}, [1, 2])
    assert axes[0].lines[0].get_ydata() == pytest.approx([2.0, 1.0])
    assert [ax.get_title() for ax in axes] == ["its own text", "held-out text"]


def test_bits_and_shares_keep_their_order():
    axes = where_bits_go({"begin": 3.0, "go on": 1.0}, {"begin": 0.6, "go on": 0.4})
    assert [[bar.get_width() for bar in ax.patches] for ax in axes] == [[3.0, 1.0], [0.6, 0.4]]
    assert [word.get_text() for word in axes[0].get_yticklabels()] == ["begin", "go on"]
