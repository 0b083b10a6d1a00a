"""Reading text in chunks, and bytes written whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from tinytf.support import files
from tinytf.support.files import (
    CheckpointError,
    read_json,
    read_text,
    shortened,
    try_to_write,
    write_atomically,
)


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


@pytest.mark.skipif(os.name == "nt", reason="links as Unix has them")
def test_a_circle_of_links_is_named(tmp_path):
    os.symlink("b", tmp_path / "a")
    os.symlink("a", tmp_path / "b")
    with pytest.raises(CheckpointError, match="it is a link to itself"):
        write_atomically(tmp_path / "a", b"x")
    with pytest.raises(CheckpointError, match="it is a link to itself"):
        try_to_write(tmp_path / "a")


def failing(monkeypatch, module, name, number, times):
    """Let a function fail so many times; returns the list of its calls."""
    real, calls = getattr(module, name), []

    def call(*arguments, **named):
        calls.append(arguments)
        if len(calls) <= times:
            raise OSError(number, os.strerror(number))
        return real(*arguments, **named)

    monkeypatch.setattr(module, name, call)
    return calls


@pytest.mark.parametrize("name", ["replace", "fsync"])
@pytest.mark.parametrize(
    ("number", "times", "tries"),
    [(errno.EBUSY, 2, 3), (errno.ESTALE, 1, 2), (errno.EBUSY, 9, 3), (errno.ENOSPC, 9, 1)],
)
def test_a_disk_that_is_busy_is_tried_again(tmp_path, monkeypatch, number, name, times, tries):
    monkeypatch.setattr(files, "PAUSES", (0, 0))
    (tmp_path / "a").write_bytes(b"old")
    calls = failing(monkeypatch, os, name, number, times)
    if times < 9:
        write_atomically(tmp_path / "a", b"new")
    else:
        with pytest.raises(CheckpointError, match="the file that was there is untouched"):
            write_atomically(tmp_path / "a", b"new")
    assert len(calls) == tries
    assert (tmp_path / "a").read_bytes() == (b"new" if times < 9 else b"old")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP])
def test_a_file_system_without_modes_is_written_to(tmp_path, monkeypatch, number):
    (tmp_path / "a").write_bytes(b"old")
    failing(monkeypatch, Path, "chmod", number, 9)
    write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_json_file_larger_than_asked_for_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text("[1, 2]")
    assert read_json(tmp_path / "a.json", 6) == [1, 2]
    (tmp_path / "b.json").write_text('{"a": {"b": 1}}')
    assert read_json(tmp_path / "b.json") == {"a": {"b": 1}}
    monkeypatch.setattr(files, "read_text", None)
    with pytest.raises(CheckpointError, match=r"a\.json has 6 bytes, at most 5 are read"):
        read_json(tmp_path / "a.json", 5)


def test_names_are_quoted_up_to_a_length():
    assert shortened("decoder.layers.0.weight") == "decoder.layers.0.weight"
    assert shortened("a" * 80) == "a" * 80
    assert shortened("a" * 50_000 + "b" * 50_000) == "a" * 40 + "…" + "b" * 39


@pytest.mark.skipif(os.name == "nt", reason="owners and modes as Unix has them")
def test_a_file_that_is_replaced_keeps_its_mode_and_owner(tmp_path, monkeypatch):
    owners = []
    monkeypatch.setattr(os, "chown", lambda path, *owner: owners.append(owner))
    for mode in (None, 0o640):
        if mode:
            (tmp_path / "a").chmod(mode)
        write_atomically(tmp_path / "a", b"x")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    assert owners == [(os.getuid(), os.getgid())]
