"""Masks say who may be attended to."""

import pytest
import torch

from tinytf.masks import CAUSAL, causal_mask, check_mask, padding_mask, written_out


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


@pytest.mark.parametrize(("length", "keys"), [(2, 2), (4, 4), (2, 5), (3, 4)])
def test_causal_is_written_out_for_the_last_of_the_positions(length, keys, device):
    """Row t is position keys - length + t, and sees all positions up to itself."""
    found = written_out(CAUSAL, length, keys, device)
    expected = [[s <= keys - length + t for s in range(keys)] for t in range(length)]
    assert (found.dtype, found.device.type) == (torch.bool, device.type)
    assert found.tolist() == [[expected]]


def test_what_needs_no_writing_out_is_left(device):
    assert written_out(CAUSAL, 1, 1) is None
    assert written_out(CAUSAL, 1, 7) is None
    assert written_out(None, 3, 3) is None
    mask = torch.ones(1, 1, 3, 3, dtype=torch.bool, device=device)
    assert written_out(mask, 3, 3) is mask
    with pytest.raises(ValueError, match="3 queries can't be the last of 2 positions"):
        written_out(CAUSAL, 3, 2)


@pytest.mark.parametrize(
    "shape", [(2, 3, 4, 5), (1, 1, 4, 5), (2, 1, 1, 5), (1, 3, 4, 1), (1,) * 4]
)
def test_masks_of_the_scores_rank_are_taken(shape, device):
    q, k = (torch.zeros(2, 3, n, 8, device=device) for n in (4, 5))
    check_mask(torch.ones(shape, dtype=torch.bool, device=device), q, k)
    check_mask(None, q, k)


@pytest.mark.parametrize(
    "shape", [(3, 4, 5), (4, 5), (5,), (), (1, 2, 3, 4, 5),
              (3, 1, 4, 5), (2, 2, 4, 5), (2, 3, 5, 5), (2, 3, 4, 4), (2, 3, 4, 8)],
)  # fmt: skip
def test_masks_that_do_not_fit_the_scores_are_named(shape, device):
    q, k = (torch.zeros(2, 3, n, 8, device=device) for n in (4, 5))
    with pytest.raises(ValueError, match=r"does not fit scores of shape \(2, 3, 4, 5\)") as caught:
        check_mask(torch.ones(shape, dtype=torch.bool, device=device), q, k)
    assert f"mask of shape {shape} " in str(caught.value)


@pytest.mark.parametrize(
    ("mask", "kind"), [(torch.ones(1, 1, 4, 5), "torch.float32"),
                       (torch.ones(1, 1, 4, 5, dtype=torch.uint8), "torch.uint8"),
                       ([[[[True]]]], r"\[\[\[\[True\]\]\]\]"), ("padding", "'padding'")],
)  # fmt: skip
def test_masks_that_are_not_boolean_are_named(mask, kind):
    q, k = (torch.zeros(2, 3, n, 8) for n in (4, 5))
    with pytest.raises(TypeError, match=rf"mask must be boolean \(True = may attend\), got {kind}"):
        check_mask(mask, q, k)
