"""Seeding gives the states of `torch.manual_seed`, and a block's seed is the block's alone."""

import traceback

import pytest
import torch

from tinytf.support.randomness import seed_all, seeded


def test_it_gives_the_states_that_torch_gives(device):
    draws = []
    for seed in (torch.manual_seed, seed_all):
        seed(7)
        draws += [torch.rand(3), torch.rand(3, device=device)]
    assert torch.equal(draws[0], draws[2])
    assert torch.equal(draws[1], draws[3])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_no_note_is_left_for_a_device_that_is_not_there(monkeypatch):
    notes = []
    monkeypatch.setattr(traceback, "format_stack", lambda *_: notes.append("where") or [])
    seed_all(7)
    assert not notes
    torch.manual_seed(7)
    assert notes  # or there is nothing to save


def test_a_block_draws_from_its_seed_and_leaves_the_stream(device):
    seed_all(1)
    wanted = torch.rand(2, device=device)
    seed_all(1)
    with seeded(7):
        one = torch.rand(3, device=device)
    assert torch.equal(torch.rand(2, device=device), wanted)
    with seeded(7):
        assert torch.equal(torch.rand(3, device=device), one)
