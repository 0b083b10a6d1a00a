"""Files of ids: equal to encoding at once, made once, checked before they are used."""

import hashlib
import itertools
import json
from types import SimpleNamespace

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.data import token_file
from tinytf.data.blocks import TextBlocks
from tinytf.data.corpus import END_OF_TEXT, encode_documents
from tinytf.data.token_file import encode_to_file, open_tokens, read_part, safe_cut
from tinytf.support.files import CheckpointError
from tinytf.text.bpe import train_bpe
from tinytf.text.pretokenize import split

TEXT = "".join(f"Line {i}: it's the {'cat' * (i % 3)}.\n\n  é猫 {i * i}\n" for i in range(200))


@pytest.fixture(scope="module")
def tokenizer():
    return train_bpe(TEXT, vocab_size=300, special_tokens=[END_OF_TEXT])


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text").write_bytes(TEXT.encode())
    return tmp_path / "text"


@pytest.fixture
def encode(text, tokenizer, tmp_path):
    """Encode the text in parts of 1,000 bytes; returns the ids, and how a bar of bytes moved.

    Whatever lay there before, the ids are those of the whole text.
    """

    def encoded(by=tokenizer, processes=1):
        moved = []
        bar = SimpleNamespace(update=moved.append)
        found = encode_to_file(text, by, tmp_path / "ids", None, processes, 1000, bar).ids
        assert torch.equal(found.long(), encode_documents(by, [text.read_bytes().decode()]))
        return found, moved

    return encoded


@pytest.fixture
def stop(encode, monkeypatch):
    """Encode, and stop once so many parts are on the disk."""

    def stopped(count):
        say, left = token_file._say, [count + 2]  # before the parts: a header, and the first id

        def saying(*arguments):
            say(*arguments)
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(token_file, "_say", saying)
            with pytest.raises(KeyboardInterrupt):
                encode()

    return stopped


@pytest.mark.parametrize("processes", [1, 2])
def test_the_ids_are_those_of_the_whole_text(encode, tokenizer, processes, tmp_path):
    ids, moved = encode(tokenizer, processes)
    assert ids.dtype == torch.int16
    assert len(moved) > 4
    assert sum(moved) == len(TEXT.encode())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ids", "ids.json", "text"]
    ours, plain = TextBlocks(ids, 16, 3, seed=1), TextBlocks(ids.long().clone(), 16, 3, seed=1)
    assert all(torch.equal(ours(i).ids_in, plain(i).ids_in) for i in range(40))


def test_the_first_bytes_alone(text, tokenizer, tmp_path):
    end = TEXT.encode().index(b"\n", 500)
    found = encode_to_file(text, tokenizer, tmp_path / "ids", end, 1, 100)
    expected = encode_documents(tokenizer, [TEXT.encode()[:end].decode()])
    assert torch.equal(found.ids.long(), expected)


def test_it_is_done_once_and_anew_for_another_text_or_tokenizer(encode, text, tmp_path):
    mapped, _ = encode()
    born = (tmp_path / "ids").stat().st_mtime_ns
    assert encode()[1] == []
    assert (tmp_path / "ids").stat().st_mtime_ns == born
    before = mapped.clone()
    other = train_bpe(TEXT, vocab_size=280, special_tokens=[END_OF_TEXT])
    encode(other)
    text.write_text("another one")
    encode(other)
    assert torch.equal(mapped, before)  # somebody may be reading it


def test_a_large_vocabulary_takes_four_bytes(encode, tokenizer, monkeypatch):
    monkeypatch.setattr(type(tokenizer), "__len__", lambda self: 40_000)
    assert encode()[0].dtype == torch.int32


@pytest.mark.parametrize("count", [-1, 0, 1, 4])
def test_what_was_encoded_before_a_stop_is_not_encoded_again(encode, stop, tmp_path, count):
    stop(count)
    out = tmp_path / "ids"
    with pytest.raises(CheckpointError, match="does not describe a whole file of ids"):
        open_tokens(out, 300)
    if out.exists():  # what a kill may leave after what the header vouches for
        out.write_bytes(out.read_bytes() + b"torn")
    _, moved = encode()
    assert sum(moved) == len(TEXT.encode())
    assert moved[0] >= 1000 * count
    assert (moved[0] == 0) == (count < 1)


@pytest.mark.parametrize("change", ["a bit", "a number", "shorter", "another text", "no file"])
def test_what_a_stop_left_is_taken_up_only_if_it_is_right(encode, stop, text, tmp_path, change):
    stop(3)
    out, header = tmp_path / "ids", tmp_path / "ids.json"
    data, said = out.read_bytes(), json.loads(header.read_text())
    if change == "a bit":
        out.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif change == "a number":
        header.write_text(json.dumps(said | {"tokens": said["tokens"] - 1}))
    elif change == "shorter":
        out.write_bytes(data[:-2])
    elif change == "another text":
        text.write_bytes(TEXT.replace("Line", "Mile").encode())
    else:
        out.unlink()
    assert encode()[1][0] == 0


def test_a_broken_file_is_refused_and_made_anew(encode, tmp_path):
    encode()
    out, header = tmp_path / "ids", tmp_path / "ids.json"
    whole, said = out.read_bytes(), json.loads(header.read_text())
    for data, message in (
        (whole[:-2], r"ids has \d+ bytes, its header promises \d+ ids of 2 bytes"),
        (bytes([whole[0] ^ 1]) + whole[1:], "ids is damaged: its digest is"),
    ):
        out.write_bytes(data)
        with pytest.raises(CheckpointError, match=message):
            open_tokens(out, 300)
        encode()
    for words in ("[]", "{}", json.dumps(said | {"format": "other"}), '{"format": '):
        header.write_text(words)
        with pytest.raises(CheckpointError):
            open_tokens(out, 300)
    out.unlink()
    header.write_text(json.dumps(said))
    with pytest.raises(CheckpointError, match="there is no file"):
        open_tokens(out, 300)


# ---- files that others have made, or forged


def forge(path, ids):
    """Put other ids into a file, and their digest into its header."""
    data = numpy.array(ids, "<i2").tobytes()
    header = path.with_name(f"{path.name}.json")
    said = json.loads(header.read_text()) | {
        "tokens": len(ids),
        "ids": hashlib.sha256(data).hexdigest(),
    }
    path.write_bytes(data)
    header.write_text(json.dumps(said))


@pytest.mark.parametrize(
    ("ids", "fault"),
    [
        ([0, 5, 32_000], "holds the id 32000, but the vocabulary has 300 tokens"),
        ([0, 300, 5], "holds the id 300, but the vocabulary has 300 tokens"),
        ([0, -300, 5], "holds the id -300, but the vocabulary has 300 tokens"),
        ([0] * 70_000 + [-1], "holds the id -1"),
    ],
)
def test_ids_outside_the_vocabulary_are_refused_and_made_anew(
    encode, tmp_path, ids, fault, monkeypatch
):
    monkeypatch.setattr(token_file, "_BLOCK", 1 << 16)
    out = tmp_path / "ids"
    encode()
    forge(out, ids)
    with pytest.raises(CheckpointError, match=fault):
        open_tokens(out, 300)
    encode()
    forge(out, [0, 299])
    assert open_tokens(out, 300).ids.tolist() == [0, 299]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ids", "ids is there, and no ids.json says that it was encoded here"),
        ("ids.json", "ids.json is there, and it is no header of a file of ids"),
    ],
)
def test_files_of_ones_own_are_never_overwritten_or_removed(text, tokenizer, tmp_path, name, words):
    mine = tmp_path / name
    for content in ("my own", '["a"]', '{"format": "mine"}', ""):
        mine.write_text(content)
        with pytest.raises(CheckpointError, match=words) as caught:
            encode_to_file(text, tokenizer, tmp_path / "ids", None, 1)
        assert "move it away, or choose another name" in str(caught.value)
        assert mine.read_text() == content
        assert not [path for path in tmp_path.rglob("*") if path not in (text, mine)]


@pytest.mark.parametrize(("name", "words"), [("ids", "a folder"), ("ids.json", "it is no header")])
def test_a_folder_in_the_way_is_named(text, tokenizer, tmp_path, name, words):
    (tmp_path / name).mkdir()
    with pytest.raises(CheckpointError, match=words):
        encode_to_file(text, tokenizer, tmp_path / "ids", None, 1)


def test_a_file_of_an_earlier_version_is_opened(encode, tmp_path):
    """Its header has the same entries, in another order."""
    encode()
    said = json.loads((tmp_path / "ids.json").read_text())
    order = ["format", "dtype", "tokenizer", "bytes", "text", "tokens", "ids"]
    assert sorted(said) == sorted(order)
    (tmp_path / "ids.json").write_text(json.dumps({name: said[name] for name in order}))
    assert encode()[1] == []


def test_texts_that_are_wrong_are_named(tokenizer, tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"good\n" * 50 + b"\xff\n" * 50)
    with pytest.raises(ValueError, match="text is not UTF-8: invalid start byte at byte 250"):
        encode_to_file(path, tokenizer, tmp_path / "ids", None, 1, 100)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="text is empty"):
        encode_to_file(path, tokenizer, tmp_path / "empty", None, 1)
    (tmp_path / "more").write_text("a text")
    with pytest.raises(ValueError, match="part_bytes must be at least 1, got 0"):
        encode_to_file(tmp_path / "more", tokenizer, tmp_path / "ids", None, 1, 0)


def test_a_full_disk_is_said(encode, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(token_file.os, "fsync", full)
        with pytest.raises(CheckpointError, match="the disk is full"):
            encode()
    encode()


# ---- a text in parts: cut where no token can span, whatever stands around

ALPHABET = "ab1'sé　\u00a0 \n\n\r\t.,猫"


@bounded
@given(st.text(ALPHABET, min_size=1, max_size=80), st.integers(1, 20))
def test_the_pieces_of_the_parts_are_those_of_the_whole(tmp_path_factory, words, part_bytes):
    path = tmp_path_factory.mktemp("parts") / "text"
    path.write_bytes(words.encode())
    cuts = [0]
    while cuts[-1] < len(words.encode()):
        cuts.append(safe_cut(path, cuts[-1] + part_bytes, len(words.encode())))
    parts = [read_part(path, *place) for place in itertools.pairwise(cuts)]
    assert "".join(parts) == words
    assert [piece for part in parts for piece in split(part)] == split(words)
    assert all(b - a >= part_bytes for a, b in itertools.pairwise(cuts[:-1]))


def test_places_to_cut_are_found(tmp_path):
    path = tmp_path / "text"
    path.write_text("one line\n" * 100)
    assert [safe_cut(path, place, 900) for place in (0, 8, 9, 891, 899, 900)] == [
        8, 8, 17, 899, 899, 900
    ]  # fmt: skip
    assert safe_cut(path, 20, 24) == 24
    path.write_bytes(b"x" * 200_000 + b"\nrest")
    assert safe_cut(path, 5, 200_005) == 200_000
    for line in ("x" * 20, "é\n" * 9, " \n" * 9, "\n" * 9, "\x7f\n" * 9):
        path.write_bytes(line.encode())
        assert safe_cut(path, 1, len(line.encode())) == len(line.encode())
    for sign in "!~":
        path.write_text(f"{sign}\n")
        assert safe_cut(path, 0, 2) == 1


def test_a_text_that_became_shorter_is_named(tmp_path):
    (tmp_path / "text").write_text("one line\n")
    with pytest.raises(ValueError, match="text ends at byte 9, inside the part 4 to 20"):
        read_part(tmp_path / "text", 4, 20)
