"""Activations, the gated network, and what feed-forward networks cost, against oracles."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import TOLERANCE, assert_equal_with_gradients, bounded, module_twins, randomise
from torch import nn

from tinytf.blocks import EncoderLayer, PreNorm
from tinytf.feedforward import FeedForward, SwiGLU, gated_width, gelu, gelu_tanh
from tinytf.metrics.counting import count_parameters

DTYPES = pytest.mark.parametrize("dtype", TOLERANCE)


@DTYPES
@pytest.mark.parametrize(("ours", "approximate"), [(gelu, "none"), (gelu_tanh, "tanh")])
def test_gelu_equals_torch(ours, approximate, dtype, exact):
    x = torch.linspace(-6, 6, 201, dtype=dtype, device=exact)
    assert_equal_with_gradients(ours, lambda x: F.gelu(x, approximate=approximate), [x])


def test_the_two_gelus_differ_as_documented(exact):
    x = torch.linspace(-10, 10, 20_001, dtype=torch.float64, device=exact)
    gap = (gelu(x) - gelu_tanh(x)).abs()
    assert 4e-4 < gap.max() < 5e-4
    assert 2 < x[gap.argmax()].abs() < 3


@DTYPES
@pytest.mark.parametrize("activation", [F.relu, gelu, gelu_tanh, torch.tanh])
def test_feed_forward_equals_two_linear_maps(activation, dtype, exact):
    ours = randomise(FeedForward(6, 10, activation=activation)).to(exact, dtype)
    first, second = nn.Linear(6, 10).to(exact, dtype), nn.Linear(10, 6).to(exact, dtype)
    twins = [
        ([getattr(mine, name)], getattr(theirs, name))
        for mine, theirs in ((ours.w_1, first), (ours.w_2, second))
        for name in ("weight", "bias")
    ]
    x = torch.randn(3, 4, 6, dtype=dtype, device=exact)
    assert_equal_with_gradients(ours, lambda x: second(activation(first(x))), [x], twins)


@DTYPES
def test_swiglu_equals_the_equation(dtype, exact):
    ours = randomise(SwiGLU(6, 10)).to(exact, dtype)
    gate, up, down = (
        torch.empty(shape, dtype=dtype, device=exact, requires_grad=True)
        for shape in ((10, 6), (10, 6), (6, 10))
    )

    def theirs(x):
        z = x @ gate.T
        return (z / (1 + (-z).exp()) * (x @ up.T)) @ down.T

    twins = [([ours.w_1.weight], gate), ([ours.w_3.weight], up), ([ours.w_2.weight], down)]
    x = torch.randn(3, 4, 6, dtype=dtype, device=exact)
    assert_equal_with_gradients(ours, theirs, [x], twins)


def test_swiglu_equals_llamas():
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = llama.LlamaConfig(hidden_size=6, intermediate_size=10, num_attention_heads=2)
    theirs, ours = llama.LlamaMLP(config).double(), randomise(SwiGLU(6, 10)).double()
    twins = [
        ([ours.w_1.weight], theirs.gate_proj.weight),
        ([ours.w_3.weight], theirs.up_proj.weight),
        ([ours.w_2.weight], theirs.down_proj.weight),
    ]
    assert_equal_with_gradients(ours, theirs, [torch.randn(3, 4, 6).double()], twins)


@pytest.mark.parametrize("layer", [FeedForward(8, 12), SwiGLU(8, 12)], ids=["relu", "swiglu"])
def test_no_position_reaches_another(layer, device):
    layer = layer.to(device)
    x = torch.randn(5, 8, device=device)
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x[None])[0], x)
    reach = jacobian.abs().sum(dim=(1, 3)).cpu()  # (T, C, T, C) -> (T, T)
    assert (reach.diagonal() > 0).all()
    assert reach.fill_diagonal_(0).max() == 0


@pytest.mark.parametrize("make", [FeedForward, SwiGLU])
def test_dropout_acts_on_hidden_units_in_training_only(make, device):
    layer = make(8, 400, dropout=0.5).to(device)
    seen = []
    layer.w_2.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    x = torch.randn(1, 8, device=device)
    layer(x), layer.eval()(x)
    dropped = (seen[0] == 0) & (seen[1] != 0)
    kept = (seen[0] != 0) & (seen[1] != 0)
    assert 0.3 < dropped.sum() / (seen[1] != 0).sum() < 0.7
    torch.testing.assert_close(seen[0][kept], 2 * seen[1][kept])


def test_swiglu_refuses_another_width():
    with pytest.raises(ValueError, match="x has width 7, expected d_model=8"):
        SwiGLU(8, 16)(torch.randn(2, 3, 7))


@bounded
@given(st.integers(1, 400), st.integers(1, 300))
def test_gated_width_costs_what_two_matrices_do(d_model, d_ff):
    two, three = 2 * d_model * d_ff, 3 * d_model * gated_width(d_ff)
    assert two <= three < two + 3 * d_model
    assert count_parameters(SwiGLU(d_model, gated_width(d_ff))) == three


def test_gated_width_rounds_up_as_llama_does():
    assert gated_width(4 * 4096, 256) == 11008  # Touvron et al. 2023, the 7B model
    assert [gated_width(n) for n in (1, 2, 3, 6)] == [1, 2, 2, 4]


@pytest.mark.parametrize(("d_ff", "multiple_of"), [(0, 1), (8, 0), (-3, 4)])
def test_gated_width_refuses_what_is_below_one(d_ff, multiple_of):
    with pytest.raises(ValueError, match=f"d_ff={d_ff} and multiple_of={multiple_of}"):
        gated_width(d_ff, multiple_of)


@pytest.mark.parametrize(("layers", "d_model"), [(12, 768), (24, 1024), (36, 1280), (48, 1600)])
def test_a_pre_norm_encoder_layer_counts_like_gpt2s_block(layers, d_model):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=d_model, n_layer=layers, n_head=d_model // 64)
    with torch.device("meta"):
        theirs = transformers.GPT2LMHeadModel(config)
        block = EncoderLayer(d_model, d_model // 64, 4 * d_model, residual=PreNorm)
    whole = layers * count_parameters(block) + (50257 + 1024) * d_model + 2 * d_model
    assert whole == count_parameters(theirs)


@DTYPES
@pytest.mark.parametrize(("activation", "module"), [(F.relu, nn.ReLU), (F.gelu, nn.GELU)])
def test_feed_forward_equals_torch(dtype, activation, module, exact):
    ours = randomise(FeedForward(6, 10, activation=activation)).to(exact, dtype)
    theirs = nn.Sequential(nn.Linear(6, 10), module(), nn.Linear(10, 6)).to(exact, dtype)
    twins = module_twins(ours.w_1, theirs[0]) + module_twins(ours.w_2, theirs[2])
    x = torch.randn(2, 5, 6, dtype=dtype, device=exact)
    assert_equal_with_gradients(ours, theirs, [x], twins)


def test_feed_forward_drops_hidden_units():
    layer = FeedForward(4, 4, dropout=0.5)
    with torch.no_grad():
        for linear in (layer.w_1, layer.w_2):
            linear.weight.copy_(torch.eye(4))
            linear.bias.zero_()
    out = layer(torch.ones(50, 50, 4))
    assert out.unique().tolist() == [0.0, 2.0]
    assert layer.eval()(torch.ones(1, 1, 4)).unique().tolist() == [1.0]


def test_feed_forward_refuses_another_width():
    with pytest.raises(ValueError, match="x has width 5, expected d_model=4"):
        FeedForward(4, 8)(torch.zeros(1, 2, 5))


def test_biases_may_be_left_out():
    layer, x = FeedForward(4, 6, bias=False), torch.randn(2, 3, 4)
    assert [n for n, _ in layer.named_parameters()] == ["w_1.weight", "w_2.weight"]
    torch.testing.assert_close(layer(x), (x @ layer.w_1.weight.T).relu() @ layer.w_2.weight.T)
