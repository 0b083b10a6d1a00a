"""The patients: healthy programs with one silent bug each, told as edits of their source."""

import types
from collections.abc import Iterable
from importlib.resources import files
from typing import NamedTuple

__all__ = ["PATIENTS", "PROGRAMS", "Patient", "healthy", "load", "source"]

PROGRAMS = ("writer",)


class Patient(NamedTuple):
    """One silent bug, and what to know about it.

    `edits` are (old, new) snippets of the program's source; each old one is there exactly once.
    """

    name: str
    program: str
    edits: tuple[tuple[str, str], ...]
    title: str  # what is wrong: for the teacher, and after the diagnosis
    looks: str  # what one sees before: the complaint
    measure: str  # what it costs, measured by the program's `score` or as said
    check: str  # the kind of check that finds it
    hints: tuple[str, str, str]
    story: str  # where such a bug has been met


_ALL = (
    Patient(
        "mask_meets_heads",
        "writer",
        (("future = future.unsqueeze(0)", "future = future.unsqueeze(1)"),),
        "The mask has the wrong rank, and the window is as long as there are heads",
        "The loss falls below what the sequences allow; what it writes alone is nonsense.",
        "bits per token above the entropy",
        "future",
        (
            "Is any loss below the entropy of the sequences? How could a model know more?",
            "Change the last token: which earlier outputs move, and in which head?",
            "Write down the shapes of `scores` and of the mask, aligned on the right.",
        ),
        "A tutorial unsqueezes a (T, T) mask at axis 1; with T = heads it broadcasts to the heads.",
    ),
    Patient(
        "labels_not_shifted",
        "writer",
        (
            ('targets = outputs(model, batch), batch["ids"][:, 1:]',
             'targets = outputs(model, batch), batch["ids"][:, :-1]'),
        ),
        "The labels are the inputs: nothing is predicted",
        "The loss falls to zero within a hundred steps, and what is written repeats one token.",
        "bits per token above the entropy",
        "floor",
        (
            "How low can the loss be, if every sequence has some chance in it?",
            "Which token is the answer at position t, and which tokens has it read there?",
            "Compare the labels of a batch with its inputs.",
        ),
        "The most common of all in home-made training loops: the shift is left to the other side.",
    ),
)  # fmt: skip

PATIENTS = {patient.name: patient for patient in _ALL}


def healthy(program: "Patient | str") -> str:
    """Give the source of a healthy program, by its name or by a patient planted in it."""
    name = program.program if isinstance(program, Patient) else program
    if name not in PROGRAMS:
        raise ValueError(f"no program {name!r}; there are: {', '.join(PROGRAMS)}")
    path = files("tinytf.course.clinic.programs").joinpath(f"{name}.py")
    return path.read_text(encoding="utf-8")


def source(patient: Patient) -> str:
    """Give the program with the patient's bug in it. ValueError if a snippet is not there once."""
    return edited(healthy(patient), patient.edits)


def edited(text: str, edits: Iterable[tuple[str, str]]) -> str:
    """Make each edit. ValueError if its old snippet is not in the text exactly once."""
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} is in the source {text.count(old)} times, not once")
        text = text.replace(old, new)
    return text


def load(text: str, name: str = "patient") -> types.ModuleType:
    """Run a program's source in a module of its own; nothing else sees it."""
    module = types.ModuleType(name)
    exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    return module
