"""Fast decoding: equal to the plain path in every family, with nothing behind its back."""

import functools

import pytest
import torch
from gpt_support import decided_gpt, prompts, seeded
from hypothesis import given
from hypothesis import strategies as st
from support import bounded, random_ids, randomise, small_model

from tinytf.apps.writer import Writer
from tinytf.bert import Bert, BertConfig
from tinytf.decoding.fast import FastOutput, fast_decoder, weight_bytes
from tinytf.decoding.fast_stack import FastStack
from tinytf.decoding.generate import generate, pad_left
from tinytf.decoding.sampling import Sampling
from tinytf.decoding.search import beam_search, greedy
from tinytf.gpt import GPT, GPTConfig
from tinytf.inspect import record
from tinytf.interpret.residual_stream import record_residual_stream
from tinytf.llama import Llama, LlamaConfig
from tinytf.masks import padding_mask
from tinytf.related.marian import Marian, MarianConfig
from tinytf.text.words import PAD
from tinytf.transformer import Memory
from tinytf_course.studies.sampling import human_texts

EXACT = {"atol": 1e-11, "rtol": 1e-12}
fbgemm = "fbgemm" in torch.backends.quantized.supported_engines
needs_fbgemm = pytest.mark.skipif(not fbgemm, reason="torch without FBGEMM")


# ---- models with opinions, whose texts differ by prompt and position


def post_gpt(seed, device="cpu", dtype=torch.float64):
    torch.manual_seed(seed)
    model = GPT(GPTConfig(11, 12, 3, 2, max_len=16, norm="post"))
    return randomise(model.to(device, dtype).eval(), 0.4)


def llama(seed, device="cpu", dtype=torch.float64, keys=2, **changes):
    torch.manual_seed(seed)
    sizes = LlamaConfig(11, 16, 4, keys, 2, 20, 16, **changes)
    return randomise(Llama(sizes).to(device, dtype).eval(), 0.5)


def unturned(seed, *where):
    model = llama(seed, *where)
    for layer in model.decoder.layers:
        layer.self_attention.base = None
    return model


def transformer(seed, device="cpu", dtype=torch.float64, **changes):
    torch.manual_seed(seed)
    model = small_model(device, dtype, tie_output=False, **changes)
    with torch.no_grad():
        model.src_embedding.weight.mul_(3)
        model.output.weight.normal_(std=0.7)
    return model.eval()


def marian(seed, device="cpu", dtype=torch.float64):
    torch.manual_seed(seed)
    model = Marian(MarianConfig(11, 11, 12, 3, 2, 20, 0.0, 24)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.to(device, dtype)


ONE = {
    "GPT": functools.partial(decided_gpt, max_len=16),
    "GPT, Post-LN": post_gpt,
    "Llama": llama,
    "Llama, one key head": functools.partial(llama, keys=1),
    "Llama, a key head each": functools.partial(llama, keys=4, tie_output=True),
    "Llama, unturned": unturned,
}
TWO = {
    "Post-LN": transformer,
    "Pre-LN, GELU": functools.partial(transformer, norm="pre", activation="gelu"),
    "one table": functools.partial(transformer, tgt_vocab_size=11, share_embeddings=True),
    "Marian": marian,
}
FAMILIES = ONE | TWO
every_family = pytest.mark.parametrize("family", FAMILIES)


def rows_of(lengths, total, device, front):
    """Ids (B, total); those of shorter rows begin, or end, with as much padding as they lack."""
    ids = torch.randint(3, 9, (len(lengths), total))
    for row, length in zip(ids, lengths, strict=True):
        lack = max(lengths) - length
        row[:lack] = PAD
        if not front:
            row.copy_(row.roll(-lack))
    return ids.to(device)


def read(model, ids, cuts, cached=True, masked=True):
    """Score ids (B, T) part by part; returns logits (B, T, V) and what the cache holds."""
    cache, parts, two = model.decoder.new_cache() if cached else None, [], hasattr(model, "encode")
    with torch.no_grad():
        if two:
            lengths = [2 + row % 3 for row in range(len(ids))]
            torch.manual_seed(0)
            memory = model.encode(random_ids(lengths, 9, ids.device))
        for part in ids.split(cuts, dim=1):
            mask = padding_mask(part, PAD) if masked else None
            states = model.decode(part, memory, cache) if two else model.decode(part, cache, mask)
            parts.append(model.output(states))
    return torch.cat(parts, dim=1), cache


# ---- equal


@every_family
@bounded
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.lists(st.integers(1, 3), min_size=1, max_size=5),
    st.booleans(),
    st.integers(0, 999),
)
def test_scores_equal_the_plain_models_however_they_are_cut(
    family, exact, lengths, cuts, front, seed
):
    if family not in TWO:
        front = True
    model, total = FAMILIES[family](seed, exact), max(sum(cuts), max(lengths))
    cuts = [*cuts, total - sum(cuts)] if total > sum(cuts) else cuts
    ids, twin = rows_of(lengths, total, exact, front), fast_decoder(model)
    real = ids != PAD
    expected, _ = read(model, ids, cuts)
    found, cache = read(twin, ids, cuts)
    torch.testing.assert_close(found[real], expected[real], **EXACT)
    assert found.isfinite().all()
    own = [getattr(layer, "self_attention", layer) for layer in cache]
    assert [len(layer) for layer in own] == [total] * 2
    whole, _ = read(twin, ids, [total], cached=False)
    torch.testing.assert_close(
        whole[real], read(model, ids, [total], cached=False)[0][real], **EXACT
    )


@pytest.mark.parametrize("family", ONE)
@pytest.mark.parametrize("rows", [[2, 0, 0, 1], [1], [2, 2, 2]])
@pytest.mark.parametrize("lengths", [[3, 3, 3], [1, 3, 2]])
def test_rows_are_kept_and_repeated_as_in_the_plain_model(family, rows, lengths, exact):
    """What beam search does with a cache between two tokens."""
    model, scores = ONE[family](1, exact), []
    ids, rows = rows_of(lengths, 6, exact, True), torch.tensor(rows, device=exact)
    for m in (model, fast_decoder(model)):
        cache = m.decoder.new_cache()
        with torch.no_grad():
            m(ids[:, :3], cache, padding_mask(ids[:, :3], PAD))
            for layer in cache:
                layer.select(rows)
            scores.append(torch.stack([m(ids[rows, t : t + 1], cache) for t in (3, 4)]))
    torch.testing.assert_close(*scores, **EXACT)


@pytest.mark.parametrize("family", ["GPT", "Llama"])
@pytest.mark.parametrize("keep", [None, 5])
@pytest.mark.parametrize("sampling", [None, Sampling(temperature=1.3, top_p=0.9)])
@pytest.mark.parametrize("rows", [1, 3, 64])
def test_text_is_the_same_also_past_the_window(family, sampling, keep, rows, exact):
    model = ONE[family](rows, exact)
    some = [torch.randint(10, (1 + row % 5,)).tolist() for row in range(rows)]
    ids, mask = pad_left(some, device=exact)
    out = [
        generate(m, ids, 20, sampling, mask=mask, generator=seeded(), end_id=10, keep=keep)
        for m in (model, fast_decoder(model))
    ]
    assert torch.equal(*out)
    assert len({tuple(row) for row in out[0][:, ids.size(1) :].tolist()}) >= min(rows, 3)


@pytest.mark.parametrize("family", TWO)
def test_what_is_found_by_search_is_the_same(family, exact):
    texts = set()
    for seed in range(3):
        model = TWO[family](seed, exact)
        src, twin = random_ids([5, 1, 3, 6], 9, exact), fast_decoder(model)
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


@pytest.mark.parametrize(
    "rows", [[[0, 1, 4, 5], [1, 3, 5, 4]], [[1, 4, 0, 5], [1, 3, 4, 6]]], ids=["before", "between"]
)
def test_the_shortcut_for_a_word_a_row_remembers_padding(rows, exact):
    """Padding among the first words, or a step of it: later words of that row must not see it."""
    model, ids = transformer(0, exact), torch.tensor(rows, device=exact)
    ours, theirs = (read(m, ids, [2, 1, 1])[0] for m in (fast_decoder(model), model))
    torch.testing.assert_close(ours[:, -1], theirs[:, -1], **EXACT)


def test_a_source_of_nothing_but_padding_gives_zeros_to_read(exact):
    model = transformer(0, exact)
    src, twin = random_ids([4, 3], 11, exact), fast_decoder(model)
    src[1] = PAD
    tgt = torch.tensor([[1, 3], [1, 4]], device=exact)
    with torch.no_grad():
        memory = model.encode(src)
        kept = Memory(*(part.clone() for part in memory))
        ours, theirs = twin.decode(tgt, memory), model.decode(tgt, memory)
        torch.testing.assert_close(ours, theirs, **EXACT)
        cache = twin.decoder.new_cache()
        steps = [twin.decode(part, memory, cache) for part in tgt.split(1, dim=1)]
        torch.testing.assert_close(torch.cat(steps, 1), theirs, **EXACT)
    assert all(torch.equal(a, b) for a, b in zip(memory, kept, strict=True))  # the caller's


@pytest.mark.parametrize("lengths", [[4, 4], [4, 2]])
def test_a_weight_that_is_nan_is_said(lengths):
    model = transformer(0)
    model.decoder.layers[1].cross_attention.w_k.weight.data[0, 0] = torch.nan
    with pytest.raises(ValueError, match="step 1"):
        greedy(fast_decoder(model), random_ids(lengths, 11))


def test_an_output_of_its_own_is_used(exact):
    model = decided_gpt(0, exact)
    model.output.weight = torch.nn.Parameter(torch.randn_like(model.output.weight))
    ids = prompts(2, 4, exact)
    assert torch.equal(generate(fast_decoder(model), ids, 6), generate(model, ids, 6))


# ---- near


@pytest.mark.parametrize("family", ["GPT", "Llama", "Post-LN"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_are_near_in_other_precisions(family, dtype, device):
    model, ids = FAMILIES[family](0, device, dtype), rows_of([8, 8], 8, device, True)
    found, expected = (read(m, ids, [4, 1, 3])[0] for m in (fast_decoder(model), model))
    assert found.dtype == dtype
    limit = {torch.float32: 1e-4, torch.bfloat16: 0.2}[dtype] * float(expected.abs().max())
    torch.testing.assert_close(found, expected, atol=limit, rtol=0)


FEWER = ["bfloat16", "int8", pytest.param("float16", marks=needs_fbgemm)]


@pytest.mark.parametrize("family", ["Llama", "Post-LN", "Marian"])
@pytest.mark.parametrize("weights", FEWER)
def test_scores_are_near_with_weights_of_fewer_bits(family, weights):
    model, ids = FAMILIES[family](0, "cpu", torch.float32), rows_of([8, 8], 8, "cpu", True)
    found, expected = (read(m, ids, [4, 1, 3])[0] for m in (fast_decoder(model, weights), model))
    assert 0 < (found - expected).abs().max() < 0.04 * expected.abs().max()


@needs_fbgemm
def test_float16_is_the_model_with_rounded_matrices():
    """Not merely near: equal to a plain model whose matrices went through float16."""
    model, rounded = (decided_gpt(1, dtype=torch.float32) for _ in "12")
    rounded.output.weight = torch.nn.Parameter(model.output.weight.detach().clone())
    with torch.no_grad():  # the table of embeddings stays exact
        for p in [rounded.output.weight, *rounded.decoder.parameters()]:
            if p.dim() == 2:
                p.copy_(p.half())
    ids = rows_of([9, 9], 9, "cpu", True)
    found, expected = (
        read(m, ids, [4, 1, 4])[0] for m in (fast_decoder(model, "float16"), rounded)
    )
    torch.testing.assert_close(found, expected, atol=1e-5 * float(expected.abs().max()), rtol=0)


# The largest difference of a logit (they deviate by 3.6), and the least share of equal tokens.
NEAR = {"float16": (2e-3, 0.999), "bfloat16": (0.25, 0.98), "int8": (0.25, 0.98)}


@pytest.mark.parametrize("weights", FEWER)
def test_the_shipped_writer_hardly_changes_its_mind(weights):
    """On texts it never read, of which each next token is asked for by itself."""
    writer = Writer.load(device="cpu")
    ids, model = human_texts(writer, 0, 4)[:, :96], writer.model
    twin, plain = fast_decoder(model, weights), fast_decoder(model)
    found, expected = (read(m, ids, 1, masked=False)[0] for m in (twin, model))
    limit, share = NEAR[weights]
    assert 0 < (found - expected).abs().max() < limit
    assert (found.argmax(-1) == expected.argmax(-1)).double().mean() >= share
    part = {"float16": 0.5, "bfloat16": 0.5, "int8": 0.27}[weights]
    assert weight_bytes(twin) == pytest.approx(part * weight_bytes(plain), rel=0.02)
    maps = [*model.decoder.modules(), model.output]
    matrices = sum(m.weight.nbytes for m in maps if type(m) is torch.nn.Linear)
    assert weight_bytes(plain) == matrices


# ---- nothing behind its back


@every_family
def test_the_fast_path_is_taken(family, monkeypatch):
    """Otherwise the tests above would compare the plain path with itself."""
    model, calls, layer = FAMILIES[family](0), [], FastStack._layer
    monkeypatch.setattr(FastStack, "_layer", lambda *a: calls.append("layer") or layer(*a))
    twin = fast_decoder(model)
    assert {type(part).__name__ for part in twin.decoder.modules()} <= {"FastStack", "FastDecoder"}
    for part in [*model.decoder.modules(), model.output]:
        part.register_forward_hook(lambda m, *_: calls.append(type(m).__name__))
    read(twin, rows_of([4], 4, "cpu", True), [2, 1, 1])
    assert calls == ["layer"] * 6


@every_family
@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(family, training, exact):
    model = FAMILIES[family](0, exact).train(training)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    decoder, ids = model.decoder, rows_of([4, 4], 4, exact, True)
    twin = fast_decoder(model)
    assert not twin.training
    twin.train()
    read(twin, ids, [2, 2])
    assert model.decoder is decoder
    assert all(part.training is training for part in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert twin.table is model.table
    assert (twin.output.weight is twin.table) is (model.output.weight is model.table)


def test_dropout_of_a_model_in_training_is_left_out(exact):
    gpt, two = decided_gpt(0, exact, dropout=0.5), transformer(0, exact, dropout=0.5)
    ids, src = prompts(2, 3, exact), random_ids([5, 2], 11, exact)
    text, translation = generate(gpt, ids, 6), greedy(two, src, 8)
    for twin in (fast_decoder(gpt.train()), fast_decoder(gpt).train()):
        assert torch.equal(generate(twin, ids, 6), text)
    for twin in (fast_decoder(two.train()), fast_decoder(two).train()):
        assert torch.equal(greedy(twin, src, 8), translation)


@pytest.mark.parametrize("family", ["GPT", "Post-LN"])
def test_the_stack_leaves_its_input_alone(family, exact):
    twin = fast_decoder(FAMILIES[family](0, exact))
    memory = () if family in ONE else (torch.randn(2, 3, 12, device=exact, dtype=torch.float64),)
    cache = twin.decoder.new_cache()
    for _ in range(2):
        x = torch.randn(2, 1, 12, device=exact, dtype=torch.float64)
        before = x.clone()
        twin.decoder(x, *memory, cache=cache)
        assert torch.equal(x, before)


def test_there_is_nothing_to_look_into():
    twin = fast_decoder(decided_gpt(0))
    with pytest.raises(ValueError, match="no attention layer to record"), record(twin):
        pass
    refused = pytest.raises(ValueError, match="no stack of layers to record")
    with refused, record_residual_stream(twin):
        pass


@pytest.mark.parametrize("family", ["GPT", "Llama"])
def test_what_the_model_refuses_is_refused(family):
    twin = fast_decoder(ONE[family](0))
    cache = twin.decoder.new_cache()
    twin(prompts(1, 16), cache)
    with pytest.raises(ValueError, match="sequence of length 17 is longer than max_len=16"):
        twin(prompts(1, 1), cache)
    with pytest.raises(ValueError, match="id 11 is outside the vocabulary of 11"):
        twin(torch.tensor([[11]]))
    cache = twin.decoder.new_cache()
    twin(prompts(1, 2), cache)
    with pytest.raises(ValueError, match="a batch of 2 does not match the cache's, 1"):
        twin(prompts(2, 1), cache)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[3]], "target batch of 1 does not match source batch of 2"),
        ([[3], [9]], "id 9 is outside the vocabulary of 9"),
        ([[3], [-1]], "id -1 is outside the vocabulary of 9"),
        ([[3.0], [4.0]], "ids must be int64 or int32"),
    ],
)
def test_what_a_translator_refuses_is_refused_at_a_step_too(ids, message):
    twin = fast_decoder(transformer(0))
    memory, cache = twin.encode(torch.tensor([[3, 2], [4, 2]])), twin.decoder.new_cache()
    twin.decode(torch.tensor([[1], [1]]), memory, cache)
    with pytest.raises((ValueError, TypeError), match=message):
        twin.decode(torch.tensor(ids), memory, cache)
    for _ in range(23):
        twin.decode(torch.tensor([[4], [5]]), memory, cache)
    with pytest.raises(ValueError, match="sequence of length 25 is longer than max_len=24"):
        twin.decode(torch.tensor([[4], [5]]), memory, cache)


def test_other_models_and_weights_are_refused():
    with pytest.raises(ValueError, match=r"weights='int4' is not one of \(None, 'bfloat16', 'fl"):
        fast_decoder(decided_gpt(0), "int4")
    with pytest.raises(ValueError, match=r"from float32 on the CPU, got torch\.float64 on cpu"):
        fast_decoder(decided_gpt(0), "float16")
    message = "for a GPT, a Llama or a Transformer, and this is a Bert"
    with pytest.raises(ValueError, match=message):
        fast_decoder(Bert(BertConfig(11, 12, 3, 2, 20, max_len=12)))
    for make in (decided_gpt, llama, transformer):
        with pytest.raises(ValueError, match="fast already"):
            fast_decoder(fast_decoder(make(0)))


def test_an_output_keeps_its_bias(exact):
    theirs = torch.nn.Linear(4, 7).double().to(exact)
    x = torch.randn(2, 3, 4, device=exact, dtype=torch.float64)
    torch.testing.assert_close(FastOutput(theirs)(x), theirs(x).detach())
    theirs.register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="output has hooks"):
        FastOutput(theirs)
