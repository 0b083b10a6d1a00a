"""Files: text read chunk by chunk, JSON, and bytes written whole or not at all."""

import codecs
import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = [
    "CheckpointError",
    "is_file",
    "is_folder",
    "naming",
    "parse_json",
    "read_json",
    "read_text",
    "write_atomically",
]

LARGEST_JSON = 1 << 26  # bytes


class CheckpointError(ValueError):
    """A file that is not what it should be: missing, truncated, foreign, or for another model."""


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write bytes to `path`, whole or not at all; folders on the way are made.

    They go to a temporary file beside it, reach the disk, and then take the name in one step: if
    the disk fills up or the process is killed, the file that was there before is still there.
    Raises CheckpointError if it could not be written.
    """
    path = Path(path)
    if path.is_dir():
        raise CheckpointError(f"could not write {path}: it is a folder; name a file in it")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        kept = "; the file that was there is untouched" if path.exists() else ""
        raise CheckpointError(f"could not write {path.name}: {error.strerror}{kept}") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def read_text(path: str | Path, chunk_bytes: int = 1 << 20) -> Iterator[str]:
    """Read a UTF-8 file chunk by chunk, with its line ends as they are.

    Raises ValueError naming the byte offset of what is not UTF-8, OSError if it can't be read.
    """
    if chunk_bytes < 1:
        raise ValueError(f"chunk_bytes must be at least 1, got {chunk_bytes}")
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset = 0
    with Path(path).open("rb") as file:
        while True:
            data = file.read(chunk_bytes)
            waiting = len(decoder.getstate()[0])
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{Path(path).name} is not UTF-8: {error.reason} at byte "
                    f"{offset - waiting + error.start:,}"
                ) from None
            if text:
                yield text
            if not data:
                return
            offset += len(data)


def is_file(path: str | Path) -> bool:
    """Say whether there is a file; a name that no file can have is none."""
    try:
        return Path(path).is_file()
    except OSError:  # too long a name, a folder that may not be looked into
        return False


def is_folder(path: str | Path) -> bool:
    """Say whether there is a folder; a name that no folder can have is none."""
    try:
        return Path(path).is_dir()
    except OSError:
        return False


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


def read_json(path: str | Path) -> Any:
    """Read a JSON file. Raises CheckpointError if it is missing, unreadable, too large or wrong."""
    path = Path(path)
    if not is_file(path):
        raise CheckpointError(f"there is no file {path}")
    try:
        size = path.stat().st_size
        if size > LARGEST_JSON:
            raise CheckpointError(f"{path.name} has {size} bytes, at most {LARGEST_JSON} are read")
        text = "".join(read_text(path))
    except OSError as error:
        raise CheckpointError(f"could not read {path}: {error.strerror}") from error
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{path.name} ({size} bytes) is not text: {error}") from error
    try:
        return parse_json(text)
    except ValueError as error:
        raise CheckpointError(
            f"{path.name} ({size} bytes) is truncated or not JSON: {error}"
        ) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{twice!r:.60} is given twice")
    return content
