"""The study of induction: its task, its model, and what a row says."""

import pytest
import torch
import torch.nn.functional as F

from tinytf.inspect import record
from tinytf_course.studies import induction as study


@pytest.fixture
def model():
    torch.manual_seed(0)
    return study.AttentionOnly()


def test_rows_begin_anew_and_say_where_that_can_be_known():
    ids, known = study.repeats(20, torch.Generator().manual_seed(0))
    assert ids.shape == known.shape == (20, 64)
    lengths = (~known).sum(dim=1).tolist()
    assert len(set(lengths)) > 5
    assert 8 <= min(lengths) <= max(lengths) <= 32
    for row, length in zip(ids.tolist(), lengths, strict=True):
        assert len(set(row[:length])) == length
        assert row[length:] == row[:-length]
    assert not study.repeats(3, torch.Generator().manual_seed(0), 32)[1][:, :32].any()


def test_the_loss_counts_what_can_be_known(model):
    ids, known = study.repeats(4, torch.Generator().manual_seed(0))
    log_p = F.log_softmax(model(ids), dim=-1)
    losses = [
        -log_p[b, t, ids[b, t + 1]] for b in range(4) for t in range(63) if known[b, t]
    ]  # fmt: skip
    torch.testing.assert_close(study.repeat_loss(model, ids, known), torch.stack(losses).mean())


def test_previous_score_reads_one_back():
    weights = torch.zeros(1, 2, 3, 3)
    weights[0, 0, 1, 0], weights[0, 0, 2, 1], weights[0, 1, 2, 2] = 1.0, 0.5, 1.0
    assert study.previous_score(weights).tolist() == [0.75, 0.0]


def test_an_example_of_the_explorer_says_who_reads_what(model):
    ids = torch.tensor([3, 1, 4, 3, 1])
    example = study.explored(model, ids)
    assert example["read"] == ["3", "1", "4", "3", "1"]
    assert example["target"] == ["1", "4", "3", "1", "?"]
    weights = example["attention"]["decoder"]
    assert weights.shape == (2, 4, 5, 5)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 4, 5))
    with record(model) as seen:
        model(ids[None])
    assert torch.equal(weights[1], seen["layers.1"][0])


def test_rows_of_the_study(model):
    rows = study.grow(model, 2, every=1)
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert len(rows[0]["previous"]) == len(rows[0]["induction"]) == 2
    fresh = study.repeats(64, torch.Generator().manual_seed(1000))
    row = study.taken_apart(model)
    assert study.reading_bare(model, "", *fresh) == pytest.approx(
        study.repeat_loss(model, *fresh).item()
    )
    assert row["bare"]["k"] == pytest.approx(study.reading_bare(model, "k", *fresh), abs=1e-4)
    assert len(row["head"][0]) == len(row["matches"]["through"]) == 4


def test_learned_places_are_told_apart():
    torch.manual_seed(0)
    model = study.LearnedPlaces()
    same = torch.zeros(1, 5, dtype=torch.int64)
    assert not torch.allclose(model(same)[0, 1], model(same)[0, 2])
    with torch.no_grad():
        model.places.zero_()
    torch.testing.assert_close(model(same)[0, 1], model(same)[0, 2])
    assert study.LearnedPlaces(size=0.02).places.std().item() == pytest.approx(0.02, rel=0.1)
