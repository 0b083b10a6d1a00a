"""What a figure says to who can't see it."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Text

from tinytf.viz import spoken as module
from tinytf.viz import style
from tinytf.viz.spoken import alt, spoken
from tinytf_course import drawings as viz


def test_lines_say_their_names_ends_and_range():
    said = spoken(viz.lines([1, 2, 3], {"cat": [1.0, 4.0, 2.0]}, xlabel="step", ylabel="loss"))
    assert "cat: from 1 to 2, between 1 and 4." in said
    assert said.endswith("Axes: step, loss.")


def test_a_heat_map_says_its_size_and_range():
    said = spoken(viz.heatmap(torch.tensor([[0.25, 0.75], [1.0, 0.0]]), ["a", "b"], ["c", "d"]))
    assert said.startswith(
        "A heat map of 2 × 2 values, between 0 and 1, the largest in row b, column c."
    )
    assert said.count("heat map") == 1  # the scale of colours beside it is none


def test_bars_say_their_words_and_range():
    said = spoken(viz.bars({"cat": 2.0, "dog": 5.0}))
    assert "2 bars" in said
    assert "between 2 and 5" in said


def test_several_axes_are_said_in_turn():
    _, axes = plt.subplots(1, 2)
    for number, ax in enumerate(axes):
        ax.plot([0, 1], [number, 5], label=f"line {number}")
    assert (
        spoken(axes)
        == "line 0: from 0 to 5, between 0 and 5. line 1: from 1 to 5, between 1 and 5."
    )


def test_what_was_said_stands_and_empty_figures_say_something():
    ax = plt.figure().add_subplot()
    assert spoken(ax) == "A figure."
    assert alt(ax, "two\n  words") is ax
    assert spoken(ax.figure) == "two words"
    with pytest.raises(ValueError, match="empty"):
        alt(ax, "")


def test_words_on_boxes_and_histograms_are_said():
    _, ax = plt.subplots()
    ax.text(0, 0, "cat")
    ax.text(0, 1, "dog")
    assert spoken(ax) == "It reads: cat, dog."
    said = spoken(viz.histogram({"a": [1.0, 2.0, 2.0, 5.0]}, xlabel="steps"))
    assert "steps" in said
    assert said != "A figure."


def test_lines_of_nothing_but_nan_are_said():
    _, ax = plt.subplots()
    ax.plot([0, 1], [np.nan, np.nan], label="lost")
    assert "no numbers" in spoken(ax)


def test_a_picture_comes_with_its_text():
    _, ax = plt.subplots()
    alt(ax, "said")
    assert module._speaking(lambda figure: b"png")(ax.figure) == (b"png", {"alt": "said"})
    retina = module._speaking(lambda figure: (b"png", {"width": 3}))
    assert retina(ax.figure) == (b"png", {"width": 3, "alt": "said"})
    assert not module._speaking(lambda figure: None)(Figure())


def test_small_type_is_enlarged_before_the_picture_is_made():
    figure, ax = plt.subplots(figsize=(13, 3))
    ax.set_title("small", fontsize=4)
    ax.tick_params(labelsize=4)
    sizes = []
    module._speaking(lambda figure: sizes.extend(t.get_size() for t in figure.findobj(Text)))(
        figure
    )
    assert min(sizes) == style.least_type(figure)


def test_a_kernel_saves_it(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    from nbclient import NotebookClient

    cells = [
        "from tinytf_course import setup\nsetup();",
        "from tinytf_course import drawings as viz\nviz.lines([0, 1], {'cat': [2.0, 3.0]});",
        "viz.Diagram(3, 2, alt='an empty drawing');",
    ]
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(nb, timeout=120, kernel_name="python3").execute()
    outputs = [cell["outputs"][0]["metadata"] for cell in nb["cells"][1:]]
    said = [about.get("alt") or about["image/png"]["alt"] for about in outputs]
    assert said == ["cat: from 2 to 3, between 2 and 3.", "an empty drawing"]
