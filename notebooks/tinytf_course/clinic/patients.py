"""The patients by name, the sources of sick and healthy programs, and how to run one."""

import types
from importlib.resources import files

from tinytf_course.clinic.record import Patient
from tinytf_course.clinic.records import pipeline, reader, speaker, translator, writer
from tinytf_course.exercise_source import edited

__all__ = ["PATIENTS", "PROGRAMS", "Patient", "healthy", "load", "source"]

PROGRAMS = ("writer", "translator", "reader", "pipeline", "speaker")
PATIENTS = {
    patient.name: patient
    for records in (writer, translator, reader, pipeline, speaker)
    for patient in records.PATIENTS
}


def healthy(program: Patient | str) -> str:
    """Give the source of a healthy program, by its name or by a patient that lives in it."""
    name = program.program if isinstance(program, Patient) else program
    if name not in PROGRAMS:
        raise ValueError(f"no program {name!r}; there are: {', '.join(PROGRAMS)}")
    path = files("tinytf_course.clinic.programs").joinpath(f"{name}.py")
    return path.read_text(encoding="utf-8")


def source(patient: Patient) -> str:
    """Give the program with the patient's bug in it. ValueError if a snippet is not there once."""
    return edited(healthy(patient), patient.edits)


def load(text: str, name: str = "patient") -> types.ModuleType:
    """Run a program's source in a module of its own; nothing else sees it."""
    module = types.ModuleType(name)
    exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    return module
