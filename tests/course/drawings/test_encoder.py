"""The drawings of chapter 12."""

import matplotlib
import pytest
import torch

from tinytf.viz.spoken import spoken
from tinytf_course.drawings.encoder import (
    draw_encoder_layer,
    draw_encoder_stack,
    draw_masked_words,
    parting,
    who_moves_whom,
)

matplotlib.use("Agg")


def words(ax):
    return [text.get_text() for text in ax.texts]


def test_a_layer_has_one_attention_for_all_words_and_a_network_for_each():
    shown = words(draw_encoder_layer(("a", "cat", "likes", "milk")))
    assert {"a", "cat", "likes", "milk"} <= set(shown)
    assert shown.count("self-attention") == 1
    assert shown.count("feed-forward") == 4
    assert shown.count("+ norm") == 8


def test_the_stack_has_as_many_layers_as_asked_for_and_its_end():
    ax = draw_encoder_stack(4, final="the end")
    assert [text for text in words(ax) if text.startswith("layer")] == [
        f"layer {n}" for n in (1, 2, 3, 4)
    ]
    assert "the end" in words(ax)
    assert "mask" in spoken(ax)
    assert max(patch.get_extents().x1 for patch in ax.patches) <= ax.get_window_extent().x1


def test_only_chosen_words_are_to_be_said():
    ax = draw_masked_words(["a", "cat", "sat"], ["a", "<mask>", "sat"], [False, True, False])
    assert words(ax).count("cat") == 2
    assert words(ax).count("<mask>") == 1
    assert words(ax).count("sat") == 2
    assert spoken(ax).endswith("the chosen words: cat.")
    with pytest.raises(ValueError, match="zip"):
        draw_masked_words(["a", "cat"], ["a"], [True, True])


def test_tables_share_a_scale_and_nothing_is_hatched():
    tables = {"one": torch.tensor([[1.0, 0.0], [2.0, 3.0]]), "other": torch.ones(2, 2)}
    axes = who_moves_whom(tables, ["a", "cat"])
    assert [ax.get_title() for ax in axes] == ["one", "other"]
    assert [mesh.get_clim() for ax in axes for mesh in ax.collections] == [(0, 3), (0, 3)]
    assert [sum(patch.get_hatch() is not None for patch in ax.patches) for ax in axes] == [1, 0]


def test_meanings_part_layer_by_layer():
    scores = torch.randn(3, 40) + torch.arange(3)[:, None] * torch.tensor([-1.0, 1.0]).repeat(20)
    axes = parting({"trained": scores, "not": scores}, torch.tensor([0, 1]).repeat(20))
    assert [ax.get_title() for ax in axes] == ["trained", "not"]
    assert [ax.get_legend() is None for ax in axes] == [True, False]
    assert [text.get_text() for text in axes[1].get_legend().get_texts()] == [
        "first noun", "second noun",
    ]  # fmt: skip
