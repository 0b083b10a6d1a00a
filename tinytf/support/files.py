"""Files: text read chunk by chunk, JSON, and bytes written whole or not at all."""

import codecs
import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["CheckpointError", "read_json", "read_text", "write_atomically"]


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


def read_json(path: str | Path) -> Any:
    """Read a JSON file. Raises CheckpointError if it is missing, truncated or not JSON."""
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"there is no file {path}")
    try:
        return json.loads("".join(read_text(path)))
    except ValueError as error:
        raise CheckpointError(
            f"{path.name} ({path.stat().st_size} bytes) is truncated or not JSON: {error}"
        ) from error
