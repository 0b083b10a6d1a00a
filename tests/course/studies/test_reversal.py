"""The rows to reverse, and a small model that learns it."""

import pytest
import torch
from support import draws

from tinytf_course.studies import reversal


def test_reversal_rows():
    batch = reversal.draw(5, 4, draws())
    words = batch.src[:, :-1]
    assert words.min() >= reversal.FIRST
    assert (batch.src[:, -1] == 2).all()
    assert (batch.tgt_in[:, 0] == 1).all()
    assert batch.tgt_in[:, 1:].equal(words.flip(1))
    assert batch.tgt_out[:, :-1].equal(words.flip(1))
    assert (batch.tgt_out[:, -1] == 2).all()


def test_offsets_and_mass_by_hand():
    # three symbols and <eos>; to be written first is symbol 2, then 1, then 0
    weights = torch.tensor([[[0.0, 0.1, 0.7, 0.2], [0.1, 0.2, 0.6, 0.1], [0.3, 0.2, 0.1, 0.4]]])
    assert reversal.offsets(weights).tolist() == [[0, 1, 3]]
    assert reversal.mass(weights, 0) == pytest.approx((0.7 + 0.2 + 0.3) / 3)
    assert reversal.mass(weights, 1) == pytest.approx((1.0 + 0.9 + 0.5) / 3)


def test_reversal_trains_and_grades():
    batch = reversal.draw(100, 3, draws(9))
    model = reversal.train("additive", 3, steps=120)
    assert reversal.right(model, batch).float().mean() > 0.8
    assert reversal.right(reversal.train("none", 3, steps=0), batch).float().mean() < 0.4
    weights = reversal.alignment(model, batch)
    assert weights.shape == (100, 3, 4)
    assert torch.allclose(weights.sum(dim=-1), torch.ones(100, 3), atol=1e-5)
    with pytest.raises(ValueError, match="attention='dot' is not one of"):
        reversal.train("dot", 3, steps=1)
