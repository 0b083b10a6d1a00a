"""The study of today's block: each run changes what its name says, and nothing else."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from support import randomise
from torch import nn

from tinytf.feedforward import SwiGLU
from tinytf.gpt import GPT
from tinytf.inspect import attention_layers
from tinytf.llama import Llama, LlamaConfig
from tinytf.metrics.counting import count_parameters
from tinytf.norm import RMSNorm
from tinytf_course.studies.todays_block import (
    ALONE,
    BASE,
    CHANGES,
    LADDER,
    SIZES,
    assemble,
    equal_width,
    losses_by_position,
    prepare,
    rope_base,
)

SMALL = replace(SIZES, vocab_size=31, d_model=16, num_layers=2, max_len=8, d_ff=64)
RUNS = LADDER | ALONE
TEXT = torch.randint(31, (400,), generator=torch.Generator().manual_seed(0))


def test_without_changes_it_is_gpt(exact):
    ours, usual = assemble(SMALL).to(exact, torch.float64), GPT(SMALL).to(exact, torch.float64)
    randomise(usual)
    assert not ours.load_state_dict(usual.state_dict()).missing_keys
    ids = TEXT[None, :8].to(exact)
    torch.testing.assert_close(ours(ids), usual(ids), atol=1e-11, rtol=1e-11)


def test_with_all_changes_it_is_llama(exact):
    ours = assemble(SMALL, CHANGES).to(exact, torch.float64)
    randomise(ours)
    llama = Llama(LlamaConfig(31, 16, 4, 1, 2, 64, 8, BASE, 1e-6, tie_output=True))
    llama = llama.to(exact, torch.float64)
    llama.load_state_dict(ours.state_dict())
    ids = TEXT[None, :8].to(exact)
    torch.testing.assert_close(ours(ids), llama(ids), atol=1e-11, rtol=1e-11)


@pytest.mark.parametrize("run", RUNS)
def test_each_run_has_its_changes_and_no_others(run):
    model, changes = assemble(SMALL, RUNS[run]), set(RUNS[run])
    modules = list(model.modules())
    assert any(isinstance(m, RMSNorm) for m in modules) == ("RMSNorm" in changes)
    assert any(isinstance(m, nn.LayerNorm) or type(m).__name__ == "LayerNorm" for m in modules) == (
        "RMSNorm" not in changes
    )
    assert any(isinstance(m, SwiGLU) for m in modules) == ("SwiGLU" in changes)
    linear = [m for m in model.decoder.modules() if isinstance(m, nn.Linear)]
    assert {m.bias is None for m in linear} == {"no biases" in changes}
    x = torch.randn(1, 4, 3, 4)
    for layer in attention_layers(model).values():
        assert layer.num_kv_heads == (1 if "grouped" in changes else 4)
        assert torch.equal(layer.turned(x, 5), x) == ("RoPE" not in changes)
    learned = any(name == "positions.table" for name, _ in model.named_parameters())
    assert learned == (not {"RoPE", "no positions"} & changes)


@pytest.mark.parametrize("run", RUNS)
def test_runs_have_equal_parameters_and_gpts_start(run):
    target = count_parameters(GPT(SIZES))
    torch.manual_seed(0)
    model = assemble(replace(SIZES, d_ff=equal_width(SIZES, RUNS[run])), RUNS[run])
    assert count_parameters(model) == pytest.approx(target, rel=0.002)
    for name, p in model.named_parameters():
        if p.dim() > 1:
            std = 0.02 / (8**0.5 if name.endswith(("w_o.weight", "w_2.weight")) else 1)
            assert p.std().item() == pytest.approx(std, rel=0.06), name
        else:
            assert torch.equal(p, torch.full_like(p, float("norm.weight" in name))), name


def test_the_ladder_adds_one_change_at_a_time():
    rungs = list(LADDER.values())
    assert rungs[0] == ()
    assert rungs[-1] == CHANGES
    assert all(set(b) - set(a) == {b[-1]} for a, b in pairwise(rungs))
    assert all(len(changes) == 1 for changes in ALONE.values())


def test_the_seed_decides_start_and_order():
    one, again, other = (prepare(TEXT, CHANGES, s, config=SMALL, steps=9) for s in (1, 1, 2))
    assert torch.equal(one.model.embedding.weight, again.model.embedding.weight)
    assert not torch.equal(one.model.embedding.weight, other.model.embedding.weight)
    assert torch.equal(one.batches(3).ids_in, again.batches(3).ids_in)
    assert not torch.equal(one.batches(3).ids_in, other.batches(3).ids_in)
    assert one.config.label_smoothing == 0


def test_losses_by_position_are_those_of_the_text():
    model = randomise(assemble(SMALL, CHANGES).eval(), 0.5)
    text = TEXT[:321]  # windows of 64 begin at 0, 128 and 256
    found = losses_by_position(model, text, 64)
    assert found.shape == (64,)
    expected = []
    for start in (0, 128, 256):
        logits = model(text[None, start : start + 64])[0].log_softmax(-1)
        expected.append(-logits[range(64), text[start + 1 : start + 65]])
    torch.testing.assert_close(found, sum(expected) / 3)


def test_another_base_holds_inside_the_block_alone():
    model = randomise(assemble(SMALL, CHANGES).eval(), 0.5)
    before = model(TEXT[None, :8])
    with rope_base(model, 20.0):
        assert (model(TEXT[None, :8]) - before).abs().max() > 1e-3
    assert torch.equal(model(TEXT[None, :8]), before)
    with pytest.raises(ValueError, match="vocabulary"), rope_base(model, 20.0):
        model(TEXT[None, :8] + 31)
    assert torch.equal(model(TEXT[None, :8]), before)
