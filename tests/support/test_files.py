"""Reading text in chunks."""

import os

import pytest

from tinytf.support.files import CheckpointError, read_text, try_to_write, write_atomically


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
