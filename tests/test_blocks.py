"""Layers and stacks: against torch's, post- and pre-norm, forward and gradient."""

import pytest
import torch
import torch.nn.functional as F
from support import (
    TOLERANCE,
    assert_equal_with_gradients,
    layer_twins,
    random_ids,
    randomise,
    stack_twins,
)
from torch import nn

from tinytf.blocks import Decoder, DecoderLayer, Encoder, EncoderLayer, PostNorm, PreNorm
from tinytf.masks import causal_mask, padding_mask

C, H, FF = 12, 3, 20
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE)
NORMS = pytest.mark.parametrize("residual", [PostNorm, PreNorm])
ACTIVATIONS = pytest.mark.parametrize("activation", [F.relu, F.gelu])
LENGTHS = pytest.mark.parametrize(("t", "s"), [(4, 6), (6, 4), (1, 1)])


def torch_settings(residual, activation, device, dtype):
    return {
        "dim_feedforward": FF,
        "dropout": 0.0,
        "activation": activation,
        "batch_first": True,
        "norm_first": residual is PreNorm,
        "device": device,
        "dtype": dtype,
    }


def make(kind, residual, activation, device, dtype, layers=0):
    """Our layer, or stack of layers, and torch's."""
    ours, theirs = {
        "encoder": (EncoderLayer, nn.TransformerEncoderLayer),
        "decoder": (DecoderLayer, nn.TransformerDecoderLayer),
    }[kind]
    one = theirs(C, H, **torch_settings(residual, activation, device, dtype))
    if not layers:
        return randomise(ours(C, H, FF, 0.0, residual, activation)).to(device, dtype), one
    stack = Encoder if kind == "encoder" else Decoder
    mine = stack([ours(C, H, FF, 0.0, residual, activation) for _ in range(layers)],
                 residual.final_norm(C))  # fmt: skip
    torch_stack = nn.TransformerEncoder if kind == "encoder" else nn.TransformerDecoder
    more = {"enable_nested_tensor": False} if kind == "encoder" else {}
    yours = torch_stack(one, layers, nn.LayerNorm(C, device=device, dtype=dtype), **more)
    return randomise(mine).to(device, dtype), yours


def lengths_and_mask(width, device):
    ids = random_ids([width, max(1, width - 2), 1], 9, device)
    return ids == 0, padding_mask(ids)


@DTYPES
@NORMS
@ACTIVATIONS
@pytest.mark.parametrize("layers", [0, 2], ids=["layer", "stack"])
@pytest.mark.parametrize("s", [1, 6])
def test_encoder_equals_torch(dtype, residual, activation, layers, s, exact):
    ours, theirs = make("encoder", residual, activation, exact, dtype, layers)
    hide, mask = lengths_and_mask(s, exact)
    assert_equal_with_gradients(
        lambda x: ours(x, mask),
        lambda x: theirs(x, src_key_padding_mask=hide),
        [torch.randn(3, s, C, dtype=dtype, device=exact)],
        (stack_twins if layers else layer_twins)(ours, theirs),
    )


@DTYPES
@NORMS
@ACTIVATIONS
@LENGTHS
@pytest.mark.parametrize("layers", [0, 2], ids=["layer", "stack"])
def test_decoder_equals_torch(dtype, residual, activation, t, s, layers, exact):
    ours, theirs = make("decoder", residual, activation, exact, dtype, layers)
    (hide, mask), (hide_memory, memory_mask) = (lengths_and_mask(n, exact) for n in (t, s))
    causal = causal_mask(t, exact)
    assert_equal_with_gradients(
        lambda x, m: ours(x, m, causal & mask, memory_mask),
        lambda x, m: theirs(
            x,
            m,
            tgt_mask=~causal[0, 0],
            tgt_key_padding_mask=hide,
            memory_key_padding_mask=hide_memory,
        ),
        [torch.randn(3, n, C, dtype=dtype, device=exact) for n in (t, s)],
        (stack_twins if layers else layer_twins)(ours, theirs),
    )


@NORMS
@pytest.mark.parametrize("chunks", [[1] * 6, [6], [2, 1, 3]])
def test_cached_decoder_equals_uncached(residual, chunks, exact):
    ours, _ = make("decoder", residual, F.relu, exact, torch.float64, layers=2)
    x, memory = (torch.randn(2, n, C, device=exact, dtype=torch.float64) for n in (6, 5))
    memory_mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2], device=exact)[:, None, None]
    causal, cache, parts, start = causal_mask(6, exact), ours.new_cache(), [], 0
    for n in chunks:
        rows = slice(start, start + n)
        mask = causal[:, :, rows, : start + n]
        parts.append(ours(x[:, rows], memory, mask, memory_mask, cache))
        start += n
    whole = ours(x, memory, causal, memory_mask)
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-12, rtol=0)


@NORMS
def test_dropout_falls_on_the_sublayer_not_on_the_stream(residual, device):
    block = residual(64, dropout=0.5).to(device)
    block.norm = nn.Identity()  # so that the sum can be seen
    x = torch.randn(4, 9, 64, device=device)
    added = block(x, torch.ones_like) - x
    torch.testing.assert_close(added, 2 * added.gt(1).float())  # 0 or 1 / (1 - 0.5)
    assert 0.4 < added.gt(1).float().mean() < 0.6
    block.eval()
    torch.testing.assert_close(block(x, torch.ones_like), x + 1)


@NORMS
def test_every_parameter_gets_a_gradient(residual, device):
    for kind in ("encoder", "decoder"):
        ours, _ = make(kind, residual, F.gelu, device, torch.float32, layers=2)
        inputs = [torch.randn(2, 4, C, device=device) for _ in range(1 + (kind == "decoder"))]
        (ours(*inputs) * torch.randn(2, 4, C, device=device)).sum().backward()
        # a bias on the keys moves all scores of a row alike: its gradient is 0 but for rounding
        idle = {n for n, p in ours.named_parameters() if not p.grad.abs().max() > 1e-5}
        assert all(n.endswith("w_k.bias") for n in idle), idle
