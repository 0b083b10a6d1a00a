"""Fast decoding: equal to the plain path, with nothing behind its back."""

import pytest
import torch
from gpt_support import decided_gpt, prompts, seeded
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.attention import explicit_attention
from tinytf.bert import Bert, BertConfig
from tinytf.decoding.fast import fast_decoder
from tinytf.decoding.fast_parts import FastOutput
from tinytf.decoding.fast_stack import FastStack
from tinytf.decoding.generate import generate, pad_left
from tinytf.decoding.sampling import Sampling
from tinytf.gpt import GPT, GPTConfig
from tinytf.grouped_query import GroupedQueryAttention
from tinytf.inspect import record, replace
from tinytf.interpret.residual_stream import record_residual_stream
from tinytf.norm import RMSNorm

needs_fbgemm = pytest.mark.skipif(
    "fbgemm" not in torch.backends.quantized.supported_engines, reason="torch without FBGEMM"
)

# ---- equal


@bounded
@given(st.lists(st.integers(1, 3), min_size=1, max_size=6), st.integers(1, 3), st.integers(0, 999))
def test_scores_equal_the_plain_models_however_they_are_cut(exact, chunks, rows, seed):
    model = decided_gpt(seed, exact, max_len=20)
    ids = prompts(rows, sum(chunks), exact)
    twin = fast_decoder(model)
    cache = twin.decoder.new_cache()
    with torch.no_grad():
        parts = [twin(part, cache) for part in ids.split(chunks, dim=1)]
        torch.testing.assert_close(torch.cat(parts, 1), model(ids), atol=1e-11, rtol=1e-12)
        torch.testing.assert_close(twin(ids), model(ids), atol=1e-11, rtol=1e-12)
    assert [len(layer) for layer in cache] == [sum(chunks)] * 2


@needs_fbgemm
@pytest.mark.parametrize("rows", [1, 4, 5])
def test_scores_are_near_where_matrices_are_read_by_rows(rows, monkeypatch):
    monkeypatch.setattr("tinytf.decoding.matvec._WORTH", 1)
    monkeypatch.setattr("tinytf.decoding.matvec._WIDE", 1)
    model, ids = decided_gpt(0, dtype=torch.float32), prompts(rows, 6)
    twin = fast_decoder(model)
    assert twin.output.map._by_rows
    cache = twin.decoder.new_cache()
    with torch.no_grad():
        steps = torch.cat([twin(ids[:, t : t + 1], cache) for t in range(6)], 1)
        expected = model(ids)
        whole = twin(ids)
    for scores in (steps, whole):
        torch.testing.assert_close(
            scores, expected, atol=1e-5 * float(expected.abs().max()), rtol=0
        )
    assert torch.equal(generate(twin, ids, 10), generate(model, ids, 10))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_are_near_in_other_precisions(dtype, device):
    model = decided_gpt(0, device, dtype)
    twin, ids = fast_decoder(model), prompts(2, 6, device)
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
            for m in (model, fast_decoder(model))
        ]
        assert torch.equal(*out)
        lengths |= set((out[0] != 10).sum(1).tolist())
    assert len(lengths) > 3


@bounded
@given(st.lists(st.integers(0, 2), min_size=1, max_size=5), st.integers(0, 999))
def test_rows_are_kept_and_repeated_as_in_the_plain_model(exact, rows, seed):
    """What beam search does with a cache between two tokens."""
    model = decided_gpt(seed, exact)
    ids, rows = prompts(3, 6, exact), torch.tensor(rows, device=exact)
    scores = []
    for m in (model, fast_decoder(model)):
        cache = m.decoder.new_cache()
        with torch.no_grad():
            m(ids[:, :3], cache)
            m(ids[:, 3:4], cache)
            for layer in cache:
                layer.select(rows)
            scores.append([m(ids[rows, t : t + 1], cache) for t in (4, 5)])
    for ours, theirs in zip(*scores, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-11, rtol=1e-12)


@pytest.mark.parametrize("rows", [3, 64])
def test_prompts_of_different_lengths_are_continued_as_by_the_plain_model(rows, exact):
    model = decided_gpt(rows, exact, max_len=20)
    some = [torch.randint(10, (1 + row % 5,)).tolist() for row in range(rows)]
    ids, mask = pad_left(some, device=exact)
    out = [generate(m, ids, 20, mask=mask, end_id=10, keep=7) for m in (model, fast_decoder(model))]
    assert torch.equal(*out)
    assert len({tuple(row) for row in out[0][:, 5:].tolist()}) >= 3


def test_an_output_of_its_own_is_used(exact):
    model = decided_gpt(0, exact)
    model.output.weight = torch.nn.Parameter(torch.randn_like(model.output.weight))
    ids = prompts(2, 4, exact)
    assert torch.equal(generate(fast_decoder(model), ids, 6), generate(model, ids, 6))


@pytest.mark.parametrize(
    "weights", [None, "int8", "bfloat16", pytest.param("float16", marks=needs_fbgemm)]
)
def test_the_fast_path_is_taken(weights, monkeypatch):
    """Otherwise the tests above would compare the plain path with itself."""
    model, calls = decided_gpt(0, dtype=torch.float32), []
    step, output = FastStack._step, FastOutput.forward
    monkeypatch.setattr(FastStack, "_step", lambda *a: calls.append(1) or step(*a))
    monkeypatch.setattr(FastOutput, "forward", lambda *a: calls.append("out") or output(*a))
    twin = fast_decoder(model, weights)
    for part in {*model.modules(), *twin.modules()}:
        part.register_forward_hook(lambda m, *_: calls.append(type(m).__name__))
    generate(twin, prompts(1, 3), 5)
    plain = ["Embedding", "Dropout", "LearnedPositionalEncoding", "FastStack", "FastOutput"]
    assert [c for c in calls if c not in plain] == [1, 1, "out"] * 5


# ---- float16


@needs_fbgemm
@pytest.mark.parametrize("rows", [1, 3])
def test_float16_is_the_model_with_rounded_matrices(rows):
    """Not merely near: equal to a plain model whose matrices went through float16."""
    model = decided_gpt(1, dtype=torch.float32)
    rounded = decided_gpt(1, dtype=torch.float32)  # the same; the table of embeddings stays exact
    rounded.output.weight = torch.nn.Parameter(model.output.weight.detach().clone())
    with torch.no_grad():
        for p in [rounded.output.weight, *rounded.decoder.parameters()]:
            if p.dim() == 2:
                p.copy_(p.half())
    twin, ids = fast_decoder(model, "float16"), prompts(rows, 9)
    cache = twin.decoder.new_cache()
    with torch.no_grad():
        ours = torch.cat([twin(part, cache) for part in ids.split([4, 1, 1, 3], dim=1)], 1)
        theirs, plain = rounded(ids), model(ids)
    scale = float(plain.abs().max())
    torch.testing.assert_close(ours, theirs, atol=1e-5 * scale, rtol=0)
    assert 1e-4 * scale < (ours - plain).abs().max() < 2e-2 * scale


def test_other_weights_are_refused():
    with pytest.raises(ValueError, match=r"weights='int4' is not one of \(None, 'bfloat16', 'fl"):
        fast_decoder(decided_gpt(0), "int4")
    with pytest.raises(ValueError, match=r"from float32 on the CPU, got torch\.float64 on cpu"):
        fast_decoder(decided_gpt(0), "float16")


def test_a_fast_model_is_not_made_faster():
    with pytest.raises(ValueError, match="fast already"):
        fast_decoder(fast_decoder(decided_gpt(0)))


# ---- the cache


def test_new_positions_are_written_in_place(exact):
    model = decided_gpt(0, exact)
    twin = fast_decoder(model)
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
    twin = fast_decoder(model)
    assert not twin.training
    assert torch.equal(generate(twin, ids, 6), expected)
    assert torch.equal(generate(twin.train(), ids, 6), expected)
    assert model.decoder is decoder
    assert all(m.training is training for m in model.modules())
    assert twin.embedding.weight is model.embedding.weight is twin.output.weight
    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters())


def test_the_stack_leaves_its_input_alone(exact):
    twin = fast_decoder(decided_gpt(0, exact))
    cache = twin.decoder.new_cache()
    for _ in range(2):
        x = torch.randn(2, 1, 12, device=exact, dtype=torch.float64)
        before = x.clone()
        twin.decoder(x, cache)
        assert torch.equal(x, before)


def test_there_is_nothing_to_look_into():
    twin = fast_decoder(decided_gpt(0))
    with pytest.raises(ValueError, match="no attention layer to record"), record(twin):
        pass
    refused = pytest.raises(ValueError, match="no stack of layers to record")
    with refused, record_residual_stream(twin):
        pass


def test_other_attention_is_refused():
    model = decided_gpt(0)
    model.decoder.layers[1].self_attention.attention = explicit_attention
    with pytest.raises(ValueError, match="needs layers whose attention is fused_attention"):
        fast_decoder(model)


def test_other_models_and_layers_are_refused_by_name():
    message = "for a GPT, a Llama or a Transformer, and this is a Bert"
    with pytest.raises(ValueError, match=message):
        fast_decoder(Bert(BertConfig(11, 12, 3, 2, 20, max_len=12)))
    model = decided_gpt(0)  # a GPT still, whose fast twin would not turn queries and keys
    turning = GroupedQueryAttention(12, 3, 3)
    for name in ("w_q", "w_k", "w_v", "w_o"):
        setattr(turning, name, getattr(model.decoder.layers[1].self_attention, name))
    model.decoder.layers[1].self_attention = turning
    with pytest.raises(ValueError, match="MultiHeadAttention, not GroupedQueryAttention"):
        fast_decoder(model)


def test_what_the_model_refuses_is_refused():
    twin = fast_decoder(decided_gpt(0))
    cache = twin.decoder.new_cache()
    twin(prompts(1, 12), cache)
    with pytest.raises(ValueError, match="sequence of length 13 is longer than max_len=12"):
        twin(prompts(1, 1), cache)
    with pytest.raises(ValueError, match="id 11 is outside the vocabulary of 11"):
        twin(torch.tensor([[11]]))


class Doubled(torch.nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def test_what_would_be_passed_by_is_refused():
    for name in (
        "decoder.layers.1.self_attention.w_k",
        "decoder.layers.0.feed_forward.w_2",
        "output",
    ):
        model = decided_gpt(0)
        part = model.get_submodule(name)
        part.__class__ = Doubled
        with pytest.raises(ValueError, match=f"{name} is no nn.Linear as it comes"):
            fast_decoder(model)
    for name in ("decoder.layers.0", "decoder.layers.1.residual_1", "decoder.final_norm"):
        model = decided_gpt(0)
        with (
            replace(model, name, lambda x: x),
            pytest.raises(ValueError, match=f"{name} has hooks"),
        ):
            fast_decoder(model)
    with pytest.raises(ValueError, match="not FeedForward, PostNorm, PostNorm"):
        fast_decoder(GPT(GPTConfig(11, 12, 3, 2, max_len=8, norm="post")))
    model = decided_gpt(0)
    model.decoder.final_norm = RMSNorm(12)
    with pytest.raises(ValueError, match=r"decoder\.final_norm is a RMSNorm: no LayerNorm"):
        fast_decoder(model)
