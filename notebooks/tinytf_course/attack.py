"""Let a machine attack the graders: which one-step mutants of a reference do the tests accept?"""

import contextlib
import importlib
import itertools
import random
import re
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import torch

from tinytf_course import house
from tinytf_course.building import graded
from tinytf_course.check import grade, grades
from tinytf_course.commands import here
from tinytf_course.evidence import Watched
from tinytf_course.mutants import mutants, unchecked
from tinytf_course.notebooks import readable
from tinytf_course.parts import parts
from tinytf_course.places import COURSE, file_of, place_of

_MACHINERY = frozenset((
    "attack", "building", "check", "draws", "evidence", "expect", "grading", "guard",
    "mutants", "settings", "trial", "words", "worker", "__init__",
))  # fmt: skip
_SECONDS = 2.0  # for one mutant; one that runs on is rejected


@dataclass
class Attack:
    """What became of the mutants of one exercise."""

    id: str
    tried: int = 0
    rejected: int = 0
    crashed: int = 0  # rejected by an error of its own
    equivalent: list = field(default_factory=list)  # accepted, and written down as right
    accepted: list = field(default_factory=list)
    stale: list = field(default_factory=list)  # written down, and accepted no longer
    seconds: float = 0.0


def attack(exercise, at_most=None):
    """Grade every mutant of the exercise's reference, or so many of them drawn by its id.

    Raises ValueError if the reference itself is not accepted: then nothing would be.
    """
    result = grade(exercise, exercise.reference)  # as long as a learner has
    if not result.passed:
        raise ValueError(f"the reference is not accepted: {result.text}")
    listed = exercise.equivalent
    return _attacked(
        exercise.id,
        mutants(exercise.reference, draw=_draw(exercise.id, at_most), use=_used_in(exercise)),
        lambda made: grades(exercise, made, _SECONDS, until_wrong=True),
        listed,
        at_most,
    )


def attack_part(part, at_most=None):
    """Test every mutant of the package's definition of a part as a reader's version of it.

    What only checks arguments is not asked of a reader, and not mutated, unless the part's tests do
    ask it: then no mutant without it would pass. Raises ValueError if the package's own definition
    does not pass.
    """
    result = graded(part, part.package)
    if not result.passed:
        raise ValueError(f"the package's own {part.name} does not pass: {result.text}")
    asked = not graded(part, unchecked(part.package), until_wrong=True).passed
    return _attacked(
        part.name,
        mutants(part.package, helpers=False, checks=asked, draw=_draw(part.name, at_most),
                use=_used_in(part)),
        lambda made: [graded(part, each, _SECONDS, until_wrong=True) for each in made],
        part.equivalent,
        at_most,
    )  # fmt: skip


def _used_in(tested):
    """How the tests of an exercise or a part use a function."""

    def use(function):
        for test in tested.tests:
            with torch.random.fork_rng(devices=()), contextlib.suppress(Exception):
                test(Watched(function, function, tested.changes))

    return use


def _draw(id, at_most):
    """What draws a few mutants, the same ones each time; None where all are made."""
    return None if at_most is None else random.Random(id)


def _attacked(id, made, graded_as, listed, at_most):
    """What becomes of mutants, or of the first so many of them."""
    result, used, start = Attack(id), set(), time.perf_counter()
    mutants = list(itertools.islice(made, at_most))
    all_found = graded_as([mutant.function for mutant in mutants])
    for mutant, found in zip(mutants, all_found, strict=True):
        result.tried += 1
        if found.passed:
            known = [change for change in listed if matches(change, mutant.change)]
            used.update(known)
            (result.equivalent if known else result.accepted).append(mutant.change)
        else:
            result.rejected += 1
            result.crashed += found.crashed
    if at_most is None:
        result.stale = [change for change in listed if change not in used]
    result.seconds = time.perf_counter() - start
    return result


def matches(listed, change):
    """Whether a line written down is this change; `…` in it stands for any text."""
    parts = map(re.escape, listed.split("…"))
    return re.fullmatch(".*".join(parts), change) is not None


def chosen(exercises, names=(), since=None):
    """The exercises of these ids and chapters, or of the chapters changed since a git commit."""
    names = [name.zfill(2) if name.isdigit() else name for name in names]
    if since is not None:
        names += _changed_chapters(since)
        if not names:
            return []
    wanted = [e for e in exercises if not names or e.id in names or e.id.split(".")[0] in names]
    known = {e.id for e in exercises} | {e.id.split(".")[0] for e in exercises}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no exercise or chapter {', '.join(unknown)}")
    return wanted


def chosen_parts(names=(), since=None):
    """The parts of these names, and of these chapters or those changed since a git commit.

    Which chapter builds a part, the notebooks say. Raises ValueError for an unknown one.
    """
    names = {name.zfill(2) if name.isdigit() else name for name in names}
    stems = [] if since is None else _changed_files(since, "parts")
    modules = [importlib.import_module(f"tinytf_course.parts.{stem}") for stem in stems]
    changed = {part.target for module in modules for part in module.PARTS}
    chapters = {(each.file, each.name): each.chapter for each in house.parts(readable(here()))}
    called = {}  # {target: its name, and its chapter}
    for target, part in parts().items():
        file = place_of(file_of(target.rpartition(".")[0]))
        called[target] = {part.name, chapters.get((file, part.name))}
    unknown = names - set().union(*called.values())
    if unknown:
        raise ValueError(f"no part or chapter {', '.join(sorted(unknown))}")
    whole = not names and since is None
    return [
        part
        for target, part in parts().items()
        if whole or target in changed or called[target] & names
    ]


def _changed_chapters(since):
    """The chapters whose exercises changed; every one if the machinery itself did."""
    return sorted({stem.removeprefix("ch") for stem in _changed_files(since, "exercises")})


def _changed_files(since, folder):
    """The chapters' files or folders in this folder that changed; all if the machinery did."""
    command = ["git", "diff", "--name-only", since, "--", place_of(COURSE)]
    changed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    paths = [PurePosixPath(path).relative_to(place_of(COURSE)) for path in changed]
    if any(path.stem in _MACHINERY and path.parts[:-1] in ((), (folder,)) for path in paths):
        paths = [path.relative_to(COURSE) for path in COURSE.glob(f"{folder}/ch*")]
    inside = [path.parts[1] for path in paths if path.parts[0] == folder]
    return sorted({name.removesuffix(".py") for name in inside if name.startswith("ch")})


def report(attacks, show=print):
    """A line for each accepted mutant, then a table; whether none was accepted."""
    for each in attacks:
        for change in each.accepted:
            show(f"{each.id}  accepted: {change}")
        for change in each.stale:
            show(f"{each.id}  listed as equivalent, and not accepted: {change}")
    rows = {each.id: [each] for each in attacks}
    chapters = list(dict.fromkeys(each.id.split(".")[0] for each in attacks if "." in each.id))
    for chapter in chapters if len(chapters) > 1 else []:
        rows[chapter] = [each for each in attacks if each.id.split(".")[0] == chapter]
    rows["all"] = attacks
    wide = max(8, *map(len, rows))
    show(f"{'':{wide}}  tried  rejected  (crashed)  equivalent  accepted  seconds")
    for name, counted in rows.items():
        show(f"{name:{wide}}  {_row(counted)}")
    return not any(each.accepted or each.stale for each in attacks)


def _row(attacks):
    counts = [
        sum(count(each) for each in attacks)
        for count in (
            lambda each: each.tried, lambda each: each.rejected, lambda each: each.crashed,
            lambda each: len(each.equivalent), lambda each: len(each.accepted),
            lambda each: each.seconds,
        )
    ]  # fmt: skip
    return "{:5}  {:8}  {:9}  {:10}  {:8}  {:7.1f}".format(*counts)
