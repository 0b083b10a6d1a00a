"""A study of the clinic: what each silent bug costs, over seeds and lengths of training."""

from collections.abc import Iterable
from statistics import mean
from types import ModuleType

from tinytf_course.clinic.patients import PATIENTS, PROGRAMS, Patient, healthy, load, source
from tinytf_course.studies import load as load_table
from tinytf_course.studies.threads import one_thread

__all__ = ["FLATTERING", "STEPS", "case", "damage", "run_of", "severity", "verdict"]

SEEDS = range(5)
FLATTERING = ("data_leak", "bleu_of_pieces", "loss_over_pads")  # wrong is what they report
STEPS = {  # of each program: half a training, and a whole one
    "writer": (125, 250),
    "translator": (200, 400),
    "reader": (125, 250),
    "pipeline": (75, 150),
    "speaker": (200, 400),
}


def run_of(program: ModuleType, seed: int, steps: int) -> dict:
    """Train a program: its model, and the mean of its first and of its last twenty losses."""
    model, losses = program.train(seed, steps)
    return {
        "model": model,
        "training": model.training,  # as training left it: grading may change it
        "losses": [round(mean(x), 4) for x in (losses[:5], losses[-20:])],
    }


def case(patient: Patient, seed: int, steps: int, twin: dict) -> dict:
    """Grade a patient on one seed; `twin` is what `run_of` gave for its healthy twin."""
    sick = load(source(patient))
    if patient.retrain:
        run = run_of(sick, seed, steps)
    else:  # the bug is in its use: the weights are the twin's
        run = {"model": sick.make_model(seed), "losses": twin["losses"]}
        run["model"].load_state_dict(twin["model"].state_dict())
        run["model"].train(twin["training"])
    return _row(patient.name, patient, sick, run, seed, steps)


def _row(name: str, patient: Patient, program: ModuleType, run: dict, seed: int, steps: int):
    value = float(getattr(program, patient.grade)(run["model"], seed))
    return {
        "program": patient.program,
        "patient": name,
        "grade": patient.grade,
        "seed": seed,
        "steps": steps,
        "value": round(value, 4),
        "losses": run["losses"],
    }


@one_thread()
def severity(
    seeds: Iterable[int] = SEEDS, programs: Iterable[str] = PROGRAMS, size: int | None = None
) -> list[dict]:
    """Train each program, healthy and with each bug; give one row for each grade.

    `size` 0 or 1 asks for half or whole trainings only.
    """
    rows, sizes = [], (0, 1) if size is None else (size,)
    for name in programs:
        there = [p for p in PATIENTS.values() if p.program == name]
        twin = load(healthy(name))
        for seed in seeds:
            for steps in (STEPS[name][i] for i in sizes):
                run = run_of(twin, seed, steps)
                grades = {p.grade: p for p in there}
                rows += [_row("healthy", p, twin, run, seed, steps) for p in grades.values()]
                rows += [case(p, seed, steps, run) for p in there]
    return rows


def damage(steps: int = 1) -> dict[str, list[float]]:
    """Read from the stored study how much worse each patient is than its healthy twin.

    Returns {patient: a number a seed}; above 0 is worse, below 0 better, whichever way the measure
    goes. `steps` is 0 for half trainings, 1 for whole ones.
    """
    rows = [
        r for r in load_table("clinic_severity")["rows"] if r["steps"] == STEPS[r["program"]][steps]
    ]
    twins = {
        (r["program"], r["grade"], r["seed"]): r["value"] for r in rows if r["patient"] == "healthy"
    }
    found = {name: [] for name in PATIENTS}
    for row in rows:
        if row["patient"] in found:
            gap = twins[row["program"], row["grade"], row["seed"]] - row["value"]
            found[row["patient"]].append(-gap if row["program"] == "writer" else gap)
    return {name: gaps for name, gaps in found.items() if gaps}


def verdict(gaps: list[float], flatters: bool = False) -> str:
    """Say what a bug does, from its damage on each seed: deadly, mild, harmless, helps, flatters.

    `flatters`: the bug is in the grade, which it changes for nothing. Deadly is a loss of 0.3 at
    least on every seed; harmless is one that is not on the same side of 0 for all of them.
    """
    if not (min(gaps) > 0 or max(gaps) < 0) or max(map(abs, gaps)) < 0.005:
        return "harmless"
    if flatters:
        return "flatters"
    if max(gaps) < 0:
        return "helps"
    return "deadly" if min(gaps) >= 0.3 else "mild"


STUDIES = {"clinic_severity": severity}
