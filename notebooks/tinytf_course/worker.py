"""Runs answers in a process of their own, so that one that hangs or crashes leaves the notebook be.

`setup()` starts the process, so that torch is loaded there by the first check. cloudpickle sends an
answer to it, with what the answer uses of the notebook. Text, numbers and tensors come back, read
by a loader that runs no code. On Linux the process forks for each job; elsewhere it takes one job
and ends, while the next process starts. No reference is loaded in it, and what an answer changes
there ends with it. Plots are not shown.

This is not a sandbox. What `tinytf_course.guard` forbids is refused by Python's own hooks, which
code written to cheat can get round, and code that reads Python's frames can forge a verdict.
"""

import contextlib
import io
import linecache
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace

from tinytf_course.carried import dumps, pack, read, write

FORKS = sys.platform == "linux"
_TO_START = 120.0  # for torch, on a slow disk
_TO_DEFINE = 10.0  # for what an answer is made of, and to end
_held = {}  # {the process that uses it: the worker that waits for an answer}
INSIDE = []  # holds something in a process that runs an answer


class Lost(Exception):
    """What runs an answer has ended: `code` is its exit code, or None if its time was up."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


class NotStarted(RuntimeError):
    """No process for answers can be started."""


class Worker:
    """The process as its user sees it: jobs to it, messages from it."""

    def __init__(self, forks=None):
        self.forks = FORKS if forks is None else forks
        self.ready = self.gone = False
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"from tinytf_course.answering import main; main({self.forks})"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg",
                 "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip

    def wait(self):
        """Wait until it has loaded all. Raises NotStarted if it can't."""
        try:
            self.ready = self.ready or self.receive(_TO_START) == ["ready"]
        except Lost as lost:
            raise NotStarted(f"it ended with exit code {lost.code}") from None

    def send(self, job):
        """Give it a job. Raises Lost."""
        try:
            write(self.process.stdin, pickle.dumps(job))
        except OSError:
            raise self._lost() from None

    def receive(self, seconds):
        """Its next message. Raises Lost if none comes in time, or the answer's process ended."""
        import torch

        late = []
        timer = threading.Timer(seconds, lambda: (late.append(True), self.kill()))
        timer.daemon = True
        timer.start()
        try:
            message = read(self.process.stdout)
        finally:
            timer.cancel()
        try:
            kind, *said = torch.load(io.BytesIO(message), weights_only=True)
        except Exception:  # there is none, or what came is none
            raise self._lost(late) from None
        if kind == "ended":
            raise Lost(*said)
        return [kind, *said]

    def _lost(self, late=False):
        self.kill()
        return Lost(None if late else self.process.wait())

    def kill(self):
        """End it and what it has forked."""
        self.gone = True
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, 9) if os.name == "posix" else self.process.kill()
        self.process.wait()


def start():
    """Start a worker if none waits; it loads torch in the background. Quick, and never raises."""
    if not INSIDE and os.getpid() not in _held:
        with contextlib.suppress(OSError):
            _held[os.getpid()] = Worker()


@contextlib.contextmanager
def borrowed():
    """A worker that has loaded all. Afterwards one waits for the next answer.

    Raises NotStarted if none can be started.
    """
    try:
        worker = _held.pop(os.getpid(), None) or Worker()
    except OSError as error:
        raise NotStarted(str(error)) from None
    try:
        worker.wait()
        yield worker
    except BaseException:  # Ctrl-C too: what runs there ends
        worker.kill()
        raise
    finally:
        if worker.forks and not worker.gone:
            _held[os.getpid()] = worker
        elif worker.ready:
            worker.kill()
            start()


def trials(exercise, answers, seconds=8.0, until_wrong=False, lines=40):
    """What the tests find of each answer: [(verdicts, why there is nothing to grade)].

    Shows the first `lines` lines that they print. Raises NotStarted if no worker can be started.
    """
    from tinytf_course.trial import trial

    if INSIDE:
        return [_here(trial(exercise, each, until_wrong), exercise, seconds) for each in answers]
    found, packed = [], [pack(each) for each in answers]
    while len(found) < len(packed):
        job = {"exercise": _about(exercise), "answers": packed[len(found) :], "lines": lines,
               "until_wrong": until_wrong}  # fmt: skip
        found += tried(exercise, job, seconds)
    return found


def tried(exercise, job, seconds=8.0):
    """What is found until a process ends: of one answer at least, of all if none ends it."""
    from tinytf_course.trial import Verdict, ended

    found, verdicts, limit, printed = [], [], _TO_DEFINE, 0
    with borrowed() as worker, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        end = deadline = time.monotonic() + _TO_DEFINE
        try:
            worker.send(_surroundings(folder) | job)
            while True:
                kind, *said = worker.receive(max(deadline - time.monotonic(), 0.05))
                now = time.monotonic()
                if kind == "prints":
                    print(*said, end="")
                    printed += said[0].count("\n")
                elif kind == "done":
                    found.append((verdicts, *said))
                    verdicts, limit = [], _TO_DEFINE
                    deadline = now + limit
                else:
                    if kind == "begins":
                        end = now + seconds
                    else:
                        verdicts.append(Verdict(**said[0]))
                    limit = max(min(end - now, seconds / 2), 0.05)
                    deadline = now + limit
        except Lost as lost:
            if len(found) < len(job["answers"]):
                in_all = limit < seconds / 2
                last = ended(exercise, len(verdicts), lost.code, seconds if in_all else limit,
                             in_all, printed >= max(job["lines"], 1))  # fmt: skip
                found.append(([*verdicts, last], ""))
    return found


def _surroundings(folder):
    """What an answer finds around it, as in the notebook; it may write in `folder`."""
    cells = {name: held for name, held in linecache.cache.items() if not os.path.exists(name)}
    return {"folder": folder, "at": os.getcwd(), "path": sys.path, "cells": cells}


class _TooLong(BaseException):
    """The time of a trial in this very process is up."""


def _here(trial, exercise, seconds):
    """The verdicts of a trial in this process, and why there is nothing to grade.

    An alarm ends it, where the system has one.
    """
    from tinytf_course.trial import ended

    def ring(*_):
        raise _TooLong

    alarm = getattr(signal, "setitimer", lambda *_: None)
    try:
        if hasattr(signal, "SIGALRM"):
            signal.signal(signal.SIGALRM, ring)
        alarm(signal.ITIMER_REAL, seconds, 0.01)
        *verdicts, reason = trial
    except _TooLong:
        return [ended(exercise, 0, None, seconds, in_all=True)], ""
    finally:
        alarm(signal.ITIMER_REAL, 0)
    return verdicts, reason


def _about(exercise):
    """An exercise without its answers: its id, or itself, pickled, if it is of no file."""
    from tinytf_course.grading import files, find

    if exercise.id in files() and find(exercise.id).tests == exercise.tests:
        return exercise.id
    return dumps(replace(exercise, reference=None, wrong=(), equivalent={}))
