"""Byte-level BPE as plainly as it can be said; `bpe` has the quick one, and tests hold it to this.

Sources: Sennrich et al. 2016, section 3.2 (merges); Radford et al. 2019, section 2.2 (of bytes).
"""

from collections.abc import Iterable

from tinytf.text.merges import Pair, apply_merges
from tinytf.text.pretokenize import split

__all__ = ["PlainBPE"]


class PlainBPE:
    """A vocabulary of bytes and merges of them: encode text, decode ids.

    Ids 0 to 255 are the bytes; id 256 + i is what the i-th of `merges` makes of two earlier ids.
    `tokens` lists the bytes that each id stands for.
    """

    def __init__(self, merges: Iterable[Pair]) -> None:
        self.merges = {pair: 256 + i for i, pair in enumerate(merges)}
        self.tokens = [bytes([byte]) for byte in range(256)]
        for first, second in self.merges:
            self.tokens.append(self.tokens[first] + self.tokens[second])

    def encode(self, text: str) -> list[int]:
        """Turn text into ids, piece by piece."""
        ids = []
        for piece in split(text):
            ids += apply_merges(piece.encode(), self.merges)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into text; bytes that are not UTF-8, such as half a character, become �."""
        data = b"".join(self.tokens[i] for i in ids)
        return data.decode("utf-8", "replace")
