"""Cut text into the pieces that byte-pair merges stay within, as GPT-2 does."""

from collections.abc import Iterable, Iterator

import regex

__all__ = ["PATTERN", "split", "split_chunks"]

# GPT-2's pattern (Radford et al. 2019, its released code): a contraction's ending; a word, a number
# or a run of other signs, each with the space before it; what white space is left.
PATTERN = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)
_LONGEST_CONTRACTION = 3  # characters: 'll


def split(text: str) -> list[str]:
    """Cut a text into pieces that, joined together, are the text again."""
    return PATTERN.findall(text)


def split_chunks(chunks: Iterable[str]) -> Iterator[list[str]]:
    """Cut a text that comes in chunks, exactly as `split` cuts it whole; one list per chunk or so.

    What the next characters could still change is held back: at most the last piece and two
    characters before it, so memory is bounded by a chunk and the longest piece.
    Raises TypeError for a chunk that is not a string.
    """
    held = ""
    for chunk in chunks:
        if not isinstance(chunk, str):
            raise TypeError(f"chunks of text are strings, got {type(chunk).__name__}")
        held += chunk
        pieces = split(held)
        end, tail = len(pieces), 0
        # final: the character after it is known, and so is what a contraction there would need
        while end and (not tail or tail + len(pieces[end - 1]) < _LONGEST_CONTRACTION):
            end -= 1
            tail += len(pieces[end])
        if end:
            yield pieces[:end]
            held = held[len(held) - tail :]
    if held:
        yield split(held)
