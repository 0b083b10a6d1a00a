"""The whole model: against nn.Transformer, by its properties, on bad input."""

import math
import warnings

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import (
    TOLERANCE,
    assert_equal_with_gradients,
    bounded,
    random_ids,
    randomise,
    small_model,
    stack_twins,
)
from torch import nn

from tinytf.transformer import Transformer, TransformerConfig

NORMS = pytest.mark.parametrize("norm", ["post", "pre"])
lengths = st.lists(st.integers(1, 6), min_size=1, max_size=3)


class TorchTransformer(nn.Module):
    """nn.Transformer with the embeddings, positions and output that it leaves to its user."""

    def __init__(self, config):
        super().__init__()
        c, self.config = config, config
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about nested tensors, which training does not use
            self.body = nn.Transformer(
                c.d_model, c.num_heads, c.num_layers, c.num_layers, c.d_ff, dropout=0.0,
                activation=c.activation, batch_first=True, norm_first=c.norm == "pre",
            )  # fmt: skip
        self.src_table = nn.Parameter(torch.empty(c.src_vocab_size, c.d_model))
        self.tgt_table = self.src_table
        if not c.share_embeddings:
            self.tgt_table = nn.Parameter(torch.empty(c.tgt_vocab_size, c.d_model))
        self.out = self.tgt_table
        if not c.tie_output:
            self.out = nn.Parameter(torch.empty(c.tgt_vocab_size, c.d_model))

    def embed(self, table, ids):
        x, c = table[ids] * math.sqrt(self.config.d_model), self.config.d_model
        for t in range(ids.size(1)):  # the sinusoids, written out
            for j in range(c):
                angle = t / 10000 ** ((j - j % 2) / c)
                x[:, t, j] += math.cos(angle) if j % 2 else math.sin(angle)
        return x

    def forward(self, src, tgt):
        future = torch.ones(tgt.size(1), tgt.size(1), device=tgt.device).triu(1).bool()
        hidden = self.body(
            self.embed(self.src_table, src),
            self.embed(self.tgt_table, tgt),
            tgt_mask=future,
            src_key_padding_mask=src == 0,
            tgt_key_padding_mask=tgt == 0,
            memory_key_padding_mask=src == 0,
        )
        return hidden @ self.out.T


@pytest.mark.parametrize("dtype", TOLERANCE)
@NORMS
@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"tie_output": False, "activation": "gelu", "num_layers": 1},
        {"share_embeddings": True, "tgt_vocab_size": 11},
    ],
    ids=str,
)
def test_model_equals_torch(dtype, norm, choices, exact):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)  # the table of positions in full precision
    try:
        ours = randomise(small_model(exact, dtype, norm=norm, **choices))
    finally:
        torch.set_default_dtype(before)
    theirs = TorchTransformer(ours.config).to(exact, dtype)
    twins = [([ours.src_embedding.weight], theirs.src_table)]
    if ours.tgt_embedding is not ours.src_embedding:
        twins.append(([ours.tgt_embedding.weight], theirs.tgt_table))
    if not ours.config.tie_output:
        twins.append(([ours.output.weight], theirs.out))
    twins += stack_twins(ours.encoder, theirs.body.encoder)
    twins += stack_twins(ours.decoder, theirs.body.decoder)
    src, tgt = random_ids([7, 4, 1], 11, exact), random_ids([3, 5, 2], 9, exact)
    zero = torch.zeros(3, 5, ours.config.tgt_vocab_size, dtype=dtype, device=exact)
    assert_equal_with_gradients(
        lambda x: x + ours(src, tgt), lambda x: x + theirs(src, tgt), [zero], twins
    )
    assert len(list(ours.parameters())) == sum(len(mine) for mine, _ in twins)


# ---- properties


@bounded
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=3),
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(0, 2**20),
    st.sampled_from(["post", "pre"]),
)
def test_padding_never_reaches_a_word(exact, sizes, more_src, more_tgt, seed, norm):
    """Each sentence alone, and in a batch with any amount of padding, gets the same scores."""
    torch.manual_seed(seed)
    model = randomise(small_model(exact, norm=norm))
    s, t = zip(*sizes, strict=True)
    src = random_ids(s, 11, exact, width=max(s) + more_src)
    tgt = random_ids(t, 9, exact, width=max(t) + more_tgt)
    together = model(src, tgt)
    for row, (n, m) in enumerate(sizes):
        alone = model(src[row : row + 1, :n], tgt[row : row + 1, :m])[0]
        torch.testing.assert_close(together[row, :m], alone, atol=1e-11, rtol=1e-11)


@NORMS
def test_padding_gets_no_gradient(norm, device):
    model = small_model(device, torch.float32, norm=norm)
    src, tgt = random_ids([3, 6], 11, device), random_ids([5, 2], 9, device)
    real = model(src, tgt)[tgt != 0]
    F.cross_entropy(real, tgt[tgt != 0]).backward()
    # the output layer is tied to the target table, whose <pad> row it may move; not so the source
    assert (model.src_embedding.weight.grad[0] == 0).all()
    assert (model.src_embedding.weight.grad[2] != 0).all()


@pytest.mark.parametrize("s", [1, 2, 5])
@pytest.mark.parametrize("t", [1, 2, 5])
@pytest.mark.parametrize(("d_model", "num_heads"), [(7, 1), (9, 3), (1, 1)])
def test_sizes_odd_and_unequal(s, t, d_model, num_heads, device):
    model = small_model(device, torch.float32, d_model=d_model, num_heads=num_heads, d_ff=5)
    logits = model(random_ids([s, 1], 11, device), random_ids([t, 1], 9, device))
    assert logits.shape == (2, t, 9)
    logits.sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_a_source_of_padding_only_is_finite(device):
    model = small_model(device, torch.float32)
    src, tgt = random_ids([4, 4], 11, device), random_ids([3, 3], 9, device)
    src[1] = 0
    logits = model(src, tgt)
    logits.square().sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_pad_id_can_be_chosen(exact):
    torch.manual_seed(1)
    model = small_model(exact, pad_id=4)
    src, tgt = torch.tensor([[5, 6, 4, 4]], device=exact), torch.tensor([[1, 3, 4]], device=exact)
    shorter = model(src[:, :2], tgt[:, :2])
    torch.testing.assert_close(model(src, tgt)[:, :2], shorter, atol=1e-11, rtol=0)


# ---- construction


def test_sharing_and_tying():
    apart = small_model()
    assert apart.output.weight is apart.tgt_embedding.weight
    assert apart.src_embedding.weight is not apart.tgt_embedding.weight
    shared = small_model(share_embeddings=True, tgt_vocab_size=11)
    assert shared.output.weight is shared.src_embedding.weight
    untied = small_model(tie_output=False)
    assert untied.output.weight is not untied.tgt_embedding.weight


@pytest.mark.parametrize(
    ("init", "std"), [("xavier", math.sqrt(2 / (256 + 512))), ("normal", 0.02)]
)
def test_initial_weights(init, std):
    config = TransformerConfig(50, 60, 256, 4, 1, 512, init=init)
    model = Transformer(config)
    layer = model.encoder.layers[0]
    assert layer.feed_forward.w_1.weight.std().item() == pytest.approx(std, rel=0.03)
    assert (layer.feed_forward.w_1.bias == 0).all()
    # tying comes after: the embedding's own spread decides, and logits start with a spread near 1
    assert model.tgt_embedding.weight.std().item() == pytest.approx(1 / 16, rel=0.03)
    logits = model.eval()(random_ids([9] * 8, 50), torch.randint(3, 30, (8, 9)))
    assert 0.7 < logits[:, :, 30:].std() < 1.3  # of words that the target does not hold


# ---- bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 100, "num_heads": 8}, "d_model=100 is not divisible by num_heads=8"),
        ({"num_layers": 0}, "num_layers must be at least 1, got 0"),
        ({"num_heads": 0}, "num_heads must be at least 1, got 0"),
        ({"src_vocab_size": -3}, "src_vocab_size must be at least 1, got -3"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"dropout": -0.1}, r"dropout must lie in \[0, 1\), got -0.1"),
        ({"norm": "both"}, r"norm='both' is not one of \('post', 'pre'\)"),
        (
            {"activation": "tanh"},
            r"activation='tanh' is not one of \('relu', 'gelu', 'gelu_tanh', 'silu'\)",
        ),
        ({"init": "zero"}, "init='zero' is not one of"),
        ({"share_embeddings": True}, "src_vocab_size=11 and tgt_vocab_size=9"),
    ],
)
def test_bad_configurations_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        small_model(**changes)


ONES = torch.ones(2, 3, dtype=torch.long)


@pytest.mark.parametrize(
    ("src", "tgt", "message"),
    [
        (ONES * 11, ONES, r"id 11 is outside the vocabulary of 11 \(0..10\)"),
        (ONES, ONES * 9, r"id 9 is outside the vocabulary of 9 \(0..8\)"),
        (-ONES, ONES, "id -1 is outside the vocabulary of 11"),
        (ONES, -ONES, "id -1 is outside the vocabulary of 9"),
        (ONES.repeat(1, 9), ONES, "sequence of length 27 is longer than max_len=24"),
        (ONES, ONES.repeat(1, 9), "sequence of length 27 is longer than max_len=24"),
        (ONES[:0], ONES, r"non-empty batch \(B, T\), got shape \(0, 3\)"),
        (ONES[:, :0], ONES, r"non-empty batch \(B, T\), got shape \(2, 0\)"),
        (ONES, ONES[:, :0], r"non-empty batch \(B, T\), got shape \(2, 0\)"),
        (ONES[:1], ONES, "target batch of 2 does not match source batch of 1"),
    ],
)
def test_bad_input_is_refused(src, tgt, message, device):
    with pytest.raises(ValueError, match=message):
        small_model(device, torch.float32)(src.to(device), tgt.to(device))


# ---- padding, the future and a cache together


@bounded
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=3),
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.integers(0, 2**20),
)
def test_padded_prefixes_continue_from_a_cache_as_they_are_read_whole(exact, lengths, cuts, seed):
    torch.manual_seed(seed)
    model = randomise(small_model(exact))
    src = random_ids([5] * len(lengths), 11, exact)
    first = random_ids(lengths, 9, exact)  # rows of unequal length, padded
    more = torch.randint(3, 9, (len(lengths), sum(cuts)), device=exact)
    whole = torch.cat([first, more], dim=1)
    memory, cache = model.encode(src), model.decoder.new_cache()
    parts = [model.decode(part, memory, cache) for part in (first, *more.split(cuts, dim=1))]
    torch.testing.assert_close(
        torch.cat(parts, 1), model.decode(whole, memory), atol=1e-10, rtol=1e-10
    )


def test_a_cache_remembers_its_padding_when_rows_are_exchanged(exact):
    model = randomise(small_model(exact))
    first = torch.tensor([[1, 5, 0], [1, 5, 6]], device=exact)
    rows, more = torch.tensor([1, 0, 0], device=exact), torch.tensor([[8], [7], [8]], device=exact)
    memory, cache = model.encode(random_ids([4, 4], 11, exact)), model.decoder.new_cache()
    model.decode(first, memory, cache)
    for layer in cache:
        layer.select(rows)
        layer.cross_attention.select(rows)
    memory = type(memory)(*(part[rows] for part in memory))
    expected = model.decode(torch.cat([first[rows], more], 1), memory)[:, -1:]
    torch.testing.assert_close(model.decode(more, memory, cache), expected, atol=1e-10, rtol=1e-10)


def test_nothing_is_masked_where_nothing_is_padding(monkeypatch):
    asked = []
    kernel = F.scaled_dot_product_attention

    def spy(q, k, v, attn_mask=None, **options):
        asked.append((attn_mask is not None, options.get("is_causal", False)))
        return kernel(q, k, v, attn_mask=attn_mask, **options)

    model = small_model(num_layers=1)
    memory = model.encode(random_ids([4], 11))
    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    model.decode(torch.tensor([[1, 5, 6]]), memory)
    model.decode(torch.tensor([[1, 5, 0]]), memory)
    assert asked[::2] == [(False, True), (True, False)]  # the others read the memory
