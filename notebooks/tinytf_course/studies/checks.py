"""What the checks of the bug clinic find: on every patient, and on healthy programs.

`clinic_checks` examines each patient and its twin on five seeds; `clinic_alarms` examines healthy
variants, and counts the alarms that should not be.
"""

from collections.abc import Callable, Iterable
from types import ModuleType

from tinytf_course.clinic.checks import CHECKS, examine
from tinytf_course.clinic.patients import PATIENTS, PROGRAMS, healthy, load, source
from tinytf_course.clinic.variants import variants
from tinytf_course.studies import load as read
from tinytf_course.studies.threads import one_thread

__all__ = ["QUICK", "alarms", "found_by", "found_in", "reseeded", "ward_table"]

SEEDS = range(5)
LONG = ("overfit one batch", "beam, or greedy", "below the entropy")  # checks that train for long
QUICK = {title: check for title, check in CHECKS.items() if title not in LONG}


def reseeded(m: ModuleType, seed: int) -> ModuleType:
    """Move every seed from which a program draws its weights by this one, in place; return it."""
    make = m.make_model
    m.make_model = lambda given: make(given + 100 * seed)
    return m


def _row(found: dict) -> dict:
    return {title: None if n is None else round(min(n, 1e9), 8) for title, n in found.items()}


@one_thread()
def patient_rows(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Examine each healthy program and each patient on every seed."""
    texts = {f"healthy {name}": (name, healthy(name)) for name in PROGRAMS}
    texts |= {name: (patient.program, source(patient)) for name, patient in PATIENTS.items()}
    return [
        {"name": name, "program": program, "seed": seed,
         "found": _row(examine(reseeded(load(text), seed)))}
        for name, (program, text) in texts.items()
        for seed in seeds
    ]  # fmt: skip


@one_thread()
def variant_rows(seeds: Iterable[int] = range(2)) -> list[dict]:
    """Examine healthy variants of each program under every check that takes no long training."""
    return [
        {"program": program, "variant": description, "seed": seed,
         "found": _row(examine(reseeded(load(text), seed), QUICK))}
        for program in PROGRAMS
        for description, text in variants(program)
        for seed in seeds
    ]  # fmt: skip


def ward_table(of: Callable = min) -> dict[str, dict[str, float | None]]:
    """Read what each check gave on each program: {name: {check: `of` the seeds, or None}}."""
    table = {}
    for row in read("clinic_checks")["rows"]:
        before = table.setdefault(row["name"], row["found"])
        table[row["name"]] = {
            title: n if n is None or before.get(title) is None else of(n, before[title])
            for title, n in row["found"].items()
        }
    return table


def found_by(table: dict) -> dict[str, list[str]]:
    """Turn a ward table into {name: the checks that raise an alarm}."""
    return {
        name: [c for c, n in found.items() if n is not None and n > CHECKS[c].limit]
        for name, found in table.items()
    }


def found_in(table: dict) -> dict[str, list[str]]:
    """Turn a ward table into {check: the programs on which it raises an alarm}."""
    by = found_by(table)
    return {check: [name for name, checks in by.items() if check in checks] for check in CHECKS}


def alarms() -> tuple[int, int]:
    """Read how many healthy variants raised an alarm, and how many were examined."""
    rows = read("clinic_alarms")["rows"]
    by = found_by({str(i): row["found"] for i, row in enumerate(rows)})
    return sum(bool(checks) for checks in by.values()), len(rows)


STUDIES = {"clinic_checks": patient_rows, "clinic_alarms": variant_rows}
