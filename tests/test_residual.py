"""Residuals: what they add and normalise, with any norm, and the layers built from them."""

import functools

import pytest
import torch
from support import assert_equal_with_gradients, attention_twins, module_twins, randomise
from torch import nn

import tinytf
from tinytf import blocks, residual
from tinytf.blocks import EncoderLayer
from tinytf.norm import LayerNorm, RMSNorm
from tinytf.residual import PostNorm, PreNorm

C = 12
NORMS = pytest.mark.parametrize("norm", [LayerNorm, RMSNorm, nn.Identity])


def double(x):
    return 2 * x + 1


@NORMS
def test_post_norm_normalises_the_sum(norm, exact):
    block = randomise(PostNorm(C, 0.0, norm)).to(exact, torch.float64)
    x = torch.randn(2, 5, C, device=exact, dtype=torch.float64)
    expected = block.norm(x + double(x))
    torch.testing.assert_close(block(x, double), expected, atol=1e-12, rtol=0)


@NORMS
def test_pre_norm_normalises_what_is_read(norm, exact):
    block = randomise(PreNorm(C, 0.0, norm)).to(exact, torch.float64)
    x = torch.randn(2, 5, C, device=exact, dtype=torch.float64)
    expected = x + double(block.norm(x))
    torch.testing.assert_close(block(x, double), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", [PostNorm, PreNorm])
def test_the_norm_is_made_for_the_width(kind):
    asked = []
    block = kind(C, norm=lambda width: asked.append(width) or nn.Identity())
    assert asked == [C]
    assert not list(block.parameters())
    assert isinstance(kind(C).norm, LayerNorm)
    assert [name for name, _ in kind(C).named_parameters()] == ["norm.weight", "norm.bias"]


def test_a_stack_of_pre_norm_ends_in_a_norm():
    assert PostNorm.final_norm is nn.Identity
    assert PreNorm.final_norm is LayerNorm


def test_one_definition_under_three_names():
    assert blocks.PostNorm is residual.PostNorm is tinytf.PostNorm
    assert blocks.PreNorm is residual.PreNorm is tinytf.PreNorm


@pytest.mark.parametrize("kind", [PostNorm, PreNorm])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_layer_with_rms_norm_equals_torchs_with_its_norms_replaced(kind, dtype, exact):
    part = functools.partial(kind, norm=RMSNorm)
    ours = randomise(EncoderLayer(C, 3, 20, 0.0, part)).to(exact, dtype)
    theirs = nn.TransformerEncoderLayer(
        C, 3, 20, dropout=0.0, batch_first=True, norm_first=kind is PreNorm
    )
    theirs.norm1, theirs.norm2 = nn.RMSNorm(C, eps=1e-6), nn.RMSNorm(C, eps=1e-6)
    theirs = theirs.to(exact, dtype)
    twins = attention_twins(ours.self_attention, theirs.self_attn)
    twins += module_twins(ours.feed_forward.w_1, theirs.linear1)
    twins += module_twins(ours.feed_forward.w_2, theirs.linear2)
    twins += [([ours.residual_1.norm.weight], theirs.norm1.weight)]
    twins += [([ours.residual_2.norm.weight], theirs.norm2.weight)]
    x = torch.randn(3, 6, C, dtype=dtype, device=exact)
    assert_equal_with_gradients(ours, theirs, [x], twins)


def test_the_gradient_of_a_residual_is_the_identity_plus_the_sublayers(exact):
    """As matrices: J = I + J_f, where a pre-norm block's f starts with its norm."""
    f = nn.Linear(C, C).to(exact, torch.float64)
    x = torch.randn(C, device=exact, dtype=torch.float64)
    for kind, inner in (
        (functools.partial(PreNorm, norm=nn.Identity), f),
        (PreNorm, lambda y: f(nn.functional.layer_norm(y, (C,)))),
    ):
        block = kind(C, 0.0).to(exact, torch.float64)
        whole = torch.autograd.functional.jacobian(lambda y, b=block: b(y, f), x)
        part = torch.autograd.functional.jacobian(inner, x)
        identity = torch.eye(C, device=exact, dtype=torch.float64)
        torch.testing.assert_close(whole, identity + part, atol=1e-12, rtol=0)
