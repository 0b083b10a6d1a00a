"""The small language that slips, its best reader, and a writer of it."""

import math

import pytest
import torch

from tinytf_course.studies import chain


@pytest.fixture
def rows():
    return chain.draw(4000, torch.Generator().manual_seed(0))


def test_the_language_is_legal_and_slips_as_often_as_it_says(rows):
    assert chain.legal(rows).all()
    step = (rows[:, 2:] - rows[:, 1:-1] - 3 * rows[:, :-2]) % chain.SYMBOLS
    assert step.float().mean().item() == pytest.approx(chain.SLIP, abs=0.01)
    other = rows.clone()
    other[:, 4] = (other[:, 4] + 2) % chain.SYMBOLS
    assert not chain.legal(other).all(dim=1).any()


def test_floor_and_ceiling_are_those_of_the_best_reader(rows):
    """The best reader knows the rule: its loss is the floor, its accuracy the ceiling."""
    best = torch.full((len(rows), chain.LENGTH, chain.SYMBOLS), 1 / chain.SYMBOLS)
    for t in range(2, chain.LENGTH):
        likely = (rows[:, t - 1] + 3 * rows[:, t - 2]) % chain.SYMBOLS
        best[:, t] = 1e-12
        best[torch.arange(len(rows)), t, likely] = 1 - chain.SLIP
        best[torch.arange(len(rows)), t, (likely + 1) % chain.SYMBOLS] = chain.SLIP
    loss = -best.gather(-1, rows[..., None]).log().squeeze(-1).mean(0)
    torch.testing.assert_close(loss, chain.floors(), atol=0.03, rtol=0)
    assert chain.floors()[0].item() == pytest.approx(math.log(6))
    hits = best.argmax(-1)[:, 2:] == rows[:, 2:]
    right = (2 / 6 + 6 * hits.float().mean().item()) / 8
    assert right == pytest.approx(chain.ceiling(), abs=0.01)


def test_a_writer_trains_and_writes(rows):
    torch.manual_seed(0)
    writer = chain.Writer(d_model=16)
    before = chain.losses(writer, rows[:200])[0].mean()
    chain.train(writer, steps=30)
    assert chain.losses(writer, rows[:200])[0].mean() < before
    said = chain.write(writer, rows[:5])
    own = said[:, :2]
    for _ in range(2, chain.LENGTH):  # a causal writer does not read what fills the window
        scores = writer(torch.nn.functional.pad(own, (1, 0), value=chain.BOS))
        own = torch.cat([own, scores[:, -1:].argmax(-1)], dim=1)
    assert torch.equal(said, own)
    assert torch.equal(said[:, :2], rows[:5, :2])
    assert (said < chain.SYMBOLS).all()
    assert chain.shifted(rows[:1])[0].tolist() == [chain.BOS, *rows[0, :-1].tolist()]
