"""Maps of attention draw the weights they are given, and name bad input."""

import numpy as np
import pytest
import torch
from viz_support import GOLD, PINYIN, SOURCE, TARGET, drawn, ticks, weights

from tinytf_course import drawings as viz


def test_heatmap_draws_the_weights_on_the_fixed_scale():
    w = weights(6, 7)
    ax = viz.heatmap(w, list(zip(TARGET, PINYIN, strict=True)), SOURCE)
    np.testing.assert_allclose(drawn(ax), w)
    assert ax.collections[0].get_clim() == (0, 1)
    assert ticks(ax.xaxis) == SOURCE
    assert [text.get_text() for text in ax.texts] == [f"{x:.2f}" for x in w.flatten().tolist()]
    assert ax.yaxis_inverted()


@pytest.mark.parametrize(
    "convert",
    [
        lambda w: w.tolist(),
        lambda w: w.numpy(),
        lambda w: w.requires_grad_(),
        lambda w: w.bfloat16(),
        list,
    ],
    ids=["lists", "numpy", "grad", "bfloat16", "list of tensors"],
)
def test_heatmap_accepts_any_container(convert):
    w = torch.tensor([[0.25, 0.75], [1.0, 0.0]])
    np.testing.assert_allclose(drawn(viz.heatmap(convert(w.clone()))), w)


def test_heatmap_hides_what_may_not_be_attended():
    mask = torch.ones(4, 4).tril().bool()[None, None]
    scores = torch.randn(4, 4).masked_fill(~mask[0, 0], 99.0)  # a hidden value sets no scale
    ax = viz.heatmap(scores, scale="signed", mask=mask)
    hidden = ax.collections[0].get_array().mask
    assert (hidden == ~mask[0, 0].numpy()).all()
    assert len(ax.patches) == 6
    assert len(ax.texts) == 10
    low, high = ax.collections[0].get_clim()
    assert low == -high == -scores[mask[0, 0]].abs().max().item()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(6, 7) / 7, TARGET[:5], SOURCE), r"6 rows but 5 queries"),
        ((torch.ones(6, 7) / 7, TARGET, SOURCE[1:]), r"7 columns but 6 keys"),
        ((torch.ones(1, 6, 7) / 7,), r"2 dimensions, got shape \(1, 6, 7\)"),
        ((torch.tensor([[1.5, -0.5]]),), r"-0.5 to 1.5"),
        ((torch.tensor([[torch.nan, 1.0]]),), r"1 NaN or infinite values of 2"),
        ((torch.ones(1, 3) / 3, None, "the cat sat"), r"got the string 'the cat sat'"),
        (([[1.0], [0.5, 0.5]],), r"not a rectangular block"),
    ],
)
def test_heatmap_names_what_disagrees(arguments, message):
    with pytest.raises(ValueError, match=message):
        viz.heatmap(*arguments)


def test_heatmap_refuses_a_mask_and_a_scale_it_cannot_use():
    with pytest.raises(ValueError, match=r"mask of shape \(5, 5\) does not fit weights \(4, 4\)"):
        viz.heatmap(weights(4, 4), mask=torch.ones(5, 5))
    with pytest.raises(ValueError, match="scale='log'"):
        viz.heatmap(weights(4, 4), scale="log")


def test_head_grid_draws_every_head_in_its_place():
    w = weights(5, 6, 7)
    axes = viz.head_grid(w, list(zip(TARGET, PINYIN, strict=True)), SOURCE, max_columns=3)
    assert len(axes) == 5
    assert [ax.get_title() for ax in axes][4] == "head 4"
    for head, ax in enumerate(axes):
        np.testing.assert_allclose(drawn(ax), w[head])
        assert ax.collections[0].get_clim() == (0, 1)
    with pytest.raises(ValueError, match="2 titles for 5 heads"):
        viz.head_grid(w, titles=["a", "b"])
    with pytest.raises(ValueError, match="3 dimensions"):
        viz.head_grid(w[0])


def test_alignment_grid_outlines_the_gold_links():
    ax = viz.alignment_grid(weights(6, 7), GOLD, SOURCE, TARGET, pinyin=PINYIN)
    drawn(ax)
    centres = {tuple(map(round, patch.get_center())) for patch in ax.patches}
    assert centres == set(GOLD)  # x is the source word, y the target word
    with pytest.raises(ValueError, match=r"gold link \(2, 6\) is outside 7 source words and 6"):
        viz.alignment_grid(weights(6, 7), [(2, 6)], SOURCE, TARGET)


def test_layer_head_scores_writes_every_number_but_those_that_round_to_nothing():
    scores = np.array([[0.1, 0.005], [0.5, 1.0], [0.0049, -0.33], [-0.0049, 0.0]])
    ax = viz.layer_head_scores(scores)
    assert [text.get_text() for text in ax.texts] == ["0.10", "0.01", "0.50", "1.00", "-0.33"]
    assert ticks(ax.yaxis) == ["0", "1", "2", "3"]


def test_attention_ramp_darkens_steadily_so_order_survives_grey_print():
    lightness = viz.ATTENTION(np.linspace(0, 1, 64))[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(lightness) < 0).all()
