"""Grouped-query attention: against the definition and its two ends, cached, and looked into."""

import cmath
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import bounded, randomise
from torch import nn

from tinytf.attention import (
    KeyValueCache,
    MultiHeadAttention,
    explicit_attention,
    fused_attention,
)
from tinytf.grouped_query import GroupedQueryAttention
from tinytf.inspect import ablate_heads, attention_layers, record, replace
from tinytf.masks import causal_mask
from tinytf.relative import RotaryAttention

EXACT = {"atol": 1e-11, "rtol": 1e-11}


def layer(heads=6, kv_heads=2, width=4, base=10000.0, device="cpu"):
    made = GroupedQueryAttention(heads * width, heads, kv_heads, base).to(device, torch.float64)
    return randomise(made)


def inputs(device="cpu", length=5, width=24, seed=0):
    draws = torch.Generator().manual_seed(seed)
    return torch.randn(2, length, width, dtype=torch.float64, generator=draws).to(device)


def by_hand(made, x, mask):
    """One number at a time, positions as complex numbers: output (T, C) for x (T, C)."""
    heads, kv, width = made.num_heads, made.num_kv_heads, made.width
    q, k, v = (w(x).detach().tolist() for w in (made.w_q, made.w_k, made.w_v))

    def turned(row, head, position):
        part = row[head * width : (head + 1) * width]
        angles = [position * made.base ** (-2 * i / width) for i in range(width // 2)]
        return [complex(*part[2 * i : 2 * i + 2]) * cmath.exp(1j * a) for i, a in enumerate(angles)]

    mixed = []
    for t in range(len(x)):
        row = []
        for h in range(heads):
            g = h // (heads // kv)
            one = turned(q[t], h, t)
            seen = [s for s in range(len(x)) if mask[t][s]]
            pairs = {s: zip(one, turned(k[s], g, s), strict=True) for s in seen}
            scores = {
                s: sum((a * b.conjugate()).real for a, b in pairs[s]) / math.sqrt(width)
                for s in seen
            }
            total = sum(math.exp(score) for score in scores.values())
            for d in range(width):
                row.append(sum(math.exp(scores[s]) / total * v[s][g * width + d] for s in seen))
        mixed.append(row)
    return made.w_o(torch.tensor(mixed, dtype=torch.float64))


@pytest.mark.parametrize(("heads", "kv_heads"), [(6, 1), (6, 2), (6, 3), (6, 6), (1, 1)])
def test_it_is_the_definition(heads, kv_heads):
    made, mask = layer(heads, kv_heads, base=20.0), causal_mask(5)
    x = inputs(width=heads * 4)
    out = made(x, mask)
    for b in range(2):
        torch.testing.assert_close(out[b], by_hand(made, x[b], mask[0, 0].tolist()), **EXACT)


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
def test_output_and_gradients_are_torchs_kernel_for_groups(kv_heads):
    made, x = layer(6, kv_heads), inputs().requires_grad_()
    q, k, v = (w(x).unflatten(-1, (-1, 4)).transpose(1, 2) for w in (made.w_q, made.w_k, made.w_v))
    angles = torch.arange(5)[:, None] * 10000.0 ** -(torch.arange(0, 4, 2).double() / 4)

    def turn(part):
        numbers = torch.view_as_complex(part.unflatten(-1, (-1, 2)).contiguous())
        turned = numbers * torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(turned).flatten(-2)

    heads = F.scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True, enable_gqa=True)
    oracle = made.w_o(heads.transpose(1, 2).flatten(2))
    wanted = [x, *made.parameters()]
    ours = torch.autograd.grad(made(x, causal_mask(5)).square().sum(), wanted)
    theirs = torch.autograd.grad(oracle.square().sum(), wanted)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-10)


def test_with_a_key_head_for_every_query_head_it_is_chapter_5s_layer(exact):
    made = layer(4, 4, 6, device=exact)
    usual = MultiHeadAttention(24, 4).to(exact, torch.float64)
    usual.attention = RotaryAttention()
    with torch.no_grad():
        for name in ("w_q", "w_k", "w_v", "w_o"):
            getattr(usual, name).weight.copy_(getattr(made, name).weight)
            getattr(usual, name).bias.zero_()
    x, mask = inputs(exact), causal_mask(5, exact)
    torch.testing.assert_close(made(x, mask), usual(x, mask=mask), **EXACT)


@bounded
@given(st.sampled_from([(2, 1), (4, 2), (6, 2), (6, 3), (8, 1)]), st.integers(1, 6))
def test_groups_are_whole_heads_with_copied_keys(heads, length):
    few = layer(*heads)
    many = layer(heads[0], heads[0])
    group = heads[0] // heads[1]
    with torch.no_grad():
        for name in ("w_q", "w_o"):
            getattr(many, name).weight.copy_(getattr(few, name).weight)
        for name in ("w_k", "w_v"):
            rows = getattr(few, name).weight.unflatten(0, (-1, 4)).repeat_interleave(group, 0)
            getattr(many, name).weight.copy_(rows.flatten(0, 1))
    x = inputs(length=length, width=4 * heads[0])
    torch.testing.assert_close(few(x), many(x), **EXACT)


@pytest.mark.parametrize("pieces", [[1] * 6, [3, 3], [4, 1, 1], [6]])
def test_a_cache_changes_nothing(exact, pieces):
    made, x, cache = layer(device=exact), inputs(exact, 6), KeyValueCache()
    mask, outs, start = causal_mask(6, exact), [], 0
    for piece in pieces:
        part = slice(start, start + piece)
        outs.append(made(x[:, part], mask[:, :, part, : start + piece], cache))
        start += piece
    torch.testing.assert_close(torch.cat(outs, 1), made(x, mask), **EXACT)
    assert cache.k.shape == cache.v.shape == (2, 2, 6, 4)  # the key heads', not the query heads'


def test_a_cache_follows_its_rows(exact):
    made, x, cache = layer(device=exact), inputs(exact, 4), KeyValueCache()
    made(x[:, :3], causal_mask(3, exact), cache)
    cache.select(torch.tensor([1, 1], device=exact))
    again = made(x[[0, 1], 3:], None, cache)
    told = torch.cat([x[[1, 1], :3], x[:, 3:]], 1)
    torch.testing.assert_close(again, made(told, causal_mask(4, exact))[:, 3:], **EXACT)


def test_scores_depend_on_the_distance_alone():
    made, x = layer(base=30.0), inputs(length=1)
    q, k = (made._heads(w(x)) for w in (made.w_q, made.w_k))

    def score(at, key_at):
        return (made.turned(q, at)[:, :2] * made.turned(k, key_at)).sum(-1)

    torch.testing.assert_close(score(9, 4), score(1009, 1004), atol=1e-9, rtol=1e-9)
    assert (score(9, 4) - score(9, 3)).abs().max() > 1e-3


# ---- looked into


def test_it_is_recorded_and_changed_like_every_attention_layer(exact):
    model = nn.Sequential(layer(device=exact), nn.Linear(24, 24).double().to(exact))
    x = inputs(exact)
    plain = model(x)
    assert list(attention_layers(model)) == ["0"]
    with record(model) as seen:
        torch.testing.assert_close(model(x), plain, **EXACT)
    assert seen["0"].shape == (2, 6, 5, 5)
    torch.testing.assert_close(seen["0"].sum(-1), torch.ones_like(seen["0"][..., 0]))
    with replace(model, "0", ablate_heads(0, 5)), record(model) as seen:
        changed = model(x)
    assert (changed - plain).abs().max() > 1e-3
    assert seen["0"].abs().amax((0, 2, 3)).gt(0).tolist() == [False, True, True, True, True, False]
    torch.testing.assert_close(model(x), plain, atol=0, rtol=0)
    model[0].attention = explicit_attention
    torch.testing.assert_close(model(x), plain, **EXACT)


def test_a_module_around_an_attention_layer_is_none():
    holder = nn.Module()
    holder.attention = layer()
    assert list(attention_layers(holder)) == ["attention"]


def test_a_layer_whose_attention_learns_is_not_passed_over():
    model = nn.Sequential(layer(), layer())
    model[1].attention = nn.Identity()  # a module, with parameters if it likes
    assert list(attention_layers(model)) == ["0", "1"]
    with pytest.raises(TypeError, match="Identity does not say what its weights are"):
        record(model).__enter__()
    assert model[0].attention is fused_attention  # put back


# ---- what is refused


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((24, 5, 1), "d_model=24 is not divisible by num_heads=5"),
        ((24, 6, 4), "num_heads=6 is not divisible by num_kv_heads=4"),
        ((24, 6, 0), "num_heads=6 is not divisible by num_kv_heads=0"),
        ((24, 6, 12), "num_heads=6 is not divisible by num_kv_heads=12"),
        ((18, 6, 2), "d_model=18 and num_heads=6 give heads of width 3"),
    ],
)
def test_sizes_that_do_not_fit_are_named(sizes, message):
    with pytest.raises(ValueError, match=message):
        GroupedQueryAttention(*sizes)


@pytest.mark.parametrize("shape", [(2, 5, 23), (5, 24)])
def test_inputs_that_do_not_fit_are_named(shape):
    with pytest.raises(ValueError, match=r"x must be of shape \(B, length, d_model=24\), got"):
        layer()(torch.zeros(shape, dtype=torch.float64))


def test_masks_are_checked():
    with pytest.raises(TypeError, match="bool"):
        layer()(inputs(), torch.ones(1, 1, 5, 5))


def test_no_heads_are_refused():
    with pytest.raises(ValueError, match="num_heads must be at least 1, got 0"):
        GroupedQueryAttention(8, 0, 1)
    with pytest.raises(ValueError, match="num_heads=2 is not divisible by num_kv_heads=0"):
        GroupedQueryAttention(8, 2, 0)


def test_positions_can_be_given(exact):
    made = GroupedQueryAttention(24, 4, 2).to(exact, torch.float64)
    x, at = inputs(exact), torch.tensor([7, 0, 3, 3, 11], device=exact)
    rows = torch.stack([at, at + 2, at * 3])[: len(x)]
    both = made(x, positions=rows)
    for b in range(len(x)):
        torch.testing.assert_close(made(x[b : b + 1], positions=rows[b]), both[b : b + 1])
    torch.testing.assert_close(both[:1], both_by_hand(made, x[:1], at), atol=1e-12, rtol=1e-12)
    usual = made(x, positions=torch.arange(5, device=exact))
    assert torch.equal(usual, made(x))
    assert not torch.allclose(usual, both)


def both_by_hand(made, x, at):
    """Each position turned as the first of a text that begins there."""
    q, k, v = (made._heads(m(x)) for m in (made.w_q, made.w_k, made.w_v))
    q, k = (torch.cat([made.turned(y[:, :, [t]], int(p)) for t, p in enumerate(at)], 2)
            for y in (q, k))  # fmt: skip
    k, v = (y.repeat_interleave(2, dim=1) for y in (k, v))
    return made.w_o(explicit_attention(q, k, v).transpose(1, 2).flatten(2))


def test_without_a_base_nothing_is_turned(exact):
    made = GroupedQueryAttention(12, 4, 4, base=None).to(exact, torch.float64)  # heads of odd width
    usual = MultiHeadAttention(12, 4, bias=False).to(exact, torch.float64)
    usual.load_state_dict(made.state_dict())
    x = torch.randn(2, 5, 12, device=exact, dtype=torch.float64)
    torch.testing.assert_close(made(x), usual(x), atol=1e-12, rtol=1e-12)
