"""Ablating heads and sublayers: against the formula without them, and loops."""

import pytest
import torch
from support import randomise, small_model

from tinytf.blocks import EncoderLayer, PreNorm
from tinytf.inspect import ablate_heads, replace
from tinytf.interpret.head_roles import Head
from tinytf.masks import causal_mask
from tinytf.metrics.translation import batch_of, is_exact, teacher_forced
from tinytf.text.words import BOS, PAD
from tinytf.training.losses import sequence_loss
from tinytf_course.lessons import ablation as lesson


@pytest.fixture
def model():
    return randomise(small_model(norm="pre")).eval()


@pytest.mark.parametrize("layer", ["encoder.layers.0.self", "decoder.layers.1.cross"])
def test_ablating_heads_to_zero_is_zeroing_the_weights(model, batch, layer):
    name = f"{layer}_attention"
    with replace(model, name, ablate_heads(0, 2)):
        expected = model(batch.src, batch.tgt_in)
    with lesson.ablated(model, [Head(name, 0), Head(name, 2)]):
        found = model(batch.src, batch.tgt_in)
    torch.testing.assert_close(found, expected, atol=1e-11, rtol=0)
    assert (found - model(batch.src, batch.tgt_in)).abs().max() > 1e-3  # and it is over


def test_ablating_heads_leaves_what_the_layer_was_given_alone(model, batch):
    name, given = "encoder.layers.0.self_attention", []
    layer = model.get_submodule(name).w_o
    hook = layer.register_forward_pre_hook(lambda _, args: given.extend([args[0], args[0] + 0]))
    with lesson.ablated(model, [Head(name, 1)]):
        model(batch.src, batch.tgt_in)
    hook.remove()
    assert torch.equal(given[0], given[1])


def test_ablating_heads_to_the_mean_keeps_the_mean(model, batch):
    name = "encoder.layers.0.self_attention"
    before = lesson.mean_outputs(model, batch)
    width = 12 // 3
    with lesson.ablated(model, [Head(name, 1)], to=before):
        after = lesson.mean_outputs(model, batch)
        inputs = {}
        hook = model.get_submodule(name).w_o.register_forward_pre_hook(
            lambda _, args: inputs.update(joined=args[0])
        )
        model(batch.src, batch.tgt_in)
        hook.remove()
    torch.testing.assert_close(after[f"{name}.heads"], before[f"{name}.heads"])
    torch.testing.assert_close(after[name], before[name])
    part = inputs["joined"][..., width : 2 * width]
    torch.testing.assert_close(part, before[f"{name}.heads"][width : 2 * width].expand_as(part))
    other = "decoder.layers.0.cross_attention"
    assert not torch.allclose(after[other], before[other])  # those that follow hear of it


def test_what_is_not_there_is_refused_and_hooks_are_gone_also_after_an_error(model, batch):
    plain = model(batch.src, batch.tgt_in)
    name = "encoder.layers.0.self_attention"
    assert len(lesson.sublayers(model)) == 2 * 2 + 2 * 3
    assert {lesson.sublayer_kind(part) for part in lesson.sublayers(model)} == set(
        lesson.SUBLAYER_KINDS
    )
    unknown = lesson.ablated(model, ["decoder.layers.9.feed_forward"])
    with pytest.raises(KeyError, match=r"no sublayer 'decoder\.layers\.9\.feed_forward'"), unknown:
        pass
    refused = pytest.raises(ValueError, match=r"head 3 is not among .* 0\.\.2")
    with refused, lesson.ablated(model, [Head(name, 0), Head(name, 3)]):
        pass
    with pytest.raises(KeyError, match="nowhere"), lesson.ablated(model, [Head("nowhere", 0)]):
        pass
    for parts in ([Head(name, 0)], list(lesson.sublayers(model))):
        with pytest.raises(RuntimeError), lesson.ablated(model, parts):
            raise RuntimeError
    assert torch.equal(model(batch.src, batch.tgt_in), plain)


def test_teacher_forced_is_greedy_decoding(shipped, pairs):
    """With heads ablated, so that some sentences are wrong."""
    head = Head("decoder.layers.0.self_attention", 0)
    others = [Head(head.layer, i) for i in range(3)]
    with lesson.ablated(shipped.model, others):
        decoded = is_exact(shipped, pairs)
        forced, loss = teacher_forced(shipped.model, batch_of(shipped, pairs))
        batch = batch_of(shipped, pairs)
        with torch.no_grad():
            total, tokens = sequence_loss(shipped.model, batch)
    assert forced.tolist() == decoded
    assert 0 < sum(decoded) < len(pairs)
    assert loss == pytest.approx((total / tokens).item(), rel=1e-5)


def test_teacher_forced_takes_no_word_that_decoding_may_not_write(shipped, pairs):
    def tempted(scores):
        return scores.index_fill(-1, torch.tensor([PAD, BOS]), 99.0)

    batch = batch_of(shipped, pairs)
    right, _ = teacher_forced(shipped.model, batch)
    with replace(shipped.model, "output", tempted):
        still_right, loss = teacher_forced(shipped.model, batch)
    assert right.any()
    assert torch.equal(still_right, right)
    assert loss > 50  # the loss is the model's own


def test_effect_of_heads_compares_with_the_intact_model(shipped, pairs):
    model, batch = shipped.model, batch_of(shipped, pairs)
    intact = teacher_forced(model, batch)
    none = lesson.ablation_effect(model, batch, [])
    assert none == (0, 0)
    group = [Head("decoder.layers.1.cross_attention", i) for i in range(4)]
    found = lesson.ablation_effect(model, batch, iter(group), intact=intact)
    with lesson.ablated(model, group):
        right, loss = teacher_forced(model, batch)
    assert found.loss == pytest.approx(loss - intact[1])
    assert found.exact == pytest.approx((intact[0].sum() - right.sum()).item() / len(pairs))
    assert found.exact > 0.5
    assert found == lesson.ablation_effect(model, batch, group)
    means = lesson.mean_outputs(model, batch)
    with lesson.ablated(model, group, means):
        right, loss = teacher_forced(model, batch)
    found = lesson.ablation_effect(model, batch, group, means)
    assert found.loss == pytest.approx(loss - intact[1])
    assert found.exact == pytest.approx((intact[0].sum() - right.sum()).item() / len(pairs))


def test_a_decoder_layer_without_cross_attention_is_an_encoder_layer(model):
    layer, x, memory = model.decoder.layers[0], torch.randn(2, 5, 12), torch.randn(2, 4, 12)
    x, memory = x.double(), memory.double()
    half = EncoderLayer(12, 3, 20, 0.0, PreNorm).double()
    half.self_attention, half.feed_forward = layer.self_attention, layer.feed_forward
    half.residual_1, half.residual_2 = layer.residual_1, layer.residual_3
    with lesson.ablated(model, ["decoder.layers.0.cross_attention"]):
        assert torch.equal(layer(x, memory, causal_mask(5)), half(x, causal_mask(5)))
    assert not torch.equal(layer(x, memory, causal_mask(5)), half(x, causal_mask(5)))


def test_means_are_over_real_tokens(model, batch):
    seen = {}
    hooks = [
        part.register_forward_hook(lambda _m, _i, out, name=name: seen.update({name: out}))
        for name, part in lesson.sublayers(model).items()
    ]
    means = lesson.mean_outputs(model, batch)
    for hook in hooks:
        hook.remove()
    for name in seen:
        mean = means[name]
        ids = batch.src if name.startswith("encoder") else batch.tgt_in
        rows = [out for row, real in zip(seen[name], ids, strict=True)
                for out, token in zip(row, real, strict=True) if token != 0]  # fmt: skip
        torch.testing.assert_close(mean, torch.stack(rows).mean(0))


def test_ablated_to_the_mean(model, batch):
    name = "encoder.layers.1.feed_forward"
    mean = lesson.mean_outputs(model, batch)
    layer, x = model.encoder.layers[1], torch.randn(1, 3, 12).double()
    attended = layer.residual_1(x, layer.self_attention)
    with lesson.ablated(model, [name], mean):
        torch.testing.assert_close(layer(x), attended + mean[name])
    with lesson.ablated(model, [name]):
        torch.testing.assert_close(layer(x), attended)
    torch.testing.assert_close(layer(x), layer.residual_2(attended, layer.feed_forward))


def test_effect_counts_what_is_lost(model, batch, monkeypatch):
    answers = [(torch.tensor([True, True]), 1.0), (torch.tensor([True, False]), 3.0)]
    monkeypatch.setattr("tinytf_course.lessons.ablation.teacher_forced", lambda *_: answers.pop(0))
    assert lesson.ablation_effect(model, batch, []) == (0.5, 2.0)


def test_an_ablated_sublayer_does_not_learn(model, batch):
    name = "decoder.layers.0.cross_attention"
    model.train()
    with lesson.ablated(model, [name]):
        sequence_loss(model, batch)[0].backward()
    gone = set(lesson.sublayers(model)[name].parameters())
    norm = set(model.decoder.layers[0].residual_2.parameters())
    for parameter in model.parameters():
        if parameter in gone or parameter in norm:
            assert parameter.grad is None  # a 0 would still decay the weight
        else:
            assert parameter.grad is not None


@pytest.mark.parametrize(
    "part", [Head("decoder.layers.0.cross_attention", 1), "encoder.layers.0.feed_forward"]
)
def test_values_of_another_sentence(model, batch, part):
    """With all of the other sentences' values put in, the rest of the way is theirs too."""
    other = batch._replace(src=batch.src.flip(0), tgt_in=batch.tgt_in.flip(0))
    theirs = lesson.record_outputs(model, other)
    with lesson.ablated(model, [part], theirs):
        mixed = lesson.record_outputs(model, batch)
    name = part if isinstance(part, str) else f"{part.layer}.heads"
    columns = slice(None) if isinstance(part, str) else slice(4, 8)
    intact = lesson.record_outputs(model, batch)
    assert torch.equal(mixed[name][..., columns], theirs[name][..., columns])
    assert not torch.allclose(mixed[name][..., columns], intact[name][..., columns])
    if columns != slice(None):
        assert torch.equal(mixed[name][..., :4], intact[name][..., :4])


def test_with_the_cross_attention_of_another_source_the_source_is_the_other(model, batch):
    """It is the decoder's only way to the source; by heads, and by whole sublayers."""
    other = batch._replace(src=batch.src.flip(0))
    theirs, expected = lesson.record_outputs(model, other), model(other.src, other.tgt_in)
    assert not torch.allclose(model(batch.src, batch.tgt_in), expected)
    names = [name for name in lesson.sublayers(model) if "cross" in name]
    for parts in (names, [Head(name, index) for name in names for index in range(3)]):
        with lesson.ablated(model, parts, theirs):
            torch.testing.assert_close(model(batch.src, batch.tgt_in), expected)


def test_heads_and_sublayers_together(model, batch):
    """All heads of a layer to zero leave `w_o`'s bias, a whole sublayer to zero leaves nothing."""
    name = "decoder.layers.0.cross_attention"
    heads = [Head(name, index) for index in range(3)]
    with lesson.ablated(model, [*heads, "encoder.layers.1.feed_forward"]):
        outputs = lesson.record_outputs(model, batch)
    bias = model.get_submodule(name).w_o.bias.expand_as(outputs[name])
    torch.testing.assert_close(outputs[name], bias)
    assert not outputs["encoder.layers.1.feed_forward"].any()
    with lesson.ablated(model, [*heads, name]):
        assert not lesson.record_outputs(model, batch)[name].any()


def test_values_that_do_not_fit_are_refused(model, batch):
    shorter = batch._replace(tgt_in=batch.tgt_in[:, :-1])
    theirs = lesson.record_outputs(model, shorter)
    name = "decoder.layers.0.self_attention"
    for part in (name, Head(name, 0)):
        refused = pytest.raises(ValueError, match=r"values of shape \(2, 4, 12\) .*\(2, 5, 12\)")
        with refused, lesson.ablated(model, [part], theirs):
            model(batch.src, batch.tgt_in)
