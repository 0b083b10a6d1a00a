"""The small parts: layer norm, positions, feed-forward and embeddings."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import TOLERANCE, assert_equal_with_gradients, bounded, module_twins, randomise
from torch import nn

from tinytf.embedding import TokenEmbedding
from tinytf.feedforward import FeedForward
from tinytf.norm import LayerNorm, RMSNorm, layer_norm, rms_norm
from tinytf.positional import PositionalEncoding, sinusoidal_encoding

DTYPES = pytest.mark.parametrize("dtype", TOLERANCE)

# ---- norm


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


# ---- positions


@pytest.mark.parametrize("d_model", [1, 2, 7, 8])
def test_sinusoids_equal_the_formula(d_model):
    expected = [
        [
            (math.sin if j % 2 == 0 else math.cos)(pos / 10000 ** ((j - j % 2) / d_model))
            for j in range(d_model)
        ]
        for pos in range(60)
    ]
    table = sinusoidal_encoding(60, d_model)
    assert table.dtype == torch.get_default_dtype()
    torch.testing.assert_close(table, torch.tensor(expected), atol=1e-7, rtol=0)


@bounded
@given(st.integers(1, 30), st.integers(0, 400), st.integers(0, 400))
def test_dot_product_of_positions_depends_on_their_distance(half, first, second):
    table = sinusoidal_encoding(801, 2 * half).double()
    distance = abs(first - second)
    expected = table[0] @ table[distance]
    torch.testing.assert_close(table[first] @ table[second], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("d_model", [7, 8])
def test_positions_are_added_from_start(d_model, device):
    layer = PositionalEncoding(d_model, max_len=10, dropout=0.0).to(device)
    x = torch.randn(3, 4, d_model, device=device)
    table = sinusoidal_encoding(10, d_model).to(device)
    assert torch.equal(layer(x), x + table[:4])
    assert torch.equal(layer(x, start=6), x + table[6:])
    assert not layer.state_dict()  # the table can be computed, so it is not saved


def test_positions_are_dropped_out_in_training_only(device):
    layer, x = PositionalEncoding(64, 50, dropout=0.3).to(device), torch.full((8, 50, 64), 5.0)
    x = x.to(device)
    dropped = layer(x)
    assert 0.27 < (dropped == 0).float().mean() < 0.33
    layer.eval()
    kept = layer(x)
    assert (kept != 0).all()
    torch.testing.assert_close(dropped[dropped != 0], kept[dropped != 0] / 0.7)


@pytest.mark.parametrize(("length", "start"), [(11, 0), (1, 10), (4, 7)])
def test_positions_past_max_len_are_refused(length, start):
    message = f"sequence of length {start + length} is longer than max_len=10"
    with pytest.raises(ValueError, match=message):
        PositionalEncoding(4, max_len=10)(torch.zeros(1, length, 4), start)


# ---- feed-forward


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


# ---- embedding


@DTYPES
def test_embedding_equals_torch_scaled(dtype, exact):
    ours = TokenEmbedding(9, 5).to(exact, dtype)
    theirs = nn.Embedding(9, 5).to(exact, dtype)
    ids = torch.randint(9, (3, 4), device=exact)
    # a dummy input, for there is none with a gradient
    assert_equal_with_gradients(
        lambda x: x + ours(ids),
        lambda x: x + theirs(ids) * math.sqrt(5),
        [torch.randn(3, 4, 5, dtype=dtype, device=exact)],
        [([ours.weight], theirs.weight)],
    )


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.tensor([[3, 9]]), ValueError, r"id 9 is outside the vocabulary of 9 \(0..8\)"),
        (torch.tensor([[3, 2**40]]), ValueError, "id 1099511627776 is outside"),
        (torch.tensor([[3, -1]]), ValueError, "id -1 is outside the vocabulary of 9"),
        (torch.empty(0, 4, dtype=torch.long), ValueError, r"non-empty batch .* shape \(0, 4\)"),
        (torch.empty(2, 0, dtype=torch.long), ValueError, r"non-empty batch .* shape \(2, 0\)"),
        (torch.tensor([3, 4]), ValueError, r"got shape \(2,\)"),
        (torch.zeros(1, 2), TypeError, "must be int64 or int32, got torch.float32"),
    ],
)
def test_bad_ids_are_refused(ids, error, message, device):
    with pytest.raises(error, match=message):
        TokenEmbedding(9, 5).to(device)(ids.to(device))


def test_the_scale_of_an_embedding_can_be_chosen():
    torch.manual_seed(0)
    ours = TokenEmbedding(9, 4, scale=1.0)
    torch.manual_seed(0)
    usual = TokenEmbedding(9, 4)
    ids = torch.tensor([[3, 1, 8]])
    assert torch.equal(ours(ids), ours.weight[ids])
    assert torch.equal(usual.weight, ours.weight)
    assert torch.equal(usual(ids), 2 * ours(ids))
