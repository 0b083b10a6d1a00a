"""Tokenizer files in GPT-2's layout."""

import json
import os

import pytest
from tokenizer_support import STRANGE
from tokenizers import Tokenizer, models, pre_tokenizers

from tinytf.support import files
from tinytf.support.files import CheckpointError
from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.text.gpt2_files import GPT2_BYTE_ORDER, _read_rows, from_gpt2, to_gpt2


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

    for said, message in (
        (vocab | {"!": 1}, "357 tokens have 356 ids"),
        (vocab | {"<x>": 999}, "the ids must run from 0, 256 bytes first"),
        ([1, 2], "vocab.json is JSON, but no vocabulary"),
        (vocab | {"<x>": len(vocab)}, r"vocab.json and merges.txt: .*b'<x>'\] come of no merge"),
        ({token: (i + 1) % len(vocab) for token, i in vocab.items()}, "come of no merge"),
    ):
        files[0].write_text(json.dumps(said))
        with pytest.raises(CheckpointError, match=message):
            from_gpt2(*files)
    other = vocab | {"!": 1, '"': 0}  # bytes in another order are a vocabulary too
    files[0].write_text(json.dumps(other))
    assert from_gpt2(*files).encode('!"') == [1, 0]
    for names in (["<x>"], ["éé", "猫"]):  # written as they are, and not by their bytes
        files[0].write_text(json.dumps(vocab | {t: len(vocab) + i for i, t in enumerate(names)}))
        named = from_gpt2(*files, special_tokens=["<|endoftext|>", *names, "<none>"])
        assert named.special_tokens == ("<|endoftext|>", *names)
        assert named.encode(names[0], "all") == [len(vocab)]
    for row, message in (("x yy", "b'yy' is no token"), ("x", "merge 0, 'x', joins no two tok")):
        files[1].write_text(f"{row}\n")
        with pytest.raises(CheckpointError, match=message):
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
    with pytest.raises(CheckpointError, match=r"\[b'at', b'he', .*come of no merge"):
        from_gpt2(folder / "vocab.json", folder / "merges.txt")


def test_files_that_are_not_there_or_are_no_json_are_named(tmp_path):
    for text in ("[" * 100_000, '{"a": 1, "a": 2}', '{"a": "1"}', '{"a": 1.5}', '{"\\ud800": 0}'):
        (tmp_path / "vocab.json").write_text(text)
        (tmp_path / "merges.txt").write_text("")
        with pytest.raises(CheckpointError):
            from_gpt2(tmp_path / "vocab.json", tmp_path / "merges.txt")
        with pytest.raises(CheckpointError):
            ByteBPE.load(tmp_path / "vocab.json")
    (tmp_path / "vocab.json").write_text(json.dumps(to_gpt2(ByteBPE([]))[0]))
    with pytest.raises(CheckpointError, match=r"there is no file .*none"):
        from_gpt2(tmp_path / "vocab.json", tmp_path / "none")
    (tmp_path / "merges.txt").write_bytes(b"\xff")
    with pytest.raises(CheckpointError, match="is not UTF-8"):
        from_gpt2(tmp_path / "vocab.json", tmp_path / "merges.txt")


@pytest.mark.skipif(os.name == "nt", reason="devices as Unix has them")
def test_merges_that_are_no_file_or_too_large_are_not_opened(gpt2_files, tmp_path, monkeypatch):
    (tmp_path / "vocab.json").write_text(gpt2_files[1])
    merges = tmp_path / "merges.txt"
    for make in (
        lambda: os.mkfifo(merges),
        lambda: merges.symlink_to("/dev/zero"),
        merges.mkdir,
    ):
        make()
        monkeypatch.setattr(files, "read_text", lambda path: pytest.fail(f"{path} was opened"))
        with pytest.raises(CheckpointError, match=r"there is no file .*merges\.txt"):
            _read_rows(merges)
        monkeypatch.undo()
        merges.rmdir() if merges.is_dir() else merges.unlink()
    with merges.open("wb") as file:
        file.truncate((1 << 26) + 1)
    with pytest.raises(CheckpointError, match=r"merges.txt has 67108865 bytes, at most 67108864"):
        from_gpt2(tmp_path / "vocab.json", merges)
