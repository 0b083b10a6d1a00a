"""The closed form is where the squared error with its ridge is least."""

import pytest
import torch

from tinytf.interpret.probing import fit_probe, probe_accuracy, with_one


def test_no_other_map_has_a_smaller_error():
    draws = torch.Generator().manual_seed(0)
    x, y = torch.randn(30, 4, generator=draws, dtype=torch.float64), torch.arange(30) % 3
    wanted, ridge = torch.nn.functional.one_hot(y).double(), 2.0
    weights = fit_probe(x, y, ridge).requires_grad_()
    error = (with_one(x) @ weights - wanted).square().sum() + ridge * weights[:-1].square().sum()
    (slope,) = torch.autograd.grad(error, weights)
    torch.testing.assert_close(slope, torch.zeros_like(slope))


def test_accuracy_counts_the_largest_score():
    weights = torch.tensor([[1.0, -1.0], [0.0, 0.5]], dtype=torch.float64)
    x = torch.tensor([[1.0], [-1.0], [2.0], [0.0]])
    assert probe_accuracy(weights, x, torch.tensor([0, 1, 1, 1])) == 0.75


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="ridge > 0, got 3 and 0"):
        fit_probe(torch.ones(3, 2), torch.tensor([0, 1, 0]), 0)
