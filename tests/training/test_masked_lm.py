"""Masked words: which are chosen, what becomes of them, and what never is."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import bounded, random_ids

from tinytf.text.words import BOS, EOS, PAD
from tinytf.training.masked_lm import mask_tokens

MASK = 40


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def ids(device):
    many = random_ids([12, 5, 9, 3] * 2000, MASK, device)
    return torch.cat([torch.full_like(many[:, :1], BOS), many], dim=1)


def test_the_shares_are_those_of_bert(ids):
    masked, chosen = mask_tokens(ids, MASK, draws())
    words = ids >= 3
    count = chosen.sum().item()
    assert count / words.sum().item() == pytest.approx(0.15, abs=0.01)
    hidden = chosen & (masked == MASK)
    swapped = chosen & (masked != MASK) & (masked != ids)
    assert hidden.sum().item() / count == pytest.approx(0.8, abs=0.02)
    other = (MASK - 4) / (MASK - 3)  # a drawn word is the old one now and then
    assert swapped.sum().item() / count == pytest.approx(0.1 * other, abs=0.015)


def test_what_is_not_chosen_stays(ids):
    before = ids.clone()
    masked, chosen = mask_tokens(ids, MASK, draws())
    assert torch.equal(ids, before)
    assert torch.equal(masked[~chosen], ids[~chosen])
    assert masked.dtype == ids.dtype
    assert chosen.dtype == torch.bool
    assert masked.device == chosen.device == ids.device


@bounded
@given(
    share=st.floats(0, 1), masked=st.floats(0, 1), seed=st.integers(0, 99),
    part=st.floats(0, 1),
)  # fmt: skip
def test_specials_are_never_chosen_and_never_drawn(share, masked, seed, part):
    ids = random_ids([9, 4, 6], MASK)
    ids[:, 0] = BOS
    swapped = (1 - masked) * part
    out, chosen = mask_tokens(ids, MASK, draws(seed), share, masked, swapped)
    special = (ids == PAD) | (ids == BOS) | (ids == EOS)
    assert not (chosen & special).any()
    assert torch.equal(out[special], ids[special])
    assert (out[chosen] >= 3).all()
    assert (out <= MASK).all()


@pytest.mark.parametrize(
    ("shares", "fate"),
    [((1, 1, 0), "masked"), ((1, 0, 1), "swapped"), ((1, 0, 0), "kept"), ((0, 1, 0), "none")],
)
def test_the_ends_of_the_scale_are_exact(shares, fate, device):
    ids = random_ids([200] * 40, MASK, device)
    out, chosen = mask_tokens(ids, MASK, draws(), *shares)
    words = ids >= 3
    assert torch.equal(chosen, words if fate != "none" else torch.zeros_like(words))
    if fate == "masked":
        assert (out[words] == MASK).all()
    elif fate == "swapped":
        assert set(out[words].tolist()) == set(range(3, MASK))  # each word is drawn, none other
        counts = torch.bincount(out[words].cpu())[3:]
        assert counts.max() < 1.5 * counts.min()
    else:
        assert torch.equal(out, ids)


def test_choice_and_fate_are_independent_of_each_other_and_of_the_word(ids):
    """Each position is drawn for itself: neighbours, and all words, are chosen alike."""
    _, chosen = mask_tokens(ids, MASK, draws(), share=0.5)
    words = (ids >= 3)[:, 1:4].all(dim=1)
    pairs = chosen[words][:, 1:3].float()
    assert pairs.prod(dim=1).mean().item() == pytest.approx(0.25, abs=0.03)
    by_word = [chosen[ids == word].float().mean().item() for word in range(3, MASK)]
    assert max(by_word) - min(by_word) < 0.1


def test_the_generator_decides(ids):
    one, two = (mask_tokens(ids, MASK, draws(3)) for _ in range(2))
    assert all(map(torch.equal, one, two))
    generator = draws(3)
    mask_tokens(ids, MASK, generator)
    assert not torch.equal(mask_tokens(ids, MASK, generator).chosen, one.chosen)
    torch.manual_seed(1)  # the global stream plays no part
    assert torch.equal(mask_tokens(ids, MASK, draws(3)).ids, one.ids)
    on_cpu = mask_tokens(ids.cpu(), MASK, draws(3))
    assert torch.equal(on_cpu.ids, one.ids.cpu())


@pytest.mark.parametrize(
    ("named", "match"),
    [
        ({"share": 1.5}, r"share must lie in \[0, 1\], got 1.5"),
        ({"share": -0.1}, "share must lie"),
        ({"share": float("nan")}, "share must lie"),
        ({"masked": 2}, r"masked must lie in \[0, 1\], got 2"),
        ({"swapped": -1}, "swapped must lie"),
        ({"masked": 0.8, "swapped": 0.3}, "masked=0.8 and swapped=0.3 sum to more than 1"),
        ({"mask_id": 3}, "mask_id=3 leaves no word"),
        ({"mask_id": 9}, "id 39 is not below mask_id=9"),
        ({"ids": torch.ones(4, dtype=torch.long)}, r"shape \(B, S\), got \(4,\)"),
    ],
)
def test_bad_input(named, match):
    ids = torch.tensor([[3, 39, EOS]])
    with pytest.raises(ValueError, match=match):
        mask_tokens(**{"ids": ids, "mask_id": MASK, "generator": draws()} | named)
