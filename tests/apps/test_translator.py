"""Translating and grading, with a translator trained here in a second and with the shipped one."""

from dataclasses import dataclass, replace

import pytest
import torch
from support import small_model

from tinytf.apps.translator import SHIPPED, Translator
from tinytf.data.phrasebook import Phrasebook
from tinytf.inspect import record
from tinytf.metrics.translation import (
    alignment_error_rate,
    exact_match,
    exact_match_by_kind,
    grade_alignment,
    is_exact,
)
from tinytf.text.words import UnknownWordError, WordTokenizer
from tinytf.training.checkpointing import CheckpointError, write
from tinytf.training.losses import make_batch
from tinytf.training.trainer import Trainer, TrainingConfig


@dataclass(frozen=True)
class Pair:
    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]
    kind: str


def pair(source, target, alignment, kind="plain"):
    return Pair(tuple(source.split()), tuple(target.split()), alignment, kind)


PAIRS = [
    pair("the cat sat", "猫 坐", ((1, 0), (2, 1))),
    pair("the dog sat", "狗 坐", ((1, 0), (2, 1))),
    pair("the dog saw the cat", "狗 看见 猫", ((1, 0), (2, 1), (4, 2)), "object"),
    pair("the cat saw the dog", "猫 看见 狗", ((1, 0), (2, 1), (4, 2)), "object"),
    pair("a dog sat", "一 只 狗 坐", ((0, 0), (0, 1), (1, 2), (2, 3)), "counted"),
]


def untrained(device="cpu", **sizes):
    words = [WordTokenizer(sorted({w for p in PAIRS for w in getattr(p, side)}))
             for side in ("source", "target")]  # fmt: skip
    vocabularies = dict(zip(("src_vocab_size", "tgt_vocab_size"), map(len, words), strict=True))
    model = small_model(device, torch.float32, **vocabularies | {"d_model": 24, "d_ff": 48} | sizes)
    return Translator(model, *words)


@pytest.fixture(scope="module")
def trained():
    """A translator that knows the five pairs by heart."""
    from tinytf.support.device import choose_device

    torch.manual_seed(0)
    translator = untrained(choose_device())
    batch = make_batch(
        [translator.source.encode(p.source) for p in PAIRS],
        [translator.target.encode(p.target) for p in PAIRS],
    )
    Trainer(translator.model, lambda _: batch, TrainingConfig(steps=80, warmup=5, lr=1e-2)).run()
    translator.model.eval()
    return translator


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


# ---- grading


def test_exact_match_counts_whole_sentences(trained):
    wrong = replace(PAIRS[0], target=("猫",))  # a prefix is not a match
    longer = replace(PAIRS[1], target=(*PAIRS[1].target, "坐"))
    pairs = [wrong, *PAIRS[1:], longer]
    expected = [False, True, True, True, True, False]
    for size in (1, 2, 256):
        assert is_exact(trained, pairs, batch_size=size) == expected
    assert is_exact(trained, pairs, beam=2) == expected
    assert exact_match(trained, pairs) == pytest.approx(4 / 6)
    by_kind = exact_match_by_kind(trained, pairs)
    assert list(by_kind.items()) == [("plain", 1 / 3), ("object", 1.0), ("counted", 1.0)]


@pytest.mark.parametrize("grade", [is_exact, exact_match, grade_alignment])
def test_nothing_to_grade_is_refused(trained, grade):
    with pytest.raises(ValueError, match="there are no pairs to grade"):
        grade(trained, [])


@pytest.mark.parametrize(
    ("links", "gold", "expected"),
    [
        ([(0, 0), (1, 1)], [(1, 1), (0, 0)], 0),
        ([(0, 0)], [(1, 1)], 1),
        ([(0, 0), (0, 1)], [(0, 0)], 1 - 2 / 3),
        ([], [(0, 0)], 1),
        ([(0, 0), (0, 0), (2, 1)], [(0, 0), (1, 1), (2, 2)], 1 - 2 / 5),
    ],
)
def test_alignment_error_rate_equals_the_formula(links, gold, expected):
    assert alignment_error_rate(links, gold) == pytest.approx(expected)


def test_alignment_error_rate_needs_links():
    with pytest.raises(ValueError, match="there are no links to compare"):
        alignment_error_rate([], [])


def test_alignment_grades_need_links(trained):
    bare = [replace(p, alignment=()) for p in PAIRS]
    with pytest.raises(ValueError, match="no gold links to grade against"):
        grade_alignment(trained, bare)


@pytest.mark.parametrize("batch_size", [2, 128])
def test_alignment_grades_equal_a_loop_over_words(trained, batch_size):
    layers, heads = 2, 3
    found = [[[] for _ in range(heads)] for _ in range(layers)]
    gold, mass = [], torch.zeros(layers, heads)
    for number, p in enumerate(PAIRS):
        gold += [(number, *link) for link in p.alignment]
        batch = make_batch([trained.source.encode(p.source)], [trained.target.encode(p.target)])
        batch = batch.to(trained.model.device)
        with record(trained.model) as seen:
            trained.model(batch.src, batch.tgt_in)
        for layer in range(layers):
            weights = seen[f"decoder.layers.{layer}.cross_attention"][0].cpu()
            for head in range(heads):
                for t in sorted({t for _, t in p.alignment}):
                    row = weights[head, t].tolist()
                    found[layer][head].append((number, row.index(max(row)), t))
                    mass[layer, head] += sum(row[s] for s, u in p.alignment if u == t)
    words = len({(n, t) for n, _, t in gold})
    table = grade_alignment(trained, PAIRS, batch_size)
    for layer in range(layers):
        for head in range(heads):
            links = found[layer][head]
            right = len(set(links) & set(gold)) / words
            assert table["accuracy"][layer, head].item() == pytest.approx(right)
            error = alignment_error_rate(links, gold)
            assert table["aer"][layer, head].item() == pytest.approx(error, abs=1e-6)
    torch.testing.assert_close(table["mass"], mass / words)
    assert len(table["accuracy"].unique()) > 1
