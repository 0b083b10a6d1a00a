"""Cut a text at special tokens, though it may come in chunks that cut the tokens themselves."""

from collections.abc import Collection, Iterable, Iterator

import regex

__all__ = ["cut_out"]


def cut_out(special: Collection[str], chunks: Iterable[str]) -> Iterator[tuple[bool, str]]:
    """Yield the text in parts: (False, plain text) and (True, a special token), in order.

    The parts are those of the whole text, wherever its chunks are cut: what may yet become a
    special token is held back, at most the longest of them. Where two begin together, the longer
    is meant. Raises TypeError for a chunk that is not a string.
    """
    if not special:
        yield from ((False, chunk) for chunk in chunks)
        return
    longest_first = sorted(special, key=len, reverse=True)
    pattern = regex.compile("|".join(map(regex.escape, longest_first)))
    held = ""
    for chunk in chunks:
        if not isinstance(chunk, str):
            raise TypeError(f"chunks of text are strings, got {type(chunk).__name__}")
        text = held + chunk
        place, end = 0, _undecided(longest_first, text, 0)
        for found in pattern.finditer(text):
            if found.start() >= end:
                break
            yield from _part(text[place : found.start()])
            yield True, found[0]
            place = found.end()
            if place > end:
                end = _undecided(longest_first, text, place)
        yield from _part(text[place:end])
        held = text[end:]
    place = 0
    for found in pattern.finditer(held):
        yield from _part(held[place : found.start()])
        yield True, found[0]
        place = found.end()
    yield from _part(held[place:])


def _part(text: str) -> Iterator[tuple[bool, str]]:
    if text:
        yield False, text


def _undecided(longest_first: list[str], text: str, start: int) -> int:
    """Find where, from `start` on, what is left of the text is a special token's beginning."""
    for place in range(max(start, len(text) - len(longest_first[0]) + 1), len(text)):
        rest = text[place:]
        if any(len(token) > len(rest) and token.startswith(rest) for token in longest_first):
            return place
    return len(text)
