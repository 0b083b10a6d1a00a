"""Pictures of sampling draw what they are given, and name bad input."""

import matplotlib

matplotlib.use("Agg")

import pytest
import torch

from tinytf_course import drawings as viz
from tinytf_course.drawings.sampling import (
    draw_interval,
    draw_nucleus,
    draw_writing_loop,
    rule_table,
)


def test_token_bars_stand_in_order_of_what_was_and_hatch_what_is_out():
    before, after = torch.tensor([0.1, 0.5, 0.3, 0.1]), torch.tensor([0.0, 0.6, 0.4, 0.0])
    ax = viz.token_bars(before, after, ["a", "b", " c", "\n"], most=3)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["b", "c", "a"]
    filled, hatched = ax.containers
    assert [bar.get_height() for bar in filled] == pytest.approx([0.6, 0.4, 0.0])
    assert [bar.get_height() for bar in hatched] == pytest.approx([0.1])
    assert hatched[0].get_x() + hatched[0].get_width() / 2 == pytest.approx(2)
    names = {text.get_text() for text in ax.get_legend().get_texts()}
    assert names == {"before", "after", "ruled out"}
    ax.figure.canvas.draw()


def test_token_bars_refuse_what_does_not_match():
    with pytest.raises(ValueError, match="4 probabilities before and 3 after for 4 tokens"):
        viz.token_bars(torch.ones(4), torch.ones(3), "abcd")


def test_strips_show_each_token_of_each_text():
    losses = {"human": torch.tensor([0.0, 5.0, 2.0]), "greedy": torch.tensor([1.0, 0.0, 0.0])}
    ax = viz.text_strips(losses, title="two texts")
    assert ax.images[0].get_array().tolist() == [[0.0, 5.0, 2.0], [1.0, 0.0, 0.0]]
    assert ax.images[0].get_clim() == (0, 8)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["human", "greedy"]
    ax.figure.canvas.draw()


@pytest.mark.parametrize("losses", [{}, {"a": [1.0, 2.0], "b": [1.0]}])
def test_strips_are_of_one_length(losses):
    with pytest.raises(ValueError, match="the strips need one length, got"):
        viz.text_strips(losses)


def test_a_plane_holds_each_setting_and_the_star():
    families = {"top-k": {"1": (1.0, 0.5), "40": (2.0, 0.1)}, "top-p": {"0.9": (3.0, 0.2)}}
    ax = viz.settings_plane(families, (2.5, 0.15), colors={"top-p": 4})
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["top-k"].get_xydata().tolist() == [[1.0, 0.5], [2.0, 0.1]]
    assert lines["top-p"].get_color() == viz.CYCLE[4]
    assert lines["human"].get_xydata().tolist() == [[2.5, 0.15]]
    assert [text.get_text() for text in ax.texts] == ["1", "40", "0.9"]
    assert not viz.settings_plane(families, (2.5, 0.15), notes=False).texts
    few = viz.settings_plane(families, (2.5, 0.15), notes={"1", "0.9"})
    assert [text.get_text() for text in few.texts] == ["1", "0.9"]
    ax.figure.canvas.draw()


def test_a_plane_needs_a_family():
    with pytest.raises(ValueError, match="families needs at least one"):
        viz.settings_plane({}, (0, 0))


WORDS = ["a", "banana", "not", "ripe"]
LOGITS = torch.tensor([[2.0, -2.0, 1.0, 3.0]])


def written(ax):
    return [text.get_text() for text in ax.texts]


def test_the_loop_shows_the_text_every_logit_and_the_choice():
    ax = draw_writing_loop("the banana is", WORDS, LOGITS[0].tolist(), "ripe")
    assert {"the banana is", *WORDS, "−2", "3", "rules", "draw"} <= set(written(ax))
    assert written(ax).count("ripe") == 2  # in the vocabulary, and drawn
    ax.figure.canvas.draw()


def test_a_point_on_the_interval_falls_on_the_word_that_holds_it():
    ax = draw_interval(WORDS, [0.25, 0.25, 0.0, 0.5], (0.1, 0.25, 0.99))
    assert {"0.10: a", "0.25: banana", "0.99: ripe"} <= set(written(ax))
    widths = [patch.get_width() for patch in ax.patches if hasattr(patch, "get_width")]
    assert widths[:4] == pytest.approx([3.5, 3.5, 0, 7])


@pytest.mark.parametrize(("p", "out"), [(0.5, 3), (0.7, 2), (0.9, 1), (0.95, 0)])
def test_the_nucleus_is_what_holds_p(p, out):
    ax = draw_nucleus(WORDS, [0.2, 0.08, 0.12, 0.6], p)
    assert written(ax).count("−∞") == out
    assert f"{p:g} is held" in written(ax)
    ax.figure.canvas.draw()


def test_a_table_of_rules_leaves_blank_what_is_ruled_out():
    out = torch.tensor([[2.0, -torch.inf, -torch.inf, 3.0]])
    ax = rule_table(WORDS, {"as it is": LOGITS, "k = 2": out})
    first, second = (logits.softmax(-1)[0] for logits in (LOGITS, out))
    shown = {f"{p:.3f}" for p in [*first.tolist(), second[0].item(), second[3].item()]}
    assert set(written(ax)) == shown
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["as it is", "k = 2"]
    with pytest.raises(ValueError, match="k = 2 has 3 logits for 4 words"):
        rule_table(WORDS, {"k = 2": out[:, :3]})


def test_a_plane_takes_colours_too():
    ax = viz.settings_plane({"top-p": {"0.9": (3.0, 0.2)}}, (2, 0.1), colors={"top-p": "#0a8f6a"})
    assert ax.lines[0].get_color() == "#0a8f6a"
