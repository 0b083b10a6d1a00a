"""Heads replaced by nothing or by their mean, and what it costs."""

import pytest
import torch

from tinytf.inspect import ablate_heads, replace
from tinytf.interpret.ablation import damage, mean_outputs, silenced, teacher_forced
from tinytf.interpret.head_roles import (
    Head,
)
from tinytf.metrics.translation import batch_of, is_exact
from tinytf.text.words import BOS, PAD
from tinytf.training.losses import Batch, sequence_loss


@pytest.mark.parametrize("layer", ["encoder.layers.0.self", "decoder.layers.1.cross"])
def test_silenced_to_zero_is_ablation_of_the_weights(model, batch, layer):
    name = f"{layer}_attention"
    with replace(model, name, ablate_heads(0, 2)):
        expected = model(batch.src, batch.tgt_in)
    with silenced(model, [Head(name, 0), Head(name, 2)]):
        found = model(batch.src, batch.tgt_in)
    torch.testing.assert_close(found, expected, atol=1e-11, rtol=0)
    assert (found - model(batch.src, batch.tgt_in)).abs().max() > 1e-3  # and it is over


def test_silenced_leaves_what_the_layer_was_given_alone(model, batch):
    name, given = "encoder.layers.0.self_attention", []
    layer = model.get_submodule(name).w_o
    hook = layer.register_forward_pre_hook(lambda _, args: given.extend([args[0], args[0] + 0]))
    with silenced(model, [Head(name, 1)]):
        model(batch.src, batch.tgt_in)
    hook.remove()
    assert torch.equal(given[0], given[1])


def test_silenced_to_the_mean_keeps_the_mean(model, batch):
    name = "encoder.layers.0.self_attention"
    before = mean_outputs(model, batch)
    width = 12 // 3
    with silenced(model, [Head(name, 1)], to=before):
        after = mean_outputs(model, batch)
        inputs = {}
        hook = model.get_submodule(name).w_o.register_forward_pre_hook(
            lambda _, args: inputs.update(joined=args[0])
        )
        model(batch.src, batch.tgt_in)
        hook.remove()
    torch.testing.assert_close(after[name], before[name])
    part = inputs["joined"][..., width : 2 * width]
    torch.testing.assert_close(part, before[name][width : 2 * width].expand_as(part))
    other = "decoder.layers.0.cross_attention"
    assert not torch.allclose(after[other], before[other])  # those that follow hear of it


def test_mean_outputs_leave_padding_out(model, batch):
    def padded(ids):
        return torch.nn.functional.pad(ids, (0, 4))

    longer = Batch(*map(padded, batch))
    for name, mean in mean_outputs(model, batch).items():
        torch.testing.assert_close(mean_outputs(model, longer)[name], mean)


def test_silenced_refuses_what_is_not_there_and_cleans_up(model, batch):
    plain = model(batch.src, batch.tgt_in)
    name = "encoder.layers.0.self_attention"
    refused = pytest.raises(ValueError, match=r"head 3 is not among .* 0\.\.2")
    with refused, silenced(model, [Head(name, 0), Head(name, 3)]):
        pass
    with pytest.raises(KeyError, match="nowhere"), silenced(model, [Head("nowhere", 0)]):
        pass
    with pytest.raises(RuntimeError), silenced(model, [Head(name, 0)]):
        raise RuntimeError
    assert torch.equal(model(batch.src, batch.tgt_in), plain)


def test_teacher_forced_is_greedy_decoding(shipped, pairs):
    """With a head silenced, so that some sentences are wrong."""
    head = Head("decoder.layers.0.self_attention", 0)
    others = [Head(head.layer, i) for i in range(3)]
    with silenced(shipped.model, others):
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


def test_damage_compares_with_the_intact_model(shipped, pairs):
    model, batch = shipped.model, batch_of(shipped, pairs)
    intact = teacher_forced(model, batch)
    none = damage(model, batch, [])
    assert none == (0, 0)
    group = [Head("decoder.layers.1.cross_attention", i) for i in range(4)]
    found = damage(model, batch, group, intact=intact)
    with silenced(model, group):
        right, loss = teacher_forced(model, batch)
    assert found.loss == pytest.approx(loss - intact[1])
    assert found.exact == pytest.approx((intact[0].sum() - right.sum()).item() / len(pairs))
    assert found.exact > 0.5
    assert found == damage(model, batch, group)
    means = mean_outputs(model, batch)
    with silenced(model, group, means):
        right, loss = teacher_forced(model, batch)
    found = damage(model, batch, group, means)
    assert found.loss == pytest.approx(loss - intact[1])
    assert found.exact == pytest.approx((intact[0].sum() - right.sum()).item() / len(pairs))
