"""Figures of images: every patch in its place, every number where it belongs."""

import numpy as np
import pytest
import torch

from tinytf.related.vit import split_patches
from tinytf.viz.spoken import spoken
from tinytf_course import drawings as viz
from tinytf_course.drawings.images import draw_patches, draw_vit


def test_patch_row_shows_each_patch_under_its_number():
    image = torch.arange(64.0).view(8, 8)
    patches = split_patches(image[None, None], 2)[0]
    whole, row = viz.patch_row(image, patches, title="a digit")
    assert np.array_equal(whole.images[0].get_array(), image.numpy())
    assert [text.get_text() for text in row.texts] == [str(n) for n in range(16)]
    assert len(row.images) == 16
    assert row.images[5].get_array().ravel().tolist() == [18, 19, 26, 27]
    assert {shown.get_clim() for shown in row.images} == {(0, 63)}
    row.figure.canvas.draw()
    with pytest.raises(ValueError, match="60 pixels in the patches, 64 in the image"):
        viz.patch_row(image, patches[:15])


def test_attention_tints_the_patch_it_belongs_to_and_dots_the_ink():
    image, weights = -torch.ones(8, 8), torch.zeros(16)
    image[3, 6], weights[7] = 1.0, 0.4  # patch 7: second row, last column
    ax = viz.digit_attention(image, weights, title="seven")
    tint = ax.images[0].get_array()
    assert np.argwhere(tint > 0).tolist() == [[2, 6], [2, 7], [3, 6], [3, 7]]
    assert ax.collections[0].get_offsets().tolist() == [[6, 3]]
    ax.figure.canvas.draw()
    assert viz.digit_attention(image, weights, top=1).images[0].get_clim() == (0, 1)
    with pytest.raises(ValueError, match=r"9 patches do not tile an image of shape \(8, 8\)"):
        viz.digit_attention(image, weights[:9])


def test_similarity_grid_has_a_map_for_each_place():
    similar = torch.eye(9)
    similar[0, 1] = similar[1, 0] = -0.5
    axes = viz.similarity_grid(similar, title="positions")
    assert len(axes) == 9
    assert axes[0].images[0].get_array().tolist() == [[1, -0.5, 0], [0, 0, 0], [0, 0, 0]]
    assert axes[0].images[0].get_clim() == (-1, 1)
    assert axes[4].patches[0].get_xy() == (0.5, 0.5)
    axes[0].figure.canvas.draw()
    with pytest.raises(ValueError, match=r"\(8, 8\) is not that of a square grid"):
        viz.similarity_grid(torch.eye(8))


def test_a_drawing_puts_each_square_into_a_row():
    ax = draw_patches(torch.arange(16.0).view(4, 4), 2)
    words = [text.get_text() for text in ax.texts]
    numbers = [int(word) for word in words if word.isdigit()]
    assert numbers[:16] == list(range(16))
    assert numbers[16:20] == [0, 1, 4, 5]
    assert "4 squares" in spoken(ax.figure)
    with pytest.raises(ValueError, match="patches of 3 × 3 do not tile an image of 4 × 4"):
        draw_patches(torch.zeros(4, 4), 3)


def test_the_drawing_of_a_model_says_what_is_missing():
    whole, first = draw_vit(), draw_vit(placeholders=("class token", "positions"))
    assert "(B, 17, C)" in [text.get_text() for text in whole.texts]
    assert "mean state" in [text.get_text() for text in first.texts]
    assert "Not there yet: class token and positions." in spoken(first.figure)
    assert "Not there yet" not in spoken(whole.figure)
