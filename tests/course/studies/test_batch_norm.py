"""Padded rows under batch norm: the task, the norms, the table that ships."""

import functools
import math

import pytest
import torch
from support import draws
from torch import nn

from tinytf.norm import LayerNorm, RMSNorm
from tinytf_course.studies import batch_norm
from tinytf_course.studies.batch_norm import PAD, PaddedSorter, TokenBatchNorm


def test_padded_rows_are_sorted_among_themselves():
    ids, targets = batch_norm.draw(200, draws())
    lengths = (ids != PAD).sum(dim=1)
    assert set(lengths.tolist()) == set(range(3, 11))
    for row, target, n in zip(ids.tolist(), targets.tolist(), lengths.tolist(), strict=True):
        assert sorted(row[:n]) == target[:n]
        assert set(row[n:]) <= {PAD}
        assert row[n:] == target[n:]
    assert batch_norm.draw(1, draws(3))[0].ne(PAD).all()  # padded to the longest, no further


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_tokens_equals_torch_by_features(training, exact):
    ours = TokenBatchNorm(6).to(exact, torch.float64)
    theirs = nn.BatchNorm1d(6).to(exact, torch.float64)
    for norm in (ours, theirs):
        norm.train(training)
    x = torch.randn(3, 5, 6, device=exact, dtype=torch.float64) + 2
    expected = theirs(x.mT).mT  # torch wants features second
    torch.testing.assert_close(ours(x), expected, atol=1e-12, rtol=0)
    buffers = zip(ours.norm.buffers(), theirs.buffers(), strict=True)
    assert all(torch.allclose(a, b) for a, b in buffers)


def test_batch_norm_of_real_tokens_sees_no_other():
    norm, x = TokenBatchNorm(4).double(), torch.randn(3, 5, 4, dtype=torch.float64)
    norm.real = torch.arange(5) < torch.tensor([[5], [2], [3]])
    expected = nn.BatchNorm1d(4).double()(x[norm.real])
    for filling in (0.0, 1e6, math.nan):
        out = norm(x.where(norm.real[..., None], filling))
        torch.testing.assert_close(out[norm.real], expected)
        assert (out[~norm.real] == 0).all()


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [("layer", LayerNorm, 0), ("rms", RMSNorm, 0), ("batch", TokenBatchNorm, 0),
     ("batch, real", TokenBatchNorm, 5)],
)  # fmt: skip
def test_padded_sorters_differ_in_their_norms_only(name, kind, told):
    model = PaddedSorter(name)
    assert sum(isinstance(m, kind) for m in model.modules()) == 5
    assert len(model.told) == told


@pytest.mark.parametrize("name", list(batch_norm.NORMS))
def test_padding_moves_only_batch_norm_over_everything(name):
    model = PaddedSorter(name)
    grade = functools.partial(batch_norm.grade, model, 64)
    state = {k: v.clone() for k, v in model.state_dict().items()}
    plain, padded = grade(training=True), grade(pads=40, training=True)
    change = (plain - padded).abs().max().item()
    assert change > 0.1 if name == "batch" else change < 1e-4
    assert (grade() - grade(pads=40)).abs().max() < 1e-4  # running statistics: no norm minds
    moved = (grade() - plain).abs().max().item()
    assert moved > 0.1 if name.startswith("batch") else moved == 0
    assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())


def test_the_rows_that_grade_are_the_same_in_any_batch():
    small, large = ([i for part, _ in batch_norm.graded(n) for i in part] for n in (4, 512))
    assert len(small) == len(large) == 512
    assert all(a[a != PAD].equal(b[b != PAD]) for a, b in zip(small, large, strict=True))


def test_a_batch_norm_cell():
    row = batch_norm.cell([0, 1], norm="batch", batch=16, steps=60)
    assert row["seed"] == [0, 1]
    assert (row["norm"], row["batch"], row["lr"], row["steps"]) == ("batch", 16, 3e-3, 60)
    assert row["train_by_pads"][0][-1] == row["train_pads"][0]
    assert all(gap > 0.05 for gap in row["gap"])
    assert batch_norm.train_cell("layer", 16, steps=20)["gap"] == 0
    with pytest.raises(KeyError, match="group"):
        batch_norm.train_cell("group", 4)


def test_padded_sorting_is_learned():
    row = batch_norm.train_cell("rms", 32, 1e-2, steps=200)
    assert row["eval"] == row["eval_pads"] == row["train_pads"] > 0.75
    assert row["loss"] < 0.8
