"""Translating and grading, with a translator trained here in a second and with the shipped one."""

import pytest
import torch
from translator_support import PAIRS, trained_translator, untrained

from tinytf.apps.translator import SHIPPED, Translator
from tinytf.data.phrasebook import Phrasebook
from tinytf.metrics.translation import (
    exact_match,
)
from tinytf.text.words import UnknownWordError, WordTokenizer
from tinytf.training.checkpointing import CheckpointError, write
from tinytf.training.trainer import Trainer, TrainingConfig


@pytest.fixture(scope="module")
def trained():
    return trained_translator()


# ---- translating


def test_it_translates_what_it_learnt(trained):
    for beam in (None, 1, 3):
        outputs = trained.batch([" ".join(p.source) for p in PAIRS], beam)
        assert [o.words for o in outputs] == [p.target for p in PAIRS]
    one = trained("the cat sat")
    assert one.text == str(one) == "猫 坐"
    assert one.source == ("the", "cat", "sat", "<eos>")
    assert one.target == ("猫", "坐", "<eos>")
    assert one.attention == {}


@pytest.mark.parametrize("p", PAIRS, ids=lambda p: " ".join(p.source))
def test_explain_gives_the_weights_of_the_translation(trained, p):
    seen = trained.explain(" ".join(p.source))
    assert seen == trained(" ".join(p.source))
    s, t = len(p.source) + 1, len(p.target) + 1
    assert (len(seen.source), len(seen.target)) == (s, t)
    shapes = {name: tuple(w.shape) for name, w in seen.attention.items()}
    assert shapes == {
        f"{stack}.layers.{i}.{kind}_attention": (3, *shape)
        for i in range(2)
        for stack, kind, shape in (
            ("encoder", "self", (s, s)),
            ("decoder", "self", (t, t)),
            ("decoder", "cross", (t, s)),
        )
    }
    for weights in seen.attention.values():
        assert weights.device.type == "cpu"
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]))


def test_explain_is_without_dropout():
    translator = untrained(dropout=0.5)
    translator.model.train()
    first, second = translator.explain("the cat sat"), translator.explain("the cat sat")
    assert all(torch.equal(w, second.attention[n]) for n, w in first.attention.items())
    assert translator.model.training


def test_a_translation_that_never_ends_is_cut(device):
    translator = untrained(device, max_len=9)
    word = translator.target.encode("猫")[0]
    only = torch.zeros(len(translator.target), device=device)
    only[word] = 1e3
    translator.model.output.forward = lambda h: only.expand(*h.shape[:-1], -1).clone()
    assert translator("the cat sat").target == ("猫",) * 9
    assert translator.explain("the cat sat").words == ("猫",) * 9


@pytest.mark.parametrize("method", ["__call__", "explain"])
def test_bad_sentences_are_refused(trained, method):
    with pytest.raises(UnknownWordError, match="unknown word 'bird' at position 1"):
        getattr(trained, method)("the bird sat")
    with pytest.raises(ValueError, match="the sentence is empty: give at least one word"):
        getattr(trained, method)("  ")
    with pytest.raises(ValueError, match="sequence of length 31 is longer than max_len=24"):
        getattr(trained, method)("the " * 30)


def test_bad_batches_are_refused(trained):
    with pytest.raises(ValueError, match="the batch is empty"):
        trained.batch([])
    with pytest.raises(TypeError, match="batch takes a list of sentences, got the string 'a dog'"):
        trained.batch("a dog")  # its letters are not sentences


def test_a_vocabulary_of_another_size_is_refused(trained):
    with pytest.raises(ValueError, match=r"the model's target vocabulary has \d+ entries, the tok"):
        Translator(trained.model, trained.source, WordTokenizer(["一"]))


# ---- files


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_saved_translator_translates_the_same(trained, dtype, device, tmp_path):
    path = tmp_path / "t.safetensors"
    trained.save(path, dtype)
    loaded = Translator.load(path, device)
    assert loaded.model.device.type == device.type
    assert not loaded.model.training
    assert {p.dtype for p in loaded.model.parameters()} == {torch.float32}
    assert exact_match(loaded, PAIRS) == 1
    for a, b in zip(trained.model.parameters(), loaded.model.parameters(), strict=True):
        assert torch.equal(a.to(dtype).float(), b)


def test_a_training_checkpoint_is_a_translator_too(trained, device, tmp_path):
    path = tmp_path / "run.safetensors"
    run = Trainer(trained.model, None, TrainingConfig())
    run.save(path, **trained.header())
    assert exact_match(Translator.load(path, device), PAIRS) == 1


def test_files_that_are_no_translators_are_refused(trained, tmp_path):
    with pytest.raises(CheckpointError, match="there is no checkpoint at"):
        Translator.load(tmp_path / "none")
    write(tmp_path / "other", {"w": torch.zeros(2)}, {"kind": "something"})
    with pytest.raises(CheckpointError, match="other is not a translator"):
        Translator.load(tmp_path / "other")
    with pytest.raises(CheckpointError, match="there is no checkpoint at"):
        Translator.load("")  # not the shipped one
    Trainer(trained.model, None, TrainingConfig()).save(tmp_path / "bare")
    with pytest.raises(CheckpointError, match=r"bare .* no vocabularies .*translator.header\(\)"):
        Translator.load(tmp_path / "bare")
    trained.save(tmp_path / "cut")
    data = (tmp_path / "cut").read_bytes()
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match=r"cut .* is truncated"):
        Translator.load(tmp_path / "cut")


# ---- the one that ships

shipped_only = pytest.mark.skipif(
    not SHIPPED.exists(), reason="the trained weights are not in tinytf/weights"
)


@pytest.fixture(scope="module")
def shipped():
    return Translator.load()


@shipped_only
def test_shipped_weights_are_small_and_fit_the_phrasebook(shipped):
    assert SHIPPED.stat().st_size <= 4e6
    book = Phrasebook()
    assert shipped.source.words == tuple(book.source_words)
    assert shipped.target.words == tuple(book.target_words)


@shipped_only
def test_shipped_translator_translates(shipped):
    assert shipped("the cat sat on the mat").text == "猫 坐 在 垫子 上"
    assert exact_match(shipped, Phrasebook().sample(400, "validation", seed=7)) >= 0.98
    with pytest.raises(UnknownWordError, match="unknown word 'zyzzyva' at position 1"):
        shipped("the zyzzyva sat")
