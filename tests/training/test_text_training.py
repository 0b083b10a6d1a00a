"""Training on running text: blocks, the corpus, the objective, and what a text costs."""

import itertools
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from gpt_support import decided_gpt

from tinytf.data import corpus as corpus_module
from tinytf.data.blocks import TextBlocks
from tinytf.data.corpus import (
    END_OF_TEXT,
    HELD_OUT,
    corpus,
    encode_documents,
    library_docstrings,
)
from tinytf.data.manual import manual_topics
from tinytf.decoding.likelihood import bits_per_byte, token_losses
from tinytf.gpt import GPT, GPTConfig
from tinytf.text.bpe import train_bpe
from tinytf.training import losses as objective
from tinytf.training.losses import TextBatch, next_token_loss
from tinytf.training.trainer import Trainer, TrainingConfig

# ---- blocks


@pytest.mark.parametrize(("tokens", "length", "size"), [(1000, 7, 3), (50, 8, 4), (9, 8, 2)])
def test_an_epoch_shows_every_block_once(tokens, length, size):
    blocks = TextBlocks(torch.arange(tokens), length, size)
    steps = math.ceil(3 * blocks.per_epoch) + 1
    starts = [s for step in range(steps) for s in blocks.starts(step)]
    offsets = set()
    for epoch in range(3):
        seen = sorted(starts[epoch * blocks.count : (epoch + 1) * blocks.count])
        assert [b - a for a, b in itertools.pairwise(seen)] == [length] * (len(seen) - 1)
        assert seen[0] >= 0
        assert seen[-1] + length <= tokens - 1  # the token after the last is there
        assert seen[0] + (tokens - 1 - seen[-1] - length) < 2 * length  # hardly any is left out
        offsets.add(seen[0])
    if tokens == 1000:
        assert len(offsets) > 1
        assert starts[: blocks.count] != starts[blocks.count : 2 * blocks.count]


def test_blocks_stand_in_another_order_and_begin_elsewhere_each_epoch():
    blocks = TextBlocks(torch.arange(7 * 10 + 1), 7, 1)  # ten blocks would fit in one way only
    assert blocks.count == 9
    epochs = [[blocks.starts(9 * epoch + i)[0] for i in range(9)] for epoch in range(40)]
    assert {min(starts) for starts in epochs} == set(range(8))
    places = {tuple((start - min(starts)) // 7 for start in starts) for starts in epochs}
    assert len(places) > 30
    assert tuple(range(9)) not in places


def test_a_batch_is_text_and_the_same_moved_by_one():
    ids = torch.randint(50, (300,), dtype=torch.int32)
    blocks = TextBlocks(ids, 10, 4, seed=2)
    batch = blocks(5)
    assert batch.ids_in.dtype == batch.ids_out.dtype == torch.int64
    for row, start in enumerate(blocks.starts(5)):
        assert batch.ids_in[row].tolist() == ids[start : start + 10].tolist()
        assert batch.ids_out[row].tolist() == ids[start + 1 : start + 11].tolist()
    assert batch.num_tokens == 40


def test_blocks_depend_on_seed_and_step_alone():
    first, again, other = (TextBlocks(torch.arange(500), 7, 3, seed) for seed in (0, 0, 1))
    forwards = [first.starts(i) for i in range(60)]
    assert [again.starts(i) for i in (59, 3, 30, 0)] == [forwards[i] for i in (59, 3, 30, 0)]
    assert forwards != [other.starts(i) for i in range(60)]


def test_blocks_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match=r"has 8 tokens, too short .* length=8 .* at least 9"):
        TextBlocks(torch.arange(8), 8, 1)
    assert TextBlocks(torch.arange(9), 8, 1)(0).ids_out[0].tolist() == list(range(1, 9))
    with pytest.raises(ValueError, match="length=0 and size=1"):
        TextBlocks(torch.arange(8), 0, 1)
    with pytest.raises(ValueError, match="length=2 and size=0"):
        TextBlocks(torch.arange(8), 2, 0)
    with pytest.raises(ValueError, match=r"one long row \(N,\), got shape \(2, 4\)"):
        TextBlocks(torch.arange(8).view(2, 4), 2, 1)
    with pytest.raises(TypeError, match=r"integers, got torch\.float32"):
        TextBlocks(torch.ones(8), 2, 1)
    for kind in (torch.bool, torch.complex64):
        with pytest.raises(TypeError, match=f"integers, got {kind}"):
            TextBlocks(torch.ones(8, dtype=kind), 2, 1)


# ---- the corpus


LONG = "It says in a sentence what it does, and in this one why it is good for you to know it."
assert len(LONG) >= 80


@pytest.fixture
def library(monkeypatch, tmp_path):
    """A small library in place of Python's, which takes seconds to parse."""
    held = next(p for p in manual_topics()["lambda"].split("\n\n") if len(p) > 80)
    source = {
        "a.py": f"{f'A {LONG}'!r}\ndef f():\n    {f'F {LONG}'!r}\n"
        f"async def g():\n    {f'G {LONG}'!r}\nclass C:\n    {f'C {LONG}'!r}\n    {LONG!r}\n"
        f"    def f(self):\n        {f'A {LONG}'!r}\n",  # once more, and a string that is no doc
        "b.py": repr(f"{held}\n\nB {LONG}"),
        "c.py": repr(held),
        "exact.py": repr("e" * 80),
        "short.py": repr("s" * 79),
        "wrong.py": "def :",
        "package/d.py": repr(f"D {LONG}"),
        "site-packages/e.py": repr(f"E {LONG}"),
        "test/h.py": repr(f"H {LONG}"),
    }
    for name, text in source.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(corpus_module.sysconfig, "get_path", lambda _: str(tmp_path))
    return held


def test_a_held_out_paragraph_is_taken_out_of_docstrings(library):
    with_library, alone = corpus().train, corpus(docstrings=False).train
    assert with_library[: len(alone)] == alone
    found = with_library[len(alone) :]
    assert library in library_docstrings()
    assert [text.split()[0] for text in found] == [*"AFGCB", "e" * 80, "D"]
    assert all(text.strip() for text in with_library)


def test_nothing_held_out_is_trained_on(library):
    texts = corpus()
    topics = manual_topics()
    assert set(texts.validation) == {topics[name] for name in HELD_OUT if name in topics}
    trained = {p.strip() for text in texts.train for p in text.split("\n\n")}
    held = {p.strip() for text in texts.validation for p in text.split("\n\n")} - {""}
    assert not trained & held
    assert sum(map(len, texts.validation)) > 30_000
    assert 60 < len(corpus(docstrings=False).train) < len(texts.train) < 100


def test_docstrings_are_of_the_library_each_once(library):
    found = library_docstrings()
    assert [text.split()[0] for text in found if text.endswith(LONG)] == [
        *"AFGC", library.split()[0], "D"
    ]  # fmt: skip
    assert len(found) == len(set(found)) == 8
    assert min(map(len, found)) == 80
    assert len(library_docstrings(shortest=81)) == 7


def test_this_pythons_library_has_docstrings():
    json = Path(corpus_module.sysconfig.get_path("stdlib")) / "json"
    assert any("JSON" in text for text in corpus_module._docstrings(json))


def test_a_library_without_sources_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(corpus_module.sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(FileNotFoundError, match="no source files"):
        library_docstrings()


def test_documents_are_joined_by_the_end_of_text():
    tokenizer = train_bpe("a b c", num_merges=0, special_tokens=[END_OF_TEXT])
    ids = encode_documents(tokenizer, ["ab", f"c{END_OF_TEXT}"]).tolist()
    end = tokenizer.special_id(END_OF_TEXT)
    assert ids[:4] == [end, 97, 98, end]
    assert ids.count(end) == 3  # the name in a document is plain text
    assert bytes(ids[4:-1]).decode() == f"c{END_OF_TEXT}"
    with pytest.raises(ValueError, match="no documents"):
        encode_documents(tokenizer, [])
    with pytest.raises(ValueError, match="endoftext"):
        encode_documents(train_bpe("a b c", num_merges=0), ["a"])


# ---- the objective


def test_the_loss_is_that_of_the_next_token():
    model = decided_gpt(0).requires_grad_(False)
    ids = torch.randint(11, (3, 9))
    batch = TextBatch(ids[:, :-1], ids[:, 1:])
    for smoothing in (0.0, 0.2):
        loss, tokens = next_token_loss(model, batch, smoothing)
        assert tokens == batch.num_tokens == 24
        want = 0.0
        for row in ids:
            for t in range(8):  # each prefix on its own
                logp = model(row[None, : t + 1])[0, -1].log_softmax(-1)
                want += -(1 - smoothing) * logp[row[t + 1]] - smoothing * logp.mean()
        torch.testing.assert_close(loss.double(), want, rtol=1e-5, atol=0)
    assert next_token_loss(decided_gpt(0, dtype=torch.bfloat16), batch)[0].dtype == torch.float32


@pytest.mark.skipif(not hasattr(F, "linear_cross_entropy"), reason="this torch has only the whole")
def test_loss_and_gradients_part_by_part_are_those_of_the_whole(monkeypatch):
    ids = torch.randint(11, (5, 9))
    batch = TextBatch(ids[:, :-1], ids[:, 1:])
    calls = []
    by_parts = F.linear_cross_entropy

    def spy(hidden, *args, options, **kwargs):
        calls.append(options.batch_chunk_size)
        return by_parts(hidden, *args, options=options, **kwargs)

    monkeypatch.setattr(F, "linear_cross_entropy", spy)
    results = []
    for part in (10**9, 33):  # 40 tokens by 11: all at once, then 3 tokens at a time
        monkeypatch.setattr(objective, "PART", part)
        model = decided_gpt(0, dtype=torch.float32)
        loss, tokens = next_token_loss(model, batch)
        (3 * loss / tokens).backward()
        results.append([loss.detach(), *(p.grad for p in model.parameters())])
    assert calls == [3]
    for whole, parts in zip(*results, strict=True):
        torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        next_token_loss(model, batch)
    next_token_loss(model, batch, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        next_token_loss(model, batch)
    assert calls == [3]  # where it gains nothing, or can't, the whole is computed


def test_accumulation_is_the_big_batch():
    """Weights after a step of two batches are those after one batch of both, in float64."""
    ids = torch.randint(11, (400,))
    small, big = TextBlocks(ids, 6, 2), TextBlocks(ids, 6, 4)
    ends, norms = [], []
    for blocks, accumulate in ((small, 2), (big, 1)):
        model = decided_gpt(1)
        config = TrainingConfig(steps=3, warmup=1, accumulate=accumulate, label_smoothing=0.0)
        trainer = Trainer(model, blocks, config, next_token_loss)
        trainer.run(log_every=1)
        ends.append([p.detach() for p in model.parameters()])
        norms.append([row["grad_norm"] for row in trainer.history])
    assert norms[0] == pytest.approx(norms[1], rel=1e-6)  # Adam's steps do not depend on its size
    start = list(decided_gpt(1).parameters())
    for a, b, before in zip(*ends, start, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
        assert not torch.equal(a, before)


def test_a_gpt_learns_a_text_by_heart():
    ids = torch.arange(40) * 7 % 11
    torch.manual_seed(0)
    model = GPT(GPTConfig(11, 24, 3, 2, max_len=16))
    config = TrainingConfig(steps=80, warmup=5, lr=1e-2, label_smoothing=0.0)
    history = Trainer(model, TextBlocks(ids, 8, 4), config, next_token_loss).run(log_every=10)
    assert history[-1]["loss"] < 0.1 < 1 < history[0]["loss"]


# ---- what a text costs


@pytest.mark.parametrize("length", [2, 3, 5, 6, 7, 8, 11, 23, 40])
@pytest.mark.parametrize("context", [1, 2, 5, 6])
def test_every_token_is_scored_once_with_enough_context(length, context):
    model = decided_gpt(0)
    ids = torch.randint(11, (length,), dtype=torch.int32)
    found = token_losses(model, ids, context, batch_size=3)
    ids = ids.long()
    assert found.shape == (length - 1,)
    stride = max(1, context // 2)
    last = max(0, length - 1 - context)
    begins = [*range(0, last, stride), last]
    for t in range(length - 1):
        begin = next(s for s in begins if s + context > t)  # the first window that reaches it
        assert t - begin + 1 >= min(t + 1, (context + 1) // 2)
        logits = model(ids[None, begin : t + 1])[0, -1]
        assert found[t].item() == pytest.approx(F.cross_entropy(logits, ids[t + 1]).item(), 1e-5)


def test_bits_per_byte_is_the_sum_over_tokens():
    model = decided_gpt(0).train()
    ids = torch.randint(11, (10,))
    nats = F.cross_entropy(model(ids[None, :-1])[0], ids[1:], reduction="sum").item()
    assert bits_per_byte(model, ids, 17) == pytest.approx(nats / math.log(2) / 17, rel=1e-6)
    assert model.training  # left as it was found
    for module in model.modules():  # dropout, which evaluation turns off
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    assert not torch.allclose(model(ids[None]), model(ids[None]))
    assert bits_per_byte(model, ids, 17) == pytest.approx(nats / math.log(2) / 17, rel=1e-6)
    assert not token_losses(model, ids).requires_grad
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    assert bits_per_byte(model, ids, 9) == pytest.approx(math.log2(11), rel=1e-6)


def test_a_text_on_the_cpu_is_scored_where_the_model_is(device):
    ids = torch.randint(11, (40,))
    here, there = (decided_gpt(0, at, torch.float32) for at in ("cpu", device))
    found = token_losses(there, ids, 5)
    assert found.device.type == "cpu"
    torch.testing.assert_close(found, token_losses(here, ids, 5), rtol=1e-4, atol=1e-4)


def test_likelihood_refuses_what_does_not_fit():
    model = decided_gpt(0)
    with pytest.raises(ValueError, match=r"context=13 must lie in 1\.\.12"):
        token_losses(model, torch.arange(5), 13)
    with pytest.raises(ValueError, match=r"context=0 must lie in 1\.\.12"):
        token_losses(model, torch.arange(5), 0)
    with pytest.raises(ValueError, match=r"two tokens or more, got \(1,\)"):
        token_losses(model, torch.arange(1))
    with pytest.raises(ValueError, match=r"got \(1, 5\)"):
        token_losses(model, torch.arange(5)[None])
    with pytest.raises(ValueError, match="num_bytes must be at least 1, got 0"):
        bits_per_byte(model, torch.arange(5), 0)
