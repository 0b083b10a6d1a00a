"""Locks: one writer of a file at a time, and nothing left behind by one that was killed."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tinytf.support.files import CheckpointError, check_target, hold, plain_words

__all__ = ["remove_leftovers", "sole_writer"]


def remove_leftovers(path: str | Path) -> None:
    """Remove what killed processes have left of `path`; files being written are let alone."""
    target = Path(os.path.realpath(path))
    ours = re.compile(re.escape(f".{target.name[:50]}.") + r"(\d+)-\d+\.part")
    with contextlib.suppress(OSError):
        for other in list(target.parent.iterdir()):
            if ours.fullmatch(other.name):
                with contextlib.suppress(OSError):
                    with other.open("r+b") as file:
                        dead = hold(file)
                    if dead:
                        other.unlink()


@contextlib.contextmanager
def sole_writer(path: str | Path) -> Iterator[None]:
    """Keep other processes that ask for the same from writing `path` while the block runs.

    The system lets go of the lock if the process is killed. Raises CheckpointError if another holds
    it, or if no file can be made there. Where the file system knows no locks, nobody is kept out.
    """
    target = check_target(path)
    lock = target.with_name(f".{target.name[:50]}.lock")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = _opened_and_held(lock)
    except OSError as error:
        raise CheckpointError(f"could not write {path}: {plain_words(error)}") from error
    if file is None:
        raise CheckpointError(
            f"another run is writing {path}: wait for its end, or choose another name"
        )
    try:
        remove_leftovers(target)
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()  # before the lock is let go; Windows removes no open file
        file.close()
        with contextlib.suppress(OSError):
            if os.name == "nt":
                lock.unlink()


def _opened_and_held(lock: Path) -> BinaryIO | None:
    while True:
        file = lock.open("ab")
        if not hold(file):
            file.close()
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(lock)):
                return file
        file.close()  # its last holder removed it while we were opening it
