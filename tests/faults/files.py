"""Broken files: each is loaded in a process of its own kind, since a load may end the process."""

import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch

from tinytf.support.files import CheckpointError

from .breakages import BREAKAGES
from .report import Case
from .specimens import Specimen, make, specimens

PATIENCE = 60  # seconds for one file
MEMORY = 3 << 30  # bytes more than the process has when it begins


def cases(known: Iterable[Specimen], seed: int) -> Iterator[tuple[str, str, int]]:
    """Breakage, specimen and seed, without end, in turn."""
    kinds = {specimen.name: specimen.kind for specimen in known}
    number = seed * 1_000_000
    while True:
        for breakage, (_, fits) in BREAKAGES.items():
            for name, kind in kinds.items():
                if kind in fits:
                    yield breakage, name, number
                    number += 1


def try_files(folder: Path, seed: int, count: int, until: float) -> Iterator[Case]:
    """Break `count` files, or as many as there is time for; yields what became of each."""
    folder.mkdir(parents=True, exist_ok=True)
    _in_child(lambda _: make(folder), folder / "made")
    known = {specimen.name: specimen for specimen in specimens()}
    stream = cases(known.values(), seed)
    left = [next(stream) for _ in range(count)]
    while left and time.monotonic() < until:
        chunk, notes = left[:100], folder / "notes"
        status = _in_child(
            lambda path, chunk=chunk: _try_chunk(folder, known, chunk, path, until), notes
        )
        done = [line.split("\t", 1) for line in notes.read_text(encoding="utf-8").splitlines()]
        for (breakage, name, number), (outcome, words) in zip(chunk, done, strict=False):
            yield Case(breakage, f"{name} {number}", outcome, words)
        left = left[len(done) :]
        if status != 0 and len(done) < len(chunk):
            breakage, name, number = left.pop(0)
            yield Case(breakage, f"{name} {number}", "crash", f"the process ended with {status}")
        elif len(done) < len(chunk):
            return  # no time was left


def _in_child(work: Callable[[Path], None], notes: Path) -> int:
    """Do work in a forked process that notes its results line by line; returns its status."""
    notes.write_text("")
    child = os.fork()
    if child == 0:
        try:
            work(notes)
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(70)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _try_chunk(
    folder: Path,
    known: dict[str, Specimen],
    chunk: list[tuple[str, str, int]],
    notes: Path,
    until: float,
) -> None:
    torch.set_num_threads(1)
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if os.path.exists("/proc") else 0
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends a load that never returns
    whole: dict[str, str] = {}
    with notes.open("a", encoding="utf-8", buffering=1) as out:
        for breakage, name, number in chunk:
            if time.monotonic() > until:
                return
            specimen = known[name]
            if name not in whole:
                whole[name] = specimen.load(folder / name)
            broken = folder / "broken"
            shutil.rmtree(broken, ignore_errors=True)
            shutil.copytree(folder / name, broken)
            act, _ = BREAKAGES[breakage]
            act(random.Random(number), specimen, broken)
            signal.alarm(PATIENCE)
            outcome, words = _outcome(specimen, broken, whole[name], breakage)
            signal.alarm(0)
            words = words.encode("utf-8", "backslashreplace").decode().replace("\n", " ")
            out.write(f"{outcome}\t{words[:300]}\n")


def _outcome(specimen: Specimen, broken: Path, whole: str, breakage: str) -> tuple[str, str]:
    """Load what is broken, and say what came of it."""
    try:
        loaded = specimen.load(broken)
    except AssertionError as error:
        return "lost", str(error)
    except CheckpointError as error:
        return "clear error", str(error)
    except FloatingPointError as error:  # of the step after the load
        return "clear error", str(error)
    except Exception as error:
        return "raw error", f"{type(error).__name__}: {error}"
    if loaded == whole:
        return "unharmed", ""
    digested = specimen.kind in ("run", "model") and breakage in ("truncate", "flip", "overwrite")
    return ("lost", "damage went unnoticed") if digested else ("accepted", "")
