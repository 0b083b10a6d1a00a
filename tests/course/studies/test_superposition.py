"""Rare features are packed, and taken apart again."""

import torch

from tinytf_course.studies.superposition import sparse_features, train_bottleneck, train_sparse


def test_features_are_there_as_often_as_asked():
    x = sparse_features(20_000, 3, 0.2, torch.Generator().manual_seed(0))
    assert 0.18 < (x > 0).float().mean() < 0.22
    assert x.max() <= 1


def test_rare_features_share_two_dimensions():
    kept = [(train_bottleneck(c).w.norm(dim=-1) > 0.5).sum().item() for c in (1.0, 0.05)]
    assert kept == [2, 5]


def test_sparse_codes_find_directions_that_are_there():
    draws = torch.Generator().manual_seed(0)
    true = torch.nn.functional.normalize(torch.randn(6, 4, generator=draws), dim=-1)
    states = sparse_features(4000, 6, 0.1, draws) @ true
    model = train_sparse(states, 12, 0.05, steps=600)
    found = torch.nn.functional.normalize(model.directions.detach(), dim=-1)
    assert ((true @ found.T).amax(-1) > 0.9).sum() >= 5
    assert model(states[:7]).shape == (7, 4)
    assert (model.codes(states) >= 0).all()
