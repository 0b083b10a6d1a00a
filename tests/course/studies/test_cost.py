"""Every rung of the ladder computes the same, and what it says."""

import pytest
import torch
import torch.nn.functional as F

from tinytf.attention import explicit_attention, fused_attention
from tinytf.gpt import GPTConfig
from tinytf.inspect import attention_layers
from tinytf.training.losses import (
    _gains_by_parts,
    next_token_loss,
)
from tinytf_course.studies import cost as study

TINY = GPTConfig(61, 12, 3, 2, max_len=16)


@pytest.fixture(scope="module")
def losses():
    found = {}
    for name, rung in study.RUNGS.items():
        if not rung.compiled:
            step = study.TrainingStep(name, config=TINY, rows=3, seed=1)
            found[name] = [step() for _ in range(3)]
    return found


def test_every_rung_computes_the_same(losses):
    plain = losses["plain"]
    assert plain[2] < plain[0]  # it learns
    for name in ("fused attention", "fused AdamW", "loss in parts"):
        assert losses[name] == pytest.approx(plain, abs=1e-5)
    assert losses["bfloat16"] == pytest.approx(plain, abs=0.02)
    assert losses["bfloat16"] != pytest.approx(plain, abs=1e-6)


@pytest.mark.parametrize("name", ["plain", "fused attention", "fused AdamW", "loss in parts"])
def test_a_rung_does_what_it_says(name):
    step, rung = study.TrainingStep(name, config=TINY, rows=2), study.RUNGS[name]
    used = {layer.attention for layer in attention_layers(step.model).values()}
    assert used == {explicit_attention if name == "plain" else fused_attention}
    assert step._loss is (next_token_loss if name == "loss in parts" else study.whole_loss)
    assert step.optimizer.defaults["fused"] == rung.fused_adamw == (name in [*study.RUNGS][2:])


@pytest.mark.skipif(not hasattr(F, "linear_cross_entropy"), reason="this torch has only the whole")
def test_the_loss_by_parts_is_taken_at_the_studys_size():
    """Otherwise two rungs would be one."""
    tokens = study.ROWS * study.SIZES.max_len
    hidden = torch.empty(tokens, study.SIZES.d_model)
    output = torch.nn.Linear(study.SIZES.d_model, study.SIZES.vocab_size, bias=False)
    assert _gains_by_parts(hidden.requires_grad_(), output, 0.0)
    assert _gains_by_parts(hidden[: tokens // 2], output, 0.0)  # the chapter's


def test_a_seed_decides_weights_and_batch():
    one, same, other = (study.TrainingStep("plain", config=TINY, rows=2, seed=s) for s in (1, 1, 2))
    assert torch.equal(one.batch.ids_in, same.batch.ids_in)
    assert one() == same() != other()


@pytest.mark.parametrize("rung", ["plain", "loss in parts"])
def test_shares_of_a_steps_time_add_up(rung):
    found = study.shares(study.TrainingStep(rung, config=TINY, rows=3))
    assert sum(found.values()) == pytest.approx(1, abs=0.01)
    for kind in ("linear layers", "attention", "output and loss", "optimiser"):
        assert found[kind] > 0
