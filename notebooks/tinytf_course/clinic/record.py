"""One patient's record, and how an edit of a source is made."""

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Patient", "edited"]


class Patient(NamedTuple):
    """One silent bug, and what to know about it.

    `edits` are (old, new) snippets of the program's source; each old one is there exactly once.
    """

    name: str
    program: str
    edits: tuple[tuple[str, str], ...]
    title: str  # what is wrong: for the teacher, and after the diagnosis
    looks: str  # what one sees before: the complaint
    measure: str  # what it costs, as `grade` of the program measures it
    check: str  # the kind of check that finds it
    hints: tuple[str, str, str]
    story: str  # where such a bug has been met
    grade: str = "score"  # the function of the healthy program's kind that measures the harm
    retrain: bool = True  # False: training is untouched, so the weights are the healthy ones


def edited(text: str, edits: Iterable[tuple[str, str]]) -> str:
    """Make each edit. ValueError if its old snippet is not in the text exactly once."""
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} is in the source {text.count(old)} times, not once")
        text = text.replace(old, new)
    return text
