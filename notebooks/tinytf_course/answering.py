"""The process in which answers run: it loads what they need, and tells what their tests find."""

import contextlib
import linecache
import os
import pickle
import select
import sys
import tempfile
import threading
from dataclasses import asdict, replace
from pathlib import Path

from tinytf_course.carried import cut, loads, read, tell

_MEMORY, _WITH_CUDA = 3 * 2**30, 2**40  # beyond what it has; CUDA reserves addresses freely
_FILE = 2**24  # bytes


def main(forks):
    """Load all, then run an answer for each job that comes."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0), os.dup2(nothing, 1)
    from tinytf_course import worker
    from tinytf_course.trial import load

    load()
    try:
        tell(sink, "ready")
    except BrokenPipeError:  # its user has ended meanwhile
        os._exit(1)
    if forks and not select.select([source], [], [], 0)[0]:
        import torch._dynamo  # noqa: F401  which a process's first optimizer loads: a second
    while (job := read(source)) is not None:
        if not forks or os.fork() == 0:
            worker.INSIDE.append(True)
            threading.Thread(target=_end_with, args=(source,), daemon=True).start()
            _serve(pickle.loads(job), sink)
        tell(sink, "ended", os.waitstatus_to_exitcode(os.wait()[1]))


def _end_with(source):
    """End this process when its user's ends: nothing else comes while an answer runs."""
    source.read(1)
    os._exit(1)


def _serve(job, sink):
    """Run the answers of a job, and end."""
    from tinytf_course.grading import without_answers
    from tinytf_course.guard import shut
    from tinytf_course.trial import CHANGED

    sys.path[:], tempfile.tempdir, sys.dont_write_bytecode = job["path"], job["folder"], True
    if job.get("alone"):  # a stranger's
        os.environ.update(dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR"), job["folder"]))
    os.chdir(job["folder"] if job.get("alone") else job["at"])
    linecache.cache.update(job["cells"])
    about, exercise = job.get("exercise"), None
    if about is not None:
        exercise = without_answers(about) if isinstance(about, str) else loads(about)
    _limit()
    shut(job["folder"])
    os.dup2(0, 2)
    try:
        _run(job, exercise, sink)
    finally:  # which nobody hears of if all is told
        os._exit(CHANGED)


def _run(job, exercise, sink):
    """Run the answers of a job, and tell what is found."""
    from tinytf_course.trial import Outlet, as_it_is, trial

    if "parts" in job:
        from tinytf_course.yours import passing

        tell(sink, "begins")
        tell(sink, "done", passing(job["parts"]))
        return
    before = as_it_is()
    for packed in job["answers"]:
        with Outlet(lambda text: tell(sink, "prints", text), job["lines"]) as outlet:
            answer, reason = unpack(packed)
            tell(sink, "begins")
            if not reason:
                for each in trial(exercise, answer, job["until_wrong"], outlet, before):
                    if isinstance(each, str):
                        reason = each
                    elif not tell(sink, "verdict", asdict(each)):
                        tell(sink, "verdict", asdict(replace(each, evidence=("too long",))))
        tell(sink, "done", cut(reason))


def unpack(packed):
    """The answer that `pack` or a judge has packed, and in words why there is none."""
    from tinytf_course.trial import define

    if isinstance(packed, str):
        return None, packed
    try:
        return loads(packed) if isinstance(packed, bytes) else define(**packed), ""
    except Exception as error:
        return None, f"its cell raises {type(error).__name__}: {error}"


def _limit():
    """Small files and no more memory than a check needs, where the system has limits."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        import torch

        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        size += _WITH_CUDA if torch.cuda.is_available() else _MEMORY
        for kind, most in (("AS", size), ("FSIZE", _FILE), ("CORE", 0)):
            kind = getattr(resource, f"RLIMIT_{kind}")
            hard = resource.getrlimit(kind)[1]
            resource.setrlimit(kind, (most if hard < 0 else min(most, hard), hard))
