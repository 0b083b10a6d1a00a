"""Masks, attention and multi-head attention: against torch, by their properties, on bad input."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import (
    TOLERANCE,
    assert_equal_with_gradients,
    attention_twins,
    bounded,
    copy_twins,
    random_ids,
    randomise,
)
from torch import nn

from tinytf.attention import (
    KeyValueCache,
    MultiHeadAttention,
    attend,
    attention_weights,
    explicit_attention,
    fused_attention,
)
from tinytf.masks import CAUSAL, causal_mask, padding_mask

FORMS = pytest.mark.parametrize("attend", [explicit_attention, fused_attention])
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE)
LENGTHS = pytest.mark.parametrize(("t", "s"), [(5, 7), (7, 5), (1, 1), (1, 6), (6, 1)])
length = st.integers(1, 7)
seed = st.integers(0, 2**20)


def random_mask(*shape, device="cpu"):
    """A mask that leaves every query at least one key, as torch's modules need."""
    mask = torch.rand(shape, device=device) < 0.6
    mask[..., 0] |= ~mask.any(-1)
    return mask


# ---- oracles


@DTYPES
@FORMS
@LENGTHS
@pytest.mark.parametrize("masked", [False, True])
def test_attention_equals_torch(attend, dtype, t, s, masked, exact):
    q, k, v = (torch.randn(2, 3, n, 4, dtype=dtype, device=exact) for n in (t, s, s))
    mask = random_mask(2, 1, t, s, device=exact) if masked else None

    def by_hand(q, k, v):  # einsum and -inf: neither of the two ways that tinytf computes it
        scores = torch.einsum("bhtd,bhsd->bhts", q, k) * 4**-0.5
        scores = scores if mask is None else scores + torch.where(mask, 0.0, -torch.inf)
        return torch.einsum("bhts,bhsd->bhtd", F.softmax(scores, -1), v)

    def kernel(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    for oracle in (by_hand, kernel):
        assert_equal_with_gradients(lambda *x: attend(*x, mask), oracle, (q, k, v))


@DTYPES
@pytest.mark.parametrize("mask_of", ["none", "causal", "padding", "both", "per head"])
def test_self_attention_equals_torch(dtype, mask_of, exact):
    b, t, c, h = 3, 6, 12, 4
    ours = randomise(MultiHeadAttention(c, h)).to(exact, dtype)
    theirs = nn.MultiheadAttention(c, h, batch_first=True, device=exact, dtype=dtype)
    ids = random_ids([6, 3, 1], 9, exact)
    mask = {
        "none": None,
        "causal": causal_mask(t, exact),
        "padding": padding_mask(ids),
        "both": causal_mask(t, exact) & padding_mask(ids),
        "per head": random_mask(b, h, t, t, device=exact),
    }[mask_of]
    hide = None if mask is None else ~mask.expand(b, h, t, t).flatten(0, 1)  # torch: True = hide
    assert_equal_with_gradients(
        lambda x: ours(x, mask=mask),
        lambda x: theirs(x, x, x, attn_mask=hide)[0],
        [torch.randn(b, t, c, dtype=dtype, device=exact)],
        attention_twins(ours, theirs),
    )


@DTYPES
@LENGTHS
@pytest.mark.parametrize("masked", [False, True])
def test_cross_attention_equals_torch(dtype, t, s, masked, exact):
    ours = randomise(MultiHeadAttention(12, 4)).to(exact, dtype)
    theirs = nn.MultiheadAttention(12, 4, batch_first=True, device=exact, dtype=dtype)
    mask = random_mask(2, 1, 1, s, device=exact) if masked else None
    hide = ~mask[:, 0, 0] if masked else None
    assert_equal_with_gradients(
        lambda x, y: ours(x, y, mask),
        lambda x, y: theirs(x, y, y, key_padding_mask=hide)[0],
        [torch.randn(2, n, 12, dtype=dtype, device=exact) for n in (t, s)],
        attention_twins(ours, theirs),
    )


def test_heads_weights_equal_torch(exact):
    ours = randomise(MultiHeadAttention(12, 4)).to(exact, torch.float64)
    theirs = nn.MultiheadAttention(12, 4, batch_first=True).to(exact, torch.float64)
    copy_twins(attention_twins(ours, theirs))
    x = torch.randn(2, 5, 12, dtype=torch.float64, device=exact)
    q, k = (w(x).unflatten(-1, (4, 3)).transpose(1, 2) for w in (ours.w_q, ours.w_k))
    expected = theirs(x, x, x, average_attn_weights=False)[1]
    torch.testing.assert_close(attention_weights(q, k), expected, atol=1e-10, rtol=0)


def test_dropout_zeroes_weights_and_scales_the_rest(device):
    q, k, v = torch.zeros(1, 1, 40, 4), torch.zeros(1, 1, 50, 4), torch.eye(50)[None, None]
    q, k, v = (x.to(device) for x in (q, k, v))  # equal weights, read off by the identity
    kept = explicit_attention(q, k, v, dropout=0.25)
    torch.testing.assert_close(kept.unique().cpu(), torch.tensor([0.0, 1 / 50 / 0.75]))
    assert 0.2 < (kept == 0).float().mean() < 0.3
    layer = MultiHeadAttention(8, 2, dropout=0.5).to(device)
    x = torch.randn(2, 5, 8, device=device)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


# ---- properties


@bounded
@given(length, length, st.integers(1, 5), seed)
def test_rows_sum_to_one_or_are_zero(device, t, s, width, seed):
    torch.manual_seed(seed)
    q, k = (9 * torch.randn(2, n, width, device=device) for n in (t, s))
    mask = torch.rand(2, t, s, device=device) < 0.5
    weights = attention_weights(q, k, mask)
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).float())
    assert (weights >= 0).all()
    assert (weights[~mask] == 0).all()
    unmasked = attention_weights(q, k).sum(-1)
    torch.testing.assert_close(unmasked, torch.ones_like(unmasked))


@FORMS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_nothing_to_attend_to_gives_zeros_and_finite_gradients(attend, dtype, device):
    if device.type == "mps" and dtype == torch.float64:
        pytest.skip("mps has no float64")
    leaves = [torch.randn(2, 3, n, 4).to(device, dtype).requires_grad_() for n in (5, 7, 7)]
    mask = torch.ones(2, 1, 5, 7, dtype=torch.bool, device=device)
    mask[0], mask[1, :, 3] = False, False
    out = attend(*leaves, mask)
    assert (out[0] == 0).all()
    assert (out[1, :, 3] == 0).all()
    assert (out[1, :, 4] != 0).all()
    out.sum().backward()
    for leaf in leaves:
        assert leaf.grad.isfinite().all()
        assert (leaf.grad[0] == 0).all()  # nor does any gradient pass
    assert (leaves[2].grad[1] != 0).all()


@FORMS
def test_all_masked_stays_finite_through_a_layer(attend, device):
    layer = MultiHeadAttention(8, 2).to(device)
    layer.attention = attend
    x = torch.randn(2, 4, 8, device=device, requires_grad=True)
    out = layer(x, mask=padding_mask(torch.zeros(2, 4, dtype=torch.long, device=device)))
    out.sum().backward()
    torch.testing.assert_close(out, layer.w_o.bias.expand_as(out))
    assert all(p.grad.isfinite().all() for p in [x, *layer.parameters()])


@bounded
@given(st.integers(2, 7), seed)
def test_unmasked_self_attention_commutes_with_permutation(exact, t, seed):
    torch.manual_seed(seed)
    layer = randomise(MultiHeadAttention(6, 2)).to(exact, torch.float64)
    x, order = torch.randn(2, t, 6).to(exact, torch.float64), torch.randperm(t)
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order], atol=1e-12, rtol=0)


@bounded
@given(st.integers(2, 7), st.data(), seed)
def test_future_never_reaches_the_past(device, t, data, seed):
    torch.manual_seed(seed)
    layer = randomise(MultiHeadAttention(t, t)).to(
        device
    )  # T equal to H, where a lost axis would broadcast
    position = data.draw(st.integers(0, t - 2))
    x = torch.randn(2, t, t, device=device, requires_grad=True)
    layer(x, mask=causal_mask(t, device))[:, position].sum().backward()
    assert (x.grad[:, position + 1 :] == 0).all()
    assert (x.grad[:, : position + 1].abs().sum(-1) > 0).all()


@bounded
@given(length, length, st.integers(1, 5), seed)
def test_any_amount_of_padding_changes_nothing(exact, t, s, extra, seed):
    torch.manual_seed(seed)
    layer = randomise(MultiHeadAttention(6, 2)).to(exact, torch.float64)
    x, memory, pad = (torch.randn(2, n, 6).to(exact, torch.float64) for n in (t, s, extra))
    padded = torch.cat([memory, 1e3 * pad], 1)
    mask = (torch.arange(s + extra, device=exact) < s)[None, None, None]
    torch.testing.assert_close(layer(x, padded, mask), layer(x, memory), atol=1e-12, rtol=0)


def test_cached_attention_equals_uncached(exact):
    layer = randomise(MultiHeadAttention(8, 2)).to(exact, torch.float64)
    x, memory = (torch.randn(2, n, 8, device=exact, dtype=torch.float64) for n in (6, 4))
    own, cross = KeyValueCache(), KeyValueCache()
    assert len(own) == 0
    steps = [layer(x[:, t : t + 1], cache=own) for t in range(6)]
    whole = layer(x, mask=causal_mask(6, exact))
    torch.testing.assert_close(torch.cat(steps, 1), whole, atol=1e-12, rtol=0)
    steps = [layer(x[:, t : t + 1], memory, cache=cross) for t in range(6)]
    torch.testing.assert_close(torch.cat(steps, 1), layer(x, memory), atol=1e-12, rtol=0)
    assert (len(own), len(cross)) == (6, 4)


def test_cache_keeps_the_rows_that_live_on(device):
    cache = KeyValueCache()
    cache.select(torch.tensor([0]))  # nothing there yet: nothing to do
    k, v = torch.randn(2, 3, 1, 4, 5, device=device)
    cache.append(k, v)
    cache.select(torch.tensor([2, 0, 0], device=device))
    assert torch.equal(cache.k, k[[2, 0, 0]])
    assert torch.equal(cache.v, v[[2, 0, 0]])


@pytest.mark.parametrize("memory", [False, True])
def test_arguments_are_not_changed(memory, device):
    layer = MultiHeadAttention(6, 2).to(device)
    x, mask = torch.randn(2, 3, 6, device=device), causal_mask(3, device)
    before = x.clone(), mask.clone()
    layer(x, x if memory else None, mask)
    assert torch.equal(x, before[0])
    assert torch.equal(mask, before[1])


# ---- bad input


@pytest.mark.parametrize("num_heads", [3, 8, 20])
def test_heads_must_divide_the_width(num_heads):
    with pytest.raises(ValueError, match=f"d_model=10 is not divisible by num_heads={num_heads}"):
        MultiHeadAttention(10, num_heads)


@FORMS
def test_queries_and_keys_must_have_one_width(attend):
    q, k = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 5)
    with pytest.raises(ValueError, match=r"q \(1, 2, 3, 4\) and k \(1, 2, 3, 5\)"):
        attend(q, k, k)


@FORMS
@pytest.mark.parametrize(
    "shape",
    [
        (2, 5, 7),  # (B, T, S): T or B would meet the heads
        (5, 7),
        (2, 1, 7),
        (2, 2, 5, 7),  # H is 5 here
        (3, 1, 5, 7),
        (2, 1, 7, 5),
        (2, 1, 1, 6),
        (1, 2, 1, 5, 7),
    ],
)
def test_mask_of_another_shape_is_refused(attend, shape):
    q, k = torch.randn(2, 5, 5, 4), torch.randn(2, 5, 7, 4)
    mask = torch.ones(shape, dtype=torch.bool)
    with pytest.raises(ValueError) as error:
        attend(q, k, k, mask)
    assert f"mask of shape {shape} does not fit scores of shape (2, 5, 5, 7)" in str(error.value)


@FORMS
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_mask_of_another_dtype_is_refused(attend, dtype):
    q = torch.randn(2, 3, 5, 4)
    with pytest.raises(TypeError, match=f"must be boolean .* got {dtype}"):
        attend(q, q, q, torch.ones(2, 1, 5, 5, dtype=dtype))


@pytest.mark.parametrize("shape", [(2, 5, 7), (2, 8), (2, 3, 5, 8)])
@pytest.mark.parametrize("name", ["x", "memory"])
def test_input_of_another_width_is_refused(name, shape):
    right, wrong = torch.randn(2, 5, 8), torch.randn(shape)
    inputs = (wrong, right) if name == "x" else (right, wrong)
    with pytest.raises(ValueError) as error:
        MultiHeadAttention(8, 2)(*inputs)
    assert f"{name} must be of shape (B, length, d_model=8), got {shape}" in str(error.value)


@pytest.mark.parametrize("num_heads", [0, -2])
def test_there_is_at_least_one_head(num_heads):
    with pytest.raises(ValueError, match=f"num_heads must be at least 1, got {num_heads}"):
        MultiHeadAttention(8, num_heads)


# ---- maps of another make


def test_every_map_is_called_as_a_module():
    """So hooks, adapters and quantised maps do their work."""
    layer, x, called = MultiHeadAttention(8, 2), torch.randn(2, 3, 8), []
    for name, part in layer.named_children():
        part.register_forward_hook(lambda *_, name=name: called.append(name))
    layer(x)
    assert called == ["w_q", "w_k", "w_v", "w_o"]


@pytest.mark.parametrize("bias", [True, False])
def test_biases_may_be_left_out(bias, exact):
    layer = MultiHeadAttention(8, 2, bias=bias).to(exact, torch.float64)
    assert {n.rpartition(".")[2] for n, _ in layer.named_parameters()} == (
        {"weight", "bias"} if bias else {"weight"}
    )
    x = torch.randn(2, 3, 8, device=exact, dtype=torch.float64)
    q, k, v = (
        m(x).unflatten(-1, (2, 4)).transpose(1, 2) for m in (layer.w_q, layer.w_k, layer.w_v)
    )
    expected = layer.w_o(explicit_attention(q, k, v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(x), expected, atol=1e-12, rtol=1e-12)


def test_maps_of_unequal_make_work_together(exact):
    """Whisper's keys have no bias; a value map of another width is not cut in the wrong place."""
    layer, other = (MultiHeadAttention(8, 2).to(exact, torch.float64) for _ in "12")
    other.load_state_dict(layer.state_dict())
    layer.w_k = nn.Linear(8, 8, bias=False).to(exact, torch.float64)
    other.w_k.load_state_dict({"weight": layer.w_k.weight, "bias": torch.zeros(8)})
    x = torch.randn(2, 3, 8, device=exact, dtype=torch.float64)
    torch.testing.assert_close(layer(x), other(x), atol=1e-12, rtol=1e-12)
    layer.w_v = nn.Linear(8, 12).to(exact, torch.float64)
    layer.w_k, layer.w_o = other.w_k, nn.Linear(12, 8).to(exact, torch.float64)
    q, k, v = (
        m(x).unflatten(-1, (2, -1)).transpose(1, 2) for m in (layer.w_q, layer.w_k, layer.w_v)
    )
    expected = layer.w_o(explicit_attention(q, k, v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(x), expected, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("rows", [1, 3])
def test_memory_of_another_batch_size_is_refused(rows, device):
    layer, x = MultiHeadAttention(8, 2).to(device), torch.randn(2, 3, 8, device=device)
    memory = torch.randn(rows, 4, 8, device=device)
    with pytest.raises(ValueError, match=f"x has a batch of 2, memory of {rows}"):
        layer(x, memory)
    cache = KeyValueCache()
    layer(torch.randn(rows, 1, 8, device=device), memory, cache=cache)
    with pytest.raises(ValueError, match=f"memory of 2, the cache {rows}"):
        layer(x, memory[:1].expand(2, -1, -1), cache=cache)


def test_a_cache_of_another_batch_size_is_refused(device):
    layer, cache = MultiHeadAttention(8, 2).to(device), KeyValueCache()
    layer(torch.randn(1, 3, 8, device=device), cache=cache)
    with pytest.raises(ValueError, match="a batch of 2 does not match the cache's, 1"):
        layer(torch.randn(2, 1, 8, device=device), cache=cache)


# ---- causal, left to the kernel


@pytest.mark.parametrize("attention", [fused_attention, explicit_attention])
@pytest.mark.parametrize("lengths", [[5], [1, 4], [3, 2], [2, 1, 2], [1, 1, 1, 1, 1]])
def test_causal_without_a_mask_is_the_causal_mask(attention, lengths, exact):
    layer = MultiHeadAttention(8, 2).to(exact, torch.float64)
    layer.attention = attention
    x, cache = torch.randn(2, 5, 8, device=exact, dtype=torch.float64), KeyValueCache()
    expected = layer(x, mask=causal_mask(5, exact))
    parts = [layer(part, mask=CAUSAL, cache=cache) for part in x.split(lengths, dim=1)]
    torch.testing.assert_close(torch.cat(parts, 1), expected, atol=1e-12, rtol=1e-12)


def test_the_kernel_gets_no_mask_where_it_is_only_causal(monkeypatch, device):
    asked = []

    def kernel(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False):
        asked.append((attn_mask if attn_mask is None else tuple(attn_mask.shape), is_causal))
        return v

    monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
    cache = KeyValueCache()
    for length in (4, 1, 2):
        attend(fused_attention, *appended(cache, length, device), CAUSAL)
    assert asked == [(None, True), (None, False), ((1, 1, 2, 7), False)]


def appended(cache, length, device):
    q = torch.randn(1, 2, length, 4, device=device)
    return q, *cache.append(q, q)


def test_causal_is_for_the_last_of_the_positions(device):
    q, k = torch.randn(1, 2, 3, 4, device=device), torch.randn(1, 2, 2, 4, device=device)
    with pytest.raises(ValueError, match="3 queries can't be the last of 2 positions"):
        fused_attention(q, k, k, CAUSAL)
    with pytest.raises(TypeError, match=r"mask must be boolean .*, got 'causal'"):
        explicit_attention(q, q, q, CAUSAL)


def test_a_second_derivative_needs_explicit_attention():  # a GPU's kernel for float64 has one
    x = torch.randn(1, 3, 8, dtype=torch.float64, requires_grad=True)
    layer = MultiHeadAttention(8, 2).double()

    def twice():
        (slope,) = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
        return torch.autograd.grad(slope.square().sum(), x)

    with pytest.raises(RuntimeError, match="not implemented"):
        twice()
    layer.attention = explicit_attention
    assert twice()[0].isfinite().all()
