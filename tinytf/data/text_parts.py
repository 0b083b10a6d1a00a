"""A text of any size as parts that can be encoded apart: cut where no token can span the cut."""

from pathlib import Path
from typing import BinaryIO, NamedTuple

__all__ = ["PART", "Part", "read_part", "safe_cut", "text_parts"]

PART = 1 << 22  # bytes of text in a part, about
_READ = 1 << 16
_BEFORE = frozenset(range(0x21, 0x7F))  # ASCII that is no white space


class Part(NamedTuple):
    """The bytes from `start` to `end` of a file."""

    start: int
    end: int


def text_parts(path: str | Path, part_bytes: int = PART, end: int | None = None) -> list[Part]:
    """Divide a UTF-8 file, or its first `end` bytes, into parts of about `part_bytes` bytes.

    A cut comes before a line end that follows a visible ASCII character: there the pattern of
    `tinytf.text.pretokenize` begins a new piece whatever stands around, so that the parts' ids join
    to those of the whole. A text without such a place is one part. Raises ValueError for sizes
    below 1, OSError if the file can't be read.
    """
    if part_bytes < 1:
        raise ValueError(f"part_bytes must be at least 1, got {part_bytes}")
    size = Path(path).stat().st_size if end is None else end
    parts, start = [], 0
    while start < size:
        cut = safe_cut(path, start + part_bytes, size)
        parts.append(Part(start, cut))
        start = cut
    return parts


def safe_cut(path: str | Path, place: int, size: int) -> int:
    """Find the first place from byte `place` on where the text may be cut; `size` if none is."""
    with Path(path).open("rb") as file:
        return _cut(file, max(place, 1), size)


def _cut(file: BinaryIO, place: int, size: int) -> int:
    while place < size:
        file.seek(place - 1)
        data = file.read(min(_READ, size - place + 1))
        at = data.find(b"\n", 1)
        while at != -1:
            if data[at - 1] in _BEFORE:
                return place - 1 + at
            at = data.find(b"\n", at + 1)
        place += max(len(data) - 1, 1)
    return size


def read_part(path: str | Path, part: Part) -> bytes:
    """Read the bytes of a part. Raises ValueError if the file has become shorter."""
    with Path(path).open("rb") as file:
        file.seek(part.start)
        data = file.read(part.end - part.start)
    if len(data) != part.end - part.start:
        raise ValueError(
            f"{Path(path).name} ends at byte {part.start + len(data):,}, inside the part "
            f"{part.start:,} to {part.end:,}: it has become shorter"
        )
    return data
