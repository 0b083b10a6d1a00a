"""Windows and linear attention against the quadratic forms they stand for."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.attention import explicit_attention
from tinytf.masks import causal_mask
from tinytf.metrics.counting import count_flops, kept_bytes
from tinytf.related.efficient_attention import (
    add_tile,
    feature_map,
    global_and_window_mask,
    linear_attention,
    linear_attention_weights,
    tiled_attention,
    window_attention,
    window_mask,
)


def heads(length, batch=2, width=5, device="cpu"):
    shape = (batch, 3, length, width)
    return [torch.randn(shape, dtype=torch.float64, device=device).requires_grad_() for _ in "qkv"]


def assert_same(run, oracle, inputs):
    a, b = run(*inputs), oracle(*inputs)
    torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-10)
    probe = torch.randn_like(b)
    ours, theirs = (torch.autograd.grad(out, inputs, probe) for out in (a, b))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=1e-10)


# ---- tiles


@bounded
@given(st.integers(1, 9), st.integers(1, 4), st.booleans())
def test_tiles_are_explicit_attention(length, tile, causal):
    mask = causal_mask(length) if causal else None
    assert_same(
        lambda q, k, v: tiled_attention(q, k, v, mask, tile),
        lambda q, k, v: explicit_attention(q, k, v, mask),
        heads(length),
    )


def test_tiles_take_other_lengths_widths_and_masks_of_padding():
    q, _, _ = heads(7)
    _, k, _ = heads(5)
    v = torch.randn(2, 3, 5, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 0]], dtype=torch.bool)[:, None, None]
    assert_same(
        lambda q, k, v: tiled_attention(q, k, v, mask, 2),
        lambda q, k, v: explicit_attention(q, k, v, mask),
        (q, k, v),
    )


def test_a_row_that_sees_nothing_is_zeros_and_has_finite_gradients():
    q, k, v = (x.detach().float().requires_grad_() for x in heads(4))
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[1] = False
    out = tiled_attention(q, k, v, mask, 2)
    assert (out[:, :, 1] == 0).all()
    out.sum().backward()
    assert all(x.grad.isfinite().all() for x in (q, k, v))


def test_tiles_that_nobody_may_see_are_not_computed():
    q, k, v = heads(16)
    mask = window_mask(16, 4, causal=True)
    whole, some = (count_flops(lambda m=m: tiled_attention(q, k, v, m, 4)) for m in (None, mask))
    assert some * 16 == whole * 7


def test_sums_of_tiles_are_in_float32():
    q, k, v = (x.detach().bfloat16() for x in heads(600, batch=1))
    q, k, v = q[:, :, :2], torch.zeros_like(k), torch.ones_like(v)
    out = tiled_attention(q, k, v, tile=1)
    assert out.dtype == torch.bfloat16
    assert (out == 1).all()
    state = q.new_zeros(1, 3, 2, 1).float(), *(torch.ones(1, 3, 2, n) for n in (1, 5))
    assert all(x.dtype == torch.float32 for x in add_tile(state, q, k, v))


def test_a_tile_has_a_size():
    with pytest.raises(ValueError, match="tile must be at least 1, got 0"):
        tiled_attention(*heads(4), tile=0)


# ---- masks


@bounded
@given(st.integers(1, 9), st.integers(1, 11))
def test_a_window_by_the_book(length, window):
    mask, causal = (window_mask(length, window, flag)[0, 0] for flag in (False, True))
    for t in range(length):
        for s in range(length):
            assert mask[t, s] == (abs(t - s) < window)
            assert causal[t, s] == (0 <= t - s < window)


@bounded
@given(st.integers(1, 8), st.integers(1, 4), st.data())
def test_global_positions_see_and_are_seen(length, window, data):
    count = data.draw(st.integers(0, length))
    mask = global_and_window_mask(length, window, count)[0, 0]
    assert mask[:count].all()
    assert mask[:, :count].all()
    assert torch.equal(mask[count:, count:], window_mask(length, window)[0, 0, count:, count:])


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="window must be at least 1, the position itself, got 0"):
        window_mask(4, 0)
    with pytest.raises(ValueError, match=r"num_global=5 must lie in 0\.\.length=4"):
        global_and_window_mask(4, 1, 5)
    q, k, v = heads(4)
    with pytest.raises(ValueError, match="window=0, lengths 4, 4 and 4"):
        window_attention(q, k, v, 0)
    with pytest.raises(ValueError, match="window=2, lengths 4, 3 and 4"):
        window_attention(q, k[:, :, :3], v, 2)


# ---- windows in blocks


@bounded
@given(st.integers(1, 13), st.integers(1, 15))
def test_blocks_equal_the_mask(exact, length, window):
    mask = window_mask(length, window, True, exact)
    assert_same(
        lambda q, k, v: window_attention(q, k, v, window),
        lambda q, k, v: explicit_attention(q, k, v, mask),
        heads(length, device=exact),
    )


def test_blocks_cost_in_proportion_to_the_length():
    counts, kept = [], []
    for length in (64, 128):
        q, k, v = heads(length)
        counts.append(count_flops(lambda q=q, k=k, v=v: window_attention(q, k, v, 8)))
        kept.append(kept_bytes(lambda q=q, k=k, v=v: window_attention(q, k, v, 8)))
    assert counts[1] == 2 * counts[0] == 2 * (2 * 2 * 6 * 64 * 16 * 5)
    assert kept[1] < 2.05 * kept[0]


# ---- linear attention


@bounded
@given(st.integers(1, 9), st.booleans())
def test_linear_equals_its_quadratic_form(exact, length, causal):
    assert_same(
        lambda q, k, v: linear_attention(q, k, v, causal),
        lambda q, k, v: linear_attention_weights(q, k, causal) @ v,
        heads(length, device=exact),
    )


def test_linear_attention_is_an_average():
    q, k, v = heads(7)
    weights = linear_attention_weights(q, k)
    assert (weights > 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 7, dtype=torch.float64))
    same = linear_attention(q, k, torch.ones_like(v), causal=True)
    torch.testing.assert_close(same, torch.ones_like(v))
    mapped = feature_map(torch.tensor([-30.0, 0.0, 2.0]))
    assert mapped.tolist() == [0.0, 1.0, 3.0]


def test_linear_attention_costs_in_proportion_to_the_length():
    counts = []
    for length in (10, 20):
        q, k, v = heads(length)
        counts.append(count_flops(lambda q=q, k=k, v=v: linear_attention(q, k, v)))
    assert counts[1] == 2 * counts[0]


def test_causal_linear_attention_can_be_read_on():
    """The sums after t tokens are all that token t + 1 needs: it is a recurrent network."""
    q, k, v = heads(6)
    whole = linear_attention(q, k, v, causal=True)
    state = norm = 0
    for t in range(6):
        a, b = feature_map(q[:, :, t]), feature_map(k[:, :, t])
        state = state + b[..., :, None] * v[:, :, t, None, :]
        norm = norm + b
        step = (a[..., None, :] @ state).squeeze(-2) / (a * norm).sum(-1, keepdim=True)
        torch.testing.assert_close(step, whole[:, :, t])


def test_nothing_later_reaches_back():
    q, k, v = heads(6)
    for run in (lambda *x: linear_attention(*x, causal=True), lambda *x: window_attention(*x, 3)):
        grads = torch.autograd.grad(run(q, k, v)[:, :, 2].sum(), (k, v))
        assert all((g[:, :, 3:] == 0).all() for g in grads)
        assert all((g[:, :, 1] != 0).any() for g in grads)
