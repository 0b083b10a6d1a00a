"""Looking inside and changing what is there, through the one forward path."""

import pytest
import torch
from support import random_ids, randomise, small_model
from torch import nn

from tinytf.attention import MultiHeadAttention, fused_attention
from tinytf.inspect import ablate_heads, attention_layers, record, replace
from tinytf.masks import causal_mask, padding_mask

NAMES = [
    *(f"encoder.layers.{i}.self_attention" for i in range(2)),
    *(f"decoder.layers.{i}.{kind}_attention" for i in range(2) for kind in ("self", "cross")),
]
CROSS = "decoder.layers.1.cross_attention"


@pytest.fixture
def model(exact):
    return randomise(small_model(exact))


@pytest.fixture
def ids(exact):
    return random_ids([6, 3], 11, exact), random_ids([4, 5], 9, exact)


def test_every_layer_is_recorded_and_the_output_stays_the_same(model, ids):
    plain = model(*ids)
    with record(model) as seen:
        recorded = model(*ids)
    torch.testing.assert_close(recorded, plain, atol=1e-11, rtol=1e-11)
    assert list(seen) == NAMES == list(attention_layers(model))
    shapes = {"encoder": (6, 6), "self": (5, 5), "cross": (5, 6)}
    for name, weights in seen.items():
        kind = "encoder" if "encoder" in name else name.split(".")[-1].split("_")[0]
        assert weights.shape == (2, 3, *shapes[kind])
        assert not weights.requires_grad


def test_recorded_weights_are_those_of_the_layer(model, ids):
    """Against the definition, from the layer's own input."""
    inputs = {}
    layer = model.get_submodule(CROSS)
    layer.register_forward_pre_hook(lambda _m, args: inputs.update(x=args[0], memory=args[1]))
    with record(model) as seen:
        model(*ids)
    q, k = layer.w_q(inputs["x"]), layer.w_k(inputs["memory"])
    for b in range(2):
        for h in range(3):
            part = slice(4 * h, 4 * h + 4)
            scores = q[b, :, part] @ k[b, :, part].T / 2
            scores = scores.masked_fill(ids[0][b] == 0, -torch.inf)
            torch.testing.assert_close(seen[CROSS][b, h], scores.softmax(-1), atol=1e-11, rtol=0)


def test_recorded_weights_respect_every_mask(model, ids):
    src, tgt = ids
    with record(model) as seen:
        model(src, tgt)
    real = padding_mask(src)
    for name, weights in seen.items():
        allowed = causal_mask(5, src.device) & padding_mask(tgt) if ".self" in name else real
        allowed = real if "encoder" in name else allowed
        assert (weights[~allowed.expand_as(weights)] == 0).all(), name
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


def test_weights_are_recorded_before_dropout(exact):
    layer = nn.ModuleDict({"a": MultiHeadAttention(8, 2, dropout=0.5)}).to(exact)
    x = torch.randn(2, 6, 8, device=exact)
    with record(layer) as seen:
        first, second = layer["a"](x), layer["a"](x)
    assert not torch.equal(first, second)  # dropout was at work
    torch.testing.assert_close(seen["a"].sum(-1), torch.ones(2, 2, 6, device=exact))


def test_layers_go_back_to_the_kernel_also_after_an_error(model, ids):
    def all_fused():
        return all(m.attention is fused_attention for m in attention_layers(model).values())

    with pytest.raises(RuntimeError, match="mine"), record(model):  # noqa: PT012
        assert not all_fused()
        raise RuntimeError("mine")
    assert all_fused()
    with pytest.raises(RuntimeError, match="mine"), replace(model, CROSS, lambda w: w):  # noqa: PT012
        assert not all_fused()
        raise RuntimeError("mine")
    assert all_fused()


def test_gradients_pass_while_recording(model, ids):
    def gradients():
        return torch.autograd.grad(model(*ids).square().sum(), list(model.parameters()))

    plain = gradients()
    with record(model):
        recorded = gradients()
    for a, b in zip(plain, recorded, strict=True):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-9)


def test_a_silenced_head_gives_what_its_removal_would(model, ids):
    layer = model.get_submodule(CROSS)
    with replace(model, CROSS, ablate_heads(0, 2)):
        ablated = model(*ids)
    kept = layer.w_o.weight.detach().clone()
    with torch.no_grad():
        layer.w_o.weight[:, 0:4] = 0
        layer.w_o.weight[:, 8:12] = 0
        torch.testing.assert_close(ablated, model(*ids), atol=1e-11, rtol=1e-11)
        layer.w_o.weight.copy_(kept)
    assert not torch.allclose(ablated, model(*ids))


def test_what_is_replaced_is_what_is_recorded(model, ids):
    with replace(model, CROSS, ablate_heads(1)), record(model) as seen:
        inside = model(*ids)
    assert (seen[CROSS][:, 1] == 0).all()
    assert (seen[CROSS][:, 0].sum(-1) > 0.99).all()
    with replace(model, CROSS, ablate_heads(1)):
        torch.testing.assert_close(inside, model(*ids))


def test_a_replacement_inside_a_recording_is_recorded_too(model, ids):
    with record(model) as seen, replace(model, CROSS, ablate_heads(1)):
        model(*ids)
    assert CROSS in seen
    assert (seen[CROSS][:, 1] == 0).all()


def test_two_replacements_of_one_layer_both_hold(model, ids):
    with replace(model, CROSS, ablate_heads(1)), replace(model, CROSS, ablate_heads(2)):
        twice = model(*ids)
    with replace(model, CROSS, ablate_heads(1, 2)):
        torch.testing.assert_close(twice, model(*ids))


def test_any_module_can_be_replaced(model, ids):
    name, plain = "encoder.layers.0.feed_forward", model(*ids)
    with replace(model, name, torch.zeros_like):
        changed = model(*ids)
    assert not torch.allclose(changed, plain)
    assert torch.equal(model(*ids), plain)
    with replace(model, "output", lambda logits: logits + 1):
        assert torch.equal(model(*ids), plain + 1)


def test_bad_requests_are_refused(model, ids):
    with pytest.raises(KeyError, match=r"no module 'encoder\.layer'; there are .*src_embedding"):
        replace(model, "encoder.layer", lambda w: w).__enter__()
    with pytest.raises(ValueError, match="Linear has no attention layer to record"):
        record(nn.Linear(2, 2)).__enter__()
    with (
        replace(model, CROSS, ablate_heads(1, 3)),
        pytest.raises(ValueError, match=r"heads \[3\] are not among the layer's 0..2"),
    ):
        model(*ids)
