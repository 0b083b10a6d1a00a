"""Layer norm and RMS norm against torch's and Llama's, in every width and precision."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import assert_equal_with_gradients, bounded, module_twins, randomise
from torch import nn

from tinytf.norm import LayerNorm, RMSNorm, layer_norm, rms_norm


@pytest.mark.parametrize(
    ("width", "dtype"),
    [(n, torch.float64) for n in (1, 2, 4, 7, 64)] + [(n, torch.float32) for n in (7, 64)],
)
@pytest.mark.parametrize("form", ["equation", "module"])
def test_layer_norm_equals_torch(width, dtype, form, exact):
    ours = randomise(LayerNorm(width, eps=1e-5)).to(exact, dtype)
    theirs = nn.LayerNorm(width, eps=1e-5).to(exact, dtype)
    run = ours if form == "module" else lambda x: layer_norm(x, ours.weight, ours.bias)
    x = torch.randn(3, 5, width, dtype=dtype, device=exact) + 0.5
    if dtype == torch.float64:
        x[0] *= 0.01  # where the place of eps shows most; float32 has too few digits for it
    assert_equal_with_gradients(run, theirs, [x], module_twins(ours, theirs))


def test_layer_norm_starts_as_the_plain_one(device):
    x = torch.randn(2, 5, 8, device=device)
    assert torch.equal(LayerNorm(8, eps=1e-3).to(device)(x), F.layer_norm(x, (8,), eps=1e-3))


def test_constant_vector_has_a_finite_gradient(exact):
    x = torch.full((2, 6), 3.0, device=exact, requires_grad=True)
    one, zero = torch.ones(6, device=exact), torch.zeros(6, device=exact)
    out = layer_norm(x, one, zero)
    out.sum().backward()
    assert (out == 0).all()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_norm_refuses_another_width(kind):
    with pytest.raises(ValueError, match="x has width 7, the norm d_model=8"):
        kind(8)(torch.randn(2, 3, 7))


@pytest.mark.parametrize(
    ("width", "dtype"),
    [(n, torch.float64) for n in (1, 2, 4, 7, 64)] + [(n, torch.float32) for n in (7, 64)],
)
@pytest.mark.parametrize("form", ["equation", "module"])
@pytest.mark.parametrize("eps", [1e-6, 1e-3])
def test_rms_norm_equals_torch(width, dtype, form, eps, exact):
    ours = randomise(RMSNorm(width, eps)).to(exact, dtype)
    theirs = nn.RMSNorm(width, eps).to(exact, dtype)
    run = ours if form == "module" else lambda x: rms_norm(x, ours.weight, eps)
    x = torch.randn(3, 5, width, dtype=dtype, device=exact) + 0.5
    if dtype == torch.float64:
        x[0] *= eps**0.5  # where the place of eps shows most
    assert_equal_with_gradients(run, theirs, [x], [([ours.weight], theirs.weight)])


@pytest.mark.parametrize("form", ["equation", "module"])
def test_rms_norm_equals_llama(form, exact):
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    theirs = LlamaRMSNorm(16).to(exact)  # its squares are taken in float32, whatever it is given
    ours = randomise(RMSNorm(16)).to(exact)
    run = ours if form == "module" else lambda x: rms_norm(x, ours.weight)
    x = torch.randn(3, 5, 16, device=exact) * torch.logspace(-4, 2, 5, device=exact)[:, None]
    assert_equal_with_gradients(run, theirs, [x], [([ours.weight], theirs.weight)])


@pytest.mark.parametrize("form", ["equation", "module"])
def test_rms_norm_starts_with_a_gain_of_one_and_llamas_eps(form, exact):
    layer = RMSNorm(4).to(exact, torch.float64)
    run = layer if form == "module" else lambda x: rms_norm(x, layer.weight)
    x = torch.full((1, 4), 1e-3, device=exact, dtype=torch.float64)
    torch.testing.assert_close(run(x), x / (2e-6) ** 0.5)
    assert [name for name, _ in layer.named_parameters()] == ["weight"]


@bounded
@given(st.integers(2, 40), st.floats(-50, 50), st.floats(0.01, 100))
def test_rms_norm_is_layer_norm_on_centred_input_and_keeps_the_mean(width, mean, scale):
    x = scale * torch.randn(4, width, dtype=torch.float64)
    x = x - x.mean(dim=-1, keepdim=True)
    one, zero = torch.ones(width, dtype=torch.float64), torch.zeros(width, dtype=torch.float64)
    expected = layer_norm(x, one, zero, eps=1e-6)
    torch.testing.assert_close(rms_norm(x, one), expected, atol=1e-10, rtol=0)
    shifted = rms_norm(x + mean, one)
    assert (shifted.square().mean(dim=-1) <= 1 + 1e-12).all()
    kept = mean / ((x + mean).square().mean(dim=-1) + 1e-6).sqrt()
    torch.testing.assert_close(shifted.mean(dim=-1), kept, atol=1e-10, rtol=0)


@pytest.mark.parametrize("form", ["equation", "module"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 2e-3), (torch.bfloat16, 1e-2)])
@pytest.mark.parametrize("scale", [400.0, 1e-3])
def test_rms_norm_of_half_precision_squares_in_float32(form, dtype, tolerance, scale, device):
    layer = RMSNorm(64).to(device, dtype)
    run = layer if form == "module" else lambda x: rms_norm(x, layer.weight)
    x = (scale * torch.randn(5, 64, device=device)).to(dtype).requires_grad_()
    out = run(x)
    out.sum().backward()
    assert out.dtype == x.grad.dtype == dtype
    assert x.grad.isfinite().all()
    expected = nn.functional.rms_norm(x.detach().cpu().double(), (64,), eps=1e-6)
    torch.testing.assert_close(out.cpu().double(), expected, atol=tolerance, rtol=tolerance)


def test_a_zero_vector_has_a_finite_gradient_under_rms_norm(device):
    x = torch.zeros(2, 6, device=device, requires_grad=True)
    out = rms_norm(x, torch.ones(6, device=device))
    out.sum().backward()
    assert (out == 0).all()
    assert x.grad.isfinite().all()
