"""One patient's record."""

from typing import NamedTuple

__all__ = ["Patient"]


class Patient(NamedTuple):
    """One silent bug, and what to know about it.

    `edits` are (old, new) snippets of the program's source, as a known mistake of an exercise has
    them: each old one is there exactly once.
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
