"""Activation checkpointing: the same gradients from less memory."""

import functools

import pytest
import torch
from support import small_model
from torch import nn

from tinytf.gpt import GPT, GPTConfig
from tinytf.metrics.counting import kept_bytes
from tinytf.training.losses import TextBatch, make_batch, next_token_loss, sequence_loss
from tinytf.training.recompute import recomputing, stacked_layers

SIZES = {"vocab_size": 13, "d_model": 24, "num_heads": 3, "max_len": 16}
BATCH = TextBatch(*torch.randint(13, (2, 4, 16)).unbind())


def gradients(model, recompute, batch, objective):
    model.zero_grad()
    torch.manual_seed(1)
    if recompute:
        with recomputing(model):
            objective(model, batch)[0].backward()
    else:
        objective(model, batch)[0].backward()
    return [p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients_are_the_same_bits(dropout):
    gpt = GPT(GPTConfig(**SIZES, num_layers=2, dropout=dropout))
    pairs = make_batch([[3, 4, 5], [6]], [[7], [8, 3]])
    both = small_model(dtype=torch.float32, dropout=dropout)
    for model, batch, loss in ((gpt, BATCH, next_token_loss), (both, pairs, sequence_loss)):
        plain, again = (gradients(model, r, batch, loss) for r in (False, True))
        assert all(map(torch.equal, plain, again))
        assert any(g.abs().max() > 0 for g in plain)


def test_a_layer_keeps_its_input_alone():
    """What another layer adds to the bytes kept: one (B, T, C), and dropout's random state."""
    kept = {}
    for layers in (2, 3):
        model = GPT(GPTConfig(**SIZES, num_layers=layers))

        def step(model=model):
            return next_token_loss(model, BATCH)[0]

        kept[layers, "plain"] = kept_bytes(step)
        with recomputing(model):
            kept[layers, "recomputed"] = kept_bytes(step)
    own = 4 * BATCH.ids_in.numel() * SIZES["d_model"]
    assert kept[3, "recomputed"] - kept[2, "recomputed"] == own
    assert kept[3, "plain"] - kept[2, "plain"] > 15 * own


def test_layers_are_afterwards_as_they_were():
    model = GPT(GPTConfig(**SIZES, num_layers=2))
    with recomputing(model):
        assert all("forward" in vars(layer) for layer in model.decoder.layers)
    assert not any("forward" in vars(layer) for layer in model.decoder.layers)
    with pytest.raises(KeyError), recomputing(model):
        raise KeyError
    assert not any("forward" in vars(layer) for layer in model.decoder.layers)


def test_the_layers_are_those_of_every_stack_and_each_once():
    model = small_model()
    assert stacked_layers(model) == [*model.encoder.layers, *model.decoder.layers]
    outer, inner = nn.Module(), nn.Module()
    inner.layers = nn.ModuleList([nn.Linear(1, 1)])
    outer.layers = nn.ModuleList([inner])
    assert stacked_layers(outer) == [inner]
    with pytest.raises(ValueError, match="Linear has no stack"):
        stacked_layers(nn.Linear(1, 1))


def test_a_forward_of_a_layer_s_own_is_given_back():
    model = GPT(GPTConfig(**SIZES, num_layers=2))
    layer, plain = model.decoder.layers
    layer.forward = own = functools.partial(layer.forward)
    with recomputing(model), recomputing(model):
        assert layer.forward is not own
    assert layer.forward is own
    assert "forward" not in vars(plain)
