"""GPT: its sizes and first weights, its properties, and what it refuses."""

import math

import pytest
import torch
from support import randomise

from tinytf.blocks import EncoderLayer
from tinytf.gpt import GPT, PRESETS, GPTConfig
from tinytf.inspect import record
from tinytf.interpret.residual_stream import record_residual_stream
from tinytf.masks import causal_mask
from tinytf.metrics.counting import count_parameters

PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
}


def small_gpt(device="cpu", dtype=torch.float64, **changes):
    sizes = {"vocab_size": 11, "d_model": 12, "num_heads": 3, "num_layers": 2, "max_len": 16}
    return GPT(GPTConfig(**sizes | changes)).to(device, dtype)


def some_ids(rows, length, device="cpu", vocab=11):
    return torch.randint(vocab, (rows, length), device=device)


# ---- sizes and first weights


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_the_published_number_of_parameters(name):
    with torch.device("meta"):
        model = GPT(GPTConfig.preset(name))
    c = model.config
    assert count_parameters(model) == PUBLISHED[name]
    assert c.d_model // c.num_heads == 64
    by_hand = c.vocab_size * c.d_model + c.max_len * c.d_model + 2 * c.d_model
    by_hand += c.num_layers * (12 * c.d_model**2 + 13 * c.d_model)
    assert by_hand == PUBLISHED[name]


def test_defaults_are_the_smallest_size():
    assert GPTConfig() == GPTConfig.preset("gpt2")
    assert GPTConfig(d_model=24, num_heads=2).d_ff == 96
    assert GPTConfig(d_ff=100).d_ff == 100


def test_output_is_the_embedding_and_has_no_bias():
    model = small_gpt()
    assert model.output.weight is model.embedding.weight
    assert model.output.bias is None
    assert "output.weight" not in dict(model.named_parameters())


@pytest.mark.parametrize("num_layers", [2, 6])
def test_initial_weights_are_gpt2s(num_layers):
    model = GPT(GPTConfig(500, 128, 4, num_layers, max_len=300))
    scaled = 0.02 / math.sqrt(2 * num_layers)
    seen = {"matrix": 0, "scaled": 0, "zero": 0, "one": 0}
    for name, p in model.named_parameters():
        if name.endswith(("w_o.weight", "w_2.weight")):
            assert p.std().item() == pytest.approx(scaled, rel=0.03), name
            seen["scaled"] += 1
        elif p.dim() == 2:
            assert p.std().item() == pytest.approx(0.02, rel=0.03), name
            assert abs(p.mean().item()) < 0.001, name
            seen["matrix"] += 1
        elif name.endswith("bias"):
            assert (p == 0).all(), name
            seen["zero"] += 1
        else:
            assert (p == 1).all(), name
            seen["one"] += 1
    assert seen == {
        "scaled": 2 * num_layers,  # w_o, w_2
        "matrix": 4 * num_layers + 2,  # w_q, w_k, w_v, w_1; embedding, positions
        "zero": 8 * num_layers + 1,
        "one": 2 * num_layers + 1,
    }


def test_the_first_loss_is_that_of_a_uniform_guess():
    model = GPT(GPTConfig(1000, 64, 4, 2, max_len=32))
    logits = model(some_ids(8, 32, vocab=1000))
    targets = some_ids(8, 32, vocab=1000)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    assert loss.item() == pytest.approx(math.log(1000), abs=0.1)


# ---- what it is made of


def test_a_layer_is_an_encoder_layer_under_a_causal_mask(exact):
    model = randomise(small_gpt(exact))
    ids = some_ids(3, 7, exact)
    x = model.positions(model.embedding(ids))
    for layer in model.decoder.layers:
        x = EncoderLayer.forward(layer, x, causal_mask(7, x.device))
    expected = model.decoder.final_norm(x) @ model.embedding.weight.t()
    torch.testing.assert_close(model(ids), expected, atol=1e-12, rtol=0)


def test_weights_and_states_can_be_looked_at(device):
    model = small_gpt(device, torch.float32)
    ids = some_ids(2, 5, device)
    plain = model(ids)
    with record(model) as weights, record_residual_stream(model) as seen:
        torch.testing.assert_close(model(ids), plain, atol=1e-5, rtol=1e-5)
    assert list(weights) == [f"decoder.layers.{i}.self_attention" for i in range(2)]
    for w in weights.values():
        assert w.shape == (2, 3, 5, 5)
        assert (w.triu(1) == 0).all()
        torch.testing.assert_close(w.sum(-1), torch.ones_like(w[..., 0]))
    assert seen.by_layer("decoder").shape == (3, 2, 5, 12)


# ---- properties


def test_dropout_is_off_in_evaluation_and_on_in_training(device):
    model = small_gpt(device, torch.float32, dropout=0.5)
    ids = some_ids(2, 5, device)
    assert not torch.equal(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))


# ---- bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 100, "num_heads": 8}, "d_model=100 is not divisible by num_heads=8"),
        ({"num_layers": 0}, "num_layers must be at least 1, got 0"),
        ({"num_heads": 0}, "num_heads must be at least 1, got 0"),
        ({"vocab_size": -3}, "vocab_size must be at least 1, got -3"),
        ({"d_ff": 0}, "d_ff must be at least 1, got 0"),
        ({"max_len": 0}, "max_len must be at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"norm": "both"}, r"norm='both' is not one of \('post', 'pre'\)"),
        ({"activation": "tanh"}, "activation='tanh' is not one of .*'gelu_tanh'"),
    ],
)
def test_bad_configurations_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        small_gpt(**changes)


def test_unknown_presets_are_refused():
    with pytest.raises(ValueError, match="no preset 'gpt3'; there are gpt2, gpt2-medium"):
        GPTConfig.preset("gpt3")


ONES = torch.ones(2, 3, dtype=torch.long)


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (ONES * 11, ValueError, r"id 11 is outside the vocabulary of 11 \(0..10\)"),
        (-ONES, ValueError, "id -1 is outside the vocabulary of 11"),
        (ONES.repeat(1, 6), ValueError, "sequence of length 18 is longer than max_len=16"),
        (ONES[:0], ValueError, r"non-empty batch \(B, T\), got shape \(0, 3\)"),
        (ONES[:, :0], ValueError, r"non-empty batch \(B, T\), got shape \(2, 0\)"),
        (ONES[0], ValueError, r"non-empty batch \(B, T\), got shape \(3,\)"),
        (ONES.float(), TypeError, "ids must be int64 or int32, got torch.float32"),
    ],
)
def test_bad_input_is_refused(ids, error, message, device):
    with pytest.raises(error, match=message):
        small_gpt(device, torch.float32)(ids.to(device))


def test_a_cache_that_would_pass_max_len_is_refused():
    model = small_gpt()
    cache = model.decoder.new_cache()
    model(some_ids(1, 15), cache)
    with pytest.raises(ValueError, match="sequence of length 17 is longer than max_len=16"):
        model(some_ids(1, 2), cache)
    model(some_ids(1, 1), cache)  # nothing was appended by the refused call


# ---- texts of different lengths together


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (torch.ones(2, 3, dtype=torch.bool), ValueError, r"\(B, 1, 1, T=3\), .* got \(2, 3\)"),
        (torch.ones(2, 1, 1, 4, dtype=torch.bool), ValueError, r"T=3\), .*\(2, 1, 1, 4\)"),
        (torch.ones(2, 1, 1, 3), TypeError, "mask must be boolean .*, got torch.float32"),
    ],
)
def test_masks_of_another_form_are_refused(mask, error, message, device):
    with pytest.raises(error, match=message):
        small_gpt(device, torch.float32)(ONES.to(device), mask=mask.to(device))


# ---- other choices than GPT-2's


def test_norm_activation_and_tie_can_be_chosen(exact):
    model = randomise(small_gpt(exact, norm="post", activation="relu", tie_output=False))
    ids = some_ids(2, 5, exact)
    x = model.positions(model.embedding(ids))
    for layer in model.decoder.layers:
        own, inner = layer.self_attention, layer.feed_forward
        x = layer.residual_1.norm(x + own(x, mask=causal_mask(5, exact)))
        x = layer.residual_2.norm(x + inner.w_2(inner.w_1(x).relu()))
    assert isinstance(model.decoder.final_norm, torch.nn.Identity)
    assert model.output.weight is not model.embedding.weight
    torch.testing.assert_close(model(ids), model.output(x), atol=1e-11, rtol=1e-11)


def test_an_untied_embedding_starts_as_the_output_does():
    model = GPT(GPTConfig(500, 128, 4, 1, max_len=8, tie_output=False))
    for weight in (model.embedding.weight, model.output.weight):
        assert weight.std().item() == pytest.approx(0.02, rel=0.03)
