"""Initial weights: their spread, what is left alone, and what they do to variance with depth."""

import math

import pytest
import torch
from support import small_model
from torch import nn

from tinytf.blocks import Decoder, DecoderLayer, Encoder, EncoderLayer, PreNorm
from tinytf.initialisation import normal, scale_residual, xavier
from tinytf.norm import LayerNorm


def encoder(layers=2, width=32):
    stack = [EncoderLayer(width, 4, 4 * width, 0.0, PreNorm) for _ in range(layers)]
    return Encoder(stack, nn.Identity())


def weights(module):
    return {n: p.detach().clone() for n, p in module.named_parameters()}


@pytest.mark.parametrize("shape", [(300, 300), (100, 400), (400, 100)])
def test_xavier_has_glorots_bound_and_spread(shape):
    linear = nn.Linear(*shape)
    xavier(linear)
    bound = math.sqrt(6 / sum(shape))
    assert bound * 0.99 < linear.weight.abs().max() <= bound
    assert linear.weight.std().item() == pytest.approx(math.sqrt(2 / sum(shape)), rel=0.02)
    assert (linear.bias == 0).all()


@pytest.mark.parametrize("std", [0.02, 1.0])
def test_normal_has_its_spread_whatever_the_width(std):
    for shape in ((200, 200), (50, 800)):
        linear = nn.Linear(*shape)
        normal(linear, std)
        assert linear.weight.std().item() == pytest.approx(std, rel=0.02)
        assert abs(linear.weight.mean().item()) < std / 50
        assert linear.weight.abs().max() > 3.5 * std  # a normal, not a uniform
        assert (linear.bias == 0).all()
    normal(linear)
    assert linear.weight.std().item() == pytest.approx(0.02, rel=0.02)


@pytest.mark.parametrize("draw", [xavier, normal])
def test_only_linear_maps_are_drawn(draw):
    model = small_model(norm="pre", tie_output=False)
    before = weights(model)
    torch.manual_seed(1)
    draw(model)
    linear = {n for n, m in model.named_modules() if isinstance(m, nn.Linear)}
    for name, parameter in model.named_parameters():
        owner, _, kind = name.rpartition(".")
        changed = not torch.equal(parameter, before[name])
        assert changed == (owner in linear and kind == "weight") or kind == "bias", name
    torch.manual_seed(1)
    again = small_model(norm="pre", tie_output=False)
    again.load_state_dict(before)
    torch.manual_seed(1)
    draw(again)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), again.parameters(),
                                                 strict=True))  # fmt: skip


def test_a_linear_map_without_bias_is_drawn():
    linear = nn.Linear(4, 4, bias=False)
    before = linear.weight.clone()
    xavier(linear)
    assert not torch.equal(linear.weight, before)


def test_scaling_touches_what_writes_to_the_stream_and_nothing_else():
    stack = encoder(3)
    before = weights(stack)
    scale_residual(stack, 6)
    for name, parameter in stack.named_parameters():
        writes = name.endswith(("w_o.weight", "w_2.weight"))
        expected = before[name] / math.sqrt(6) if writes else before[name]
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-6, atol=0)
        assert parameter.requires_grad
        assert parameter.is_leaf
    assert sum(n.endswith(("w_o.weight", "w_2.weight")) for n in before) == 6


def test_scaling_counts_every_sublayer_of_a_decoder():
    stack = Decoder([DecoderLayer(8, 2, 16, 0.0, PreNorm) for _ in range(2)], LayerNorm(8))
    before = weights(stack)
    scale_residual(stack, 6)
    changed = {n for n, p in stack.named_parameters() if not torch.equal(p, before[n])}
    parts = ("self_attention.w_o", "cross_attention.w_o", "feed_forward.w_2")
    assert changed == {f"layers.{i}.{part}.weight" for i in range(2) for part in parts}


@pytest.mark.parametrize("number", [0, -2])
def test_scaling_refuses_a_stack_of_no_sublayers(number):
    with pytest.raises(ValueError, match=f"num_sublayers must be at least 1, got {number}"):
        scale_residual(encoder(1), number)


def test_scaling_refuses_a_module_that_writes_nowhere():
    with pytest.raises(ValueError, match="no w_o or w_2 in this Sequential"):
        scale_residual(nn.Sequential(nn.Linear(4, 4)), 2)


# ---- what they are for


@torch.no_grad()
def test_xavier_keeps_the_variance_of_twenty_maps_and_the_small_normal_does_not():
    stack, x = nn.Sequential(*[nn.Linear(256, 256) for _ in range(20)]), torch.randn(64, 256)
    xavier(stack)
    assert 0.7 < stack(x).std() < 1.4
    normal(stack, 0.02)
    assert stack(x).std() < 1e-8


@torch.no_grad()
def test_scaling_keeps_the_stream_from_growing_with_depth():
    spread = {}
    for layers in (2, 32):
        stack, x = encoder(layers), torch.randn(4, 16, 32)
        xavier(stack)
        plain = stack(x).std().item()
        scale_residual(stack, 2 * layers)
        spread[layers] = plain, stack(x).std().item()
    assert spread[32][0] > 2 * spread[2][0]
    assert 0.8 < spread[32][1] / spread[2][1] < 1.25
