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

from tinytf.attention import KeyValueCache
from tinytf.blocks import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    LayerCache,
    PostNorm,
    PreNorm,
    decoder_mask,
    padding_so_far,
    token_positions,
)
from tinytf.masks import CAUSAL, causal_mask, padding_mask

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


# ---- masks and positions of a stack that reads piece by piece


def real(*rows, device="cpu"):
    """Rows of 0 (padding) and 1 (a token) as a mask, (B, 1, 1, T)."""
    return torch.tensor(rows, dtype=torch.bool, device=device)[:, None, None]


def filled(length, rows=2):
    """A cache that has read so many positions."""
    cache = KeyValueCache()
    cache.append(*torch.zeros(2, rows, 1, length, 1))
    return cache


def test_padding_without_a_cache_is_the_masks_own(device):
    mask = real([0, 1, 1], [1, 1, 1], device=device)
    assert padding_so_far(mask, 3) is mask
    assert padding_so_far(None, 3) is None
    assert padding_so_far(real([1, 1], [1, 1], device=device), 2) is None  # nothing to hide


@pytest.mark.parametrize(
    "pieces",
    [
        [([0, 1], [1, 1]), ([1], [1]), ([1, 1], [1, 1])],  # padding in front, then none
        [([0, 0], [0, 1]), ([0], [1]), ([1, 0], [1, 1])],
        [([1, 1], [1, 1]), ([0], [1]), ([1, 1], [1, 1])],  # padding met later
        [([1, 1], [1, 1]), ([1], [1]), ([1, 1], [1, 1])],  # none at all
    ],
)
def test_a_cache_remembers_the_padding_of_all_pieces(pieces):
    whole, cache, read = real(*map(sum, zip(*pieces, strict=True), ([], []))), KeyValueCache(), 0
    for piece in pieces:
        mask, length = real(*piece), len(piece[0])
        found = padding_so_far(None if mask.all() else mask, length, cache)
        read += length
        expected = whole[..., :read]
        assert found is None if expected.all() else found.tolist() == expected.tolist()
        assert found is cache.padding
        cache.append(*torch.zeros(2, 2, 1, length, 1))  # as the first layer does


def test_a_piece_read_twice_counts_once():
    """A layer that failed has appended nothing: what its cache lacks is forgotten."""
    cache = KeyValueCache()
    for _ in range(2):
        found = padding_so_far(real([0, 1, 1], [1, 1, 1]), 3, cache)
        assert found.tolist() == real([0, 1, 1], [1, 1, 1]).tolist()


def test_padding_of_another_kind_or_shape_is_named(device):
    mask = real([0, 1, 1], [1, 1, 1], device=device)
    for cache in (None, KeyValueCache(), filled(2)):
        with pytest.raises(TypeError, match=r"boolean \(True = no padding\), got torch.float32"):
            padding_so_far(mask.float(), 3, cache)
        wide = [mask.expand(2, *shape, 3) for shape in ((4, 1), (1, 3))]
        for wrong, length in [(mask, 2)] + [(m, 3) for m in (mask[:, 0], mask.mT, *wide)]:
            with pytest.raises(ValueError, match=rf"\(B, 1, 1, T={length}\), .*got") as caught:
                padding_so_far(wrong, length, cache)
            assert str(tuple(wrong.shape)) in str(caught.value)


def test_tokens_are_numbered_without_padding(device):
    padding = real([0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [1, 0, 1, 1, 0], device=device)
    numbers = [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4], [0, 0, 1, 2, 2]]
    for length in range(1, 6):
        found = token_positions(padding, length)
        assert found.dtype == torch.int64
        assert found.tolist() == [row[-length:] for row in numbers]


def test_a_decoders_mask_hides_what_is_later_and_padding(device):
    padding = real([0, 1, 1, 1], [1, 1, 1, 0], device=device)
    for length in range(1, 5):
        found = decoder_mask(padding, length)
        rows = range(4 - length, 4)
        assert found.tolist() == [[[[bool(row[0, 0, s]) and s <= t for s in range(4)]
                                    for t in rows]] for row in padding]  # fmt: skip
    assert decoder_mask(None, 3) is CAUSAL


# ---- layers and their caches


def test_defaults_are_the_papers(device):
    """A dropout of 0.1, the norm after the sum, and ReLU (sections 3.1, 3.3 and 5.4)."""
    for layer in (EncoderLayer(C, H, FF), DecoderLayer(C, H, FF)):
        residuals = [m for n, m in layer.named_children() if n.startswith("residual")]
        assert [type(m) for m in residuals] == [PostNorm] * len(residuals)
        assert {m.p for m in layer.modules() if isinstance(m, nn.Dropout) and m.p > 0} == {0.1}
        x = torch.randn(2, 3, C)
        hidden = F.relu(layer.feed_forward.w_1(x))
        torch.testing.assert_close(layer.feed_forward(x), layer.feed_forward.w_2(hidden))


def test_layers_of_a_stack_have_caches_of_their_own(exact):
    ours, _ = make("decoder", PostNorm, F.relu, exact, torch.float64, layers=2)
    cache = ours.new_cache()
    parts = [part for layer in cache for part in layer]
    assert [len(part) for part in parts] == [0] * 4
    assert len({id(part) for part in parts}) == 4
    x, memory = (torch.randn(2, n, C, device=exact, dtype=torch.float64) for n in (3, 5))
    ours(x, memory, CAUSAL, None, cache)
    assert [[len(part) for part in layer] for layer in cache] == [[3, 5]] * 2


def test_choosing_rows_leaves_the_memory(device):
    """Beams move within a sentence, whose memory is the same for all of them."""
    own, cross = filled(3), filled(5)
    own.k += torch.arange(2)[:, None, None, None]
    memory = cross.k
    LayerCache(own, cross).select(torch.tensor([1, 1]))
    assert own.k[:, 0, 0, 0].tolist() == [1, 1]
    assert cross.k is memory
