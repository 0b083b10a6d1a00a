"""Locks: one run writes a file at a time, and what killed ones have left is removed."""

import contextlib
import errno
import re
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from tinytf.support.files import CheckpointError, check_target, plain_words

__all__ = ["sole_writer"]

_WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}  # what a network's disk may answer


@contextlib.contextmanager
def sole_writer(path: str | Path) -> Iterator[None]:
    """Keep other processes that ask for the same from writing `path` while the block runs.

    The system lets go of the lock if the process is killed; the next one removes the temporary
    files that were left. Raises CheckpointError if another holds it, or if no file can be made
    there. Where the file system knows no locks, nobody is kept out.
    """
    target = check_target(path)
    lock = FileLock(target.with_name(f".{target.name[:50]}.lock"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise CheckpointError(
            f"another run is writing {path}: wait for its end, or choose another name"
        ) from None
    except NotImplementedError:
        pass  # so older versions of filelock say it
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise CheckpointError(f"could not write {path}: {plain_words(error)}") from error
    try:
        _remove_leftovers(target)
        yield
    finally:
        with contextlib.suppress(OSError):
            Path(lock.lock_file).unlink()  # before the lock is let go; Windows removes no open file
        lock.release()


def _remove_leftovers(target: Path) -> None:
    """Remove the temporary files of `write_atomically` whose writers were killed."""
    ours = re.compile(re.escape(f".{target.name[:50]}.") + r"\d+-\d+\.part")
    with contextlib.suppress(OSError):
        for other in list(target.parent.iterdir()):
            if ours.fullmatch(other.name):
                other.unlink()
