"""What fast layers are made of: caches with room, biases of scores, norms."""

import pytest
import torch
from torch import nn

from tinytf.attention import KeyValueCache
from tinytf.decoding.fast_parts import MemoryCache, StaticCache, as_bias, norm_of
from tinytf.norm import LayerNorm, RMSNorm


def test_a_static_cache_holds_what_a_growing_one_does(exact):
    static, growing = StaticCache(6), KeyValueCache()
    rows = torch.tensor([2, 2, 0], device=exact)
    for length in (2, 1, 3):
        kv = torch.randn(2, 4, 3, length, 5, device=exact)
        for ours, theirs in zip(static.append(kv), growing.append(*kv), strict=True):
            assert torch.equal(ours, theirs)
        assert len(static) == len(growing)
    for cache in (static, growing):
        cache.padding = torch.arange(4, device=exact)
        cache.select(rows)
    assert torch.equal(static.room[0], growing.k)
    assert torch.equal(static.room[1], growing.v)
    assert torch.equal(static.padding, growing.padding)
    with pytest.raises(ValueError, match="a batch of 2 does not match the cache's, 3"):
        static.append(kv[:, :2])
    StaticCache(3).select(rows)  # an empty one has no rows


def test_it_is_written_in_place_and_grows_or_shrinks_with_its_rows(exact):
    cache = StaticCache(5)
    first = torch.randn(2, 3, 1, 2, 4, device=exact)
    cache.append(first)
    place = cache.room.data_ptr()
    cache.select(torch.tensor([2, 0, 0], device=exact))
    assert cache.room.data_ptr() == place
    assert torch.equal(cache.room[:, :, :, :2], first[:, [2, 0, 0]])
    cache.select(torch.tensor([1], device=exact))
    place = cache.room.data_ptr()
    k, v = cache.append(torch.ones(2, 1, 1, 3, 4, device=exact))
    assert torch.equal(torch.stack([k, v])[:, :, :, :2], first[:, [0]])
    assert k.shape == (1, 1, 5, 4)
    assert cache.room.data_ptr() == place


def test_a_memory_is_laid_out_once_and_its_padding_is_passed_over(exact):
    kv = torch.randn(2, 3, 8, device=exact, dtype=torch.float64)  # B, S, 2 C: 2 heads of 2
    k, v = kv.chunk(2, dim=2)
    mask = torch.tensor([[True, True, False], [True] * 3], device=exact)[:, None, None]
    whole, part = MemoryCache(), MemoryCache()
    whole.fill(kv, 2, torch.ones_like(mask))
    part.fill(kv, 2, mask)
    assert torch.equal(whole.k, k.view(2, 3, 2, 2).permute(0, 2, 3, 1).flatten(0, 1))
    assert torch.equal(whole.v, v.view(2, 3, 2, 2).transpose(1, 2).flatten(0, 1))
    assert whole.bias is None
    assert not part.v[:2, 2].any()
    assert torch.equal(part.v[2:], whole.v[2:])
    assert part.bias.flatten(1).exp().tolist() == [[1, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_bias_hides_and_stays_finite_where_all_is_hidden(dtype):
    mask = torch.tensor([[False, False], [False, True]])[:, None, None]
    bias = as_bias(mask, dtype)
    scores = 50 * torch.randn(2, 1, 2).to(dtype) + bias
    assert bias.dtype == dtype
    assert scores.double().softmax(-1).isfinite().all()
    assert scores[1].double().softmax(-1).tolist() == [[0, 1]]


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm, nn.LayerNorm])
def test_a_norm_without_a_call_is_the_norm(kind, exact):
    norm = kind(6).to(exact)
    norm.weight.data.normal_()
    x = torch.randn(3, 6, device=exact)
    assert torch.equal(norm_of(norm)(x), norm(x))
    assert norm_of(nn.Identity())(x) is x
