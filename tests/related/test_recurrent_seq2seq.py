"""Recurrent translators: against loops of their own, by their properties, and on bad input."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import bounded, random_ids, randomise
from torch import nn

from tinytf.apps.translator import Translator
from tinytf.decoding.search import beam_search, greedy
from tinytf.related.contexts import additive_weights
from tinytf.related.recurrent import GRUCell, unroll
from tinytf.related.recurrent_seq2seq import (
    RecurrentConfig,
    RecurrentEncoder,
    RecurrentSeq2Seq,
    record_alignment,
)
from tinytf.text.words import BOS, PAD, WordTokenizer
from tinytf.training.losses import make_batch, sequence_loss
from tinytf.training.trainer import Trainer, TrainingConfig

BOTH = pytest.mark.parametrize("attention", ["none", "additive"])
TIGHT = {"atol": 1e-10, "rtol": 1e-10}


def small(device="cpu", attention="additive", dtype=torch.float64, **changes):
    sizes = {"src_vocab_size": 11, "tgt_vocab_size": 9, "d_model": 6, "hidden": 5, "max_len": 24}
    config = RecurrentConfig(**sizes | {"attention": attention} | changes)
    return randomise(RecurrentSeq2Seq(config), std=0.5).to(device, dtype)


def slowly(model, src, tgt):
    """The logits of one unpadded sentence, (T, V), with scalars where the paper has indices."""
    encoder, decoder, hidden = model.encoder.gru, model.decoder, model.config.hidden
    x = model.src_embedding.weight[src] * math.sqrt(model.config.d_model)

    def read(words, suffix):
        cell = nn.GRUCell(x.size(1), hidden, dtype=x.dtype, device=x.device)
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weights = {n: getattr(encoder, f"{n}_l0{suffix}") for n in names}
        h, states = x.new_zeros(1, hidden), []
        for word in words:
            h = torch.func.functional_call(cell, weights, (word[None], h))
            states.append(h[0])
        return states

    ahead, back = read(x, ""), read(x.flip(0), "_reverse")[::-1]
    states = [torch.cat(both) for both in zip(ahead, back, strict=True)]
    s = torch.tanh(decoder.start.weight @ back[0] + decoder.start.bias)
    rows = []
    for token in tgt:
        word = model.tgt_embedding.weight[token] * math.sqrt(model.config.d_model)
        if model.config.attention == "none":
            context = torch.cat([ahead[-1], back[0]])
        else:
            a = decoder.context
            e = [a.v @ torch.tanh(a.w.weight @ s + a.u.weight @ h) for h in states]
            total = sum(math.exp(score) for score in e)
            context = sum(math.exp(score) / total * h for score, h in zip(e, states, strict=True))
        s = decoder.cell(torch.cat([word, context])[None], s[None])[0]
        features = decoder.merge.weight @ torch.cat([s, context, word]) + decoder.merge.bias
        rows.append(model.tgt_embedding.weight @ torch.tanh(features))
    return torch.stack(rows)


@BOTH
def test_it_computes_what_a_loop_over_words_does(attention, exact):
    model = small(exact, attention)
    src, tgt = random_ids([6, 6], 11, exact), random_ids([4, 4], 9, exact, end=False)
    with torch.no_grad():
        for row in range(2):
            expected = slowly(model, src[row], tgt[row])
            torch.testing.assert_close(model(src, tgt)[row], expected, **TIGHT)


@BOTH
def test_its_gradient_is_that_of_the_loss(attention, exact):
    model = small(exact, attention, d_model=3, hidden=2)
    src, tgt = random_ids([4, 2], 11, exact), random_ids([3, 2], 9, exact, end=False)
    names = list(dict(model.named_parameters()))

    def run(*parameters):
        weights = dict(zip(names, parameters, strict=True))
        weights["output.weight"] = weights["tgt_embedding.weight"]
        return torch.func.functional_call(model, weights, (src, tgt))

    parameters = tuple(p.detach().clone().requires_grad_() for p in model.parameters())
    assert torch.autograd.gradcheck(run, parameters, fast_mode=True)


def test_the_encoder_is_our_cell_unrolled_both_ways(exact):
    encoder = randomise(RecurrentEncoder(6, 5)).to(exact, torch.float64)
    x = torch.randn(3, 7, 6, dtype=torch.float64, device=exact)
    lengths = [7, 4, 1]
    mask = torch.arange(7, device=exact)[None] < torch.tensor(lengths, device=exact)[:, None]
    states = encoder(x, mask)
    cells = {}
    for suffix in ("", "_reverse"):
        cells[suffix] = GRUCell(6, 5).to(exact, torch.float64)
        cells[suffix].load_state_dict(
            {n: getattr(encoder.gru, f"{n}_l0{suffix}") for n in cells[suffix].state_dict()}
        )
    for row, length in enumerate(lengths):
        alone = x[row : row + 1, :length]
        back = unroll(cells["_reverse"], alone.flip(1)).flip(1)
        expected = torch.cat([unroll(cells[""], alone), back], dim=-1)[0]
        torch.testing.assert_close(states[row, :length], expected, **TIGHT)
        assert (states[row, length:] == 0).all()


@BOTH
@bounded
@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=3), extra=st.integers(1, 4))
def test_more_padding_changes_nothing(attention, exact, lengths, extra):
    model = small(exact, attention)
    src = random_ids(lengths, 11, exact)
    tgt = random_ids([4] * len(lengths), 9, exact, end=False)
    expected = model(src, tgt)
    torch.testing.assert_close(model(F.pad(src, (0, extra), value=PAD), tgt), expected, **TIGHT)
    for row, length in enumerate(lengths):
        alone = model(src[row : row + 1, :length], tgt[row : row + 1])
        torch.testing.assert_close(alone[0], expected[row], **TIGHT)


@BOTH
def test_the_future_cannot_reach_the_past(attention, exact):
    model = small(exact, attention)
    src, tgt = random_ids([5], 11, exact), random_ids([6], 9, exact, end=False)
    x = model.tgt_embedding(tgt).detach().requires_grad_()
    memory = model.encode(src)
    hidden, _ = model.decoder(x, memory.states, memory.mask[:, 0, 0])
    for t in range(6):
        (grad,) = torch.autograd.grad(hidden[:, t].sum(), x, retain_graph=True)
        assert (grad[:, t + 1 :] == 0).all()
        assert (grad[:, : t + 1].abs().amax(-1) > 0).all()


@BOTH
def test_cached_decoding_equals_decoding_from_the_beginning(attention, exact):
    model = small(exact, attention)
    src, tgt = random_ids([5, 2], 11, exact), random_ids([6, 6], 9, exact, end=False)
    memory, cache = model.encode(src), model.decoder.new_cache()
    parts = [model.decode(tgt[:, a:b], memory, cache) for a, b in ((0, 1), (1, 2), (2, 6))]
    torch.testing.assert_close(torch.cat(parts, 1), model.decode(tgt, memory), **TIGHT)


@BOTH
def test_greedy_is_the_same_with_and_without_a_cache(attention, exact):
    model = randomise(small(exact, attention), std=1.5)
    src = random_ids([5, 2, 7, 1, 3, 6, 4, 4], 11, exact)
    cached = greedy(model, src, 12)
    assert torch.equal(cached, greedy(model, src, 12, use_cache=False))
    assert len({tuple(row) for row in cached.tolist()}) > 1  # not one output for all


@BOTH
def test_a_beams_scores_are_those_of_its_sentences(attention, exact):
    model = randomise(small(exact, attention), std=1.5)
    src = random_ids([5, 2, 7], 11, exact)
    found = beam_search(model, src, beam=4, alpha=0.0, max_len=8)
    assert max(len(h.ids) for hypotheses in found for h in hypotheses) > 2
    for row, hypotheses in zip(src, found, strict=True):
        for h in hypotheses:
            assert log_prob(model, row, h.ids) == pytest.approx(h.log_prob, abs=1e-4)


@torch.no_grad()
def log_prob(model, src, ids):
    """The log-probability of an output, with <pad> and <bos> ruled out, as in the search."""
    logits = model(src[None], torch.tensor([[BOS, *ids[:-1]]], device=src.device))[0]
    logits[:, [PAD, BOS]] = -torch.inf
    log_probs = logits.log_softmax(-1)
    return float(sum(log_probs[t, i] for t, i in enumerate(ids)))


@BOTH
def test_every_parameter_gets_a_gradient(attention, device):
    model = small(device, attention, torch.float32)
    batch = make_batch([[3, 4, 5], [6]], [[3, 4], [5, 6, 7]]).to(device)
    sequence_loss(model, batch)[0].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_recorded_weights_are_a_distribution_over_the_real_words(exact):
    model = small(exact)
    src, tgt = random_ids([5, 3], 11, exact), random_ids([4, 4], 9, exact, end=False)
    before = model(src, tgt)
    with record_alignment(model) as seen:
        during = model(src, tgt)
        model(src[:, :4], tgt)  # the latest decode is the one that is kept
        model(src, tgt)
    assert torch.equal(before, during)
    assert seen.weights.shape == (2, 4, 5)
    torch.testing.assert_close(seen.weights.sum(-1), torch.ones_like(seen.weights[..., 0]))
    assert (seen.weights[1, :, 3:] == 0).all()
    model(src, tgt[:, :2])  # after the block, nothing is recorded any more
    assert seen.weights.shape == (2, 4, 5)


def test_a_cached_decode_is_recorded_step_by_step(exact):
    model = small(exact)
    src = random_ids([5, 3], 11, exact)
    with record_alignment(model) as seen:
        out = greedy(model, src, 6)
        stepwise = seen.weights
        bos = out.new_full((2, 1), BOS)
        model(src, torch.cat([bos, out[:, :-1]], dim=1))
    torch.testing.assert_close(stepwise, seen.weights, **TIGHT)


def test_recording_ends_also_after_an_error(exact):
    model = small(exact)
    with pytest.raises(RuntimeError, match="stop"), record_alignment(model):
        raise RuntimeError("stop")
    assert model.decoder.context.weights is additive_weights
    assert not model.decoder.context.u._forward_hooks


def test_recording_needs_attention_and_a_decode():
    with pytest.raises(ValueError, match="FixedContext has no attention to record"):
        record_alignment(small(attention="none")).__enter__()
    with (
        record_alignment(small()) as seen,
        pytest.raises(ValueError, match="nothing was decoded"),
    ):
        _ = seen.weights


@BOTH
def test_it_learns_and_translates_through_the_same_trainer(attention, device):
    words = WordTokenizer(["a", "b", "c", "d"])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = RecurrentSeq2Seq(RecurrentConfig(7, 7, 16, 16, attention)).to(device)
    sentences = ["a b", "b a c", "d", "c c d"]
    rows = [words.encode(s) for s in sentences]
    batch = make_batch(rows, [list(reversed(r)) for r in rows])
    trainer = Trainer(model, lambda step: batch, TrainingConfig(steps=150, lr=1e-2, warmup=10))
    trainer.run()
    outputs = [t.text for t in Translator(model, words, words).batch(sentences)]
    assert outputs == ["b a", "c a b", "d", "d c c"]


@BOTH
def test_a_translator_of_words_is_saved_and_loaded(attention, tmp_path):
    words = WordTokenizer(["a", "b", "c", "d"])
    model = randomise(RecurrentSeq2Seq(RecurrentConfig(7, 7, 6, 5, attention)))
    saved = Translator(model, words, words)
    saved.save(tmp_path / "words.safetensors", torch.float32)
    loaded = Translator.load(tmp_path / "words.safetensors", "cpu")
    assert loaded.model.config == model.config
    assert loaded.batch(["a b", "d"]) == saved.batch(["a b", "d"])


@BOTH
def test_a_run_resumes_to_the_bit(attention, tmp_path):
    config = TrainingConfig(steps=6, lr=1e-2, warmup=2)

    def trainer():
        model = small(attention=attention, dtype=torch.float32, dropout=0.3)
        return Trainer(model, lambda step: make_batch([[3, 4], [5]], [[3], [4, 5]]), config)

    torch.manual_seed(1)
    whole = trainer()
    whole.run()
    torch.manual_seed(1)
    first = trainer()
    first.run(until=3, save_to=tmp_path / "run.safetensors")
    second = trainer()
    second.load(tmp_path / "run.safetensors")
    second.run()
    for a, b in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": 0}, "hidden must be at least 1, got 0"),
        ({"d_model": -1}, "d_model must be at least 1, got -1"),
        ({"src_vocab_size": 0}, "src_vocab_size must be at least 1, got 0"),
        ({"max_len": 0}, "max_len must be at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"attention": "dot"}, "attention='dot' is not one of"),
    ],
)
def test_impossible_configurations_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        RecurrentConfig(**{"src_vocab_size": 11, "tgt_vocab_size": 9} | change)


@pytest.mark.parametrize(
    ("src", "message"),
    [
        ([[3, 4], [PAD, PAD]], "source row 1 has no word"),
        ([[PAD, 4, 5], [3, 4, 5]], "source row 0 has no word, or padding before its first"),
        ([[3, 4, 5], [3, PAD, 5]], "source row 1 has padding between its words"),
        ([[3, 11]], "id 11 is outside the vocabulary of 11"),
    ],
)
def test_sources_that_cannot_be_read_are_refused(src, message):
    with pytest.raises(ValueError, match=message):
        small().encode(torch.tensor(src))


def test_batches_of_different_sizes_are_refused():
    model = small()
    with pytest.raises(ValueError, match="target batch of 3 does not match source batch of 2"):
        model(random_ids([3, 3], 11), random_ids([2, 2, 2], 9))
