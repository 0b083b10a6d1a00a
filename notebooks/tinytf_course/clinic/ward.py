"""The mystery ward: a program that nobody has named, with one bug in it or none, and its key."""

import difflib
import random
from pathlib import Path
from typing import NamedTuple

from tinytf_course.clinic.disguise import disguised, shared_names
from tinytf_course.clinic.patients import PATIENTS, PROGRAMS, healthy
from tinytf_course.clinic.record import Patient
from tinytf_course.clinic.variants import HARMLESS
from tinytf_course.exercise_source import edited

__all__ = ["HARMLESS_BUGS", "Mystery", "examination", "key", "mystery", "write_examination"]

# Bugs that cost next to nothing where they live (`studies.clinic`): no examination asks for them.
HARMLESS_BUGS = frozenset({
    "residual_of_normalised", "huge_eps", "scale_by_model", "accumulation_not_divided",
    "accumulation_forgets", "weights_untied", "loss_over_everything", "loss_over_pads",
})  # fmt: skip


class Mystery(NamedTuple):
    """A patient from the ward: what the learner gets, and what the teacher knows."""

    seed: int
    program: str
    text: str
    patient: Patient | None  # None: it is healthy
    lines: tuple[tuple[int, str, str], ...]  # number, the sick line, the line that repairs it


def mystery(seed: int, sick: bool | None = None) -> Mystery:
    """Give the program that `seed` stands for, always the same one.

    One in six is healthy, if `sick` does not say which it is to be. Its names and the order of its
    definitions are other ones, one or two of its settings too, and it says nothing about itself.
    """
    draws = random.Random(f"ward {seed}")
    chance, name = draws.random(), draws.choice(sorted(PATIENTS))
    patient = PATIENTS[name] if (chance > 1 / 6 if sick is None else sick) else None
    program = PATIENTS[name].program if patient else draws.choice(PROGRAMS)
    well = healthy(program)
    for what in draws.sample(sorted(HARMLESS[program]), 4)[:2]:
        changed = _or_none(well, [HARMLESS[program][what]])
        if changed and (not patient or _or_none(changed, patient.edits)):
            well = changed
    ill = edited(well, patient.edits) if patient else well
    names = shared_names(well, ill)
    well, ill = (disguised(text, seed, names) for text in (well, ill))
    return Mystery(seed, program, ill, patient, tuple(_difference(ill, well)))


def _or_none(text: str, edits) -> str | None:
    """Make the edits, or give None where a snippet is not there once any more."""
    try:
        return edited(text, edits)
    except ValueError:
        return None


def _difference(ill: str, well: str):
    """Each place where the two differ: the line in the sick one, what is there, what should be."""
    sick, sound = ill.splitlines(), well.splitlines()
    for tag, a, b, c, d in difflib.SequenceMatcher(None, sick, sound, False).get_opcodes():
        if tag != "equal":
            yield a + 1, "\n".join(sick[a:b]), "\n".join(sound[c:d])


def key(one: Mystery) -> str:
    """Say for the teacher what is wrong, where, and what repairs it."""
    head = f"patient {one.seed} (program: {one.program})"
    if one.patient is None:
        return f"{head}: healthy\n"
    said = [f"{head}: {one.patient.name}", one.patient.title + ".",
            f"It should hold that {one.patient.check}."]  # fmt: skip
    for number, sick, sound in one.lines:
        said += [f"line {number}:", _indented(sick or "(a line is missing before this one)")]
        said += ["should be:", _indented(sound or "(nothing)")]
    said += ["Hints:", *(f"  {i}. {hint}" for i, hint in enumerate(one.patient.hints, 1))]
    return "\n".join(said) + "\n"


def _indented(text: str) -> str:
    return "\n".join("    " + line.strip() for line in text.splitlines())


def examination(seed: int, count: int = 10) -> list[Mystery]:
    """Give `count` different patients, about one in five of them healthy. ValueError below 1.

    There can be no more than there are bugs that do harm; only those are asked for.
    """
    most = len(set(PATIENTS) - HARMLESS_BUGS)
    if not 1 <= count <= most:
        raise ValueError(f"an examination has 1 to {most} patients, not {count}")
    draws, found, known = random.Random(f"examination {seed}"), [], set()
    healthy_ones = set(draws.sample(range(count), count // 5))
    while len(found) < count:
        one = mystery(draws.randrange(1_000_000), sick=len(found) not in healthy_ones)
        name = one.patient.name if one.patient else f"healthy {one.program}"
        if name not in known | HARMLESS_BUGS:
            known.add(name)
            found.append(one)
    return found


def write_examination(folder: Path, seed: int, count: int = 10) -> list[Path]:
    """Write handout/patient_01.py and so on, and teacher/key.txt; give their paths, the key last.

    Raises FileExistsError if one of them is there: nothing is written over.
    """
    exam = examination(seed, count)
    files = {folder / "handout" / f"patient_{i:02}.py": one.text for i, one in enumerate(exam, 1)}
    answers = [f"patient_{i:02}.py\n{key(one)}" for i, one in enumerate(exam, 1)]
    files[folder / "teacher" / "key.txt"] = "\n".join(answers)
    for path in files:
        if path.exists():
            raise FileExistsError(f"{path} is there: name another folder")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)
