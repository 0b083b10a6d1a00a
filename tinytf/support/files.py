"""Files: text read chunk by chunk, JSON, and bytes written whole or not at all."""

import codecs
import contextlib
import errno
import json
import os
import stat
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = [
    "CheckpointError",
    "check_target",
    "naming",
    "parse_json",
    "plain_words",
    "read_json",
    "read_small",
    "read_text",
    "shortened",
    "try_to_write",
    "write_atomically",
]

LARGEST_JSON = 1 << 26  # bytes
PAUSES = (0.1, 1.0)  # seconds before writing is tried again
PASSING = {errno.EBUSY, errno.ESTALE}  # what a network's disk may say now, and not a second later


class CheckpointError(ValueError):
    """A file that is not what it should be: missing, truncated, foreign, or for another model."""


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write bytes to `path`, whole or not at all; folders on the way are made.

    They go to a temporary file beside it, reach the disk, and then take the name in one step: if
    the disk fills up or the process is killed, the file that was there before is still there. A
    link is followed, and a file that is replaced keeps its mode and owner. A disk that is busy gets
    another try or two. Raises CheckpointError if it could not be written.
    """
    _write(path, data)


def try_to_write(path: str | Path) -> None:
    """Raise the CheckpointError that `write_atomically` would, before there is anything to lose."""
    _write(path, b"tried", keep=False)


def _write(path: str | Path, data: bytes, keep: bool = True) -> None:
    target = check_target(path)
    for pause in (*PAUSES, None):
        try:
            return _write_once(target, data, keep)
        except OSError as error:
            if pause is not None and error.errno in PASSING:
                time.sleep(pause)
                continue
            kept = "; the file that was there is untouched" if os.path.exists(target) else ""
            raise CheckpointError(f"could not write {path}: {plain_words(error)}{kept}") from error


def _write_once(target: Path, data: bytes, keep: bool) -> None:
    """Write a temporary file, its name short enough for any disk, and let it take the name."""
    name = f".{target.name[:50]}.{os.getpid()}-{threading.get_ident()}.part"
    part = target.with_name(name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            _keep_mode(target, part)
            os.fsync(file.fileno())
        if keep:
            os.replace(part, target)
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def check_target(path: str | Path) -> Path:
    """Return the file that is meant, links followed; CheckpointError if it can't be replaced."""
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise CheckpointError(f"could not write {path}: it is a folder; name a file in it")
        if target.is_symlink():
            raise CheckpointError(f"could not write {path}: it is a link to itself")
        if target.exists() and not target.is_file():
            raise CheckpointError(f"could not write {path}: it is a device, not a file")
        if target.exists() and not os.access(target, os.W_OK):
            raise CheckpointError(f"could not write {path}: the file that is there is read-only")
    except OSError as error:
        raise CheckpointError(f"could not write {path}: {plain_words(error)}") from error
    return target


def _keep_mode(target: Path, part: Path) -> None:
    if not target.exists():
        return
    there = target.stat()
    with contextlib.suppress(OSError, AttributeError):  # Windows has no owners, and some may not
        os.chown(part, there.st_uid, there.st_gid)
    with contextlib.suppress(OSError):  # nor has every file system modes
        part.chmod(stat.S_IMODE(there.st_mode))


_WORDS = {
    errno.EACCES: "there is no permission",
    errno.EEXIST: "a file is where a folder should be",
    errno.EISDIR: "it is a folder",
    errno.ELOOP: "it is a link to itself",
    errno.ENAMETOOLONG: "its name is too long",
    errno.ENOENT: "there is no such file",
    errno.ENOSPC: "the disk is full",
    errno.ENOTDIR: "a file is where a folder should be",
    errno.EPERM: "it is not permitted",
    errno.EROFS: "the disk is read-only",
}


def plain_words(error: OSError) -> str:
    """Say what an OSError means, without its number."""
    return _WORDS.get(error.errno, error.strerror or str(error))


def read_text(path: str | Path, chunk_bytes: int = 1 << 20) -> Iterator[str]:
    """Read a UTF-8 file chunk by chunk, with its line ends as they are.

    Raises ValueError naming the byte offset of what is not UTF-8, OSError if it can't be read.
    """
    if chunk_bytes < 1:
        raise ValueError(f"chunk_bytes must be at least 1, got {chunk_bytes}")
    decoder = codecs.getincrementaldecoder("utf-8")()
    with Path(path).open("rb") as file:
        while True:
            data = file.read(chunk_bytes)
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                place = file.tell() - len(error.object) + error.start
                raise ValueError(
                    f"{Path(path).name} is not UTF-8: {error.reason} at byte {place:,}"
                ) from None
            yield text
            if not data:
                return


@contextlib.contextmanager
def naming(where: str | Path) -> Iterator[None]:
    """Put the name of a file in front of any CheckpointError that is raised inside."""
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(f"{where}: {error}") from error


def parse_json(text: str) -> Any:
    """Read JSON in which no object names an entry twice. Raises ValueError for all else."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json(path: str | Path, most: int = LARGEST_JSON) -> Any:
    """Read a JSON file of at most so many bytes.

    Raises CheckpointError if it is missing, unreadable, too large or wrong.
    """
    path, text = Path(path), read_small(path, most)
    try:
        return parse_json(text)
    except ValueError as error:
        raise CheckpointError(
            f"{path.name} ({path.stat().st_size} bytes) is truncated or not JSON: {error}"
        ) from error


def read_small(path: str | Path, most: int = LARGEST_JSON) -> str:
    """Read a UTF-8 file of at most so many bytes, whole; pipes and devices are not opened.

    Raises CheckpointError if it is missing, unreadable, too large or not UTF-8.
    """
    path = Path(path)
    if not os.path.isfile(path):
        raise CheckpointError(f"there is no file {path}")
    try:
        size = path.stat().st_size
        if size > most:
            raise CheckpointError(f"{path.name} has {size} bytes, at most {most} are read")
        return "".join(read_text(path))
    except OSError as error:
        raise CheckpointError(f"could not read {path}: {plain_words(error)}") from error
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{path.name} ({size} bytes) is not text: {error}") from error


def shortened(name: str, length: int = 80) -> str:
    """Quote a name that comes from a file: what is too long loses its middle."""
    if len(name) <= length:
        return name
    return f"{name[: length // 2]}…{name[-(length - 1 - length // 2) :]}"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{twice!r:.60} is given twice")
    return content
