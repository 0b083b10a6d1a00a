"""The figures of chapter 21's first part draw what they are given."""

import pytest
import torch
from matplotlib import pyplot as plt

from tinytf.viz import CYCLE
from tinytf.viz.spoken import spoken
from tinytf_course.drawings import group_dots, input_card, tag_bars
from tinytf_course.drawings.bert import draw_bert, draw_heads, draw_masked_words, draw_two_steps


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def texts(ax):
    return [t.get_text() for t in ax.texts]


def test_the_input_card_says_word_position_and_segment():
    ax = input_card(["[CLS]", "猫", "[SEP]"], [0, 0, 1])
    assert [t for t in texts(ax) if t in ("[CLS]", "[SEP]")] == ["[CLS]", "[SEP]"]
    assert texts(ax)[1::3] == ["0", "1", "2"]
    assert texts(ax)[2::3] == ["0", "0", "1"]
    assert len({p.get_facecolor() for p in ax.patches}) == 2
    with pytest.raises(ValueError, match="2 tokens do not match 1 segments"):
        input_card(["a", "b"], [0])
    with pytest.raises(ValueError, match="no tokens"):
        input_card([], [])


def test_tag_bars_stack_the_two_tags():
    p = torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.0, 0.5]])
    ax = tag_bars(["in", "may"], p)
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == pytest.approx([0.7, 0.0, 0.2, 0.5])
    assert [bar.get_y() for bar in ax.patches[2:]] == pytest.approx([0.7, 0.0])
    with pytest.raises(ValueError, match=r"3 words need probabilities \(3, 3\), got \(2, 3\)"):
        tag_bars(["a", "b", "c"], p)


def test_group_dots_draws_every_seed_and_the_mean():
    ax = group_dots({"one": {"a": [0.2, 0.4], "b": [0.9]}, "two": {"b": [0.5, 0.7]}},
                   reference={"chance": 0.5}, colors={"a": 3})  # fmt: skip
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [line.get_ydata().tolist() for line in dots] == [[0.2, 0.4], [0.9], [0.5, 0.7]]
    assert dots[0].get_color() == CYCLE[3]
    levels = [line.get_ydata()[0] for line in ax.lines if line.get_marker() != "o"]
    assert levels == pytest.approx([0.5, 0.3, 0.9, 0.6])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["chance", "a", "b"]
    with pytest.raises(ValueError, match="every group needs a series"):
        group_dots({"one": {}})


def test_the_body_adds_three_tables():
    ax = draw_bert()
    assert {"word rows", "position rows", "segment rows"} <= set(texts(ax))
    assert "three rows are added" in spoken(ax.figure)


def test_only_chosen_words_have_a_head():
    ax = draw_masked_words(["a", "cat", "ran"], {1: "<mask>", 2: "ran"})
    assert texts(ax).count("head") == 2
    assert texts(ax).count("ran") == 2
    assert texts(ax).count("cat") == 1
    assert "cat as <mask>, ran as ran" in spoken(ax.figure)
    with pytest.raises(ValueError, match="place 3 is not one of 3 words"):
        draw_masked_words(["a", "cat", "ran"], {3: "<mask>"})


def test_the_heads_say_what_they_read():
    ax = draw_heads()
    assert {"a class for the text", "a tag for each word", "first and last word"} <= set(texts(ax))
    assert "classifier gets the state of [CLS] alone" in spoken(ax.figure)


def test_the_same_body_stands_in_both_steps():
    ax = draw_two_steps()
    assert texts(ax).count("BERT's body") == 2
    assert {"copy", "a head for words", "a new head for tags"} <= set(texts(ax))
    assert "copies the body to the right half" in spoken(ax.figure)
