"""What fast decoders are made of: caches with room, outputs, and what may be laid out."""

import pytest
import torch
from torch import nn

from tinytf.attention import KeyValueCache
from tinytf.blocks import DecoderLayer, EncoderLayer
from tinytf.decoding.fast_parts import (
    FastOutput,
    StaticCache,
    attend_to,
    check_hooks,
    check_layer,
    check_linear,
    kernel_mask,
)
from tinytf.masks import CAUSAL
from tinytf.residual import PostNorm, PreNorm


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
    assert torch.equal(torch.stack([k, v])[:, :, :, :2], first[:, [0]])
    assert k.shape == (1, 1, 5, 4)


def test_new_positions_see_what_the_cache_holds(exact):
    x = torch.randn(6, 12, device=exact, dtype=torch.float64)  # 2 texts of 3 tokens, 2 heads of 2
    whole = attend_to(x, 2, 2, None, kernel_mask(CAUSAL, 3, 0, exact)).view(2, 3, 4)
    cache, parts = StaticCache(3), []
    for t in range(3):
        step = x.view(2, 3, 12)[:, t]
        parts.append(attend_to(step, 2, 2, cache, kernel_mask(CAUSAL, 1, t, exact)))
    torch.testing.assert_close(torch.stack(parts, 1), whole)


def test_an_output_keeps_its_bias(exact):
    theirs = nn.Linear(4, 7).double().to(exact)
    x = torch.randn(2, 3, 4, device=exact, dtype=torch.float64)
    ours = FastOutput(theirs.weight, bias=theirs.bias)
    torch.testing.assert_close(ours(x), theirs(x).detach())
    torch.testing.assert_close(FastOutput(theirs.weight)(x), (theirs(x) - theirs.bias).detach())


def test_what_is_not_as_its_class_makes_it_is_refused():
    check_layer("here", EncoderLayer(4, 2, 8, residual=PreNorm), (PreNorm,))
    check_layer("here", DecoderLayer(4, 2, 8), (PostNorm, PreNorm))
    with pytest.raises(ValueError, match="FeedForward in PreNorm, not FeedForward, PostNorm"):
        check_layer("here", EncoderLayer(4, 2, 8), (PreNorm,))
    layer = DecoderLayer(4, 2, 8)
    layer.cross_attention.w_k.register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match=r"here\.cross_attention\.w_k is no nn\.Linear"):
        check_layer("here", layer, (PostNorm,))
    with pytest.raises(ValueError, match=r"here\.cross_attention\.w_k has hooks"):
        check_hooks("here", layer)
    with pytest.raises(ValueError, match="output is no nn"):
        check_linear("output", nn.Identity())
    odd = nn.ModuleDict({"final_norm": nn.BatchNorm1d(4)})
    with pytest.raises(ValueError, match=r"here\.final_norm is a BatchNorm1d: no LayerNorm"):
        check_hooks("here", odd)
