"""Broken files: each is loaded in a process of its own, since a load may end the process."""

import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from tinytf.support.files import CheckpointError

from .breakages import BREAKAGES
from .report import Case
from .specimens import Specimen, make, specimens

PATIENCE = 60  # seconds for one file
MEMORY = 3 << 30  # bytes more than the process has when it begins


def try_files(folder: Path, seed: int, count: int, until: float) -> Iterator[Case]:
    """Break `count` files, or as many as there is time for; yields what became of each."""
    folder.mkdir(parents=True, exist_ok=True)
    known, notes = specimens(), folder / "notes"
    if status := in_child(lambda: make(folder)):
        raise RuntimeError(f"no files to break: making them ended with {status}")
    turns = [(kind, s) for kind, (_, fits) in BREAKAGES.items() for s in known if s.kind in fits]
    for i in range(count):
        if time.monotonic() > until:
            return
        (kind, specimen), number = turns[i % len(turns)], seed * 1_000_000 + i
        notes.write_text("")
        status = in_child(lambda s=specimen, k=kind, n=number: _try(folder, s, k, n, notes))
        outcome, _, words = notes.read_text(encoding="utf-8").partition("\t")
        if status:
            outcome, words = "crash", f"the process ended with {status}"
        yield Case(kind, f"{specimen.name} {number}", outcome, words)


def in_child(work: Callable[[], None]) -> int:
    """Do work in a forked process; returns its status, below 0 for a signal."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(70)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _try(folder: Path, specimen: Specimen, kind: str, number: int, notes: Path) -> None:
    """Break a copy, load it under a limit of memory and time, and note what came of it."""
    torch.set_num_threads(1)
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if os.path.exists("/proc") else 0
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    whole, broken = specimen.load(folder / specimen.name), folder / "broken"
    shutil.rmtree(broken, ignore_errors=True)
    shutil.copytree(folder / specimen.name, broken)
    BREAKAGES[kind][0](random.Random(number), specimen, broken)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends a load that never returns
    signal.alarm(PATIENCE)
    digested = specimen.kind in ("run", "model") and kind == "damage"
    try:
        same = specimen.load(broken) == whole
        outcome = "unharmed" if same else "lost" if digested else "accepted"
        words = "damage went unnoticed" if outcome == "lost" else ""
    except AssertionError as error:
        outcome, words = "lost", str(error)
    except (CheckpointError, FloatingPointError) as error:  # the latter of the step after the load
        outcome, words = "clear error", str(error)
    except Exception as error:
        outcome, words = "raw error", f"{type(error).__name__}: {error}"
    words = words.encode("utf-8", "backslashreplace").decode().replace("\n", " ")
    notes.write_text(f"{outcome}\t{words[:300]}", encoding="utf-8")
