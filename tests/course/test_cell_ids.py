"""Cell ids that mean something: given once, unique, kept for ever."""

import re

import pytest

from tinytf_course.cell_ids import give_ids, heading, lasting, meaning, slug


def code(source, id="0123abcd"):
    return {"cell_type": "code", "id": id, "source": source}


def prose(source, id="0123abcd"):
    return {"cell_type": "markdown", "id": id, "source": source}


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        (prose("## A dictionary that *looks* up\n\nText."), "dictionary-looks-up"),
        (prose("### Exercise 03.1 · a mask"), "exercise-03-1"),
        (prose("plain text"), "why-text"),
        (prose("*What does it show? A line.*"), "why-caption"),
        (code("def attention_weights(q): ...\n\nclaim('03-2', 's', 1)"), "attention-weights"),
        (code("class MultiHeadAttention: ..."), "multi-head-attention"),
        (code("class RNNCell: ..."), "rnn-cell"),
        (code("x = 1\nclaim('03-12', 's', x)\nclaim('03-13', 's', x)"), "claim-03-12"),
        (code("claim('C72', 's', 1)"), "claim-c72"),
        (code("predict('03-a', 'q', ['a', 'b'])"), "predict-03-a"),
        (code("predict.answer('03-a', 'a')"), "answer-03-a"),
        (code("def my_mask(): ...\n\ncheck('03.1', my_mask)"), "exercise-03-1-answer"),
        (code("graduate(causal_mask, 'tinytf.masks')"), "graduate-causal-mask"),
        (code("viz.lines(x);"), "why-figure"),
        (code("device = setup()"), "setup"),
        (code("keys, values = 1, 2"), "why-keys"),
        (code("keys.shape"), "why-code"),
        (code("x = = 2"), "why-code"),
        (code("files = !ls"), "why-files"),
    ],
)
def test_an_id_says_what_the_cell_holds(cell, name):
    assert meaning(cell, "why") == name


def test_ids_are_unique_follow_the_section_and_begin_with_the_title():
    cells = [
        prose("# 03 Attention"), prose("text"), prose("## Why scale?"), code("f()"), prose("t"),
        code("g()"),
    ]  # fmt: skip
    give_ids(cells)
    ids = [cell["id"] for cell in cells]
    assert ids == [
        "title", "start-text", "why-scale", "why-scale-code", "why-scale-text", "why-scale-code-2",
    ]  # fmt: skip
    assert all(re.fullmatch("[a-zA-Z0-9-_]{1,64}", id) for id in ids)


def test_an_id_stays_for_ever():
    cells = [code("def old(): ...", "attention-weights"), code("def attention_weights(): ...")]
    give_ids(cells)
    assert [cell["id"] for cell in cells] == ["attention-weights", "attention-weights-2"]
    again = [cells[1], code("def old(): ..."), cells[0]]
    give_ids(again)
    assert [cell["id"] for cell in again] == ["attention-weights-2", "old", "attention-weights"]


def test_of_two_equal_ids_the_second_is_replaced():
    cells = [code("def a(): ...", "same"), code("def b(): ...", "same")]
    give_ids(cells)
    assert [cell["id"] for cell in cells] == ["same", "b"]


@pytest.mark.parametrize(
    ("id", "stays"),
    [
        ("why-scale", True),
        ("title", True),
        ("claim_2", True),
        ("0123abcd", False),  # nbformat, VS Code
        ("facade12", False),
        ("6f9619ff-8b86-4d01-b42d-00cf4fc964ff", False),  # JupyterLab
        ("KJ3h5s9dQwEr", False),  # Colab
        ("0" * 32, False),
        ("", False),
        (None, False),
    ],
)
def test_random_ids_are_told_from_given_ones(id, stays):
    assert lasting(id) is stays


def test_cells_without_ids_get_one():
    cells = [{"cell_type": "markdown", "source": ["## Why\n", "text"]}]
    give_ids(cells)
    assert cells[0]["id"] == "title"


def test_slugs():
    assert slug("Crème brûlée, isn't it?") == "creme-brulee-isnt-it"
    assert slug("猫") == ""
    assert len(slug("word " * 40)) <= 48
    assert heading(prose("text\n\n## The [link](x.html) of `a` $d_k$")) == "The link of a d_k"
    assert heading(code("## not a heading")) is None
