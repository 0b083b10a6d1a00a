"""Files of ids: equal to encoding at once, made once, checked before they are used."""

import hashlib
import json
import signal
import subprocess
import sys
import textwrap
import time

import numpy
import pytest
import torch

from tinytf.data import token_file
from tinytf.data.blocks import TextBlocks
from tinytf.data.corpus import END_OF_TEXT, encode_documents
from tinytf.data.token_file import encode_to_file, open_tokens
from tinytf.support.files import CheckpointError
from tinytf.text.bpe import train_bpe

TEXT = "".join(f"Line {i}: it's the {'cat' * (i % 3)}.\n\n  é猫 {i * i}\n" for i in range(200))


@pytest.fixture(scope="module")
def tokenizer():
    return train_bpe(TEXT, vocab_size=300, special_tokens=[END_OF_TEXT])


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text").write_bytes(TEXT.encode())
    return tmp_path / "text"


@pytest.mark.parametrize("processes", [1, 2])
def test_the_ids_are_those_of_the_whole_text(text, tokenizer, processes, tmp_path):
    out = tmp_path / "ids"
    moved = []
    bar = type("Bar", (), {"update": staticmethod(moved.append)})
    found = encode_to_file(text, tokenizer, out, None, processes, 1000, bar)
    expected = encode_documents(tokenizer, [TEXT])
    assert found.ids.dtype == torch.int16
    assert torch.equal(found.ids.long(), expected)
    assert len(moved) > 4
    assert sum(moved) == len(TEXT.encode())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ids", "ids.json", "text"]
    ours, plain = TextBlocks(found.ids, 16, 3, seed=1), TextBlocks(expected, 16, 3, seed=1)
    assert all(torch.equal(ours(i).ids_in, plain(i).ids_in) for i in range(40))


def test_the_first_bytes_alone(text, tokenizer, tmp_path):
    end = TEXT.encode().index(b"\n", 500)
    found = encode_to_file(text, tokenizer, tmp_path / "ids", end, 1, 100)
    expected = encode_documents(tokenizer, [TEXT.encode()[:end].decode()])
    assert torch.equal(found.ids.long(), expected)


def test_it_is_done_once_and_anew_for_another_text_or_tokenizer(text, tokenizer, tmp_path):
    out = tmp_path / "ids"
    encode_to_file(text, tokenizer, out, None, 1)
    born = out.stat().st_mtime_ns
    encode_to_file(text, tokenizer, out, None, 1)
    assert out.stat().st_mtime_ns == born
    other = train_bpe(TEXT, vocab_size=280, special_tokens=[END_OF_TEXT])
    found = encode_to_file(text, other, out, None, 1)
    assert torch.equal(found.ids.long(), encode_documents(other, [TEXT]))
    text.write_text("another one")
    found = encode_to_file(text, other, out, None, 1)
    assert torch.equal(found.ids.long(), encode_documents(other, ["another one"]))


def test_a_large_vocabulary_takes_four_bytes(text, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(type(tokenizer), "__len__", lambda self: 40_000)
    found = encode_to_file(text, tokenizer, tmp_path / "ids", None, 1)
    assert found.ids.dtype == torch.int32
    assert torch.equal(found.ids.long(), encode_documents(tokenizer, [TEXT]))


def test_finished_parts_are_not_done_again_and_broken_ones_are(
    text, tokenizer, tmp_path, monkeypatch
):
    out, folder = tmp_path / "ids", tmp_path / "ids.parts"
    monkeypatch.setattr(token_file, "_join", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        encode_to_file(text, tokenizer, out, None, 1, 1000)
    parts = sorted(folder.iterdir())
    times = {path: path.stat().st_mtime_ns for path in parts}
    flipped = bytearray(parts[1].read_bytes())
    flipped[-1] ^= 1
    parts[1].write_bytes(flipped)
    parts[2].write_bytes(parts[2].read_bytes()[:70])
    with pytest.raises(KeyboardInterrupt):
        encode_to_file(text, tokenizer, out, None, 1, 1000)
    again = [path for path in parts if path.stat().st_mtime_ns != times[path]]
    assert again == parts[1:3]
    monkeypatch.undo()
    found = encode_to_file(text, tokenizer, out, None, 1, 1000)
    assert torch.equal(found.ids.long(), encode_documents(tokenizer, [TEXT]))
    assert not folder.exists()


def _interrupted(*_):
    raise KeyboardInterrupt


def test_a_kill_loses_nothing(text, tokenizer, tmp_path):
    tokenizer.save(tmp_path / "bpe.json")
    code = f"""
        import time
        from tinytf.data import token_file
        from tinytf.text.bpe import ByteBPE
        write = token_file.write_atomically
        token_file.write_atomically = lambda *a: (write(*a), time.sleep(0.05))
        token_file.encode_to_file({str(text)!r}, ByteBPE.load({str(tmp_path / "bpe.json")!r}),
                                  {str(tmp_path / "ids")!r}, None, 1, 500)
        """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    folder = tmp_path / "ids.parts"
    process = subprocess.Popen([sys.executable, str(script)])
    until = time.monotonic() + 60
    while len(list(folder.glob("0*"))) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
    process.wait()
    assert len(list(folder.glob("0*"))) >= 3
    assert not (tmp_path / "ids").exists()
    found = encode_to_file(text, tokenizer, tmp_path / "ids", None, 1, 500)
    assert torch.equal(found.ids.long(), encode_documents(tokenizer, [TEXT]))


def test_a_broken_file_is_refused_and_made_anew(text, tokenizer, tmp_path):
    out, header = tmp_path / "ids", tmp_path / "ids.json"
    encode_to_file(text, tokenizer, out, None, 1)
    whole, said = out.read_bytes(), json.loads(header.read_text())
    for data, message in (
        (whole[:-2], r"ids has \d+ bytes, its header promises \d+ ids of 2 bytes"),
        (bytes([whole[0] ^ 1]) + whole[1:], "ids is damaged: its digest is"),
    ):
        out.write_bytes(data)
        with pytest.raises(CheckpointError, match=message):
            open_tokens(out, 300)
        assert torch.equal(
            encode_to_file(text, tokenizer, out, None, 1).ids.long(),
            encode_documents(tokenizer, [TEXT]),
        )
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
    text, tokenizer, tmp_path, ids, fault, monkeypatch
):
    monkeypatch.setattr(token_file, "_READ", 1 << 16)
    out, size = tmp_path / "ids", len(tokenizer)
    encode_to_file(text, tokenizer, out, None, 1)
    assert size == 300
    forge(out, ids)
    with pytest.raises(CheckpointError, match=fault):
        open_tokens(out, size)
    found = encode_to_file(text, tokenizer, out, None, 1)
    assert torch.equal(found.ids.long(), encode_documents(tokenizer, [TEXT]))
    forge(out, [0, size - 1])
    assert open_tokens(out, size).ids.tolist() == [0, size - 1]


@pytest.mark.parametrize("ids", [[0, 32_000], [-300, 5], b"abc"])
def test_a_forged_part_is_done_again(text, tokenizer, tmp_path, monkeypatch, ids):
    out, folder = tmp_path / "ids", tmp_path / "ids.parts"
    monkeypatch.setattr(token_file, "_join", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        encode_to_file(text, tokenizer, out, None, 1, 1000)
    monkeypatch.undo()
    part = sorted(folder.iterdir())[1]
    data = ids if isinstance(ids, bytes) else numpy.array(ids, "<i2").tobytes()
    part.write_bytes(part.read_bytes()[:32] + hashlib.sha256(data).digest() + data)
    found = encode_to_file(text, tokenizer, out, None, 1, 1000)
    assert torch.equal(found.ids.long(), encode_documents(tokenizer, [TEXT]))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ids", "ids is there, and no ids.json says that it was encoded here"),
        ("ids.json", "ids.json is there, and it is no header of a file of ids"),
        ("ids.parts/notes.txt", "ids.parts holds notes.txt, which no encoding has put there"),
    ],
)
def test_files_of_ones_own_are_never_overwritten_or_removed(text, tokenizer, tmp_path, name, words):
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    for content in ("my own", '["a"]', '{"format": "mine"}', ""):
        mine.write_text(content)
        with pytest.raises(CheckpointError, match=words) as caught:
            encode_to_file(text, tokenizer, tmp_path / "ids", None, 1)
        assert "move it away, or choose another name" in str(caught.value)
        assert mine.read_text() == content
        assert not [path for path in tmp_path.rglob("*") if path not in (text, mine, mine.parent)]


def test_a_file_put_among_the_parts_meanwhile_stays(text, tokenizer, tmp_path, monkeypatch):
    mine = tmp_path / "ids.parts" / "notes.txt"
    join = token_file._join
    monkeypatch.setattr(token_file, "_join", lambda *a: (mine.write_text("my own"), join(*a)))
    encode_to_file(text, tokenizer, tmp_path / "ids", None, 1, 1000)
    assert mine.read_text() == "my own"
    assert list(mine.parent.iterdir()) == [mine]


@pytest.mark.parametrize("stop", ["before the ids", "after the ids"])
def test_a_stop_between_ids_and_header_leaves_what_is_known(
    text, tokenizer, tmp_path, monkeypatch, stop
):
    """What lies there then is taken for neither whole nor somebody else's, and made anew."""
    out, write = tmp_path / "ids", token_file.write_atomically

    def stopped(path, data):
        if path == out and stop == "after the ids":
            write(path, data)
        if path == out:
            raise KeyboardInterrupt
        write(path, data)

    for words in (TEXT, TEXT + "one more line\n"):
        text.write_bytes(words.encode())
        monkeypatch.setattr(token_file, "write_atomically", stopped)
        with pytest.raises(KeyboardInterrupt):
            encode_to_file(text, tokenizer, out, None, 1)
        monkeypatch.undo()
        with pytest.raises(CheckpointError):
            open_tokens(out, 300)
        found = encode_to_file(text, tokenizer, out, None, 1)
        assert torch.equal(found.ids.long(), encode_documents(tokenizer, [words]))


def test_a_folder_in_the_way_of_a_former_name_does_not_matter(text, tokenizer, tmp_path):
    (tmp_path / "ids.joining").mkdir()
    found = encode_to_file(text, tokenizer, tmp_path / "ids", None, 1)
    assert torch.equal(found.ids.long(), encode_documents(tokenizer, [TEXT]))
    for name, words in (("else", "it is a folder"), ("more.json", "it is no header")):
        (tmp_path / name).mkdir()
        with pytest.raises(CheckpointError, match=words):
            encode_to_file(text, tokenizer, tmp_path / name.removesuffix(".json"), None, 1)
    (tmp_path / "third.parts").write_text("my own")
    with pytest.raises(CheckpointError, match="a file is where a folder should be"):
        encode_to_file(text, tokenizer, tmp_path / "third", None, 1)
    assert (tmp_path / "third.parts").read_text() == "my own"


def test_texts_that_are_wrong_are_named(tokenizer, tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"good\n" * 50 + b"\xff\n" * 50)
    with pytest.raises(ValueError, match="text is not UTF-8: invalid start byte at byte 250"):
        encode_to_file(path, tokenizer, tmp_path / "ids", None, 1, 100)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="text is empty"):
        encode_to_file(path, tokenizer, tmp_path / "ids", None, 1)
    assert not (tmp_path / "ids").exists()


def test_a_full_disk_is_said(text, tokenizer, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(token_file.os, "fsync", full)
    with pytest.raises(CheckpointError, match="the disk is full"):
        encode_to_file(text, tokenizer, tmp_path / "ids", None, 1)
    monkeypatch.undo()
    found = encode_to_file(text, tokenizer, tmp_path / "ids", None, 1)
    assert torch.equal(found.ids.long(), encode_documents(tokenizer, [TEXT]))
