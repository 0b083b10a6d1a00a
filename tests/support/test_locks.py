"""One writer of a file at a time."""

import errno

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


def test_what_killed_writers_left_is_removed_and_nothing_else(tmp_path):
    others = [".run.part", ".run.x-1.part", ".other.12345-1.part", "run.12345-1.part", "run"]
    for name in [".run.12345-1.part", ".run.6-99.part", *others]:
        (tmp_path / name).write_text("x")
    with locks.sole_writer(tmp_path / "run"):
        assert {path.name for path in tmp_path.iterdir()} == {*others, ".run.lock"}


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, None])
def test_where_the_disk_knows_no_locks_nobody_is_kept_out(tmp_path, monkeypatch, number):
    def unknown(*_, **__):
        raise OSError(number, "no locks") if number else NotImplementedError("no locks")

    monkeypatch.setattr(locks.FileLock, "acquire", unknown)
    with locks.sole_writer(tmp_path / "a"), locks.sole_writer(tmp_path / "a"):
        pass
    monkeypatch.setattr(locks.FileLock, "acquire", lambda *_, **__: (tmp_path / "none").read_text())
    with pytest.raises(CheckpointError, match="a: there is no such file"):
        locks.sole_writer(tmp_path / "a").__enter__()
