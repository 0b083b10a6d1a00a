"""Fast decoding of Llama, whose heads are grouped and turned: equal to the plain path."""

import functools

import pytest
import torch
from gpt_support import prompts, seeded
from hypothesis import given
from hypothesis import strategies as st
from support import bounded, randomise

from tinytf.decoding.fast import fast_decoder
from tinytf.decoding.fast_stack import FastStack
from tinytf.decoding.generate import generate, pad_left
from tinytf.decoding.sampling import Sampling
from tinytf.llama import Llama, LlamaConfig
from tinytf.norm import LayerNorm

EXACT = {"atol": 1e-11, "rtol": 1e-12}
HEADS = [(4, 4), (4, 2), (4, 1)]  # of queries, of keys


def decided(seed, heads=(4, 2), device="cpu", dtype=torch.float64, **changes):
    """A model with opinions, whose texts differ by prompt and position."""
    torch.manual_seed(seed)
    sizes = LlamaConfig(11, 16, *heads, 2, 20, 16, **changes)
    return randomise(Llama(sizes).to(device, dtype).eval(), 0.5)


def padded(lengths, total, device):
    """Ids (B, T), of which the first of each row are padding, and the mask that says so."""
    ids = torch.randint(11, (len(lengths), total), device=device)
    first = torch.tensor([max(lengths) - length for length in lengths], device=device)
    mask = torch.arange(total, device=device) >= first[:, None]
    return ids, mask[:, None, None]


@bounded
@given(
    st.sampled_from(HEADS),
    st.lists(st.integers(1, 3), min_size=1, max_size=6),
    st.integers(1, 3),
    st.integers(0, 999),
)
def test_scores_equal_the_plain_models_however_they_are_cut(exact, heads, chunks, rows, seed):
    model, ids = decided(seed, heads, exact), prompts(rows, sum(chunks) % 16 + 1, exact)
    twin = fast_decoder(model)
    cache = twin.decoder.new_cache()
    with torch.no_grad():
        parts, at = [], 0
        for size in chunks:
            if at < ids.size(1):
                parts.append(twin(ids[:, at : at + size], cache))
            at += size
        expected = model(ids)
        read = torch.cat(parts, 1)
        torch.testing.assert_close(read, expected[:, : read.size(1)], **EXACT)
        torch.testing.assert_close(twin(ids), expected, **EXACT)
    assert cache[0].room.shape[1:3] == (rows, heads[1])  # no key is kept twice


@bounded
@given(st.sampled_from(HEADS), st.lists(st.integers(1, 4), min_size=2, max_size=4), st.integers())
def test_padded_rows_get_the_scores_the_plain_model_gives(exact, heads, lengths, seed):
    model, width = decided(seed % 999, heads, exact), max(lengths)
    ids, mask = padded(lengths, width + 4, exact)
    real = mask[:, 0, 0]
    for cut in ([width, 1, 1, 2], [1] * (width + 4)):
        plain, twin = model, fast_decoder(model)
        scores = []
        for m in (plain, twin):
            cache, parts, at = m.decoder.new_cache(), [], 0
            for size in cut:
                some = slice(at, at + size)
                with torch.no_grad():
                    parts.append(m(ids[:, some], cache, mask[..., some]))
                at += size
            scores.append(torch.cat(parts, 1))
        torch.testing.assert_close(scores[1][real], scores[0][real], **EXACT)


@pytest.mark.parametrize("sampling", [None, Sampling(temperature=1.2, top_k=5)])
@pytest.mark.parametrize("rows", [1, 3, 64])
def test_text_is_the_same_for_any_number_of_prompts_of_any_length(sampling, rows, exact):
    model = decided(rows, (4, 2), exact)
    twin, texts = fast_decoder(model), set()
    lengths = [1 + row % 5 for row in range(rows)]
    some = [torch.randint(10, (length,)).tolist() for length in lengths]
    ids, mask = pad_left(some, device=exact)
    write = functools.partial(
        generate, ids=ids, max_new_tokens=14, sampling=sampling, mask=mask, end_id=10, keep=7
    )
    out = [write(m, generator=seeded()) for m in (model, twin)]
    assert torch.equal(*out)
    texts = {tuple(row) for row in out[0][:, ids.size(1) :].tolist()}
    assert len(texts) >= min(rows, 3)


def test_turning_is_left_out_where_the_model_leaves_it_out(exact):
    model = decided(1, device=exact)
    for layer in model.decoder.layers:
        layer.self_attention.base = None
    ids = prompts(2, 7, exact)
    with torch.no_grad():
        torch.testing.assert_close(fast_decoder(model)(ids), model(ids), **EXACT)


def test_a_tied_llama_and_its_rows_kept_and_repeated(exact):
    model = decided(2, device=exact, tie_output=True)
    ids, rows, scores = prompts(3, 6, exact), torch.tensor([2, 0, 0, 1], device=exact), []
    for m in (model, fast_decoder(model)):
        cache = m.decoder.new_cache()
        with torch.no_grad():
            m(ids[:, :4], cache)
            for layer in cache:
                layer.select(rows)
            scores.append(m(ids[rows, 4:5], cache))
    torch.testing.assert_close(*scores, **EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_are_near_in_other_precisions(dtype, device):
    model, ids = decided(0, device=device, dtype=dtype), prompts(2, 8, device)
    twin = fast_decoder(model)
    cache = twin.decoder.new_cache()
    with torch.no_grad():
        steps = torch.cat([twin(ids[:, t : t + 1], cache) for t in range(8)], 1)
        expected = model(ids)
    assert steps.dtype == dtype
    limit = {torch.float32: 1e-4, torch.bfloat16: 0.2}[dtype] * float(expected.abs().max())
    torch.testing.assert_close(steps, expected, atol=limit, rtol=0)


@pytest.mark.parametrize(("weights", "limit"), [("bfloat16", 0.03), ("int8", 0.03)])
def test_scores_are_near_with_weights_of_fewer_bits(weights, limit):
    model, ids = decided(0, dtype=torch.float32), prompts(2, 8)
    with torch.no_grad():
        ours, theirs = fast_decoder(model, weights)(ids), model(ids)
    assert 0 < (ours - theirs).abs().max() < limit * theirs.abs().max()


def test_what_the_model_refuses_is_refused():
    twin = fast_decoder(decided(0))
    cache = twin.decoder.new_cache()
    twin(prompts(1, 16), cache)
    with pytest.raises(ValueError, match="sequence of length 17 is longer than max_len=16"):
        twin(prompts(1, 1), cache)
    with pytest.raises(ValueError, match="id 11 is outside the vocabulary of 11"):
        twin(torch.tensor([[11]]))
    with pytest.raises(ValueError, match="a batch of 2 does not match the cache's, 1"):
        twin(prompts(2, 1), _begun(twin))
    with pytest.raises(ValueError, match="fast already"):
        fast_decoder(twin)


def _begun(twin):
    cache = twin.decoder.new_cache()
    twin(prompts(1, 2), cache)
    return cache


def test_layers_of_several_kinds_are_refused():
    model = decided(0)
    model.decoder.layers[1].self_attention.base = 500.0
    with pytest.raises(ValueError, match=r"\(4, 2, 10000\.0\), \(4, 2, 500\.0\)"):
        fast_decoder(model)
    model = decided(0)
    model.decoder.final_norm = LayerNorm(16).double()
    with pytest.raises(ValueError, match=r"decoder\.final_norm is a LayerNorm: no RMSNorm"):
        fast_decoder(model)


def test_the_fast_path_is_taken(monkeypatch):
    """Otherwise the tests above would compare the plain path with itself."""
    model, calls, step = decided(0), [], FastStack._step
    monkeypatch.setattr(FastStack, "_step", lambda *a: calls.append(1) or step(*a))
    twin = fast_decoder(model)
    generate(twin, prompts(1, 3), 5)
    assert len(calls) == 2 * 5
    assert twin.embedding.weight is model.embedding.weight
    assert {type(part).__name__ for part in twin.decoder.modules()} == {"FastStack"}
