"""One regression test for each mistake of the source documents that could be made here.

Named by the erratum's id in ERRATA.md: what went wrong there, and that it does not here.
"""

import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from support import random_ids, randomise, small_model, warnings_as_errors
from torch import nn

import tinytf
from tinytf.attention import MultiHeadAttention, attention_weights
from tinytf.blocks import PostNorm, PreNorm
from tinytf.decoding.search import greedy
from tinytf.inspect import attention_layers, record
from tinytf.masks import causal_mask, padding_mask
from tinytf.norm import LayerNorm
from tinytf.positional import PositionalEncoding, sinusoidal_encoding
from tinytf.training.losses import Batch, make_batch, sequence_loss
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf.transformer import Transformer, TransformerConfig

NORMS = pytest.mark.parametrize("norm", ["post", "pre"])
HALVES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])


def copying(step):
    rows = torch.randint(3, 9, (5, 4), generator=torch.Generator().manual_seed(step)).tolist()
    return make_batch(rows, rows)


def test_E000_1_a_mask_without_the_axis_of_heads_is_refused(device):
    layer, x = MultiHeadAttention(8, 4).to(device), torch.randn(4, 4, 8, device=device)
    for mask in (causal_mask(4, device)[0, 0], causal_mask(4, device)[0]):
        with pytest.raises(ValueError, match="it needs 4 axes"):
            layer(x, mask=mask)


def test_E000_1b_as_many_positions_as_heads_leak_nothing(device):
    model = randomise(small_model(device, torch.float32, d_model=8, num_heads=4))
    src, tgt = random_ids([4] * 4, 11, device), random_ids([4] * 4, 9, device, end=False)
    changed = tgt.clone()
    changed[:, -1] = 3 + (tgt[:, -1] - 2) % 6
    assert (changed[:, -1] != tgt[:, -1]).all()
    torch.testing.assert_close(model(src, tgt)[:, :-1], model(src, changed)[:, :-1])


def test_E000_2_a_sample_of_padding_only_gives_no_nan(device):
    layer = MultiHeadAttention(8, 2).to(device)
    ids = torch.tensor([[3, 4], [0, 0]], device=device)
    out = layer(torch.randn(2, 2, 8, device=device), mask=padding_mask(ids))
    out.square().sum().backward()
    assert out.isfinite().all()
    assert all(p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_E000_3_and_E002_8_embeddings_are_dropped_once(stack, device):
    sizes = {"d_model": 64, "num_heads": 2, "max_len": 40, "dropout": 0.2}
    model = small_model(device, torch.float32, **sizes)
    seen = []
    layer = getattr(model, stack).layers[0]
    layer.register_forward_pre_hook(lambda _m, args: seen.append(args[0]))
    ids = random_ids([40] * 8, 9, device)
    model(ids, ids)
    model.eval()(ids, ids)
    dropped, whole = seen
    assert (dropped == 0).float().mean().item() == pytest.approx(0.2, abs=0.015)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], whole[kept] / 0.8)


@pytest.mark.parametrize("d_model", [64, 512])
@pytest.mark.parametrize("init", ["xavier", "normal"])
def test_E000_5_E001_7_E002_7_neither_word_nor_position_drowns_the_other(d_model, init):
    model = Transformer(TransformerConfig(200, 300, d_model, 4, 1, 8, init=init))
    for embedding in (model.src_embedding, model.tgt_embedding):
        words = embedding(torch.arange(200)[None])
        ratio = (
            words.square().mean().sqrt() / sinusoidal_encoding(60, d_model).square().mean().sqrt()
        )
        assert 0.5 < ratio < 2


def test_E000_6_and_E004_5_the_memory_is_read_through_its_mask(exact):
    model = small_model(exact)
    src, tgt = random_ids([5, 5], 11, exact), random_ids([4, 4], 9, exact)
    memory = model.encode(src)
    hidden = memory._replace(mask=memory.mask & (torch.arange(5, device=exact) < 3))
    assert not torch.allclose(model.decode(tgt, memory), model.decode(tgt, hidden))
    longer = F.pad(src, (0, 16))  # as in a batch with one long sentence
    torch.testing.assert_close(model(longer, tgt), model(src, tgt), atol=1e-12, rtol=0)


def test_E000_7_and_E002_5_the_target_mask_hides_future_and_padding_and_only_these(device):
    model = small_model(device, torch.float32)
    src, tgt = random_ids([3], 11, device), torch.tensor([[1, 5, 0, 6]], device=device)
    with record(model) as seen:
        model(src, tgt)
    expected = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 1]]
    for layer in range(2):
        weights = seen[f"decoder.layers.{layer}.self_attention"][0]
        assert all((head > 0).int().tolist() == expected for head in weights)


def test_E000_8_no_warning_is_given(device):
    with warnings_as_errors():
        model = small_model(device, torch.float32, dropout=0.1)
        model(random_ids([5, 2], 11, device), random_ids([4, 3], 9, device)).sum().backward()
        greedy(model, random_ids([5, 2], 11, device), 5)


@pytest.mark.parametrize("residual", [PostNorm, PreNorm])
def test_E000_9_dropout_comes_before_the_addition(residual, device):
    block = residual(32, dropout=0.5).to(device)
    block.norm = nn.Identity()
    x = torch.full((50, 32), 7.0, device=device)
    assert sorted(block(x, torch.ones_like).unique().tolist()) == [7.0, 9.0]  # 7 itself stays


@NORMS
def test_E000_11_layers_start_apart(norm):
    model = small_model(norm=norm)
    for stack in (model.encoder, model.decoder):
        first, second = stack.layers
        for a, b in zip(first.parameters(), second.parameters(), strict=True):
            assert a is not b
            assert a.dim() == 1 or not torch.equal(a, b)


def test_E001_1_every_file_compiles():
    files = list(Path(tinytf.__file__).parent.rglob("*.py"))
    assert len(files) > 15
    for file in files:
        compile(file.read_text(encoding="utf-8"), file.name, "exec")


def test_E001_3_the_encoder_sees_the_whole_source(device):
    model = small_model(device, torch.float32)
    src = random_ids([5], 11, device)
    changed = src.clone()
    changed[0, -1] = 4
    difference = model.encode(src).states - model.encode(changed).states
    assert (difference[0, 0].abs() > 1e-6).any()


@NORMS
def test_E001_4_padding_in_a_batch_changes_nothing(norm, exact):
    model = small_model(exact, norm=norm)
    src, tgt = random_ids([5], 11, exact), random_ids([4], 9, exact)
    padded = model(F.pad(src, (0, 5)), F.pad(tgt, (0, 5)))[:, :4]
    torch.testing.assert_close(padded, model(src, tgt), atol=1e-12, rtol=0)


def test_E001_6_post_norm_ends_in_one_norm_and_pre_norm_in_its_own(exact):
    src = random_ids([5, 4], 11, exact)
    states = {n: small_model(exact, norm=n).encode(src).states for n in ("post", "pre")}
    for x in states.values():
        assert x.mean(-1).abs().max() < 1e-12
        torch.testing.assert_close(x.var(-1, unbiased=False), torch.ones_like(x[..., 0]), rtol=1e-3,
                                   atol=0)  # fmt: skip
    names = [n for n, _ in small_model(norm="post").named_parameters()]
    assert not any("final_norm" in n for n in names)  # it would norm a normed vector


def test_E001_8_no_mask_and_no_cache_is_stored():
    model = small_model()
    assert {n for n, _ in model.named_buffers()} == {"positions.table"}


def test_E001_9_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="d_model=10 is not divisible by num_heads=3"):
        MultiHeadAttention(10, 3)


def test_E001_10_a_constant_vector_has_a_norm():
    assert (LayerNorm(6)(torch.full((2, 6), 5.0)) == 0).all()


def test_E001_11_a_word_sees_itself_and_a_sentence_too_long_is_named(device):
    assert causal_mask(1, device).item() is True
    message = "sequence of length 25 is longer than max_len=24"
    with pytest.raises(ValueError, match=message):
        small_model(device, torch.float32).encode(random_ids([25], 11, device))


@HALVES
@NORMS
def test_E002_1_and_E002_9_half_precision_runs_and_moves(dtype, norm, device):
    model = small_model(device, torch.float32, norm=norm).to(dtype)
    src, tgt = random_ids([5, 2], 11, device), random_ids([4, 2], 9, device)
    plain = model(src, tgt)
    with record(model):
        explicit = model(src, tgt)
    assert plain.dtype == dtype
    assert plain.isfinite().all()
    torch.testing.assert_close(explicit, plain, atol=0.1, rtol=0.1)
    meta = model.to("meta")
    assert meta.positions.table.is_meta


def test_E002_2_frequencies_fall():
    table = sinusoidal_encoding(100, 64)
    assert table[1, 2].item() == pytest.approx(math.sin(10000 ** (-2 / 64)), abs=1e-6)
    assert (F.cosine_similarity(table[1:], table[:-1]) > 0.9).all()


@NORMS
def test_E002_3_the_row_of_the_batch_does_not_matter(norm, exact):
    model = small_model(exact, norm=norm, max_len=6)
    src = random_ids([4] * 7, 11, exact)  # more rows than positions
    tgt = random_ids([5] * 7, 9, exact)
    src[2], tgt[2] = src[0], tgt[0]
    logits = model(src, tgt)
    torch.testing.assert_close(logits[2], logits[0], atol=1e-12, rtol=0)
    order = torch.tensor([3, 1, 6, 0, 2, 5, 4], device=exact)
    torch.testing.assert_close(model(src[order], tgt[order]), logits[order], atol=1e-12, rtol=0)
    same = torch.full((1, 4), 5, device=exact)
    states = model.encode(same).states[0]
    assert not torch.allclose(states[0], states[1])  # while the place in the sentence does


def test_E002_4_scores_are_scaled_by_the_width_of_a_head(exact):
    layer = nn.ModuleDict({"a": MultiHeadAttention(64, 8)}).to(exact, torch.float64)
    with torch.no_grad():
        for linear in (layer["a"].w_q, layer["a"].w_k):
            linear.weight.copy_(torch.eye(64))
            linear.bias.zero_()
    x = torch.randn(4, 9, 64, dtype=torch.float64, device=exact)
    with record(layer) as seen:
        layer["a"](x)
    head = x[:, :, 8:16]  # the second of eight, of width 8
    expected = (head @ head.transpose(1, 2) / 8**0.5).softmax(-1)
    torch.testing.assert_close(seen["a"][:, 1], expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("p", [0.0, 0.37])
def test_E002_6_the_dropout_asked_for_is_the_one_in_force(p, device):
    model = small_model(device, torch.float32, dropout=p)
    on_stream = [m.dropout.p for m in model.modules() if isinstance(m, PostNorm)]
    assert len(on_stream) == 2 * 2 + 2 * 3
    assert {*on_stream, model.positions.dropout.p} == {p}
    src, tgt = random_ids([5, 2], 11, device), random_ids([4, 2], 9, device)
    assert torch.equal(model(src, tgt), model(src, tgt)) is (p == 0)


def test_E002_10_weights_that_are_shown_are_those_before_dropout(device):
    layer = nn.ModuleDict({"a": MultiHeadAttention(8, 2, dropout=0.5)}).to(device)
    with record(layer) as seen:
        layer["a"](torch.randn(3, 7, 8, device=device))
    torch.testing.assert_close(seen["a"].sum(-1), torch.ones(3, 2, 7, device=device))


@pytest.mark.parametrize("width", [2, 4, 64])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_E004_1_the_variance_is_biased_and_eps_inside_the_root(width, scale, exact):
    x = scale * torch.randn(5, width, dtype=torch.float64, device=exact)
    ours, theirs = (m(width, eps=1e-6).to(exact, torch.float64) for m in (LayerNorm, nn.LayerNorm))
    torch.testing.assert_close(ours(x), theirs(x), atol=1e-12, rtol=0)


@pytest.mark.parametrize("num_layers", [1, 6])
def test_E004_3_pre_norm_hands_over_a_normed_memory(num_layers, exact):
    model = small_model(exact, norm="pre", num_layers=num_layers)
    assert model.encode(random_ids([9] * 4, 11, exact)).states.std().item() == pytest.approx(
        1, abs=0.05
    )


@pytest.mark.parametrize("length", [1, 2, 6])
def test_E004_4_masks_are_made_for_what_the_decoder_reads(length, device):
    batch = make_batch([[3] * length], [[4] * length]).to(device)
    assert batch.tgt_in.shape == batch.tgt_out.shape == (1, length + 1)
    loss, tokens = sequence_loss(small_model(device, torch.float32), batch)
    assert loss.isfinite()
    assert tokens == length + 1


def test_E004_6_padding_is_not_a_target(exact):
    model, batch = small_model(exact), make_batch([[3], [4] * 5], [[5], [6] * 7])
    batch = batch.to(exact)
    loss, tokens = sequence_loss(model, batch)
    assert tokens == 2 + 8
    alone = [
        sequence_loss(model, make_batch([s], [t]).to(exact))[0]
        for s, t in (([3], [5]), ([4] * 5, [6] * 7))
    ]
    torch.testing.assert_close(loss, sum(alone), atol=1e-5, rtol=0)
    wider = Batch(*(F.pad(part, (0, 9)) for part in batch))
    torch.testing.assert_close(sequence_loss(model, wider)[0], loss, atol=1e-5, rtol=0)


def test_E004_6_the_mean_is_over_tokens_not_over_batches():
    batches = [make_batch([[3]], [[5]]), make_batch([[4] * 5], [[6, 7, 8] * 3])]
    model = small_model(dtype=torch.float32)
    with torch.no_grad():
        sums, counts = zip(*(sequence_loss(model, b) for b in batches), strict=True)
    config = TrainingConfig(steps=1, warmup=1, accumulate=2, label_smoothing=0.0, lr=0.0)
    (row,) = Trainer(model, lambda i: batches[i], config).run()
    assert row["loss"] == pytest.approx(float(sum(sums)) / sum(counts), rel=1e-5)
    batch_means = [float(s) / n for s, n in zip(sums, counts, strict=True)]
    assert row["loss"] != pytest.approx(sum(batch_means) / 2, rel=1e-3)


def test_E004_7_padding_is_masked_besides_the_future_not_instead_of_it(device):
    """With no padding at all the padding mask is all true, and still nothing may leak."""
    model = small_model(device, torch.float32)
    src, tgt = random_ids([3], 11, device), random_ids([5], 9, device, end=False)
    changed = tgt.clone()
    changed[0, 3:] = 3 + (tgt[0, 3:] - 2) % 6
    torch.testing.assert_close(model(src, tgt)[:, :3], model(src, changed)[:, :3])


def test_E004_8_and_E004_16_max_len_counts_the_tokens_written(device):
    model = small_model(device, torch.float32)
    assert greedy(model, random_ids([20], 11, device), max_len=3).size(1) <= 3
    with pytest.raises(ValueError, match=r"max_len=25 must lie in 1\.\.24"):
        greedy(model, random_ids([20], 11, device), max_len=25)


def test_E004_10_the_output_is_tied_and_has_no_bias():
    with torch.device("meta"):
        model = Transformer(TransformerConfig(37000, 37000, share_embeddings=True))
    c, ff = 512, 2048
    attention, norm = 4 * (c * c + c), 2 * c
    feed_forward = c * ff + ff + ff * c + c
    layers = 6 * (attention + feed_forward + 2 * norm) + 6 * (
        2 * attention + feed_forward + 3 * norm
    )
    count = sum(p.numel() for p in model.parameters())
    assert count == 37000 * c + layers  # one table, for source, target and output


def test_E004_14_the_device_is_one_that_is_here(monkeypatch):
    monkeypatch.delenv("TINYTF_DEVICE", raising=False)
    torch.zeros(1, device=tinytf.choose_device())
    monkeypatch.setenv("TINYTF_DEVICE", "cpu")
    assert tinytf.choose_device() == torch.device("cpu")
    for wrong in ("tpu", "cuda" if not torch.cuda.is_available() else "gpu"):
        with pytest.raises(ValueError, match=f"device '{wrong}'"):
            tinytf.choose_device(wrong)


@pytest.mark.parametrize("training", [True, False])
def test_E004_15_decoding_leaves_the_mode_as_it_was(training, device):
    model = small_model(device, torch.float32).train(training)
    greedy(model, random_ids([4], 11, device), 4)
    assert model.training is training


def test_E004_18_an_odd_width_has_positions():
    out = PositionalEncoding(7, 10, dropout=0.0)(torch.zeros(1, 4, 7))
    assert out.shape == (1, 4, 7)
    assert out[0, 2, 6].item() == pytest.approx(math.sin(2 / 10000 ** (6 / 7)), abs=1e-6)


# ---- from other published courses


def test_annotated_transformer_accumulated_gradients_are_divided():
    """Twice the same micro-batch is one batch: the same norm, not twice it."""
    norms = []
    for accumulate in (1, 2):
        torch.manual_seed(0)
        config = TrainingConfig(steps=1, warmup=1, accumulate=accumulate)
        model = small_model(dtype=torch.float32)
        norms.append(Trainer(model, lambda _: copying(0), config).run()[0]["grad_norm"])
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)


def test_uva_maps_of_every_layer_know_the_mask(device):
    model = small_model(device, torch.float32, num_layers=3)
    with record(model) as seen:
        model(random_ids([6, 2], 11, device), random_ids([4, 4], 9, device))
    assert len(seen) == len(attention_layers(model)) == 9
    for name, weights in seen.items():
        if "decoder.layers" not in name or "cross" in name:
            assert (weights[1, :, :, 2:] == 0).all(), name


def test_happy_llm_keys_have_their_own_length(device):
    layer = MultiHeadAttention(8, 2).to(device)
    x, memory = torch.randn(2, 3, 8, device=device), torch.randn(2, 5, 8, device=device)
    assert layer(x, memory).shape == (2, 3, 8)


def test_happy_llm_the_residual_is_the_unnormed_stream(device):
    x = 5 + 3 * torch.randn(4, 8, device=device)
    block = PreNorm(8, dropout=0.0).to(device)
    assert torch.equal(block(x, torch.zeros_like), x)


def test_neuromatch_the_scale_is_checked_on_its_own():
    q, k = torch.tensor([[2.0, 0, 0, 0]]), torch.eye(4)
    weights = attention_weights(q, k)
    assert (weights[0, 0] / weights[0, 1]).log().item() == pytest.approx(2 / 4**0.5, abs=1e-6)
