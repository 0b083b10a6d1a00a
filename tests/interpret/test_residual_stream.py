"""What a word is after each layer, recorded in the one forward pass."""

import pytest
import torch
from support import random_ids, randomise, small_model
from torch import nn

from tinytf.blocks import Encoder
from tinytf.inspect import record, replace
from tinytf.interpret.residual_stream import record_residual_stream, stacks
from tinytf.masks import padding_mask

NAMES = [
    f"{stack}.{name}"
    for stack in ("encoder", "decoder")
    for name in ("embedding", "layers.0", "layers.1", "output")
]


@pytest.fixture(params=["post", "pre"])
def model(request, exact):
    return randomise(small_model(exact, norm=request.param))


@pytest.fixture
def ids(exact):
    return random_ids([6, 3], 11, exact), random_ids([4, 5], 9, exact)


def test_every_layer_is_recorded_and_the_output_stays_the_same(model, ids):
    plain = model(*ids)
    with record_residual_stream(model) as seen:
        recorded = model(*ids)
    assert torch.equal(recorded, plain)
    assert list(seen) == NAMES
    for name, state in seen.items():
        assert state.shape == (2, 6 if name.startswith("encoder") else 5, 12)
        assert not state.requires_grad


def test_the_states_are_those_of_the_layers_run_one_by_one(model, ids):
    """Against a second way to compute them: layer after layer, by hand."""
    src, tgt = ids
    with record_residual_stream(model) as seen:
        model(src, tgt)
    mask = padding_mask(src)
    x = model.src_embedding(src) + model.positions.table[:6]
    by_hand = [x]
    for layer in model.encoder.layers:
        by_hand.append(layer(by_hand[-1], mask))
    limits = {"atol": 1e-11, "rtol": 1e-11}
    torch.testing.assert_close(seen.by_layer(), torch.stack(by_hand), **limits)
    memory = model.encoder.final_norm(by_hand[-1])
    torch.testing.assert_close(seen["encoder.output"], memory, **limits)
    y = model.decoder.final_norm(seen.by_layer("decoder")[-1])
    torch.testing.assert_close(seen["decoder.output"], y, **limits)
    y = model.tgt_embedding(tgt) + model.positions.table[:5]
    torch.testing.assert_close(seen["decoder.embedding"], y, **limits)


def test_the_final_norm_is_in_the_output_only(exact, ids):
    for norm, same in (("post", True), ("pre", False)):
        model = randomise(small_model(exact, norm=norm))
        with record_residual_stream(model) as seen:
            model(*ids)
        assert torch.equal(seen["encoder.output"], seen["encoder.layers.1"]) == same


def test_gradients_pass_as_if_nothing_were_recorded(model, ids):
    def gradient():
        model.zero_grad()
        model(*ids).square().sum().backward()
        return [p.grad.clone() for p in model.parameters()]

    plain = gradient()
    with record_residual_stream(model):
        recorded = gradient()
    assert all(map(torch.equal, plain, recorded))


def test_a_stack_of_its_own_and_named_arguments(model, ids):
    x = torch.randn(2, 6, 12, dtype=torch.float64, device=ids[0].device)
    with record_residual_stream(model.encoder) as seen:
        model.encoder(x=x, mask=padding_mask(ids[0]))
    assert list(seen) == ["embedding", "layers.0", "layers.1", "output"]
    assert torch.equal(seen.by_layer("")[0], x)


def test_a_layer_used_several_times_is_recorded_at_each_place(exact):
    """As in ALBERT: the same module three times in a list."""
    layer = small_model(exact).encoder.layers[0]
    tied = Encoder([layer] * 3, nn.Identity())
    x = torch.randn(2, 6, 12, dtype=torch.float64, device=exact)
    with record_residual_stream(tied) as seen:
        with pytest.raises(ValueError, match="d_model=12"):
            tied(torch.randn(2, 6, 11, dtype=torch.float64, device=exact))
        layer(x)  # outside the stack: the next pass starts anew all the same
        tied(x)
    by_hand = [x]
    for _ in range(3):
        by_hand.append(layer(by_hand[-1]))
    assert torch.equal(seen.by_layer(""), torch.stack(by_hand))
    assert not torch.equal(seen["layers.0"], seen["layers.2"])


def test_pytorchs_stack_too(exact):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, dropout=0.0)
    theirs = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(exact, torch.float64)
    x = torch.randn(2, 6, 12, dtype=torch.float64, device=exact)
    with record_residual_stream(theirs) as seen:
        out = theirs(src=x)
    assert torch.equal(seen["embedding"], x)
    assert torch.equal(seen["output"], out)
    assert torch.equal(seen["layers.1"], theirs.layers[1](seen["layers.0"]))


def test_hooks_are_gone_afterwards_also_after_an_error(model, ids):
    def hooks():
        modules = list(model.modules())
        return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in modules)

    with record_residual_stream(model), record(model):
        assert hooks() > 0
    assert hooks() == 0
    with pytest.raises(RuntimeError, match="stop"), record_residual_stream(model):
        raise RuntimeError("stop")
    assert hooks() == 0


def test_a_change_in_force_is_seen(model, ids):
    with (
        replace(model, "encoder.layers.0", torch.zeros_like),
        record_residual_stream(model) as seen,
    ):
        model(*ids)
    assert (seen["encoder.layers.0"] == 0).all()


def test_two_at_once_record_the_same(model, ids):
    with record_residual_stream(model) as outer, record_residual_stream(model) as inner:
        model(*ids)
    assert list(outer) == list(inner)
    assert all(torch.equal(outer[name], inner[name]) for name in outer)


def test_bad_input(model):
    with (
        pytest.raises(ValueError, match="Linear has no stack of layers"),
        record_residual_stream(nn.Linear(2, 2)),
    ):
        pass
    with record_residual_stream(model) as seen, pytest.raises(KeyError, match="none so far"):
        seen.by_layer()
    with record_residual_stream(model) as seen:
        model.encode(torch.tensor([[3, 4]], device=model.device))
    with pytest.raises(KeyError, match=r"'coder'; there are \['encoder'\]"):
        seen.by_layer("coder")
    assert list(stacks(model)) == ["encoder", "decoder"]
