"""The pieces of a text and their ids, kept as long as they may be met again."""

import contextlib
from collections.abc import Iterable, Iterator

from tinytf.text.merges import Pair, apply_merges_by_heap, apply_merges_by_rank

__all__ = ["PieceCache", "byte_ids", "surrogates_named"]

_CACHE = 1 << 16  # pieces
_SHORT = 64  # bytes; longer pieces are rare, are merged by heap, and are not kept in the cache


class PieceCache(dict[str, list[int]]):
    """The ids of pieces; one that is not there is merged when it is asked for."""

    def __init__(self, byte_ids: bytes, ranks: dict[Pair, int]) -> None:
        super().__init__()
        self.byte_ids, self.ranks = byte_ids, ranks

    def __missing__(self, piece: str) -> list[int]:
        data = piece.encode()
        ids = self.merge(data)
        if len(data) <= _SHORT:
            if len(self) >= _CACHE:
                self.clear()
            self[piece] = ids
        return ids

    def merge(self, data: bytes) -> list[int]:
        """Give the ids of one piece's bytes."""
        way = apply_merges_by_rank if len(data) <= _SHORT else apply_merges_by_heap
        return way(data.translate(self.byte_ids), self.ranks)


def byte_ids(byte_order: bytes) -> bytes:
    """Invert the order: at place b stands the id of byte b."""
    ids = bytearray(256)
    for i, byte in enumerate(byte_order):
        ids[byte] = i
    return bytes(ids)


@contextlib.contextmanager
def surrogates_named(texts: Iterable[str]) -> Iterator[None]:
    """Say which half of a character no UTF-8 can say, and where in its text."""
    try:
        yield
    except UnicodeEncodeError:
        for text in texts:
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise ValueError(
                    f"the text has a lone surrogate, {text[error.start]!r}, at position "
                    f"{error.start}: it stands for no character"
                ) from None
        raise
