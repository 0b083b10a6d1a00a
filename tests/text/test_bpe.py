"""Byte-level BPE: against Hugging Face's, by its properties, and on what must be refused."""

import json
import random
import tracemalloc

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import bounded
from tokenizer_support import STRANGE, huggingface, text_of_all_kinds
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers

from tinytf.support.files import CheckpointError, read_text
from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.text.gpt2_files import GPT2_BYTE_ORDER, to_gpt2
from tinytf.text.merges import (
    apply_merges,
)
from tinytf.text.pretokenize import split

# against Hugging Face


def test_equals_huggingface_on_the_manual(bpe, theirs, manual):
    ids = bpe.encode(manual)
    assert ids == theirs.encode(manual).ids
    assert bpe.decode(ids) == theirs.decode(ids) == manual


@pytest.mark.parametrize("text", STRANGE)
def test_equals_huggingface_on_strange_text(bpe, theirs, text):
    ids = bpe.encode(text)
    assert ids == theirs.encode(text).ids
    assert bpe.decode(ids) == theirs.decode(ids) == text


@bounded
@given(text=text_of_all_kinds)
def test_equals_huggingface_on_any_text(bpe, theirs, text):
    assert bpe.encode(text) == theirs.encode(text).ids


@bounded
@given(text=text_of_all_kinds)
def test_equals_huggingface_with_chinese_merges(text):
    corpus = "它太累了。它太宽了。猫猫猫 😀😀 aa aaa aaaa"
    ours = train_bpe(corpus, 30)
    text = f"{text}猫猫😀 aaaaa{text}"
    assert ours.encode(text) == huggingface(ours).encode(text).ids


def test_special_tokens_equal_huggingface(bpe):
    theirs = huggingface(bpe)
    theirs.add_special_tokens([AddedToken("<|end|>", normalized=False, special=True)])
    text = "one <|end|>two<|end|><|end|> <|end three"
    assert bpe.encode(text, allowed_special="all") == theirs.encode(text).ids


def test_learns_the_merges_huggingface_learns(manual):
    manual = manual[:200_000]
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=256 + 600, initial_alphabet=alphabet, show_progress=False
    )
    theirs.train_from_iterator([manual], trainer)
    ours = train_bpe(manual, 600, byte_order=GPT2_BYTE_ORDER)
    vocab, merges = to_gpt2(ours)
    assert [tuple(m) for m in json.loads(theirs.to_str())["model"]["merges"]] == merges
    assert theirs.get_vocab() == vocab


def test_the_longest_short_piece_and_the_shortest_long_one(bpe):
    for size in range(60, 70):
        word = "".join(random.Random(size).choices("etaoin", k=size))
        assert bpe.encode(word) == apply_merges(word.encode(), bpe._cache.ranks)


# round trips


@bounded
@given(st.binary(max_size=60))
def test_any_bytes_round_trip(bpe, data):
    assert bpe.decode_bytes(bpe.encode_bytes(data)) == data


@bounded
@given(text=text_of_all_kinds)
def test_any_text_round_trips(bpe, text):
    ids = bpe.encode(text)
    assert bpe.decode(ids) == text
    assert bpe.encode_bytes(text.encode()) == ids
    assert "".join(split(text)) == text


def test_every_byte_has_an_id(bpe):
    assert [bpe.token_bytes(i) for i in range(256)] == [bytes([b]) for b in range(256)]
    assert len(bpe) == bpe.vocab_size == 256 + 600 + 1
    assert bpe.decode(torch.tensor([104, 105])) == "hi"
    assert bpe.decode([0xE7]) == "�"  # a third of a character


def test_special_tokens_come_only_where_allowed(bpe):
    end = bpe.special_id("<|end|>")
    assert end == len(bpe) - 1
    assert end not in bpe.encode("a <|end|> b")
    assert bpe.encode("<|end|>", allowed_special=["<|end|>"]) == [end]
    assert bpe.decode([end]) == "<|end|>"
    nested = ByteBPE([], ["<a", "<a>"])
    assert nested.encode("<a><a", allowed_special="all") == [257, 256]
    with pytest.raises(ValueError, match="'<x>' is not one of the special tokens"):
        bpe.encode("a", allowed_special=["<x>"])
    with pytest.raises(TypeError, match='allowed_special is a list or "all"'):
        bpe.encode("a", allowed_special="<|end|>")


def test_training_on_chunks_equals_training_on_the_whole(manual, tmp_path):
    text = manual[:40_000] + "猫 don't 😀"
    whole = train_bpe(text, 100)
    assert train_bpe((text[i : i + 7] for i in range(0, len(text), 7)), 100).merges == whole.merges
    (tmp_path / "a.txt").write_bytes(text.encode())
    assert train_bpe(tmp_path / "a.txt", 100).merges == whole.merges
    chunks = whole.encode_file(tmp_path / "a.txt", chunk_bytes=11)
    assert [i for ids in chunks for i in ids] == whole.encode(text)


def test_memory_does_not_grow_with_the_file(manual, tmp_path):
    path = tmp_path / "big.txt"
    path.write_bytes(manual[:50_000].encode() * 16)
    tracemalloc.start()
    try:
        bpe = train_bpe(read_text(path, 20_000), 20)
        trained = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        count = sum(map(len, bpe.encode_file(path, chunk_bytes=20_000)))
        encoded = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count > 250_000
    assert trained < 3e6  # all its 160,000 pieces at once would take 10 MB
    assert encoded < 3e6


# files


def test_saves_and_loads(bpe, manual, tmp_path):
    for made in (bpe, ByteBPE([(0, 1)], ["猫"], GPT2_BYTE_ORDER)):
        made.save(tmp_path / "new" / "bpe.json")
        again = ByteBPE.load(tmp_path / "new" / "bpe.json")
        assert again.encode(manual[:5000]) == made.encode(manual[:5000])
        assert (again.merges, again.special_tokens) == (made.merges, made.special_tokens)
        assert again.byte_order == made.byte_order
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["bpe.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:40], r"bpe.json \(40 bytes\) is truncated or not JSON"),
        (lambda text: "", r"bpe.json \(0 bytes\) is truncated or not JSON"),
        (lambda text: "[1, 2]", "it has no format"),
        (lambda text: '{"model": {}}', "it has no format"),
        (lambda text: text.replace("bpe-1", "bpe-9"), "has format 'tinytf-bpe-9', expected"),
        (lambda text: text.replace('"merges"', '"merge"'), "lacks 'merges'"),
        (lambda text: text.replace("[[", "[[9999, 1], [", 1), r"merge 0 joins \(9999, 1\)"),
        (lambda text: text.replace("[[", "[[1], [", 1), "is not a tokenizer"),
        (lambda text: text.replace("[0, 1,", "[0, 0,", 1), "each of the 256 bytes once"),
        (lambda text: text.replace("[0, 1,", '9999999999999, "x": [', 1), "is not a tokenizer"),
    ],
)
def test_refuses_a_file_that_is_not_one(bpe, tmp_path, change, message):
    path = tmp_path / "bpe.json"
    bpe.save(path)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(CheckpointError, match=message):
        ByteBPE.load(path)
    with pytest.raises(CheckpointError, match="there is no file"):
        ByteBPE.load(tmp_path / "none.json")


# bad input


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("", {"num_merges": 5}, "the text to train on is empty"),
        ("abc", {"vocab_size": 255}, "vocab_size=255 is less than the 256 bytes and 0 special"),
        ("abc", {"vocab_size": 256, "special_tokens": ["<x>"]},
         "vocab_size=256 is less than the 256 bytes and 1 special"),
        ("abc", {}, "one of them: got num_merges=None, vocab_size=None"),
        ("abc", {"num_merges": 3, "vocab_size": 300}, "num_merges=3, vocab_size=300"),
        ("abc", {"num_merges": -1}, "num_merges must be at least 0, got -1"),
        ("abc", {"num_merges": 3, "special_tokens": ["<x>", "<x>"]}, "'<x>' is given twice"),
        ([b"abc"], {"num_merges": 3}, "chunks of text are strings, got bytes"),
        ("abc \ud800", {"num_merges": 3}, "lone surrogate"),
    ],
)  # fmt: skip
def test_refuses_bad_training(text, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        train_bpe(text, **settings)


def test_training_ends_where_pairs_or_ids_do():
    assert len(train_bpe("ab ab", vocab_size=1000)) == 258  # it runs out of pairs
    assert train_bpe("ab ab", 0).merges == []
    assert train_bpe("ab ab", vocab_size=258, special_tokens=["<x>"]).merges == [(97, 98)]


LONE = r"lone surrogate, '\\ud800', at position 4: it stands for no character"


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda bpe: bpe.decode([0, 857]), r"id 857 at position 1 is outside .* of 857 \(0..856\)"),
        (lambda bpe: bpe.decode([-1]), "id -1 at position 0"),
        (lambda bpe: bpe.token_bytes(900), "id 900"),
        (lambda bpe: bpe.decode([1.5]), "float"),
        (lambda bpe: bpe.encode(b"abc"), "encode takes a string, got bytes; encode_bytes takes"),
        (lambda bpe: bpe.encode("abc \ud800"), LONE),
        (lambda bpe: bpe.encode("abc \ud800<|end|>", allowed_special="all"), LONE),
        (lambda bpe: list(bpe.encode_chunks(["a", "b \udfff c", "d"])), "lone surrogate"),
        (lambda bpe: ByteBPE([], ["\ud800"]), "lone surrogate"),
        (lambda bpe: ByteBPE([], "<x>"), "special_tokens is a list of strings"),
        (lambda bpe: ByteBPE([], [""]), "a special token is a string that is not empty, got ''"),
        (lambda bpe: ByteBPE([(0, 1), (1, 257)]), r"merge 1 joins \(1, 257\), but the ids before"),
        (
            lambda bpe: ByteBPE([(97, 98), (97, 98)]),
            "merge 1 makes b'ab', which is a token already",
        ),
    ],
)
def test_refuses_bad_input(bpe, act, message):
    with pytest.raises((ValueError, TypeError), match=message):
        act(bpe)


def test_nothing_and_the_null_character_are_texts(bpe):
    assert bpe.decode(bpe.encode("a\0b")) == "a\0b"
    assert bpe.encode("") == [] == bpe.encode_bytes(b"")
    assert bpe.decode([]) == ""


def test_merges_that_ask_for_much_memory_are_refused(tmp_path):
    """35 merges, each of the last token with itself, spell 2**35 bytes."""
    doubling = [(97, 97)] + [(256 + i, 256 + i) for i in range(34)]
    content = {"format": "tinytf-bpe-1", "byte_order": list(range(256)), "merges": doubling,
               "special_tokens": []}  # fmt: skip
    (tmp_path / "bpe.json").write_text(json.dumps(content))
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match=r"merge 22 makes a token .* 16777216 are"):
            ByteBPE.load(tmp_path / "bpe.json")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 25
    with pytest.raises(ValueError, match="at most 16777216 are allowed"):
        ByteBPE([(97, 98)] + [(256 + i, 97) for i in range(7000)])


def test_a_vocabulary_of_bytes_becomes_the_same_tokenizer(manual):
    made = train_bpe(manual[:50_000], 100, None, ["<|endoftext|>"], GPT2_BYTE_ORDER)
    vocab = {i: made.token_bytes(i) for i in range(len(made))}
    merges = [(vocab[a], vocab[b]) for a, b in made.merges]
    again = ByteBPE.from_vocab(vocab, merges, ["<|endoftext|>"])
    assert (again.merges, again.byte_order) == (made.merges, made.byte_order)
    text = manual[:5000] + "<|endoftext|>"
    assert again.encode(text, "all") == made.encode(text, "all")
    more = ByteBPE.from_vocab(vocab, merges, ["<|endoftext|>", "<x>"])
    assert more.special_id("<x>") == len(vocab)
    for change, message in (
        ({"vocab": vocab | {999: b"x"}}, "the ids must run from 0, 256 bytes first: there are 358"),
        ({"vocab": {0: b"a"}}, "256 bytes first: there are 1"),
        ({"vocab": vocab | {5: vocab[6]}}, "each of the 256 bytes once"),
        ({"vocab": vocab | {300: b"other"}}, "is no token|but its merge makes"),
        ({"merges": merges[:-1]}, "come of no merge and are no special_tokens"),
        ({"merges": [*merges[:5], (b"qq", b"z"), *merges[6:]]}, "merge 5 joins .* b'qq' is no tok"),
        ({"merges": [*merges[:5], merges[6], merges[5], *merges[7:]]}, "but its merge makes"),
        ({"special_tokens": []}, "come of no merge and are no special_tokens"),
    ):
        whole = {"vocab": vocab, "merges": merges, "special_tokens": ["<|endoftext|>"]}
        with pytest.raises(ValueError, match=message):
            ByteBPE.from_vocab(**whole | change)
