"""The loop of small studies takes torch's own steps at the rates that it says."""

import torch

from tinytf.studies.optimise import optimise
from tinytf.training.schedules import warmup_cosine


def test_steps_are_adamws_at_the_rates_of_the_cosine():
    torch.manual_seed(0)
    target, start = torch.randn(2, 5, dtype=torch.float64)
    ours, theirs = (start.clone().requires_grad_() for _ in "ab")
    losses = optimise([ours], lambda step: 9 * (ours - target).square().sum(), 8, 0.1, 2, until=5)
    adam = torch.optim.AdamW([theirs], 0.1, betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(5):
        loss = 9 * (theirs - target).square().sum()
        assert losses[step] == loss.item()
        adam.param_groups[0]["lr"] = warmup_cosine(step + 1, 0.1, 2, 8)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([theirs], 1.0)
        adam.step()
    assert len(losses) == 5
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)
