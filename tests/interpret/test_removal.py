"""Removing sublayers: against the formula without them, and training that never had them."""

import pytest
import torch
from support import randomise, small_model
from torch import nn

from tinytf.blocks import EncoderLayer, PreNorm
from tinytf.interpret.ablation import teacher_forced
from tinytf.interpret.removal import KINDS, damage, kind_of, mean_outputs, removed, sublayers
from tinytf.masks import causal_mask
from tinytf.training.losses import make_batch, sequence_loss


@pytest.fixture
def model():
    return randomise(small_model(norm="pre")).eval()


@pytest.fixture
def batch():
    return make_batch([[3, 4, 5, 6, 7], [8, 9]], [[3, 4, 5], [6, 7, 8, 3]])


def test_names_and_kinds(model):
    names = list(sublayers(model))
    assert len(names) == 2 * 2 + 2 * 3
    assert "decoder.layers.1.cross_attention" in names
    assert {kind_of(name) for name in names} == set(KINDS)
    assert kind_of("encoder.layers.3.feed_forward") == "encoder feed-forward"


def test_a_decoder_layer_without_cross_attention_is_an_encoder_layer(model):
    layer, x, memory = model.decoder.layers[0], torch.randn(2, 5, 12), torch.randn(2, 4, 12)
    x, memory = x.double(), memory.double()
    half = EncoderLayer(12, 3, 20, 0.0, PreNorm).double()
    half.self_attention, half.feed_forward = layer.self_attention, layer.feed_forward
    half.residual_1, half.residual_2 = layer.residual_1, layer.residual_3
    with removed(model, ["decoder.layers.0.cross_attention"]):
        assert torch.equal(layer(x, memory, causal_mask(5)), half(x, causal_mask(5)))
    assert not torch.equal(layer(x, memory, causal_mask(5)), half(x, causal_mask(5)))


def test_means_are_over_real_tokens(model, batch):
    seen = {}
    hooks = [
        part.register_forward_hook(lambda _m, _i, out, name=name: seen.update({name: out}))
        for name, part in sublayers(model).items()
    ]
    means = mean_outputs(model, batch)
    for hook in hooks:
        hook.remove()
    for name, mean in means.items():
        ids = batch.src if name.startswith("encoder") else batch.tgt_in
        rows = [out for row, real in zip(seen[name], ids, strict=True)
                for out, token in zip(row, real, strict=True) if token != 0]  # fmt: skip
        torch.testing.assert_close(mean, torch.stack(rows).mean(0))


def test_removed_to_the_mean(model, batch):
    name = "encoder.layers.1.feed_forward"
    mean = mean_outputs(model, batch)
    layer, x = model.encoder.layers[1], torch.randn(1, 3, 12).double()
    attended = layer.residual_1(x, layer.self_attention)
    with removed(model, [name], mean):
        torch.testing.assert_close(layer(x), attended + mean[name])
    with removed(model, [name]):
        torch.testing.assert_close(layer(x), attended)
    torch.testing.assert_close(layer(x), layer.residual_2(attended, layer.feed_forward))


def test_damage_is_the_difference(model, batch):
    names = ["decoder.layers.0.self_attention", "decoder.layers.1.self_attention"]
    right, loss = teacher_forced(model, batch)
    with removed(model, iter(names)):
        still, without = teacher_forced(model, batch)
    found = damage(model, batch, iter(names))
    assert found.loss == pytest.approx(without - loss)
    assert found.exact == pytest.approx((right.float().mean() - still.float().mean()).item())
    assert found == damage(model, batch, names, intact=(right, loss))
    assert abs(found.loss) > 1e-6
    assert damage(model, batch, []).loss == 0


def test_damage_counts_what_is_lost(model, batch, monkeypatch):
    answers = [(torch.tensor([True, True]), 1.0), (torch.tensor([True, False]), 3.0)]
    monkeypatch.setattr("tinytf.interpret.ablation.teacher_forced", lambda *_: answers.pop(0))
    assert damage(model, batch, []) == (0.5, 2.0)


def test_hooks_are_gone_afterwards_also_after_an_error(model, batch):
    before = model(batch.src, batch.tgt_in)

    def fail():
        with removed(model, list(sublayers(model))):
            assert not torch.equal(model(batch.src, batch.tgt_in), before)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fail()
    assert torch.equal(model(batch.src, batch.tgt_in), before)


def test_a_removed_sublayer_does_not_learn(model, batch):
    name = "decoder.layers.0.cross_attention"
    model.train()
    with removed(model, [name]):
        sequence_loss(model, batch)[0].backward()
    gone = set(sublayers(model)[name].parameters())
    norm = set(model.decoder.layers[0].residual_2.parameters())
    for parameter in model.parameters():
        if parameter in gone or parameter in norm:
            assert parameter.grad is None  # a 0 would still decay the weight
        else:
            assert parameter.grad is not None
    assert isinstance(sublayers(model)[name], nn.Module)


def test_an_unknown_sublayer_is_named(model):
    unknown = removed(model, ["decoder.layers.9.feed_forward"])
    with pytest.raises(KeyError, match=r"no sublayer 'decoder\.layers\.9\.feed_forward'"), unknown:
        pass
