"""What a text costs: every token once, with enough context."""

import math

import pytest
import torch
import torch.nn.functional as F
from gpt_support import decided_gpt, prompts

from tinytf.decoding.likelihood import bits_per_byte, continuation_losses, token_losses


@pytest.mark.parametrize("training", [True, False])
def test_losses_are_those_of_the_chosen_tokens(training, exact):
    model, ids = decided_gpt(0, exact, dropout=0.3).train(training), prompts(3, 9, exact)
    found = continuation_losses(model, ids, 4)
    assert model.training == training
    log_p = model.eval()(ids).log_softmax(-1)
    expected = [[-log_p[b, t - 1, ids[b, t]].item() for t in range(4, 9)] for b in range(3)]
    torch.testing.assert_close(found.double(), torch.tensor(expected, device=exact).double())
    assert not found.requires_grad


def test_a_whole_window_has_its_losses(exact):
    model, ids = decided_gpt(1, exact), prompts(2, 13, exact)  # 12 read, 12 said
    assert continuation_losses(model, ids, 1).shape == (2, 12)
    with pytest.raises(ValueError, match="13"):
        continuation_losses(model, prompts(2, 14, exact), 1)


@pytest.mark.parametrize("start", [0, 5, -1])
def test_a_continuation_starts_inside_the_text(start):
    with pytest.raises(ValueError, match=rf"start={start} must lie in 1..T-1 of ids"):
        continuation_losses(decided_gpt(0), prompts(1, 5), start)


LONG = "It says in a sentence what it does, and in this one why it is good for you to know it."


assert len(LONG) >= 80


@pytest.mark.parametrize("length", [2, 3, 5, 6, 7, 8, 11, 23, 40])
@pytest.mark.parametrize("context", [1, 2, 5, 6])
def test_every_token_is_scored_once_with_enough_context(length, context):
    model = decided_gpt(0)
    ids = torch.randint(11, (length,), dtype=torch.int32)
    found = token_losses(model, ids, context, batch_size=3)
    ids = ids.long()
    assert found.shape == (length - 1,)
    stride = max(1, context // 2)
    last = max(0, length - 1 - context)
    begins = [*range(0, last, stride), last]
    for t in range(length - 1):
        begin = next(s for s in begins if s + context > t)  # the first window that reaches it
        assert t - begin + 1 >= min(t + 1, (context + 1) // 2)
        logits = model(ids[None, begin : t + 1])[0, -1]
        assert found[t].item() == pytest.approx(F.cross_entropy(logits, ids[t + 1]).item(), 1e-5)


def test_bits_per_byte_is_the_sum_over_tokens():
    model = decided_gpt(0).train()
    ids = torch.randint(11, (10,))
    nats = F.cross_entropy(model(ids[None, :-1])[0], ids[1:], reduction="sum").item()
    assert bits_per_byte(model, ids, 17) == pytest.approx(nats / math.log(2) / 17, rel=1e-6)
    assert model.training  # left as it was found
    for module in model.modules():  # dropout, which evaluation turns off
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    assert not torch.allclose(model(ids[None]), model(ids[None]))
    assert bits_per_byte(model, ids, 17) == pytest.approx(nats / math.log(2) / 17, rel=1e-6)
    assert not token_losses(model, ids).requires_grad
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    assert bits_per_byte(model, ids, 9) == pytest.approx(math.log2(11), rel=1e-6)


def test_a_text_on_the_cpu_is_scored_where_the_model_is(device):
    ids = torch.randint(11, (40,))
    here, there = (decided_gpt(0, at, torch.float32) for at in ("cpu", device))
    found = token_losses(there, ids, 5)
    assert found.device.type == "cpu"
    torch.testing.assert_close(found, token_losses(here, ids, 5), rtol=1e-4, atol=1e-4)


def test_likelihood_refuses_what_does_not_fit():
    model = decided_gpt(0)
    with pytest.raises(ValueError, match=r"context=13 must lie in 1\.\.12"):
        token_losses(model, torch.arange(5), 13)
    with pytest.raises(ValueError, match=r"context=0 must lie in 1\.\.12"):
        token_losses(model, torch.arange(5), 0)
    with pytest.raises(ValueError, match=r"two tokens or more, got \(1,\)"):
        token_losses(model, torch.arange(1))
    with pytest.raises(ValueError, match=r"got \(1, 5\)"):
        token_losses(model, torch.arange(5)[None])
    with pytest.raises(ValueError, match="num_bytes must be at least 1, got 0"):
        bits_per_byte(model, torch.arange(5), 0)
