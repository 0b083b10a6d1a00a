"""What is counted by hand is what PyTorch keeps and holds."""

import pytest
import torch
from metrics_support import explicit, gpt, pairs, text, transformer

from tinytf.gpt import GPTConfig
from tinytf.metrics.counting import count_parameters, kept_bytes
from tinytf.training.losses import (
    next_token_loss,
    sequence_loss,
)
from tinytf.transformer import TransformerConfig
from tinytf_course.lessons.storage import (
    activation_bytes,
    cache_bytes,
    ring_bytes,
    shard,
    state_bytes,
)


def kept(run, model):
    """Bytes kept besides the parameters."""
    own = {p.untyped_storage().data_ptr(): p.untyped_storage().nbytes() for p in model.parameters()}
    seen = set()

    def note(tensor):
        seen.add(tensor.untyped_storage().data_ptr())
        return tensor

    def noting():
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            return run()

    whole = kept_bytes(run)
    alive = noting()  # what it keeps must live while the addresses are compared
    assert alive is not None
    return whole - sum(size for at, size in own.items() if at in seen)


def test_state_is_what_adam_holds():
    model = gpt()
    optimizer = torch.optim.AdamW(model.parameters())
    next_token_loss(model, text(2, 7))[0].backward()
    optimizer.step()
    moments = [s for state in optimizer.state.values() for k, s in state.items() if k != "step"]
    state = state_bytes(count_parameters(model))
    assert state["weights"] == sum(p.nbytes for p in model.parameters())
    assert state["gradients"] == sum(p.grad.nbytes for p in model.parameters())
    assert state["moments"] == sum(s.nbytes for s in moments)
    assert sum(state_bytes(5).values()) == sum(state_bytes(5, "mixed").values()) == 80


def test_the_cache():
    model = gpt().eval()
    cache = model.decoder.new_cache()
    with torch.no_grad():
        model(torch.randint(13, (3, 8)), cache)
    assert cache_bytes(model.config, 8, 3) == sum(c.k.nbytes + c.v.nbytes for c in cache)
    pair = transformer().eval()
    data, cache = pairs(3, 5, 7), pair.decoder.new_cache()
    with torch.no_grad():
        pair.decode(data.tgt_in, pair.encode(data.src), cache)
    held = [part for layer in cache for part in layer]
    assert cache_bytes(pair.config, 7, 3, 5) == sum(c.k.nbytes + c.v.nbytes for c in held)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("shape", [(1, 9), (3, 8), (2, 1)])
def test_what_a_gpt_keeps(fused, shape):
    model = gpt() if fused else explicit(gpt())
    data = text(*shape)
    by_hand = activation_bytes(model.config, shape[1], shape[0], fused=fused)
    assert sum(by_hand.values()) == kept(lambda: next_token_loss(model, data), model)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_what_an_encoder_decoder_keeps(fused, norm, activation):
    model = transformer(norm=norm, activation=activation)
    model = model if fused else explicit(model)
    data = pairs(3, 5, 7)
    by_hand = activation_bytes(model.config, 5, 3, 7, fused)
    assert sum(by_hand.values()) == kept(lambda: sequence_loss(model, data), model)


def test_maps_grow_with_the_square_and_nothing_else_does():
    config = GPTConfig(13, 12, 3, 2, max_len=64)
    short, long = (activation_bytes(config, n, fused=False) for n in (16, 32))
    assert long["attention maps"] == 4 * short["attention maps"]
    assert long["logits"] == 2 * short["logits"]
    assert long["attention"] == 2 * short["attention"]


def test_shards():
    state = {"weights": 8, "gradients": 8, "moments": 16, "float32 copy": 4}
    assert [sum(shard(state, 4, stage).values()) for stage in range(4)] == [36, 21, 15, 9]
    assert shard(state, 1, 3) == state


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_a_ring_sends_this_much(processes):
    """Played: in each of 2 (N - 1) rounds every process sends its neighbour one part."""
    values = torch.randn(processes, processes * 3, dtype=torch.float64)
    have, sent = [list(row.chunk(processes)) for row in values], 0
    for step in range(2 * (processes - 1)):
        moving = [(r, (r - step) % processes) for r in range(processes)]
        if step >= processes - 1:
            moving = [(r, (r + 1 - (step - processes + 1)) % processes) for r in range(processes)]
        parcels = [(r, c, have[r][c].clone()) for r, c in moving]
        for r, c, parcel in parcels:
            to = (r + 1) % processes
            adding = step < processes - 1
            have[to][c] = have[to][c] + parcel if adding else parcel
            sent += parcel.nbytes if r == 0 else 0
    for row in have:
        torch.testing.assert_close(torch.cat(row), values.sum(0))
    assert sent == ring_bytes(values[0].nbytes, processes)


def test_bad_input_is_named():
    config = GPTConfig(7, 4, 2, 1, max_len=8)
    with pytest.raises(ValueError, match="target=3 does not fit a GPTConfig"):
        activation_bytes(config, 5, target=3)
    with pytest.raises(ValueError, match="target=None does not fit a TransformerConfig"):
        activation_bytes(TransformerConfig(7, 7), 5)
    with pytest.raises(ValueError, match="precision='int8' is not one of"):
        state_bytes(3, "int8")
    with pytest.raises(ValueError, match="stage must be one of 0, 1, 2, 3, got 4"):
        shard({"weights": 1}, 2, 4)
    with pytest.raises(ValueError, match="processes must be at least 1, got 0"):
        ring_bytes(4, 0)
