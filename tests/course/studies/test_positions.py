"""The study of positions: its tasks, its model, its grades."""

import pytest
import torch
import torch.nn.functional as F
from support import draws

from tinytf_course.studies import positions as study


def test_tasks_ask_for_what_they_say():
    batch = study.draw("three back", 50, 10, draws(3))
    assert torch.equal(batch.targets[:, 3:], batch.ids[:, :-3])
    assert (batch.targets[:, :3] == study.HIDDEN).all()
    batch = study.draw("first symbol", 50, 10, draws(3))
    assert (batch.targets[:, 1:] == batch.ids[:, :1] - study.SYMBOLS).all()
    assert (batch.ids[:, 1:] < study.SYMBOLS).all()
    with pytest.raises(ValueError, match="no task 'sort'; there are three back"):
        study.draw("sort", 1, 8, draws(3))


def test_the_floor_of_the_chain_is_the_loss_of_its_own_odds():
    batch = study.draw("next symbol", 4000, 6, draws(3))
    assert torch.equal(batch.targets[:, 1:-1], batch.ids[:, 2:])
    seen = {}  # how often each symbol followed two others
    for row in batch.ids.tolist():
        for a, b, c in zip(row, row[1:], row[2:], strict=False):
            seen.setdefault((a, b), torch.zeros(study.SYMBOLS))[c] += 1
    pair, counts = max(seen.items(), key=lambda item: item[1].sum())
    odds = counts / counts.sum()
    here = (batch.ids[:, 2] == pair[0]) & (batch.ids[:, 3] == pair[1])
    losses = batch.floor[here, 3]
    torch.testing.assert_close((-losses).exp(), odds[batch.targets[here, 3]], atol=0.1, rtol=0)


@pytest.mark.parametrize("scheme", study.SCHEMES)
def test_the_model_of_the_study_is_causal_and_refuses_nothing_but_nonsense(scheme):
    model = study.CausalModel(scheme).eval()
    ids = torch.randint(study.SYMBOLS, (2, 20))
    changed = ids.clone()
    changed[:, 12:] = (ids[:, 12:] + 1) % study.SYMBOLS
    a, b = model(ids), model(changed)
    torch.testing.assert_close(a[:, :12], b[:, :12], atol=1e-5, rtol=0)
    assert not torch.allclose(a[:, 12:], b[:, 12:], atol=1e-3)
    with pytest.raises(ValueError, match="no scheme 'sines'; there are none, sinusoidal"):
        study.CausalModel("sines")


class Oracle(torch.nn.Module):
    """Names the symbol three back, surely, up to a place; after it, names symbol 0."""

    def __init__(self, until):
        super().__init__()
        self.until, self.unused = until, torch.nn.Parameter(torch.zeros(1))

    def forward(self, ids):
        said = ids.roll(3, dims=1)
        said[:, self.until :] = 0
        return 50.0 * F.one_hot(said, study.SYMBOLS).float()


def test_grades_are_by_position():
    found = study.grade(Oracle(until=20), "three back", count=600, length=30)
    assert found[:3].isnan().all()
    assert (found[3:20] == 1).all()
    assert ((found[20:] - 1 / study.SYMBOLS).abs() < 0.05).all()


def test_training_depends_on_its_seed_alone():
    torch.rand(5)
    first = study.train("RoPE", "three back", seed=3, steps=3)
    torch.rand(5)
    again, other = (study.train("RoPE", "three back", seed, steps=3) for seed in (3, 4))
    for a, b, c in zip(first.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
        assert a.dim() < 2 or not torch.equal(a, c)
