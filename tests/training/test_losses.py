"""No loss goes round the output module, however many tokens there are."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tinytf.gpt import GPT, GPTConfig
from tinytf.inspect import replace
from tinytf.training.losses import PART, TextBatch, next_token_loss

VOCAB = 50257
counts = pytest.mark.parametrize("count", [60, 120, 180, 240])  # logits by parts from 167 on


def small(count):
    torch.manual_seed(0)
    model = GPT(GPTConfig(VOCAB, 16, 2, 1, max_len=count))
    ids = torch.randint(VOCAB, (1, count + 1))
    return model, TextBatch(ids[:, :-1], ids[:, 1:])


def plain_loss(model, batch):
    return F.cross_entropy(model(batch.ids_in)[0], batch.ids_out[0], reduction="sum")


class Louder(nn.Linear):
    def forward(self, x):
        return 3 * super().forward(x)


@counts
def test_an_output_of_another_kind_is_called(count):
    model, batch = small(count)
    before = next_token_loss(model, batch)[0]
    torch.testing.assert_close(before, plain_loss(model, batch), atol=1e-2, rtol=1e-5)
    louder = Louder(16, VOCAB, bias=False)
    louder.weight = model.output.weight
    model.output = louder
    loss, tokens = next_token_loss(model, batch)
    assert tokens == count
    torch.testing.assert_close(loss, plain_loss(model, batch), atol=1e-2, rtol=1e-5)
    assert abs(loss - before) > 0.1


@counts
def test_hooks_on_the_output_fire_and_replace_acts(count):
    model, batch = small(count)
    before, fired = next_token_loss(model, batch)[0], []
    handle = model.output.register_forward_hook(lambda *_: fired.append(1) or None)
    next_token_loss(model, batch)
    assert fired == [1]
    handle.remove()
    with replace(model, "output", lambda logits: 3 * logits):
        changed = next_token_loss(model, batch)[0]
        torch.testing.assert_close(changed, plain_loss(model, batch), atol=1e-2, rtol=1e-5)
    assert abs(changed - before) > 0.1


@counts
def test_a_plain_output_is_worked_out_by_parts_where_that_gains(count, monkeypatch):
    asked = []
    by_parts = F.linear_cross_entropy
    monkeypatch.setattr(
        F, "linear_cross_entropy", lambda *a, **k: asked.append(1) or by_parts(*a, **k)
    )
    model, batch = small(count)
    next_token_loss(model, batch)
    assert asked == ([1] if count * VOCAB >= 2 * PART else [])
