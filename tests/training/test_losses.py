"""Batches and the losses on them against torch's."""

import pytest
import torch
import torch.nn.functional as F
from gpt_support import decided_gpt
from support import small_model
from torch import nn
from training_support import batch_of

from tinytf.gpt import GPT, GPTConfig
from tinytf.inspect import replace
from tinytf.text.words import BOS, EOS, PAD
from tinytf.training import losses as objective
from tinytf.training.losses import (
    PART,
    TextBatch,
    cross_entropy,
    make_batch,
    next_token_loss,
    sequence_loss,
)

by_parts_here = pytest.mark.skipif(
    not hasattr(F, "linear_cross_entropy"), reason="this torch has only the whole"
)


def test_the_loss_is_that_of_the_next_token():
    model = decided_gpt(0).requires_grad_(False)
    ids = torch.randint(11, (3, 9))
    batch = TextBatch(ids[:, :-1], ids[:, 1:])
    for smoothing in (0.0, 0.2):
        loss, tokens = next_token_loss(model, batch, smoothing)
        assert tokens == batch.num_tokens == 24
        want = 0.0
        for row in ids:
            for t in range(8):  # each prefix on its own
                logp = model(row[None, : t + 1])[0, -1].log_softmax(-1)
                want += -(1 - smoothing) * logp[row[t + 1]] - smoothing * logp.mean()
        torch.testing.assert_close(loss.double(), want, rtol=1e-5, atol=0)
    assert next_token_loss(decided_gpt(0, dtype=torch.bfloat16), batch)[0].dtype == torch.float32


@by_parts_here
def test_loss_and_gradients_part_by_part_are_those_of_the_whole(monkeypatch):
    ids = torch.randint(11, (5, 9))
    batch = TextBatch(ids[:, :-1], ids[:, 1:])
    calls = []
    by_parts = F.linear_cross_entropy

    def spy(hidden, *args, options, **kwargs):
        calls.append(options.batch_chunk_size)
        return by_parts(hidden, *args, options=options, **kwargs)

    monkeypatch.setattr(F, "linear_cross_entropy", spy)
    results = []
    for part in (10**9, 33):  # 40 tokens by 11: all at once, then 3 tokens at a time
        monkeypatch.setattr(objective, "PART", part)
        model = decided_gpt(0, dtype=torch.float32)
        loss, tokens = next_token_loss(model, batch)
        (3 * loss / tokens).backward()
        results.append([loss.detach(), *(p.grad for p in model.parameters())])
    assert calls == [3]
    for whole, parts in zip(*results, strict=True):
        torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        next_token_loss(model, batch)
    next_token_loss(model, batch, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        next_token_loss(model, batch)
    assert calls == [3]  # where it gains nothing, or can't, the whole is computed


def test_targets_are_shifted_by_one():
    batch = make_batch([[3, 4], [5]], [[6], [7, 8, 3]])
    assert batch.src.tolist() == [[3, 4, EOS], [5, EOS, PAD]]
    assert batch.tgt_in.tolist() == [[BOS, 6, PAD, PAD], [BOS, 7, 8, 3]]
    assert batch.tgt_out.tolist() == [[6, EOS, PAD, PAD], [7, 8, 3, EOS]]


def test_bad_batches_are_refused():
    with pytest.raises(ValueError, match="2 sources do not match 1 targets"):
        make_batch([[3], [4]], [[5]])
    with pytest.raises(ValueError, match="the batch is empty"):
        make_batch([], [])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_equals_torch(smoothing, exact):
    model, batch = small_model(exact), batch_of(1).to(exact)
    loss, tokens = sequence_loss(model, batch, smoothing)
    ours = torch.autograd.grad(loss / tokens, list(model.parameters()))
    logits = model(batch.src, batch.tgt_in).flatten(0, 1).float()
    expected = F.cross_entropy(
        logits, batch.tgt_out.flatten(), ignore_index=PAD, label_smoothing=smoothing
    )
    theirs = torch.autograd.grad(expected, list(model.parameters()))
    assert tokens == (batch.tgt_out != PAD).sum() < batch.tgt_out.numel()
    torch.testing.assert_close(loss / tokens, expected, atol=1e-6, rtol=0)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


# ---- no loss goes round the output module

VOCAB = 50257
counts = pytest.mark.parametrize("count", [120, 180])  # logits by parts from 167 on


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
def test_an_output_that_does_more_than_multiply_is_called(count):
    """A subclass, a hook, and what `replace` puts there."""
    model, batch = small(count)
    before, fired = next_token_loss(model, batch)[0], []
    torch.testing.assert_close(before, plain_loss(model, batch), atol=1e-2, rtol=1e-5)
    handle = model.output.register_forward_hook(lambda *_: fired.append(1) or None)
    next_token_loss(model, batch)
    assert fired == [1]
    handle.remove()
    with replace(model, "output", lambda logits: 3 * logits):
        replaced, tokens = next_token_loss(model, batch)
    louder = Louder(16, VOCAB, bias=False)
    louder.weight = model.output.weight
    model.output = louder
    loss, _ = next_token_loss(model, batch)
    assert tokens == count
    torch.testing.assert_close(replaced, loss, atol=1e-2, rtol=1e-5)
    torch.testing.assert_close(loss, plain_loss(model, batch), atol=1e-2, rtol=1e-5)
    assert abs(loss - before) > 0.1


@by_parts_here
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


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("ignored", [None, PAD])
def test_cross_entropy_of_logits_equals_torch(smoothing, ignored):
    logits = torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(7, (3, 5))
    targets[0, 2:] = PAD
    loss, count = cross_entropy(logits, targets, smoothing, ignored)
    (ours,) = torch.autograd.grad(loss, logits)
    expected = F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), label_smoothing=smoothing, reduction="sum",
        ignore_index=-100 if ignored is None else ignored,
    )  # fmt: skip
    (theirs,) = torch.autograd.grad(expected, logits)
    assert count == (15 if ignored is None else int((targets != PAD).sum()))
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)
    with pytest.raises(ValueError, match=r"score \(3, 5\) tokens, but .* shape \(5, 3\)"):
        cross_entropy(logits, targets.t())
