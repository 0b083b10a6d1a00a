"""Byte-level BPE: against Hugging Face's, by its properties, and on what must be refused."""

import json
import random
import tracemalloc
import unicodedata
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import bounded
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from tinytf.data.manual import manual_text
from tinytf.support.files import CheckpointError, read_text
from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.text.gpt2_files import GPT2_BYTE_ORDER, from_gpt2, to_gpt2
from tinytf.text.merges import (
    apply_merges,
    apply_merges_by_heap,
    apply_merges_by_rank,
    count_pairs,
    learn_merges,
    merge_pair,
)
from tinytf.text.pretokenize import split, split_chunks

STRANGE = [
    "它太累了，所以没有过马路。 动物动物",
    "naïve café, Ελληνικά, кириллица, العربية, हिन्दी",
    "👩‍👩‍👧‍👦 🇨🇳 👍🏽 ok😀ok",
    "\x00\x01\x1b[0m\x1c\x1d\x1e\x1f\x7f\x85\xa0\u200b\u2028\ufeff end",
    "don't we'll they've I'm he'd it's you're 'tis DON'T ''s 'x",
    "    indented\n\n\tdef f(x):\r\n        return x**2  # 3.14159 \n ",
    "   ",
    " \n \n ",
    "½ ² ٣ Ⅳ 一二三 100000",
    "e\u0301 = é",
    "a" * 30,
]


@pytest.fixture(scope="module")
def manual():
    return manual_text()


@pytest.fixture(scope="module")
def bpe(manual):
    return train_bpe(manual, 600, special_tokens=["<|end|>"])


def huggingface(bpe):
    """Their byte-level BPE with our merges and the same pre-tokeniser."""
    vocab, merges = to_gpt2(bpe)
    theirs = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    theirs.decoder = decoders.ByteLevel()
    return theirs


@pytest.fixture(scope="module")
def theirs(bpe):
    return huggingface(bpe)


# of Unicode 3.2, which Python keeps: about younger characters libraries differ by their age
OLD = unicodedata.ucd_3_2_0
CHARACTERS = [c for c in map(chr, range(0x110000)) if OLD.category(c) not in ("Cn", "Cs", "Co")]

text_of_all_kinds = st.one_of(
    st.text(CHARACTERS, max_size=40),
    st.text("ab 's\nl19.é猫😀\t", max_size=40),  # where the pattern's rules meet
)


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


def test_reads_files_in_gpt2_layout(manual, tmp_path):
    made = train_bpe(manual[:50_000], 100, None, ["<|endoftext|>"], GPT2_BYTE_ORDER)
    vocab, merges = to_gpt2(made)
    files = tmp_path / "vocab.json", tmp_path / "merges.txt"
    files[0].write_text(json.dumps(vocab))
    rows = "\n".join(map(" ".join, merges))
    files[1].write_bytes(f"#version: 0.2\n{rows}\n".replace("\n", "\r\n").encode())
    assert to_gpt2(from_gpt2(*files)) == (vocab, merges)  # from Windows
    files[1].write_bytes(f"#version: 0.2\n{rows}\n".encode())
    ours = from_gpt2(*files)
    theirs = Tokenizer(models.BPE.from_file(*map(str, files)))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    for text in (manual[:20_000], *STRANGE):
        assert ours.encode(text) == theirs.encode(text).ids
    assert (vocab["!"], vocab["Ā"], len(vocab)) == (0, 188, 256 + 100 + 1)  # GPT-2's own layout
    assert ours.special_id("<|endoftext|>") == len(vocab) - 1
    assert to_gpt2(ours) == (vocab, merges)

    files[0].write_text(json.dumps(vocab | {"!": 1, '"': 0}))
    with pytest.raises(CheckpointError, match=r"token '!' has id 1 .* it is 0"):
        from_gpt2(*files)
    files[0].write_text(json.dumps(vocab | {"<x>": 999}))
    with pytest.raises(CheckpointError, match=r"ids of \['<\|endoftext\|>', '<x>'\] do not follow"):
        from_gpt2(*files, special_tokens=["<x>", "<|endoftext|>"])
    files[0].write_text("[1, 2]")
    with pytest.raises(CheckpointError, match=r"vocab.json is JSON, but no vocabulary"):
        from_gpt2(*files)
    files[0].write_text(json.dumps(vocab | {"<x>": len(vocab)}))
    with pytest.raises(CheckpointError, match="no merge makes '<x>', and special_tokens does not"):
        from_gpt2(*files)
    named = from_gpt2(*files, special_tokens=["<|endoftext|>", "<x>"])
    assert named.special_tokens == ("<|endoftext|>", "<x>")
    files[0].write_text("{}")
    files[1].write_text("x yy\n")
    with pytest.raises(CheckpointError, match="merge 0, 'x yy', joins no two tokens"):
        from_gpt2(*files)
    with pytest.raises(ValueError, match="special token 'a' is written like the token 97"):
        to_gpt2(ByteBPE([], ["a"]))


@pytest.fixture(scope="module")
def gpt2_files(tmp_path_factory):
    """A small vocabulary of GPT-2's layout in its two files, and their texts."""
    text = "the cat sat on the mat and the dog " * 50
    made = train_bpe(text, 20, None, ["<|endoftext|>"], GPT2_BYTE_ORDER)
    vocab, merges = to_gpt2(made)
    folder = tmp_path_factory.mktemp("gpt2")
    return folder, json.dumps(vocab), "#version: 0.2\n" + "\n".join(map(" ".join, merges)) + "\n"


def test_merges_cut_anywhere_are_refused(gpt2_files):
    """Only the last line's end may be missing; what no merge makes is named."""
    folder, vocab, merges = gpt2_files
    (folder / "vocab.json").write_text(vocab)
    for cut in range(len(merges) - 1):
        (folder / "merges.txt").write_text(merges[:cut])
        with pytest.raises(CheckpointError) as caught:
            from_gpt2(folder / "vocab.json", folder / "merges.txt")
        assert "merges.txt" in str(caught.value)
    (folder / "merges.txt").write_text(merges[:-1])
    assert len(from_gpt2(folder / "vocab.json", folder / "merges.txt").merges) == 18
    (folder / "merges.txt").write_text("")
    with pytest.raises(CheckpointError, match=r"275 tokens, .* makes 0: no merge makes .* and 14"):
        from_gpt2(folder / "vocab.json", folder / "merges.txt")


@pytest.mark.parametrize("seed", range(3))
def test_tokenizer_files_broken_at_random_are_refused_or_read(gpt2_files, seed):
    folder, vocab, merges = gpt2_files
    own = folder / "own.json"
    ByteBPE([(97, 98), (256, 99)], ["<x>"]).save(own)
    whole = {own: own.read_bytes(), folder / "vocab.json": vocab.encode(),
             folder / "merges.txt": merges.encode()}  # fmt: skip
    draw, faults = random.Random(seed), 0
    for _ in range(150):
        for path, data in whole.items():
            path.write_bytes(data)
        path = draw.choice(list(whole))
        data = bytearray(whole[path])
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(data))
            if draw.random() < 0.3:
                del data[place : place + draw.randint(1, 30)]
            else:
                data[place] = draw.choice(b'09"[]{}:,-.eE\\u \n\xff\x00')
        path.write_bytes(bytes(data))
        try:
            if path == own:
                ByteBPE.load(own)
            else:
                from_gpt2(folder / "vocab.json", folder / "merges.txt")
        except CheckpointError:
            faults += 1
    assert faults > 100


def test_files_that_are_not_there_or_are_no_json_are_named(tmp_path):
    for text in ("[" * 100_000, '{"a": 1, "a": 2}', '{"a": "1"}', '{"a": 1.5}', '{"\\ud800": 0}'):
        (tmp_path / "vocab.json").write_text(text)
        (tmp_path / "merges.txt").write_text("")
        with pytest.raises(CheckpointError):
            from_gpt2(tmp_path / "vocab.json", tmp_path / "merges.txt")
        with pytest.raises(CheckpointError):
            ByteBPE.load(tmp_path / "vocab.json")
    (tmp_path / "vocab.json").write_text(json.dumps(to_gpt2(ByteBPE([]))[0]))
    with pytest.raises(CheckpointError, match="could not read none: No such file"):
        from_gpt2(tmp_path / "vocab.json", tmp_path / "none")
    (tmp_path / "merges.txt").write_bytes(b"\xff")
    with pytest.raises(CheckpointError, match="is not UTF-8"):
        from_gpt2(tmp_path / "vocab.json", tmp_path / "merges.txt")


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


# vocabularies made elsewhere


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


# the merges


def naive_merges(words, num_merges):
    """Count everything anew for every merge."""
    words, merges = {tuple(w): n for w, n in words.items()}, []
    while len(merges) < num_merges and (pairs := count_pairs(words)):
        pair = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merged = Counter()
        for word, times in words.items():
            merged[tuple(merge_pair(word, pair, 256 + len(merges)))] += times
        words = merged
        merges.append(pair)
    return merges


def test_incremental_learning_equals_counting_anew(manual):
    words = Counter(tuple(piece.encode()) for piece in split(manual[:20_000]))
    assert learn_merges(words, 100) == naive_merges(words, 100)


@bounded
@given(st.dictionaries(st.text("ab", min_size=1, max_size=9), st.integers(1, 5), min_size=1))
def test_incremental_learning_where_pairs_overlap(words):
    words = {tuple(word.encode()): times for word, times in words.items()}
    assert learn_merges(words, 20) == naive_merges(words, 20)


def test_merge_goes_from_left_to_right():
    assert merge_pair([1, 1, 1], (1, 1), 9) == [9, 1]
    assert merge_pair([1, 1, 1, 1, 2, 1], (1, 1), 9) == [9, 9, 2, 1]
    assert merge_pair([], (1, 1), 9) == []
    assert count_pairs({(1, 1, 1): 2, (1, 2): 3}) == {(1, 1): 4, (1, 2): 3}


def test_ties_go_to_the_smaller_pair():
    assert learn_merges({(5, 9): 1, (7, 2): 1, (5, 8): 1}, 9) == [(5, 8), (5, 9), (7, 2)]


@bounded
@given(st.text("abc", max_size=60))
def test_many_ids_merge_like_few(text):
    learned = learn_merges({tuple(b"abcabaabbcccaab"): 1}, 9)
    merges = {pair: 256 + i for i, pair in enumerate(learned)}
    expected = apply_merges(text.encode(), merges)
    assert apply_merges_by_rank(text.encode(), merges) == expected
    assert apply_merges_by_heap(text.encode(), merges) == expected


def test_the_longest_short_piece_and_the_shortest_long_one(bpe):
    for size in range(60, 70):
        word = "".join(random.Random(size).choices("etaoin", k=size))
        assert bpe.encode(word) == apply_merges(word.encode(), bpe._cache.ranks)


def test_a_very_long_piece(bpe):
    word = "".join(random.Random(0).choices("etaoin", k=200_000))
    assert bpe.decode(bpe.encode(word)) == word  # quadratic time would take minutes


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


@bounded
@given(
    text=st.text("<a>|b ", max_size=30),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=9),
    special=st.lists(st.text("<a>|", min_size=1, max_size=4), min_size=1, max_size=4, unique=True),
)
def test_special_tokens_are_found_wherever_chunks_are_cut(text, sizes, special):
    chunks, place = [], 0
    while place < len(text):
        chunks.append(text[place : place + sizes[len(chunks) % len(sizes)]])
        place += len(chunks[-1])
    tokenizer = ByteBPE([(ord("<"), ord("a")), (256, ord(">"))], special)
    whole = tokenizer.encode(text, allowed_special="all")
    assert [i for ids in tokenizer.encode_chunks(chunks, "all") for i in ids] == whole
    assert tokenizer.decode(whole) == text
    plain = [i for ids in tokenizer.encode_chunks(chunks) for i in ids]
    assert plain == tokenizer.encode(text)


def test_a_file_is_encoded_with_its_special_tokens(bpe, tmp_path):
    text = "one <|end|>two<|end|><|end|> <|end three"
    (tmp_path / "a.txt").write_text(text)
    for size in (1, 3, 100):
        found = bpe.encode_file(tmp_path / "a.txt", size, allowed_special=["<|end|>"])
        assert [i for ids in found for i in ids] == bpe.encode(text, allowed_special="all")
    with pytest.raises(ValueError, match="'<x>' is not one of the special tokens"):
        list(bpe.encode_chunks(["a"], ["<x>"]))
    with pytest.raises(TypeError, match='allowed_special is a list or "all"'):
        list(bpe.encode_chunks(["a"], "<|end|>"))


def test_training_is_cut_at_special_tokens():
    """Nothing is learned of a special token's characters, nor of what stands on its two sides."""
    parts = ["the cat", "sat on", "the mat", ""] * 9
    text = "<|end|>".join(parts)
    learned = train_bpe(text, 30, special_tokens=["<|end|>"])
    words = Counter(tuple(p.encode()) for part in parts for p in split(part))
    assert learned.merges == learn_merges(words, 30)
    chunks = (text[i : i + 5] for i in range(0, len(text), 5))
    assert train_bpe(chunks, 30, special_tokens=["<|end|>"]).merges == learned.merges
    assert train_bpe(text, 30).merges != learned.merges
    with pytest.raises(TypeError, match="chunks of text are strings, got bytes"):
        train_bpe([b"abc"], 3, special_tokens=["<x>"])


# chunks, files, memory


@bounded
@given(text=text_of_all_kinds, sizes=st.lists(st.integers(1, 5), min_size=1, max_size=9))
def test_chunks_cut_like_the_whole(text, sizes):
    chunks, place = [], 0
    while place < len(text):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(text[place : place + size])
        place += size
    assert [piece for pieces in split_chunks(chunks) for piece in pieces] == split(text)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_chunks_may_cut_a_contraction(size):
    for text in STRANGE:
        chunks = [text[i : i + size] for i in range(0, len(text), size)]
        assert [piece for pieces in split_chunks(chunks) for piece in pieces] == split(text)


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


def test_cache_is_bounded(monkeypatch):
    monkeypatch.setattr("tinytf.text.pieces._CACHE", 10)
    bpe = ByteBPE([(ord("a"), ord("b"))])
    text = " ".join(f"ab{chr(97 + i)}{chr(97 + j)}" for i in range(26) for j in range(26))
    assert bpe.decode(bpe.encode(text)) == text
    assert len(bpe._cache) <= 10
    bpe.encode("x" * 1000)
    assert "x" * 1000 not in bpe._cache


# files


def test_saves_and_loads(bpe, manual, tmp_path):
    for made in (bpe, ByteBPE([(0, 1)], ["猫"], GPT2_BYTE_ORDER)):
        made.save(tmp_path / "new" / "bpe.json")
        again = ByteBPE.load(tmp_path / "new" / "bpe.json")
        assert again.encode(manual[:5000]) == made.encode(manual[:5000])
        assert (again.merges, again.special_tokens) == (made.merges, made.special_tokens)
        assert again.byte_order == made.byte_order
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["bpe.json"]


def test_a_failed_save_keeps_the_old_file(bpe, tmp_path, monkeypatch):
    path = tmp_path / "bpe.json"
    bpe.save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tinytf.support.files.os.fsync", full)
    with pytest.raises(CheckpointError, match=r"could not write bpe.json: No space left .* untou"):
        ByteBPE([]).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["bpe.json"]


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


def test_refuses_bad_training(tmp_path):
    with pytest.raises(ValueError, match="the text to train on is empty"):
        train_bpe("", 5)
    with pytest.raises(ValueError, match="vocab_size=255 is less than the 256 bytes and 0 special"):
        train_bpe("abc", vocab_size=255)
    with pytest.raises(ValueError, match="vocab_size=256 is less than the 256 bytes and 1 special"):
        train_bpe("abc", vocab_size=256, special_tokens=["<x>"])
    with pytest.raises(ValueError, match="one of them: got num_merges=None, vocab_size=None"):
        train_bpe("abc")
    with pytest.raises(ValueError, match="one of them: got num_merges=3, vocab_size=300"):
        train_bpe("abc", 3, vocab_size=300)
    with pytest.raises(ValueError, match="num_merges must be at least 0, got -1"):
        train_bpe("abc", -1)
    with pytest.raises(ValueError, match="special token '<x>' is given twice"):
        train_bpe("abc", 3, special_tokens=["<x>", "<x>"])
    with pytest.raises(TypeError, match="chunks of text are strings, got bytes"):
        train_bpe([b"abc"], 3)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 noir")
    with pytest.raises(ValueError, match=r"latin.txt is not UTF-8: .* at byte 3"):
        train_bpe(tmp_path / "latin.txt", 3)
    assert len(train_bpe("ab ab", vocab_size=1000)) == 258  # it runs out of pairs
    assert train_bpe("ab ab", vocab_size=258, special_tokens=["<x>"]).merges == [(97, 98)]


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7, 100])
def test_reading_says_where_the_bytes_are_wrong(tmp_path, chunk_bytes):
    path = tmp_path / "a.txt"
    path.write_bytes("猫猫".encode() + b"\r\n\xff x")
    with pytest.raises(ValueError, match="invalid start byte at byte 8"):
        list(read_text(path, chunk_bytes))
    path.write_bytes("猫猫".encode()[:-1])
    with pytest.raises(ValueError, match="unexpected end of data at byte 3"):
        list(read_text(path, chunk_bytes))
    with pytest.raises(ValueError, match="chunk_bytes must be at least 1, got 0"):
        list(read_text(path, 0))
    path.write_bytes("猫\r\n\n猫".encode())
    assert "".join(read_text(path, chunk_bytes)) == "猫\r\n\n猫"


def test_refuses_bad_input(bpe):
    with pytest.raises(ValueError, match=r"id 857 at position 1 is outside .* of 857 \(0..856\)"):
        bpe.decode([0, 857])
    with pytest.raises(ValueError, match="id -1 at position 0"):
        bpe.decode([-1])
    with pytest.raises(ValueError, match="id 900"):
        bpe.token_bytes(900)
    with pytest.raises(TypeError, match="float"):
        bpe.decode([1.5])
    with pytest.raises(TypeError, match="encode takes a string, got bytes; encode_bytes takes"):
        bpe.encode(b"abc")
    lone = r"lone surrogate, '\\ud800', at position 4: it stands for no character"
    with pytest.raises(ValueError, match=lone):
        bpe.encode("abc \ud800")
    with pytest.raises(ValueError, match=lone):
        bpe.encode("abc \ud800<|end|>", allowed_special="all")
    with pytest.raises(ValueError, match="lone surrogate"):
        list(bpe.encode_chunks(["a", "b \udfff c", "d"]))
    with pytest.raises(ValueError, match="lone surrogate"):
        train_bpe("abc \ud800", 3)
    with pytest.raises(ValueError, match="lone surrogate"):
        ByteBPE([], ["\ud800"])
    assert bpe.decode(bpe.encode("a\0b")) == "a\0b"  # a character like others
    with pytest.raises(TypeError, match="special_tokens is a list of strings"):
        ByteBPE([], "<x>")
    with pytest.raises(ValueError, match="a special token is a string that is not empty, got ''"):
        ByteBPE([], [""])
    with pytest.raises(ValueError, match=r"merge 1 joins \(1, 257\), but the ids before it are"):
        ByteBPE([(0, 1), (1, 257)])
    with pytest.raises(ValueError, match="merge 1 makes b'ab', which is a token already"):
        ByteBPE([(97, 98), (97, 98)])
    assert bpe.encode("") == [] == bpe.encode_bytes(b"")
    assert bpe.decode([]) == ""
