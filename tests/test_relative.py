"""Rotary positions and linear biases: against independent forms, in a layer, with a cache."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import assert_equal_with_gradients, bounded, randomise
from torch import nn

from tinytf.attention import (
    KeyValueCache,
    MultiHeadAttention,
    explicit_attention,
    fused_attention,
)
from tinytf.inspect import ablate_heads, record, replace
from tinytf.masks import causal_mask, padding_mask
from tinytf.relative import (
    AlibiAttention,
    RotaryAttention,
    alibi_bias,
    alibi_slopes,
    apply_rotary,
    half_split_order,
    rotary_angles,
    rotate,
)

BOTH = pytest.mark.parametrize("attention", [RotaryAttention(), AlibiAttention()])


def some(*shape, device="cpu", dtype=torch.float64):
    return torch.randn(*shape, device=device, dtype=dtype)


# ---- rotation


def complex_rotation(x, start=0, base=10000.0):
    """Each pair as a complex number, times e^(i·angle), an element at a time."""
    out = torch.empty_like(x)
    for t in range(x.size(-2)):
        for pair in range(x.size(-1) // 2):
            angle = (start + t) / base ** (2 * pair / x.size(-1))
            turn = complex(math.cos(angle), math.sin(angle))
            z = torch.complex(x[..., t, 2 * pair], x[..., t, 2 * pair + 1]) * turn
            out[..., t, 2 * pair], out[..., t, 2 * pair + 1] = z.real, z.imag
    return out


@pytest.mark.parametrize(("start", "base"), [(0, 10000.0), (5, 10000.0), (3, 50.0)])
def test_rotation_is_complex_multiplication(start, base, exact):
    def ours(x):
        return rotate(x, rotary_angles(7, 8, start, base, exact))

    x = some(2, 3, 7, 8, device=exact)
    assert_equal_with_gradients(ours, lambda x: complex_rotation(x, start, base), [x])


@pytest.fixture(scope="module")
def llama():
    """Hugging Face's Llama: the one module of transformers, which takes seconds to import."""
    return pytest.importorskip("transformers.models.llama.modeling_llama")


def hugging_face(llama, q, k, base=10000.0):
    """Hugging Face's own rotation of q and k (B, H, T, D): pair i with i + D/2."""
    config = llama.LlamaConfig(
        hidden_size=q.size(1) * q.size(-1),
        num_attention_heads=q.size(1),
        rope_theta=base,  # transformers 4
        rope_parameters={"rope_type": "default", "rope_theta": base},  # and 5
    )
    place = torch.arange(q.size(-2), device=q.device)[None]
    cos, sin = llama.LlamaRotaryEmbedding(config).to(q.device)(q, place)
    return llama.apply_rotary_pos_emb(q, k, cos, sin)


@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_rotation_equals_hugging_face_after_reordering(llama, base, device):
    q, k = some(2, 4, 9, 16, device=device).float(), some(2, 4, 9, 16, device=device).float()
    order = half_split_order(16)
    ours = [rotate(x, rotary_angles(9, 16, base=base, device=device))[..., order] for x in (q, k)]
    theirs = hugging_face(llama, q[..., order], k[..., order], base)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
    unordered = hugging_face(llama, q, k, base)
    assert not torch.allclose(ours[0], unordered[0], atol=0.1)


def test_the_order_leads_from_neighbours_to_halves_and_back():
    order = half_split_order(6)
    assert order.tolist() == [0, 2, 4, 1, 3, 5]
    x = some(5, 6)
    assert torch.equal(x[:, order][:, order.argsort()], x)


@bounded
@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 500), st.integers(1, 8))
def test_scores_depend_on_the_offset_alone(first, second, shift, half):
    q, k = some(1, 2 * half), some(1, 2 * half)

    def score(i, j):
        turned = (rotate(x, rotary_angles(1, 2 * half, p)) for x, p in ((q, i), (k, j)))
        return torch.linalg.vecdot(*turned)

    torch.testing.assert_close(
        score(first, second), score(first + shift, second + shift), atol=1e-10, rtol=0
    )


def test_rotation_keeps_norms_and_leaves_position_0_alone(exact):
    x = some(3, 50, 12, device=exact)
    turned = rotate(x, rotary_angles(50, 12, device=exact))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(turned[:, 0], x[:, 0])
    assert not torch.allclose(turned[:, 1:], x[:, 1:])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_turns_by_exact_angles(dtype, device):
    """bfloat16 holds few integers above 100,000; the angles must not pass through it."""
    x = some(4, 16, device=device).to(dtype)
    turned = rotate(x, rotary_angles(4, 16, start=100_000, device=device))
    assert turned.dtype == dtype
    expected = complex_rotation(x.cpu().double(), start=100_000)
    last_digit = torch.finfo(dtype).eps
    torch.testing.assert_close(turned.cpu(), expected.to(dtype), atol=1e-4, rtol=last_digit)


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="a head width of 7 is odd"):
        rotary_angles(4, 7)
    with pytest.raises(ValueError, match="a head width of 5 is odd"):
        RotaryAttention()(*(some(1, 2, 3, 5) for _ in "qkv"))


# ---- ALiBi


def test_slopes_are_the_papers():
    assert alibi_slopes(8).tolist() == [2.0**-n for n in range(1, 9)]
    torch.testing.assert_close(
        alibi_slopes(16), torch.tensor([2 ** (-n / 2) for n in range(1, 17)])
    )
    assert alibi_slopes(1).tolist() == [2.0**-8]


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 8, 12, 13, 16])
def test_slopes_and_bias_equal_hugging_face(heads):
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    theirs = bloom.build_alibi_tensor(torch.ones(1, 7), heads, torch.float32)  # slope · position
    theirs = theirs.view(heads, 1, 7)
    torch.testing.assert_close(theirs[:, 0, 1], alibi_slopes(heads))
    # It adds slope · key, ours subtracts slope · distance: a softmax of the past is the same.
    visible = causal_mask(7)[0]
    ours = alibi_bias(alibi_slopes(heads), 7).masked_fill(~visible, -torch.inf).softmax(-1)
    theirs = theirs.expand(-1, 7, -1).masked_fill(~visible, -torch.inf).softmax(-1)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(("length", "keys"), [(5, None), (5, 5), (2, 6), (1, 4)])
def test_bias_equals_a_loop(length, keys):
    slopes = torch.tensor([0.5, 0.1, 2.0])
    bias = alibi_bias(slopes, length, keys)
    keys = keys or length
    assert bias.shape == (3, length, keys)
    for h in range(3):
        for t in range(length):
            for s in range(keys):
                distance = abs(keys - length + t - s)
                assert bias[h, t, s].item() == pytest.approx(-slopes[h].item() * distance)


def test_bad_alibi_is_refused():
    with pytest.raises(ValueError, match="num_heads=0 must be at least 1"):
        alibi_slopes(0)
    with pytest.raises(ValueError, match="2 slopes for 3 heads"):
        AlibiAttention((0.5, 0.1))(*(some(1, 3, 4, 2) for _ in "qkv"))


# ---- both, as attentions


def explicit(attention, q, k, v, mask=None):
    """An independent form of both: loops over queries and keys, in plain numbers."""
    (B, H, T, D), S = q.shape, k.size(2)
    if isinstance(attention, RotaryAttention):
        q, k = complex_rotation(q, S - T), complex_rotation(k)
    slopes = [2 ** (-8 * (h + 1) / H) for h in range(H)]
    out = torch.zeros_like(q)
    visible = torch.ones(B, H, T, S, dtype=torch.bool, device=q.device)
    visible = visible if mask is None else visible & mask
    for b in range(B):
        for h in range(H):
            for t in range(T):
                keys = visible[b, h, t].nonzero()[:, 0]
                if len(keys) == 0:
                    continue
                scores = k[b, h, keys] @ q[b, h, t] / math.sqrt(D)
                if isinstance(attention, AlibiAttention):
                    scores = scores - slopes[h] * (S - T + t - keys).abs()
                out[b, h, t] = scores.softmax(0) @ v[b, h, keys]
    return out


def masks(device):
    ids = torch.tensor([[5, 6, 7, 8, 9], [5, 6, 0, 0, 0]], device=device)
    nobody = torch.tensor([[5, 6, 7, 8, 9], [0, 0, 0, 0, 0]], device=device)
    causal = causal_mask(5, device)
    return {
        "none": None,
        "causal": causal,
        "padding": padding_mask(ids),
        "both": causal & padding_mask(ids),
        "all hidden": padding_mask(nobody),
        "last two": causal[:, :, 3:],
        "per head": torch.rand(2, 4, 5, 5, device=device) < 0.5,
    }


@BOTH
@pytest.mark.parametrize("kind", masks("cpu"))
def test_attention_equals_a_loop(attention, kind, exact):
    mask = masks(exact)[kind]
    queries = 2 if kind == "last two" else 5
    shapes = ((2, 4, queries, 8), (2, 4, 5, 8), (2, 4, 5, 8))
    inputs = [some(*shape, device=exact) for shape in shapes]
    assert_equal_with_gradients(
        lambda q, k, v: attention(q, k, v, mask),
        lambda q, k, v: explicit(attention, q, k, v, mask),
        inputs,
    )
    q, k, v = inputs
    weights = attention.weights(q, k, mask)
    torch.testing.assert_close(weights @ v, attention(q, k, v, mask), atol=1e-10, rtol=0)
    if mask is not None:
        assert (weights[~mask.expand_as(weights)] == 0).all()


@BOTH
def test_equal_tokens_see_a_band(attention, exact):
    """With one content everywhere the scores are a Toeplitz matrix: constant along diagonals."""
    q, k = (some(1, 4, 1, 8, device=exact).expand(1, 4, 9, 8) for _ in "qk")
    odds = attention.weights(q, k).log()
    odds = odds - odds.diagonal(dim1=-2, dim2=-1)[..., None]  # against the query's own place
    torch.testing.assert_close(odds[..., 1:, 1:], odds[..., :-1, :-1], atol=1e-10, rtol=0)
    assert odds.std(dim=-1).min() > 0.001


@BOTH
def test_all_hidden_gives_zeros_and_finite_gradients(attention, device):
    """In float32, and through a whole layer: no NaN reaches a parameter."""
    layer = MultiHeadAttention(16, 4).to(device)
    layer.attention = attention
    x = torch.randn(2, 5, 16, device=device, requires_grad=True)
    real = torch.tensor([[3, 4, 5, 6, 7], [0, 0, 0, 0, 0]], device=device)
    out = layer(x, mask=padding_mask(real))
    torch.testing.assert_close(out[1], layer.w_o.bias.expand(5, -1))
    out.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in [x, *layer.parameters()])


@BOTH
def test_a_cache_gives_what_one_pass_gives(attention, exact):
    layer = randomise(MultiHeadAttention(16, 4)).to(exact, torch.float64)
    layer.attention = attention
    x, cache = some(2, 7, 16, device=exact), KeyValueCache()
    full = layer(x, mask=causal_mask(7, exact))
    prefix = layer(x[:, :4], mask=causal_mask(4, exact), cache=cache)
    steps = [layer(x[:, t : t + 1], cache=cache) for t in range(4, 7)]
    torch.testing.assert_close(torch.cat([prefix, *steps], dim=1), full, atol=1e-11, rtol=0)


@BOTH
def test_padding_on_the_left_moves_nothing(attention, exact):
    layer = randomise(MultiHeadAttention(16, 4)).to(exact, torch.float64)
    layer.attention = attention
    x = some(1, 5, 16, device=exact)
    padded = torch.cat([some(1, 3, 16, device=exact), x], dim=1)
    ids = torch.tensor([[0, 0, 0, 5, 6, 7, 8, 9]], device=exact)
    mask = causal_mask(8, exact) & padding_mask(ids)
    alone = layer(x, mask=causal_mask(5, exact))
    torch.testing.assert_close(layer(padded, mask=mask)[:, 3:], alone, atol=1e-11, rtol=0)


@BOTH
def test_order_matters_at_last(attention, exact):
    layer = MultiHeadAttention(16, 4).to(exact, torch.float64)
    x, order = some(1, 6, 16, device=exact), torch.tensor([3, 1, 0, 5, 2, 4], device=exact)
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order], atol=1e-12, rtol=0)
    layer.attention = attention
    assert not torch.allclose(layer(x[:, order]), layer(x)[:, order], atol=1e-4)


@BOTH
@pytest.mark.parametrize("masked", [False, True])
def test_dropout_is_passed_on(attention, masked, device):
    q, k, v = (torch.randn(1, 4, 20, 8, device=device) for _ in "qkv")
    mask = torch.arange(20, device=device).lt(17)[None, None, None] if masked else None
    plain = attention(q, k, v, mask)
    assert torch.equal(attention(q, k, v, mask), plain)
    assert not torch.allclose(attention(q, k, v, mask, dropout=0.5), plain)
    mean = torch.stack([attention(q, k, v, mask, dropout=0.5) for _ in range(2000)]).mean(0)
    torch.testing.assert_close(mean, plain, atol=0.15, rtol=0)


@BOTH
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_near(attention, dtype, device):
    q, k, v = (torch.randn(2, 4, 6, 8, device=device) for _ in "qkv")
    mask = causal_mask(6, device)
    half = attention(q.to(dtype), k.to(dtype), v.to(dtype), mask)
    assert half.dtype == dtype
    torch.testing.assert_close(half.float(), attention(q, k, v, mask), atol=0.03, rtol=0.03)


@BOTH
def test_bad_masks_and_cross_attention_are_refused(attention):
    q, k, v = (some(2, 4, 5, 8) for _ in "qkv")
    with pytest.raises(TypeError, match="mask must be boolean"):
        attention(q, k, v, torch.ones(2, 4, 5, 5))
    with pytest.raises(ValueError, match=r"mask of shape \(5, 5\) does not fit"):
        attention(q, k, v, torch.ones(5, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"mask of shape \(5, 5\) does not fit"):
        attention.weights(q, k, torch.ones(5, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"5 queries for 3 keys: .* is for self-attention"):
        attention(q, k[:, :, :3], v[:, :, :3])


# ---- looking inside


@BOTH
def test_what_is_recorded_is_what_was_used(attention, exact):
    model = nn.ModuleDict({"a": MultiHeadAttention(16, 4)}).to(exact, torch.float64)
    layer, mask = model["a"], causal_mask(6, exact)
    layer.attention = attention
    x = some(2, 6, 16, device=exact)
    plain, seen_inside = layer(x, mask=mask), {}

    def spy(q, k, v, mask, dropout):
        seen_inside.update(q=q, k=k, v=v)
        return attention(q, k, v, mask, dropout)

    layer.attention = spy
    layer(x, mask=mask)
    layer.attention = attention
    with record(model) as seen:
        recorded = layer(x, mask=mask)
    assert layer.attention is attention
    torch.testing.assert_close(recorded, plain, atol=1e-11, rtol=0)
    mixed = (seen["a"] @ seen_inside["v"]).transpose(1, 2).flatten(2)
    torch.testing.assert_close(layer.w_o(mixed), plain, atol=1e-11, rtol=0)
    layer.attention = fused_attention
    assert not torch.allclose(layer(x, mask=mask), plain)


@BOTH
def test_heads_can_be_silenced(attention, exact):
    model = nn.ModuleDict({"a": MultiHeadAttention(16, 4)}).to(exact, torch.float64)
    model["a"].attention = attention
    x = some(2, 6, 16, device=exact)
    with replace(model, "a", ablate_heads(0, 2)), record(model) as seen:
        ablated = model["a"](x)
    assert (seen["a"][:, [0, 2]] == 0).all()
    assert (seen["a"][:, [1, 3]].sum(-1) > 0.99).all()
    with torch.no_grad():
        for head in (0, 2):
            model["a"].w_o.weight[:, 4 * head : 4 * head + 4] = 0
    torch.testing.assert_close(ablated, model["a"](x), atol=1e-11, rtol=0)


def test_an_attention_that_hides_its_weights_is_not_recorded():
    """The plain weights would be recorded, and used, in place of its own."""
    model = nn.ModuleDict({"a": MultiHeadAttention(16, 4)})

    def mine(q, k, v, mask=None, dropout=0.0):
        return RotaryAttention()(q, k, v, mask, dropout)

    model["a"].attention = mine
    message = "the attention mine does not say what its weights are"
    with pytest.raises(TypeError, match=message), record(model):
        pass
    with pytest.raises(TypeError, match=message), replace(model, "a", ablate_heads(0)):
        pass
    assert model["a"].attention is mine


@pytest.mark.parametrize("plain", [explicit_attention, F.scaled_dot_product_attention])
def test_plain_attentions_need_no_weights_of_their_own(plain):
    model = nn.ModuleDict({"a": MultiHeadAttention(16, 4)})
    x = torch.randn(2, 6, 16)
    expected = model["a"](x)
    model["a"].attention = plain
    with record(model) as seen:
        torch.testing.assert_close(model["a"](x), expected)
    assert seen["a"].shape == (2, 4, 6, 6)


def test_rotary_positions_can_be_given(exact):
    q, k, v = torch.randn(3, 2, 4, 5, 8, device=exact, dtype=torch.float64).unbind()
    at = torch.tensor([[4, 0, 9, 9, 2], [1, 2, 3, 4, 5]], device=exact)
    out = RotaryAttention(positions=at)(q[:, :, 3:], k, v)
    for b in range(2):
        places = list(enumerate(at[b].tolist()))
        queries, keys = (
            torch.cat([apply_rotary(y[b : b + 1, :, [t]], p) for t, p in places], dim=2)
            for y in (q, k)
        )
        expected = explicit_attention(queries[:, :, 3:], keys, v[b : b + 1])
        torch.testing.assert_close(out[b : b + 1], expected, atol=1e-12, rtol=1e-12)
    plain = RotaryAttention()(q[:, :, 3:], k, v)
    torch.testing.assert_close(out[1], plain[1], atol=1e-12, rtol=1e-12)  # shifted alike
    assert not torch.allclose(out[0], plain[0])
