"""One writer of a file at a time."""

import pytest

from tinytf.support import locks
from tinytf.support.files import CheckpointError, write_atomically


def test_a_lock_is_let_go_of(tmp_path):
    for _ in range(2):
        with locks.sole_writer(tmp_path / "a"), locks.sole_writer(tmp_path / "b"):
            assert sorted(path.name for path in tmp_path.iterdir()) == [".a.lock", ".b.lock"]
            with pytest.raises(CheckpointError, match="another run is writing"):
                locks.sole_writer(tmp_path / "a").__enter__()
    assert sorted(path.name for path in tmp_path.iterdir()) == []


def test_a_name_as_long_as_the_disk_allows_can_be_written(tmp_path):
    for name in ("x" * 255, "猫" * 85):
        with locks.sole_writer(tmp_path / name):
            write_atomically(tmp_path / name, b"x")
        assert (tmp_path / name).read_bytes() == b"x"
