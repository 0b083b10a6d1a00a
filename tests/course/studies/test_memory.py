"""The small studies of reading: their data, their readers, and the tables that ship."""

import pytest
import torch
from support import draws

from tinytf_course.studies import memory


@pytest.mark.parametrize("count", [1, 2, 7, 400])
def test_half_of_the_rows_hold_ab(count):
    ids, classes = memory.draw_pairs(count, draws())
    held = ["ab" in "".join("abcdefgh"[i] for i in row) for row in ids.tolist()]
    assert ids.shape == (count, memory.LENGTH)
    assert held == classes.bool().tolist()
    assert sum(held) == count // 2


def test_rows_are_random_but_for_their_class():
    ids, classes = memory.draw_pairs(2000, draws())
    assert len(ids.unique(dim=0)) == 2000
    assert 0 < classes[:1000].sum() < 1000  # shuffled: no class comes first
    shares = torch.bincount(ids.flatten(), minlength=memory.LETTERS) / ids.numel()
    assert shares.min() > 0.1, "a letter hardly occurs"
    again, _ = memory.draw_pairs(2000, draws())
    assert again.equal(ids)


def test_recall_learns_what_is_near_and_repeats():
    share = memory.recall("attention", 3, steps=80)
    assert share > 0.9
    assert memory.recall("attention", 3, steps=80) == share
    assert memory.recall("attention", 3, steps=0) < 0.4
    with pytest.raises(KeyError, match="Mamba"):
        memory.recall("Mamba", 3)


def test_detect_learns_and_leaves_the_global_seed_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    shares = memory.detect("CNN", 100, steps=100)
    assert shares["train"] > 0.95
    assert shares["test"] > 0.9
    assert torch.get_rng_state().equal(before)
    assert memory.detect("CNN", 100, steps=0)["test"] < 0.7
