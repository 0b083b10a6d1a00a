"""Llama: built of what stands, used as a GPT is, causal, and as large as the published ones."""

import math

import pytest
import torch
from support import randomise
from torch import nn

from tinytf.attention import fused_attention
from tinytf.data.blocks import TextBlocks
from tinytf.decoding.generate import generate
from tinytf.decoding.likelihood import bits_per_byte, continuation_losses, token_losses
from tinytf.decoding.sampling import Sampling
from tinytf.inspect import attention_layers, record
from tinytf.llama import PRESETS, Llama, LlamaConfig
from tinytf.metrics.counting import count_parameters
from tinytf.training.checkpointing import CheckpointError
from tinytf.training.losses import next_token_loss
from tinytf.training.trainer import Trainer, TrainingConfig

SIZES = {"vocab_size": 11, "d_model": 12, "num_heads": 3, "num_kv_heads": 1, "num_layers": 2,
         "d_ff": 20, "max_len": 12}  # fmt: skip


def decided(seed=0, device="cpu", **changes):
    """A model with opinions, whose texts differ by prompt and position."""
    torch.manual_seed(seed)
    return randomise(Llama(LlamaConfig(**SIZES | changes)).to(device, torch.float64).eval(), 0.6)


# ---- what it is


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("llama-2-7b", 6_738_415_616),
        ("llama-2-70b", 68_976_648_192),
        ("llama-3-8b", 8_030_261_248),
    ],
)
def test_published_sizes_come_out_to_the_last_parameter(name, count):
    """Hugging Face's own model of the same settings has as many."""
    c = LlamaConfig.preset(name)
    with torch.device("meta"):
        assert count_parameters(Llama(c)) == count
    transformers = pytest.importorskip("transformers")
    settings = transformers.LlamaConfig(
        vocab_size=c.vocab_size, hidden_size=c.d_model, intermediate_size=c.d_ff,
        num_hidden_layers=c.num_layers, num_attention_heads=c.num_heads,
        num_key_value_heads=c.num_kv_heads,
    )  # fmt: skip
    with torch.device("meta"):
        assert count_parameters(transformers.LlamaForCausalLM(settings)) == count


def test_an_unknown_preset_is_named():
    with pytest.raises(ValueError, match="no preset 'llama-9'; there are llama-2-7b, "):
        LlamaConfig.preset("llama-9")
    assert set(PRESETS) == {"llama-2-7b", "llama-2-70b", "llama-3-8b"}


def test_a_grouped_layer_has_no_bias_and_starts_as_gpt_does():
    torch.manual_seed(0)
    c = LlamaConfig(97, 128, 8, 2, 8, 256, 16)
    model = Llama(c)
    assert not [name for name, _ in model.named_parameters() if name.endswith("bias")]
    writers = ("w_o.weight", "w_2.weight")
    for name, p in model.named_parameters():
        if "norm" in name:
            assert torch.equal(p, torch.ones_like(p))
        else:
            std = 0.02 / (math.sqrt(16) if name.endswith(writers) else 1)
            assert p.std().item() == pytest.approx(std, rel=0.05), name


@pytest.mark.parametrize("tied", [False, True])
def test_the_output_is_tied_on_request(tied):
    model = Llama(LlamaConfig(**SIZES, tie_output=tied))
    assert (model.output.weight is model.embedding.weight) == tied
    assert (
        count_parameters(model) == 11 * 12 * (2 - tied) + 2 * (2 * 144 + 2 * 48 + 3 * 240 + 24) + 12
    )


def test_eps_and_base_reach_every_layer():
    model = Llama(LlamaConfig(**SIZES, base=50.0, eps=0.25))
    norms = [m.eps for m in model.modules() if hasattr(m, "eps")]
    assert norms == [0.25] * 5
    assert [layer.base for layer in attention_layers(model).values()] == [50.0] * 2


def test_order_matters_without_any_table_of_positions(exact):
    model = decided(device=exact)
    ids = torch.tensor([[1, 2, 3, 4], [2, 1, 3, 4]], device=exact)
    last = model(ids)[:, -1]
    assert (last[0] - last[1]).abs().max() > 1e-3


# ---- used as a GPT is


@pytest.mark.parametrize("tied", [False, True])
def test_generating_with_the_cache_changes_no_token(exact, tied):
    texts = set()
    for seed in range(5):
        model = decided(seed, exact, tie_output=tied)
        ids = torch.randint(11, (3, 4)).to(exact)
        cached, plain = (
            generate(model, ids, 14, end_id=3, keep=6, use_cache=use) for use in (True, False)
        )
        assert torch.equal(cached, plain)
        texts |= {tuple(row) for row in cached[:, 4:].tolist()}
    assert len(texts) > 8


@pytest.mark.parametrize("layers", [1, 2])
def test_the_cache_holds_the_key_heads_alone(exact, layers):
    model = decided(device=exact, num_layers=layers)
    cache = model.decoder.new_cache()
    whole = model(torch.tensor([[1, 2, 3, 4, 5]], device=exact))
    first = model(torch.tensor([[1, 2]], device=exact), cache)
    rest = model(torch.tensor([[3, 4, 5]], device=exact), cache)
    torch.testing.assert_close(torch.cat([first, rest], 1), whole, atol=1e-11, rtol=1e-11)
    assert [c.k.shape for c in cache] == [(1, 1, 5, 4)] * layers


def test_sampling_and_likelihood_take_it(exact):
    model, ids = decided(device=exact), torch.randint(11, (40,))
    drawn = [
        generate(model, ids[None, :4].to(exact), 6, Sampling(temperature=2.0, top_k=5),
                 generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    ]  # fmt: skip
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    losses = token_losses(model, ids)
    expected = -model(ids[None, :12].to(exact)).log_softmax(-1)[0].cpu()
    torch.testing.assert_close(
        losses[:6], expected[range(6), ids[1:7]].float(), atol=1e-5, rtol=1e-5
    )
    assert bits_per_byte(model, ids, 39) == pytest.approx(losses.mean().item() / math.log(2))
    assert continuation_losses(model, ids[None, :12].to(exact), 3).shape == (1, 9)


def test_it_learns_a_text_by_heart_and_is_recorded():
    torch.manual_seed(0)
    ids = torch.randint(11, (25,))
    model = Llama(LlamaConfig(**SIZES))
    config = TrainingConfig(steps=150, lr=2e-2, warmup=10, label_smoothing=0.0)
    trainer = Trainer(model, TextBlocks(ids, 12, 1), config, next_token_loss)
    trainer.run(log_every=10)
    assert trainer.history[0]["loss"] > 1.5
    assert trainer.history[-1]["loss"] < 0.2
    with record(model) as seen:
        model(ids[None, :12])
    assert {name: w.shape for name, w in seen.items()} == {
        f"decoder.layers.{i}.self_attention": (1, 3, 12, 12) for i in range(2)
    }


def test_bfloat16_training_keeps_attention_in_float32():
    seen = []

    def spy(q, k, v, mask=None, dropout=0.0):
        seen.append({part.dtype for part in (q, k, v)})
        return fused_attention(q, k, v, mask, dropout)

    model = Llama(LlamaConfig(**SIZES))
    for layer in attention_layers(model).values():
        layer.attention = spy
    config = TrainingConfig(steps=2, warmup=1, precision="bfloat16")
    Trainer(model, TextBlocks(torch.arange(40) % 11, 12, 2), config, next_token_loss).run()
    assert seen
    assert all(dtypes == {torch.float32} for dtypes in seen)
    assert all(layer.attention is spy for layer in attention_layers(model).values())


# ---- what is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_heads": 5}, "d_model=12 is not divisible by num_heads=5"),
        ({"num_kv_heads": 2}, "num_heads=3 is not divisible by num_kv_heads=2"),
        ({"num_kv_heads": 0}, "num_kv_heads must be at least 1, got 0"),
        ({"num_heads": 4}, "d_model=12 and num_heads=4 give heads of width 3"),
        ({"vocab_size": 0}, "vocab_size must be at least 1, got 0"),
        ({"d_ff": 0}, "d_ff must be at least 1, got 0"),
        ({"max_len": 0}, "max_len must be at least 1, got 0"),
        ({"num_layers": -1}, "num_layers must be at least 1, got -1"),
        ({"base": 0.0}, "base must be above 0, got 0.0"),
        ({"eps": -1e-6}, "eps must be above 0, got -1e-06"),
    ],
)
def test_sizes_that_do_not_fit_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        LlamaConfig(**SIZES | changes)


def test_ids_that_do_not_fit_are_named(exact):
    model = decided(device=exact)
    with pytest.raises(ValueError, match="id 11 is outside the vocabulary of 11"):
        model(torch.tensor([[11]], device=exact))
    with pytest.raises(TypeError, match=r"got torch\.float32"):
        model(torch.zeros(1, 2, device=exact))
    with pytest.raises(ValueError, match="sequence of length 13 is longer than max_len=12"):
        model(torch.zeros(1, 13, dtype=torch.long, device=exact))
    cache = model.decoder.new_cache()
    model(torch.zeros(1, 12, dtype=torch.long, device=exact), cache)
    with pytest.raises(ValueError, match="sequence of length 13 is longer than max_len=12"):
        model(torch.zeros(1, 1, dtype=torch.long, device=exact), cache)


def test_a_folder_that_is_none_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"there is no file .*config.json"):
        Llama.from_pretrained(tmp_path)


def test_a_stack_ends_in_a_norm():
    model = Llama(LlamaConfig(**SIZES))
    assert isinstance(model.decoder.final_norm, nn.Module)
    model.decoder.final_norm.weight.data.zero_()
    assert model(torch.tensor([[1, 2]])).abs().max().item() == 0
