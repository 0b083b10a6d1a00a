"""The picture of which numbers a norm uses draws what it is given, and names bad input."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgba
from torch import nn

from tinytf_course import drawings as viz
from tinytf_course.drawings.norms import GROUP, PAD

matplotlib.use("Agg")


WORDS = [["the", "cat", "sat"], ["tea", "<pad>", "<pad>"]]


@pytest.fixture
def x():
    return torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))


def column(feature=2):
    group = torch.zeros(2, 3, 5, dtype=torch.bool)
    group[:, :, feature] = True
    return group


def row():
    group = torch.zeros(2, 3, 5, dtype=torch.bool)
    group[0, 1] = True
    return group


def filled(ax, color, stack=0):
    """How many cells of a stack have this colour."""
    ax.figure.canvas.draw()
    return int(
        (np.abs(ax.collections[stack].get_facecolors() - to_rgba(color)) < 1e-6).all(1).sum()
    )


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_fills_the_group_and_no_other_cell(x):
    ax = viz.norm_groups(x, {"row": row(), "column": column()}, WORDS)
    assert (filled(ax, GROUP, 0), filled(ax, PAD, 0)) == (5, 0)
    assert (filled(ax, GROUP, 1), filled(ax, PAD, 1)) == (4, 2)


def test_the_filled_cells_are_where_the_group_is(x):
    ax = viz.norm_groups(x, {"row": row()}, WORDS)
    colors = ax.collections[0].get_facecolors().reshape(2, 3, 5, 4)
    inside = (np.abs(colors - to_rgba(GROUP)) < 1e-6).all(-1)
    assert (inside == row().numpy()).all()


def test_counts_are_of_all_features_though_few_are_drawn(x):
    ax = viz.norm_groups(x, {"row": row(), "column": column()}, WORDS, shown=3)
    assert len(ax.collections[0].get_facecolors()) == 2 * 3 * 3
    assert {"5 numbers", "1 token × 5 features", "6 numbers", "6 tokens × 1 feature"} < set(
        texts(ax)
    )
    assert texts(ax).count("2 tokens of padding") == 1
    assert texts(ax).count("…") == 4


def test_axes_are_named(x):
    ax = viz.norm_groups(x, {"row": row(), "column": column()}, WORDS)
    assert texts(ax).count("5 features →") == 2
    assert [text for text in texts(ax) if text.startswith("sentence")] == [
        "sentence 1",
        "sentence 2",
    ]


def test_a_title_of_two_lines_stays_inside(x):
    ax = viz.norm_groups(x, {"one\nand two": row()}, WORDS, shown=5)
    ax.figure.canvas.draw()
    title = next(text for text in ax.texts if text.get_text() == "one\nand two")
    box = title.get_window_extent().transformed(ax.transData.inverted())
    assert box.y1 < ax.get_ylim()[1]


def test_one_number_is_singular(x):
    group = torch.zeros(2, 3, 5, dtype=torch.bool)
    group[1, 0, 0] = True
    assert "1 number" in texts(viz.norm_groups(x, {"one": group}, WORDS))


def test_words_stand_once_and_padding_is_red(x):
    ax = viz.norm_groups(x, {"row": row(), "column": column()}, WORDS)
    words = [word for row in WORDS for word in row]
    named = [text for text in ax.texts if text.get_text() in words]
    assert [text.get_text() for text in named] == words
    assert [text.get_color() == PAD for text in named] == [False] * 4 + [True] * 2


def test_the_cell_is_framed(x):
    plain = viz.norm_groups(x, {"row": row()}, WORDS)
    framed = viz.norm_groups(x, {"row": row()}, WORDS, cell=(0, 1, 2))
    assert len(framed.patches) == len(plain.patches) + 1
    assert framed.patches[-1].get_edgecolor() == to_rgba("black")


def test_draws_into_given_axes(x):
    ax = plt.subplots()[1]
    assert viz.norm_groups(x, {"row": row()}, WORDS, ax) is ax


def test_a_constant_tensor_draws():
    assert filled(viz.norm_groups(torch.ones(2, 3, 5), {"row": row()}, WORDS), GROUP) == 5


def test_with_the_gradients_of_real_norms(x):
    def used(norm):
        z = x.clone().requires_grad_()
        return torch.autograd.grad(norm(z)[0, 1, 2], z)[0] != 0

    batch = nn.BatchNorm1d(5)
    groups = {"layer": used(nn.LayerNorm(5)),
              "batch": used(lambda z: batch(z.flatten(0, 1)).view_as(z))}  # fmt: skip
    ax = viz.norm_groups(x, groups, WORDS, cell=(0, 1, 2))
    assert (filled(ax, GROUP, 0), filled(ax, GROUP, 1), filled(ax, PAD, 1)) == (5, 4, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": torch.ones(3, 5)}, "3 dimensions"),
        ({"groups": {}}, "at least one"),
        ({"groups": {"short": torch.ones(2, 3, 4)}}, r"'short' has shape \(2, 3, 4\)"),
        ({"groups": {"none": torch.zeros(2, 3, 5)}}, "'none' is empty"),
        ({"words": WORDS[:1]}, r"rows of \[3\] tokens"),
        ({"words": [["a"], ["b"]]}, r"rows of \[1, 1\] tokens"),
        ({"cell": (2, 0, 0)}, r"cell \(2, 0, 0\) lies outside"),
        ({"cell": (0, 0)}, r"cell \(0, 0\) lies outside"),
        ({"cell": (0, 0, 4), "shown": 3}, "not among the 3 features"),
        ({"shown": 0}, "shown=0"),
    ],
)
def test_bad_input_is_named(x, change, message):
    given = {"x": x, "groups": {"row": row()}, "words": WORDS} | change
    with pytest.raises(ValueError, match=message):
        viz.norm_groups(given.pop("x"), given.pop("groups"), given.pop("words"), **given)
