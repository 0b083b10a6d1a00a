"""The one training loop of the studies: against the same loop written out."""

import ast
from pathlib import Path

import pytest
import torch
from torch import nn

from tinytf.training.schedules import warmup_cosine
from tinytf_course import studies
from tinytf_course.studies.optimise import optimise, optimise_with_warmup


def problem(seed=0):
    torch.manual_seed(seed)
    model, x = nn.Linear(3, 2), torch.randn(9, 5, 3)
    return model, lambda step: 9 * model(x[step - 1]).square().sum()  # gradients above norm 1


def test_steps_rates_and_cut_gradients_are_those_of_a_loop_written_out():
    model, loss = problem()
    expected = []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    for step in (1, 2, 3, 4):
        optimizer.param_groups[0]["lr"] = 0.1 * step
        optimizer.zero_grad()
        value = loss(step)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.7)
        optimizer.step()
        expected.append(value.item())
    again, loss = problem()
    optimizer = torch.optim.Adam(again.parameters(), lr=0.5)
    losses = optimise(optimizer, loss, 4, rate=lambda step: 0.1 * step, clip=0.7)
    assert losses.tolist() == expected
    assert not losses.requires_grad
    assert torch.equal(again.weight, model.weight)


def test_without_a_rate_or_a_norm_the_optimizer_is_left_alone():
    model, loss = problem()
    before, bias = model.weight.clone(), model.bias.clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimise(optimizer, loss, 1)
    gradient = (before - model.weight) / 0.01
    again, loss = problem()
    loss(1).backward()
    torch.testing.assert_close(gradient, again.weight.grad, rtol=1e-4, atol=1e-4)
    assert again.weight.grad.norm() > 1
    assert not torch.equal(bias, model.bias)
    assert optimise(optimizer, loss, 0).shape == (0,)


def test_the_shared_recipe_warms_up_falls_and_may_stop_early():
    model, loss = problem()
    rates = []

    def watched(step):
        rates.append(optimizers[0].param_groups[0]["lr"])
        return loss(step)

    optimizers = []
    made = torch.optim.AdamW.__init__

    def remember(self, *args, **kwargs):
        made(self, *args, **kwargs)
        optimizers.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "__init__", remember)
        losses = optimise_with_warmup(model.parameters(), watched, 8, 0.03, 2, until=5)
    assert len(losses) == 5
    assert rates == [warmup_cosine(step, 0.03, 2, 8) for step in range(1, 6)]
    group = optimizers[0].param_groups[0]
    assert (group["betas"], group["weight_decay"]) == ((0.9, 0.98), 0.01)


def test_no_study_has_a_loop_of_its_own():
    """What calls `backward`: the loop, one timed step, and a count of operations."""
    callers = set()
    for path in Path(studies.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr == "backward":
                callers.add(path.stem)
    assert callers == {"optimise", "cost", "families"}
