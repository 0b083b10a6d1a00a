"""The drawings of chapter 16."""

import math

import matplotlib

matplotlib.use("Agg")

import pytest
import torch

from tinytf.viz.spoken import spoken
from tinytf.viz.style import GOLD
from tinytf_course import drawings as viz
from tinytf_course.drawings.decoding import (
    FATES,
    draw_beam_step,
    draw_moving_rows,
    draw_writing,
    passed_over,
    search_steps,
    told_and_true,
)

STEPS = [
    [(("a",), math.log(0.6), "kept"), (("the",), math.log(0.4), "kept")],
    [
        (("a", "cat"), math.log(0.24), "dropped"),
        (("the", "cat"), math.log(0.36), "ended"),
        (("a", "dog"), math.log(0.0018), "dropped"),
    ],
]


def test_every_prefix_is_drawn_with_its_probability_and_fate():
    ax = viz.beam_tree(STEPS, best=("the", "cat"), title="t")
    texts = {text.get_text(): text for text in ax.texts}
    assert set(texts) == {"a  0.60", "the  0.40", "cat  0.24", "cat  0.36", "dog  0.0018"}
    assert texts["dog  0.0018"].get_color() == FATES["dropped"]
    assert texts["cat  0.36"].get_color() == FATES["ended"]
    assert texts["cat  0.36"].get_position()[1] > texts["cat  0.24"].get_position()[1]


def test_words_are_shown_by_their_sound_or_by_a_gloss():
    step = [[(("猫",), math.log(0.6), "kept")]]
    (sound,) = viz.beam_tree(step).texts
    (gloss,) = viz.beam_tree(step, pinyin={"猫": "cat"}).texts
    assert sound.get_text().endswith("māo  0.60")
    assert gloss.get_text().endswith("cat  0.60")


def test_the_winning_path_is_outlined_and_no_other():
    ax = viz.beam_tree(STEPS, best=("the", "cat"))
    gold = {text.get_text() for text in ax.texts if matplotlib.colors.to_hex(
        text.get_bbox_patch().get_edgecolor()) == GOLD}  # fmt: skip
    assert gold == {"the  0.40", "cat  0.36"}
    plain = viz.beam_tree(STEPS)
    assert not [line for line in plain.lines if line.get_color() == GOLD]


def test_an_edge_leads_from_the_parent():
    ax = viz.beam_tree(STEPS)
    ends = {text.get_text(): text.get_position() for text in ax.texts}
    edges = [(line.get_ydata()[0], line.get_ydata()[1]) for line in ax.lines
             if len(line.get_xdata()) == 2]  # fmt: skip
    assert (ends["the  0.40"][1], ends["cat  0.36"][1]) in edges
    assert (ends["a  0.60"][1], ends["cat  0.24"][1]) in edges


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "at least one step"),
        ([[]], "at least one step"),
        ([[(("a",), 0.0, "lost")]], "fate='lost' of .* is not one of"),
        ([[(("a",), 0.0, "kept")], [(("b", "c"), 0.0, "kept")]], "parent of .* is not in the step"),
    ],
)
def test_bad_steps_are_refused(steps, message):
    with pytest.raises(ValueError, match=message):
        viz.beam_tree(steps)


ALIVE = {("the",): math.log(0.4), ("a",): math.log(0.6)}
GROWN = {
    ("the", "cat"): math.log(0.36),
    ("a", "<eos>"): math.log(0.24),
    ("a", "dog"): math.log(0.2),
    ("a", "hat"): math.log(0.01),
}
KEPT = {prefix: GROWN[prefix] for prefix in (("the", "cat"), ("a", "dog"))}
ENDED = {("a", "<eos>"): GROWN["a", "<eos>"]}


def words(ax):
    return [text.get_text() for text in ax.texts]


def test_the_loop_that_writes_shows_the_words_so_far():
    ax = draw_writing(("<bos>", "we"))
    assert "<bos> we" in words(ax)
    assert "choose" in words(ax)
    assert "until the word is <eos>" in spoken(ax)


def test_a_step_of_a_beam_shows_every_candidate_best_first_with_its_fate():
    ax = draw_beam_step(ALIVE, GROWN, KEPT, ENDED)
    places = {text.get_text(): text.get_position() for text in ax.texts}
    ranked = ["the cat  0.36", "a <eos>  0.24", "a dog  0.20", "a hat  0.01"]
    heights = [places[text][1] for text in ranked]
    assert heights == sorted(heights, reverse=True)
    fates = [text for text in words(ax) if text[0] in "●■×"]
    assert fates == ["● lives on", "■ ended: goes on the list", "● lives on", "× dropped"]
    assert "a <eos>, ended; a dog, kept" in spoken(ax)


def test_each_row_of_the_batch_is_drawn_before_and_after():
    ax = draw_moving_rows(["x", "y", "u", "v"], [1, 0, 2, 2], ["a", "b", "c", "d"], beam=2)
    assert {"y a", "x b", "u c", "u d", "row 3"} <= set(words(ax))
    assert words(ax).count("keys, values") == 8
    assert "row 3 continues row 2, “u”, by “d”" in spoken(ax)


def test_what_greedy_passed_over_has_a_column_a_word_and_one_for_the_rest():
    chance = torch.tensor([[0.1, 0.6, 0.2, 0.1], [0.7, 0.1, 0.1, 0.1]])
    ax = passed_over(chance, [1, 0], ["猫", "y", "z", "w"], {"猫": "first"})
    columns = [tick.get_text() for tick in ax.get_xticklabels()]
    assert columns[0] == "y"
    assert columns[1].endswith("first")
    assert columns[-1] == "all others"
    assert len(columns) == 5
    assert [tick.get_text()[:2] for tick in ax.get_yticklabels()] == ["1:", "2:"]


def test_a_search_by_dictionaries_becomes_the_steps_of_a_tree():
    first = (ALIVE, ALIVE, {})
    steps = search_steps([first, (GROWN, KEPT, ENDED)])
    assert {(prefix, fate) for prefix, _, fate in steps[0]} == {(p, "kept") for p in ALIVE}
    assert {prefix[-1]: fate for prefix, _, fate in steps[1]} == {
        "cat": "kept", "<eos>": "ended", "dog": "kept", "hat": "dropped",
    }  # fmt: skip
    viz.beam_tree(steps, best=("the", "cat"))


def test_of_the_dropped_only_as_many_are_shown_as_were_looked_at():
    grown = {(str(i),): -float(i) for i in range(30)}
    (step,) = search_steps([(grown, {("0",): 0.0, ("1",): -1.0, ("2",): -2.0}, {})])
    assert len(step) == 6


def test_told_and_true_has_a_dot_for_each_sentence():
    told = {"right": [-1.0, -2.0], "wrong": [-1.0, -5.0]}
    ax = told_and_true(told, {"right": [-1.0, -2.0], "wrong": [-3.0, -4.0]})
    dots = {line.get_label(): line for line in ax.lines if line.get_label() in told}
    assert list(dots["wrong"].get_xdata()) == [-3.0, -4.0]
    assert list(dots["wrong"].get_ydata()) == [-1.0, -5.0]
    assert dots["right"].get_marker() != dots["wrong"].get_marker()
