"""The tree of a search, drawn."""

import math

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest

from tinytf import viz
from tinytf.viz.decoding import FATES
from tinytf.viz.style import GOLD

STEPS = [
    [(("a",), math.log(0.6), "kept"), (("the",), math.log(0.4), "kept")],
    [
        (("a", "cat"), math.log(0.24), "dropped"),
        (("the", "cat"), math.log(0.36), "ended"),
        (("a", "dog"), math.log(0.0018), "dropped"),
    ],
]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


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
