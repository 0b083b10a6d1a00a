"""The feed-forward network as keys and values: exact sums, recorded units, edits that go away."""

import pytest
import torch
import torch.nn.functional as F
from support import randomise, small_model
from torch import nn

from tinytf.feedforward import FeedForward, SwiGLU, gelu
from tinytf.interpret.ffn_units import (
    contributions,
    edited,
    feed_forwards,
    mirrored,
    record_units,
    values_of,
    word_directions,
)
from tinytf.norm import RMSNorm

IDS = (torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]]), torch.tensor([[1, 4, 5], [1, 8, 0]]))


@pytest.mark.parametrize("activation", [F.relu, gelu])
def test_the_sum_over_units_is_the_network(activation, exact):
    layer = randomise(FeedForward(5, 9, activation=activation)).to(exact).double()
    x = torch.randn(2, 3, 5, device=exact, dtype=torch.float64)
    parts = contributions(layer, x)
    assert parts.shape == (2, 3, 9, 5)
    torch.testing.assert_close(parts.sum(dim=-2) + layer.w_2.bias, layer(x), atol=1e-12, rtol=0)
    key, bias, value = layer.w_1.weight[4], layer.w_1.bias[4], layer.w_2.weight[:, 4]
    torch.testing.assert_close(parts[1, 2, 4], activation(key @ x[1, 2] + bias) * value)


def test_every_feed_forward_network_is_named():
    model = small_model()
    model.decoder.layers[1].feed_forward = SwiGLU(12, 8)
    assert list(feed_forwards(model)) == [
        f"{side}.layers.{i}.feed_forward" for side in ("encoder", "decoder") for i in (0, 1)
    ]


@pytest.mark.parametrize("gated", [False, True])
def test_recorded_units_are_what_w_2_reads(gated, exact):
    model = randomise(small_model(exact))
    if gated:
        model.decoder.layers[1].feed_forward = SwiGLU(12, 20).to(exact).double()
    src, tgt = (ids.to(exact) for ids in IDS)
    outputs = {}
    layers = feed_forwards(model)
    for name, layer in layers.items():
        layer.register_forward_hook(lambda _, i, out, name=name: outputs.update({name: out}))
    with torch.no_grad(), record_units(model) as seen:
        model(src, tgt)
    assert list(seen) == list(layers)
    for name, layer in layers.items():
        torch.testing.assert_close(layer.w_2(seen[name]), outputs[name])


def test_recording_ends_with_the_block():
    model = small_model()
    with pytest.raises(RuntimeError, match="on purpose"), record_units(model) as seen:
        raise RuntimeError("on purpose")
    model(*IDS)
    assert not seen
    assert not any(layer.w_2._forward_pre_hooks for layer in feed_forwards(model).values())


def test_nothing_to_record():
    message = "Linear has no feed-forward network"
    with pytest.raises(ValueError, match=message), record_units(nn.Linear(2, 2)):
        pass


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_word_directions_say_how_logits_move(norm, exact):
    model = randomise(small_model(exact, norm=norm))
    last = model.decoder.final_norm if norm == "pre" else model.decoder.layers[-1].residual_3.norm
    stream = torch.randn(4, 12, device=exact, dtype=torch.float64)
    step = torch.randn(12, device=exact, dtype=torch.float64)
    sigma = [(s.var(-1, unbiased=False) + last.eps).sqrt() for s in (stream, stream + step)]
    with torch.no_grad():
        before, after = (model.output(last(s) - last.bias) for s in (stream, stream + step))
    directions = word_directions(model)
    assert directions.shape == (9, 12)
    moved = after * sigma[1][:, None] - before * sigma[0][:, None]
    torch.testing.assert_close(moved, (directions @ step).expand(4, 9))


def test_no_word_directions_through_another_norm():
    model = small_model(norm="pre")
    model.decoder.final_norm = RMSNorm(12)
    with pytest.raises(ValueError, match="the last norm is RMSNorm, expected LayerNorm"):
        word_directions(model)


def test_a_mirrored_value_says_the_opposite_and_nothing_else(exact):
    values, one, other = (torch.randn(n, 6, device=exact).double() for n in (7, 1, 1))
    one, other = one[0], other[0]
    new = mirrored(values, one, other)
    torch.testing.assert_close(new @ (one - other), -values @ (one - other))
    torch.testing.assert_close(new.norm(dim=-1), values.norm(dim=-1))
    torch.testing.assert_close(mirrored(new, one, other), values)
    across = (one - other) / (one - other).norm()
    rest = values - (values @ across)[:, None] * across
    torch.testing.assert_close(new - (new @ across)[:, None] * across, rest)


def test_no_mirror_between_a_word_and_itself():
    with pytest.raises(ValueError, match="the two directions are equal"):
        mirrored(torch.ones(3), torch.ones(3), torch.ones(3))


def test_an_edit_changes_what_the_units_write_and_goes_away(exact):
    layer = randomise(FeedForward(5, 9)).to(exact).double()
    x = torch.randn(3, 5, device=exact, dtype=torch.float64)
    before, weight = layer(x).detach(), layer.w_2.weight.detach().clone()
    units = torch.tensor([7, 2])
    new = torch.randn(2, 5, device=exact, dtype=torch.float64)
    activity = F.relu(layer.w_1(x)).detach()
    with torch.no_grad(), edited(layer, units, new):
        expected = before + activity[:, units] @ (new - weight.T[units])
        torch.testing.assert_close(layer(x), expected)
        torch.testing.assert_close(values_of(layer)[units], new)
    assert torch.equal(layer.w_2.weight, weight)
    with pytest.raises(RuntimeError, match="on purpose"), edited(layer, units, new):
        raise RuntimeError("on purpose")
    assert torch.equal(layer.w_2.weight, weight)


def test_an_edit_of_no_units_is_none():
    layer, x = FeedForward(4, 6), torch.ones(1, 4)
    before = layer(x)
    with edited(layer, [], torch.empty(0, 4)):
        assert torch.equal(layer(x), before)


def test_values_are_a_copy():
    layer = FeedForward(4, 6)
    values_of(layer).zero_()
    assert layer.w_2.weight.abs().sum() > 0


@pytest.mark.parametrize(
    ("units", "shape", "error", "message"),
    [
        ([1], (2, 4), ValueError, r"1 units of width 4 .* \(1, 4\), got \(2, 4\)"),
        ([1, 2], (2, 5), ValueError, r"\(2, 4\), got \(2, 5\)"),
        ([6], (1, 4), IndexError, r"units \[6\] are not all among 0..5"),
        ([-1], (1, 4), IndexError, r"units \[-1\]"),
        ([2, 2], (2, 4), ValueError, r"units \[2, 2\] name one twice"),
        ([True] * 6, (6, 4), ValueError, "name one twice"),
    ],
)
def test_bad_edits_are_refused(units, shape, error, message):
    with pytest.raises(error, match=message), edited(FeedForward(4, 6), units, torch.ones(shape)):
        pass
