"""Fast decoding of the encoder-decoder: equal to the plain path, with nothing behind its back."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import bounded, random_ids, small_model

from tinytf.attention import explicit_attention
from tinytf.decoding.fast import fast_decoder
from tinytf.decoding.fast_transformer import FastDecoder
from tinytf.decoding.search import beam_search, greedy
from tinytf.related.marian import Marian, MarianConfig
from tinytf.text.words import PAD
from tinytf.transformer import Memory

NORMS = ("post", "pre")
EXACT = {"atol": 1e-11, "rtol": 1e-12}


def decided(seed, device="cpu", dtype=torch.float64, **changes):
    """A model with opinions: sentences differ, and end at all lengths."""
    torch.manual_seed(seed)
    model = small_model(device, dtype, tie_output=False, **changes)
    with torch.no_grad():
        model.src_embedding.weight.mul_(3)
        model.output.weight.normal_(std=0.7)
    return model.eval()


def marian(seed):
    torch.manual_seed(seed)
    model = Marian(MarianConfig(11, 11, 12, 3, 2, 20, 0.0, 24)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def sources(lengths, model):
    return random_ids(lengths, model.config.src_vocab_size, model.device)


@bounded
@given(
    st.sampled_from(NORMS),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.integers(0, 999),
)
def test_states_equal_the_plain_models_however_they_are_cut(exact, norm, lengths, chunks, seed):
    model = decided(seed, exact, norm=norm)
    src, twin = sources(lengths, model), fast_decoder(model)
    tgt = random_ids([sum(chunks)] * len(lengths), model.config.tgt_vocab_size, exact, end=False)
    cache = twin.decoder.new_cache()
    with torch.no_grad():
        expected, memory = model.decode(tgt, model.encode(src)), twin.encode(src)
        parts = [twin.decode(part, memory, cache) for part in tgt.split(chunks, dim=1)]
        torch.testing.assert_close(torch.cat(parts, 1), expected, **EXACT)
        torch.testing.assert_close(twin(src, tgt), model(src, tgt), **EXACT)
    assert [len(layer.self_attention) for layer in cache] == [sum(chunks)] * len(cache)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_what_it_writes_is_the_same(norm, activation, exact):
    texts = set()
    for seed in range(3):
        model = decided(seed, exact, norm=norm, activation=activation)
        src, twin = sources([5, 1, 3, 6], model), fast_decoder(model)
        out = greedy(model, src, 12)
        assert torch.equal(greedy(twin, src, 12), out)
        assert torch.equal(greedy(twin, src, 12, use_cache=False), out)
        for ours, theirs in zip(
            beam_search(twin, src, 3, max_len=9), beam_search(model, src, 3, max_len=9), strict=True
        ):
            assert [h.ids for h in ours] == [h.ids for h in theirs]
            assert [h.log_prob for h in ours] == pytest.approx([h.log_prob for h in theirs])
        texts |= {tuple(row) for row in out.tolist()}
    assert len(texts) > 4


def test_a_marian_with_its_bias_writes_the_same(exact):
    for seed in range(3):
        model = marian(seed).to(exact)
        src, twin = sources([5, 2, 6], model), fast_decoder(model)
        assert torch.equal(greedy(twin, src, 12), greedy(model, src, 12))
        tgt = random_ids([4, 4, 4], 11, exact, end=False)
        with torch.no_grad():
            torch.testing.assert_close(twin(src, tgt), model(src, tgt), **EXACT)


def test_padding_in_front_of_and_after_words_is_passed_over(exact):
    model = decided(0, exact)
    src, twin = sources([5, 2, 4], model), fast_decoder(model)
    tgt = torch.tensor([[0, 1, 4, 5], [1, 3, 0, 0], [1, 5, 6, 3]], device=exact)
    cache, plain = twin.decoder.new_cache(), model.decoder.new_cache()
    real = tgt != PAD
    with torch.no_grad():
        memory = model.encode(src)
        for part in (slice(0, 2), slice(2, 3), slice(3, 4)):
            ours = twin.decode(tgt[:, part], memory, cache)
            theirs = model.decode(tgt[:, part], memory, plain)
            torch.testing.assert_close(ours[real[:, part]], theirs[real[:, part]], **EXACT)


@pytest.mark.parametrize(
    "rows", [[[0, 1, 4, 5], [1, 3, 5, 4]], [[1, 4, 0, 5], [1, 3, 4, 6]]], ids=["before", "between"]
)
def test_the_shortcut_for_a_word_a_row_remembers_padding(rows, exact):
    """Padding among the first words, or a step of it: later words of that row must not see it."""
    model, tgt = decided(0, exact), torch.tensor(rows, device=exact)
    src, twin = sources([5, 2], model), fast_decoder(model)
    cache, plain = twin.decoder.new_cache(), model.decoder.new_cache()
    with torch.no_grad():
        memory = model.encode(src)
        for part in (slice(0, 2), slice(2, 3), slice(3, 4)):
            ours = twin.decode(tgt[:, part], memory, cache)
            theirs = model.decode(tgt[:, part], memory, plain)
    torch.testing.assert_close(ours, theirs, **EXACT)  # of the last, which are words


def test_a_source_of_nothing_but_padding_gives_zeros_to_read(exact):
    model = decided(0, exact)
    src, twin = sources([4, 3], model), fast_decoder(model)
    src[1] = PAD
    tgt = torch.tensor([[1, 3], [1, 4]], device=exact)
    with torch.no_grad():
        memory = model.encode(src)
        ours, theirs = twin.decode(tgt, memory), model.decode(tgt, memory)
    torch.testing.assert_close(ours, theirs, **EXACT)


@pytest.mark.parametrize("padded", [False, True])
def test_a_weight_that_is_nan_is_said(padded):
    model = decided(0)
    model.decoder.layers[1].cross_attention.w_k.weight.data[0, 0] = torch.nan
    src = sources([4, 2 if padded else 4], model)
    with pytest.raises(ValueError, match="step 1"):
        greedy(fast_decoder(model), src)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_states_are_near_in_other_precisions(dtype, device):
    model = decided(0, device, dtype)
    src, twin = sources([5, 3], model), fast_decoder(model)
    tgt = random_ids([4, 4], model.config.tgt_vocab_size, device, end=False)
    with torch.no_grad():
        ours, theirs = twin(src, tgt), model(src, tgt)
    assert ours.dtype == dtype
    limit = {torch.float32: 1e-4, torch.bfloat16: 0.2}[dtype] * float(theirs.abs().max())
    torch.testing.assert_close(ours, theirs, atol=limit, rtol=0)


@pytest.mark.parametrize(("weights", "limit"), [("bfloat16", 0.02), ("int8", 0.02)])
def test_states_are_near_with_weights_of_fewer_bits(weights, limit):
    model = decided(0, "cpu", torch.float32)
    src, twin = sources([5, 3], model), fast_decoder(model, weights)
    tgt = random_ids([4, 4], model.config.tgt_vocab_size, "cpu", end=False)
    with torch.no_grad():
        ours, theirs = twin(src, tgt), model(src, tgt)
    assert 0 < (ours - theirs).abs().max() < limit * theirs.abs().max()


def test_the_fast_path_is_taken_and_shares_the_embedding(monkeypatch):
    model, calls, step = decided(0), [], FastDecoder._step
    monkeypatch.setattr(FastDecoder, "_step", lambda *a: calls.append("layer") or step(*a))
    twin = fast_decoder(model)
    greedy(twin, sources([3], model), 4)
    assert len(calls) % len(model.decoder.layers) == 0
    assert len(calls) >= len(model.decoder.layers)
    assert twin.tgt_embedding.weight is model.tgt_embedding.weight
    kinds = {type(part).__name__ for part in twin.decoder.modules()}
    assert kinds == {"FastDecoder"}


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(training, exact):
    model = decided(0, exact, dropout=0.5).train(training)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    src = sources([5, 2], model)
    expected = greedy(model, src, 8)
    twin = fast_decoder(model)
    assert not twin.training
    for each in (twin, twin.train()):
        assert torch.equal(greedy(each, src, 8), expected)
        assert all(part.training is training for part in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_memory_a_caller_holds_is_not_changed(exact):
    model = decided(0, exact)
    twin, src = fast_decoder(model), sources([5, 2], model)
    with torch.no_grad():
        memory = model.encode(src)
        copy = Memory(*(part.clone() for part in memory))
        twin.decode(torch.tensor([[1], [1]], device=exact), memory, twin.decoder.new_cache())
    assert all(torch.equal(a, b) for a, b in zip(memory, copy, strict=True))


def test_what_would_be_passed_by_is_refused():
    def hooked(model):
        model.decoder.layers[0].residual_2.norm.register_forward_hook(lambda *_: None)

    def looked_at(model):
        model.decoder.layers[1].cross_attention.attention = explicit_attention

    def mixed(model):
        model.decoder.layers[0].residual_3 = decided(0, norm="post").decoder.layers[0].residual_3

    def subclassed(model):
        model.decoder.layers[0].cross_attention.w_q = type("Lora", (torch.nn.Linear,), {})(12, 12)

    for change, message in (
        (hooked, "has hooks"),
        (looked_at, "attention is fused_attention"),
        (mixed, "FeedForward in PostNorm or PreNorm"),
        (subclassed, r"layers\.0\.cross_attention\.w_q is no nn\.Linear"),
    ):
        model = decided(0, norm="pre")
        change(model)
        with pytest.raises(ValueError, match=message):
            fast_decoder(model)
    with pytest.raises(ValueError, match="fast already"):
        fast_decoder(fast_decoder(decided(0)))
    twin = fast_decoder(decided(0))
    memory = twin.encode(torch.tensor([[3, 2], [4, 2]]))
    with pytest.raises(ValueError, match="target batch of 1 does not match source batch of 2"):
        twin.decode(torch.tensor([[1]]), memory)
