"""Marian: the same model as Hugging Face's, and how far our own Transformer is from it."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from marian_support import our_twin, their_model
from support import TOLERANCE, bounded, random_ids, randomise, small_model

from tinytf.decoding.search import greedy
from tinytf.inspect import attention_layers
from tinytf.positional import sinusoidal_encoding
from tinytf.pretrained import marian
from tinytf.related.marian import Marian, MarianConfig, half_and_half, halves, reorder_stream

transformers = pytest.importorskip("transformers")

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def batch(size=54):
    src = random_ids([9, 4, 6], size)
    tgt = torch.cat([torch.ones(3, 1, dtype=torch.long), random_ids([7, 7, 7], size, end=False)], 1)
    return src, tgt


def both(theirs, ours, src, tgt):
    """Their states and scores, and ours with our words in their order."""
    order, places = ours.config.order, ours.config.places
    given_ = {"input_ids": order[src], "attention_mask": (src != 0).long()}
    out = theirs(**given_, decoder_input_ids=order[tgt])
    memory = ours.encode(src)
    scores = ours.output(ours.decode(tgt, memory))[..., places]
    return out.encoder_last_hidden_state, out.logits, memory.states, scores


# ---- the same model


@DTYPES
@pytest.mark.parametrize(
    ("activation", "seed"), [("swish", 0), ("swish", 1), ("relu", 2), ("gelu", 3)]
)
def test_states_scores_and_gradients_are_hugging_faces(seed, dtype, activation):
    torch.manual_seed(seed)
    theirs = their_model(dtype, activation_function=activation)
    ours = our_twin(theirs)
    src, tgt = batch()
    states, logits, memory, scores = both(theirs, ours, src, tgt)
    limit = TOLERANCE[dtype]
    real = src != 0
    assert states[real].std() > 0.1
    assert logits.std() > 0.5  # there is something to be equal to
    torch.testing.assert_close(memory[real], states[real], atol=limit, rtol=limit)
    torch.testing.assert_close(scores, logits, atol=limit, rtol=limit)
    labels = ours.config.order[tgt[:, 1:]]
    for out in (logits, scores):
        F.cross_entropy(out[:, :-1].flatten(0, 1), labels.flatten()).backward()
    grads = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}
    grads["final_logits_bias"] = torch.zeros(1, 53)  # theirs is not trained
    expected = marian.from_state(grads, ours)
    for name, p in ours.named_parameters():
        grad, wanted = p.grad, expected[name]
        if name == "output.bias":
            assert grad.abs().max() > 0.01  # ours is
            continue
        if name == "src_embedding.weight":  # the start is a row of its own, theirs no row at all
            assert grad[1].abs().max() > 1e-4
            grad, wanted = grad[ours.config.places], wanted[ours.config.places]
        torch.testing.assert_close(grad, wanted, atol=limit, rtol=limit, msg=name)


def talkative(theirs):
    """Sharp attention, a last norm that does not repeat what was read, and a liking for </s>."""
    with torch.no_grad():
        for name, p in theirs.named_parameters():
            if "q_proj" in name or "k_proj" in name:
                p.mul_(3)
        theirs.model.decoder.layers[-1].final_layer_norm.weight.mul_(-1)
        theirs.final_logits_bias[0, 0] = 3
    return theirs


@pytest.mark.parametrize("use_cache", [True, False])
def test_greedy_translations_are_hugging_faces_token_for_token(use_cache):
    lengths, tokens = set(), set()
    for seed in range(12):
        torch.manual_seed(seed)
        theirs = talkative(their_model(torch.float64))
        ours = our_twin(theirs)
        order = ours.config.order
        src = random_ids([9, 4, 6], 54)
        expected = theirs.generate(
            order[src], attention_mask=(src != 0).long(), max_new_tokens=20, num_beams=1,
            do_sample=False, bad_words_ids=[[52]], use_cache=use_cache,
        )  # fmt: skip
        out = greedy(ours, src, 20, use_cache=use_cache)
        assert torch.equal(order[out], expected[:, 1:])
        lengths |= set((out != 0).sum(1).tolist())
        tokens |= set(out.flatten().tolist())
    assert len(lengths) > 4  # rows end early, each at its own place
    assert max(lengths) == 20  # and some not at all
    assert len(tokens) > 10


def test_padding_and_the_cache_change_nothing():
    torch.manual_seed(1)
    ours = our_twin(their_model(torch.float64))
    src, tgt = batch()
    wide = F.pad(src, (0, 5))
    torch.testing.assert_close(ours(wide, tgt), ours(src, tgt), atol=1e-12, rtol=0)
    alone = ours(src[1:2, :4], tgt[1:2])
    torch.testing.assert_close(alone, ours(src, tgt)[1:2], atol=1e-12, rtol=0)
    memory, cache = ours.encode(src), ours.decoder.new_cache()
    steps = [ours.decode(tgt[:, t : t + 1], memory, cache) for t in range(tgt.size(1))]
    together = ours.decode(tgt, memory)
    torch.testing.assert_close(torch.cat(steps, 1), together, atol=1e-12, rtol=0)


def test_the_start_is_seen_although_theirs_is_padding():
    torch.manual_seed(2)
    ours = our_twin(their_model(torch.float64))
    src, tgt = batch()
    as_padding = torch.cat([torch.zeros_like(tgt[:, :1]), tgt[:, 1:]], 1)
    memory = ours.encode(src)
    assert torch.equal(ours.src_embedding.weight[0], ours.src_embedding.weight[1])
    gap = (ours.decode(tgt, memory) - ours.decode(as_padding, memory))[:, 1:].abs().amax((0, 2))
    assert gap.min() > 1e-3  # hidden as <pad>, the start would be missed at every later place


def test_the_attention_of_every_layer_can_be_seen():
    assert len(attention_layers(our_twin(their_model()))) == 9


# ---- what differs from ours


@given(st.integers(1, 40), st.integers(1, 40))
@bounded
def test_half_and_half_is_the_sinusoid_with_its_columns_in_another_order(length, width):
    table = half_and_half(length, width)
    sines = (width + 1) // 2
    plain = sinusoidal_encoding(length, width)
    assert torch.equal(table[:, :sines], plain[:, 0::2])
    assert torch.equal(table[:, sines:], plain[:, 1::2])
    assert halves(width).sort().values.tolist() == list(range(width))


def test_positions_are_hugging_faces_to_the_bit():
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    theirs = MarianSinusoidalPositionalEmbedding(512, 512)
    assert torch.equal(half_and_half(512, 512), theirs.create_weight())


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("share", [False, True])
def test_a_stream_in_another_order_computes_the_same(norm, share):
    words = {"tgt_vocab_size": 11} if share else {}
    model = randomise(small_model(norm=norm, share_embeddings=share, **words))
    src, tgt = random_ids([6, 4], 11), random_ids([5, 3], 9)
    scores, states = model(src, tgt), model.encode(src).states
    order = torch.randperm(12)
    reorder_stream(model, order)
    torch.testing.assert_close(model(src, tgt), scores, atol=1e-12, rtol=0)
    torch.testing.assert_close(model.encode(src).states, states[..., order], atol=1e-12, rtol=0)


def test_an_order_that_loses_a_feature_is_refused_before_anything_moves():
    model = small_model()
    before = {name: p.clone() for name, p in model.named_parameters()}
    for order in (torch.zeros(12, dtype=torch.long), torch.arange(11), torch.arange(1, 13)):
        with pytest.raises(ValueError, match=r"order must hold each of 0\.\.11 once, got"):
            reorder_stream(model, order)
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())


def test_our_post_norm_transformer_becomes_a_marian():
    config = MarianConfig(11, 11, 12, 3, 2, 20, 0.0, 24, activation="relu")
    torch.manual_seed(3)
    ours = randomise(small_model(tgt_vocab_size=11, share_embeddings=True))
    src, tgt = random_ids([6, 4], 11), random_ids([5, 3], 11)
    scores = ours(src, tgt)
    reorder_stream(ours, halves(12))
    marian = Marian(config).double()
    missing = marian.load_state_dict(ours.state_dict(), strict=False).missing_keys
    assert missing == ["output.bias"]
    table = half_and_half(24, 12).double()
    torch.testing.assert_close(marian.positions.table, table, atol=0, rtol=0)
    torch.testing.assert_close(marian(src, tgt), scores, atol=1e-12, rtol=0)


# ---- words


@given(st.integers(3, 30), st.data())
@bounded
def test_our_words_are_theirs_in_another_order(size, data):
    pad, eos = data.draw(st.permutations(range(size)))[:2]
    config = MarianConfig(size + 1, size + 1, 8, 2, their_pad_id=pad, their_eos_id=eos)
    order, places = config.order, config.places
    assert order[:3].tolist() == [pad, pad, eos]
    assert sorted(order[1:].tolist()) == list(range(size))
    assert order[places].tolist() == list(range(size))
    assert 1 not in places.tolist()
    others = order[3:].tolist()
    assert others == sorted(others)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm": "pre"}, "a Marian has norm='post', got 'pre'"),
        ({"share_embeddings": False}, "a Marian has share_embeddings=True, got False"),
        ({"tie_output": False}, "a Marian has tie_output=True"),
        ({"their_pad_id": 10}, "their_pad_id=10 is outside theirs, 0..9"),
        ({"their_eos_id": -1}, "their_eos_id=-1 is outside"),
        ({"their_pad_id": 0}, "<pad> and <eos> must differ, both are 0"),
        ({"tgt_vocab_size": 12}, "share_embeddings needs one vocabulary"),
    ],
)
def test_configs_of_another_model_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        MarianConfig(**{"src_vocab_size": 11, "tgt_vocab_size": 11, "d_model": 8, "num_heads": 2}
                     | changes)  # fmt: skip
