"""Lean decoding: equal to the plain path, with nothing behind its back."""

import pytest
import torch
from gpt_support import decided_gpt, prompts, seeded
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.attention import KeyValueCache, explicit_attention
from tinytf.generation import generate
from tinytf.inspect import record
from tinytf.lean import StaticCache, lean
from tinytf.sampling import Sampling
from tinytf.states import states

# ---- equal


@bounded
@given(st.lists(st.integers(1, 3), min_size=1, max_size=6), st.integers(1, 3), st.integers(0, 999))
def test_scores_equal_the_plain_models_however_they_are_cut(exact, chunks, rows, seed):
    model = decided_gpt(seed, exact, max_len=20)
    ids = prompts(rows, sum(chunks), exact)
    twin = lean(model)
    cache = twin.decoder.new_cache()
    with torch.no_grad():
        parts = [twin(part, cache) for part in ids.split(chunks, dim=1)]
        torch.testing.assert_close(torch.cat(parts, 1), model(ids), atol=1e-10, rtol=1e-10)
        torch.testing.assert_close(twin(ids), model(ids), atol=0, rtol=0)
    assert [len(layer) for layer in cache] == [sum(chunks)] * 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_are_near_in_other_precisions(dtype, device):
    model = decided_gpt(0, device, dtype)
    twin, ids = lean(model), prompts(2, 6, device)
    cache = twin.decoder.new_cache()
    with torch.no_grad():
        steps = torch.cat([twin(ids[:, t : t + 1], cache) for t in range(6)], 1)
        expected = model(ids)
    assert steps.dtype == dtype
    limit = {torch.float32: 1e-4, torch.bfloat16: 0.2}[dtype] * float(expected.abs().max())
    torch.testing.assert_close(steps, expected, atol=limit, rtol=0)


@pytest.mark.parametrize("keep", [None, 5])
@pytest.mark.parametrize("sampling", [None, Sampling(temperature=1.3, top_p=0.9)])
def test_text_is_the_same_also_past_the_window(sampling, keep, exact):
    lengths = set()
    for seed in range(5):
        model = decided_gpt(seed, exact)
        ids = prompts(4, 3, exact) % 10
        out = [
            generate(m, ids, 25, sampling, generator=seeded(), end_id=10, keep=keep)
            for m in (model, lean(model))
        ]
        assert torch.equal(*out)
        lengths |= set((out[0] != 10).sum(1).tolist())
    assert len(lengths) > 3


def test_the_lean_path_is_taken(exact, monkeypatch):
    """Otherwise the tests above would compare the plain path with itself."""
    from tinytf.lean import LeanStack

    model, calls = decided_gpt(0, exact), []
    step = LeanStack._step
    monkeypatch.setattr(LeanStack, "_step", lambda *a: calls.append(1) or step(*a))
    model.decoder.register_forward_hook(lambda *_: calls.append("plain"))
    generate(lean(model), prompts(1, 3, exact), 5)
    assert calls == ["plain"] + [1] * 2 * 4


# ---- the cache


def test_a_static_cache_holds_what_a_growing_one_does(exact):
    static, growing = StaticCache(6), KeyValueCache()
    for length in (2, 1, 3):
        k, v = torch.randn(2, 4, 3, length, 5, device=exact).unbind(0)
        for ours, theirs in zip(static.append(k, v), growing.append(k, v), strict=True):
            assert torch.equal(ours, theirs)
        assert len(static) == len(growing)
    rows = torch.tensor([2, 2, 0], device=exact)
    for cache in (static, growing):
        cache.select(rows)
    assert torch.equal(static.room[:, 0], growing.k)
    assert torch.equal(static.room[:, 1], growing.v)
    StaticCache(3).select(rows)  # an empty one has no rows


def test_new_positions_are_written_in_place(exact):
    model = decided_gpt(0, exact)
    twin = lean(model)
    cache = twin.decoder.new_cache()
    places = set()
    for _ in range(6):
        twin(prompts(1, 1, exact), cache)
        places.add(cache[0].room.data_ptr())
    assert len(places) == 1


# ---- nothing behind its back


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(training, exact):
    model = decided_gpt(0, exact, dropout=0.5).train(training)
    ids = prompts(2, 3, exact)
    expected = generate(model, ids, 6)
    before = {n: p.clone() for n, p in model.named_parameters()}
    decoder = model.decoder
    twin = lean(model)
    assert not twin.training
    assert torch.equal(generate(twin, ids, 6), expected)
    assert torch.equal(generate(twin.train(), ids, 6), expected)
    assert model.decoder is decoder
    assert all(m.training is training for m in model.modules())
    assert twin.embedding.weight is model.embedding.weight is twin.output.weight
    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters())


def test_the_stack_leaves_its_input_alone(exact):
    twin = lean(decided_gpt(0, exact))
    cache = twin.decoder.new_cache()
    for _ in range(2):
        x = torch.randn(2, 1, 12, device=exact, dtype=torch.float64)
        before = x.clone()
        twin.decoder(x, cache)
        assert torch.equal(x, before)


def test_there_is_nothing_to_look_into():
    twin = lean(decided_gpt(0))
    with pytest.raises(ValueError, match="no attention layer to record"), record(twin):
        pass
    with pytest.raises(ValueError, match="no stack of layers to record"), states(twin):
        pass


def test_other_attention_is_refused():
    model = decided_gpt(0)
    model.decoder.layers[1].self_attention.attention = explicit_attention
    with pytest.raises(ValueError, match="needs layers whose attention is fused_attention"):
        lean(model)


def test_what_the_model_refuses_is_refused():
    twin = lean(decided_gpt(0))
    cache = twin.decoder.new_cache()
    twin(prompts(1, 12), cache)
    with pytest.raises(ValueError, match="sequence of length 13 is longer than max_len=12"):
        twin(prompts(1, 1), cache)
    with pytest.raises(ValueError, match="id 11 is outside the vocabulary of 11"):
        twin(torch.tensor([[11]]))
