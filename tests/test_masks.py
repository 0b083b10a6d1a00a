"""Masks say who may be attended to."""

import pytest
import torch

from tinytf.masks import causal_mask, padding_mask


def test_padding_mask_marks_real_tokens(device):
    ids = torch.tensor([[5, 2, 0], [4, 6, 2]], device=device)
    expected = [[[[True, True, False]]], [[[True, True, True]]]]
    assert padding_mask(ids).tolist() == expected
    assert padding_mask(ids, pad_id=2).tolist() != expected
    with pytest.raises(ValueError, match=r"\(B, S\), got \(3,\)"):
        padding_mask(ids[0])


def test_causal_mask_is_the_lower_triangle_with_its_diagonal(device):
    rows, columns = torch.arange(4)[:, None], torch.arange(4)
    assert torch.equal(causal_mask(4, device).cpu(), (columns <= rows)[None, None])
