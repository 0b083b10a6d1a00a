"""What fast decoders are made of: caches with room, attention, maps and outputs."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tinytf.attention import KeyValueCache, explicit_attention
from tinytf.decoding import fast_parts
from tinytf.decoding.fast import fast_decoder
from tinytf.decoding.fast_parts import (
    FastOutput,
    Heads,
    StaticCache,
    View,
    attend_in_blocks,
    attend_once,
    attend_to,
    in_place,
    joined,
    norm_of,
)
from tinytf.decoding.matvec import Columns
from tinytf.feedforward import ACTIVATIONS
from tinytf.gpt import GPT, GPTConfig
from tinytf.masks import CAUSAL, padding_mask
from tinytf.norm import LayerNorm, RMSNorm


def test_a_static_cache_holds_what_a_growing_one_does(exact):
    static, growing = StaticCache(6), KeyValueCache()
    for length in (2, 1, 3):
        k, v = torch.randn(2, 4, 3, length, 5, device=exact).unbind(0)
        for ours, theirs in zip(static.append(k, v), growing.append(k, v), strict=True):
            assert torch.equal(ours, theirs)
        assert len(static) == len(growing)
    rows = torch.tensor([2, 2, 0], device=exact)
    for cache in (static, growing):
        cache.select(rows)
    assert torch.equal(static.room[0], growing.k)
    assert torch.equal(static.room[1], growing.v)
    with pytest.raises(ValueError, match="a batch of 2 does not match the cache's, 3"):
        static.append(k[:2], v[:2])
    StaticCache(3).select(rows)  # an empty one has no rows


def test_a_cache_with_room_is_written_in_place_and_grows_or_shrinks_with_its_rows(exact):
    cache = StaticCache(5)
    first = torch.randn(2, 3, 1, 2, 4, device=exact)
    cache.extend(first)
    place = cache.room.data_ptr()
    cache.select(torch.tensor([2, 0, 0], device=exact))
    assert cache.room.data_ptr() == place
    assert torch.equal(cache.room[:, :, :, :2], first[:, [2, 0, 0]])
    cache.select(torch.tensor([1], device=exact))
    k, v = cache.extend(torch.ones(2, 1, 1, 3, 4, device=exact))
    assert torch.equal(torch.stack([k, v])[:, :, :2], first[:, [0]].squeeze(2))
    assert k.shape == (1, 5, 4)


def test_new_positions_see_what_the_cache_holds(exact):
    x = torch.randn(6, 12, device=exact, dtype=torch.float64)  # 2 texts of 3 tokens, 2 heads of 2
    heads, rows = Heads(2, 2), x.view(2, 3, 12)
    whole = attend_to(x, heads, None, View.of(CAUSAL, rows, 0)).view(2, 3, 4)
    cache, parts = StaticCache(3), []
    for t in range(3):
        view = View.of(CAUSAL, rows[:, t : t + 1], t)
        assert view.once
        parts.append(attend_to(rows[:, t], heads, cache, view))
    torch.testing.assert_close(torch.stack(parts, 1), whole)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("length", "start"), [(7, 0), (7, 5), (3, 4), (6, 2), (1, 3)])
def test_blocks_of_queries_see_what_all_at_once_do(length, start, padded, exact, monkeypatch):
    """Blocks of three; padding in front of one text, inside another and nowhere in the third."""
    monkeypatch.setattr(fast_parts, "BLOCK", 3)
    keys = start + length
    q = torch.randn(3, 2, length, 4, device=exact, dtype=torch.float64)
    k, v = torch.randn(2, 3, 2, keys, 4, device=exact, dtype=torch.float64)
    mask = torch.ones(length, keys, dtype=torch.bool, device=exact).tril(start)[None, None]
    padding = torch.ones(3, 1, 1, keys, dtype=torch.bool, device=exact)
    padding[0, ..., :2] = padding[1, ..., 2:3] = False
    mask = mask & padding if padded else mask
    found = attend_in_blocks(q / 2, k, v, padding if padded else None)
    sees = mask.any(dim=-1)[..., None].expand(3, 2, length, 4)
    torch.testing.assert_close(found[sees], explicit_attention(q, k, v, mask)[sees])
    assert found.isfinite().all()


@pytest.mark.parametrize("padded", [False, True])
def test_no_mask_of_all_queries_is_made(padded, monkeypatch):
    """A text read in two parts, then two of different lengths: a mask is of a block at most."""
    monkeypatch.setattr(fast_parts, "BLOCK", 3)
    kernel, sizes = F.scaled_dot_product_attention, []

    def spy(q, k, v, attn_mask=None, **options):
        sizes.append(0 if attn_mask is None else attn_mask.size(2))
        return kernel(q, k, v, attn_mask=attn_mask, **options)

    model = GPT(GPTConfig(11, 8, 2, 1, max_len=16)).eval()
    ids = torch.randint(1, 11, (2, 14))
    masks = [padding_mask(part, 0) for part in ids.split(7, dim=1)]
    if padded:
        masks[0][1, ..., :2] = False
    want, found = [], []
    for stack, seen in ((model, want), (fast_decoder(model), found)):
        monkeypatch.setattr(F, "scaled_dot_product_attention", spy if seen is found else kernel)
        cache = stack.decoder.new_cache()
        with torch.no_grad():
            for part, mask in zip(ids.split(7, dim=1), masks, strict=True):
                seen.append(stack.decode(part, cache, mask))
    assert max(sizes) == 3
    for ours, theirs in zip(found, want, strict=True):
        real = slice(2, None)
        torch.testing.assert_close(ours[:, real], theirs[:, real], atol=1e-5, rtol=1e-4)


def test_a_row_with_nothing_to_attend_to_stays_finite(exact):
    q, kv = torch.randn(2, 6, 1, 4, device=exact).unbind()
    mask = torch.tensor([False, True, True], device=exact)[:, None, None, None]
    view = View.of(mask, torch.zeros(3, 1, 8, device=exact), 0)
    q = -100 * q.abs()  # scores far below 0, too
    mixed = attend_once(q, kv.abs().transpose(1, 2), kv, view.bias)
    assert mixed.isfinite().all()
    torch.testing.assert_close(mixed[2:], kv[2:])


def test_joined_maps_stand_side_by_side_and_the_first_is_scaled(exact):
    for bias in (True, False):
        maps = [nn.Linear(4, n, bias).to(exact, torch.float64) for n in (3, 5)]
        x = torch.randn(2, 4, device=exact, dtype=torch.float64)
        with torch.no_grad():
            expected = torch.cat([maps[0](x) / 2, maps[1](x)], dim=1)
            torch.testing.assert_close(joined(Columns, maps, 0.5)(x), expected)


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm, nn.LayerNorm])
def test_a_norm_without_a_call_is_the_norm(kind, exact):
    norm = kind(6).to(exact)
    norm.weight.data.normal_()
    x = torch.randn(3, 6, device=exact)
    assert torch.equal(norm_of(norm)(x), norm(x))


def test_an_activation_in_place_is_the_activation():
    x = torch.randn(50)
    for activation in ACTIVATIONS.values():
        assert torch.equal(in_place(activation)(x.clone()), activation(x))


def test_an_output_keeps_its_bias(exact):
    theirs = nn.Linear(4, 7).double().to(exact)
    x = torch.randn(2, 3, 4, device=exact, dtype=torch.float64)
    ours = FastOutput(theirs.weight, bias=theirs.bias)
    torch.testing.assert_close(ours(x), theirs(x).detach())
    torch.testing.assert_close(FastOutput(theirs.weight)(x), (theirs(x) - theirs.bias).detach())
