"""A process of its own for answers: one that hangs, ends or breaks something does so elsewhere.

`setup()` starts it, so that by the first check torch is loaded there. An answer travels to it by
cloudpickle, with what it uses of the notebook; words, numbers and tensors come back, read by a
loader that runs nothing. On Linux the process forks for each answer. Elsewhere it takes one answer
and ends, while the next one starts. No reference is loaded in it, and what an answer changes there
is gone with it. A plot that an answer draws is not shown.

This is no sandbox: what an answer may not do by ordinary means (`tinytf_course.guard`) is
refused by Python's own hooks, which code that is bent on it gets round; and code that looks into
Python's frames can forge a verdict.
"""

import contextlib
import importlib
import io
import linecache
import marshal
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
from dataclasses import asdict, replace
from pathlib import Path

FORKS = sys.platform == "linux"
_TO_START = 120.0  # for torch, on a slow disk
_TO_DEFINE = 10.0  # for what an answer is made of, and to end
_MEMORY, _WITH_CUDA = 3 * 2**30, 2**40  # beyond what it has; CUDA reserves addresses freely
_FILE, _MESSAGE = 2**24, 2**28  # bytes
_held = {}  # {the process that uses it: the worker that waits for an answer}
_inside = []  # holds something in a process that runs an answer


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
            [sys.executable, "-c", f"from {__name__} import main; main({self.forks})"],
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
            _write(self.process.stdin, pickle.dumps(job))
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
            message = _read(self.process.stdout)
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
    if not _inside and os.getpid() not in _held:
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

    if _inside:
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

    found, verdicts, limit = [], [], _TO_DEFINE
    with borrowed() as worker, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        end = deadline = time.monotonic() + _TO_DEFINE
        try:
            worker.send(_surroundings(folder) | job)
            while True:
                kind, *said = worker.receive(max(deadline - time.monotonic(), 0.05))
                now = time.monotonic()
                if kind == "prints":
                    print(*said, end="")
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
                found.append(([*verdicts, ended(exercise, len(verdicts), lost.code, limit)], ""))
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
        return [ended(exercise, 0, None, seconds)], ""
    finally:
        alarm(signal.ITIMER_REAL, 0)
    return verdicts, reason


def _about(exercise):
    """An exercise without its answers: its id, or itself, pickled, if it is of no file."""
    from tinytf_course.grading import files, find

    if exercise.id in files() and find(exercise.id).tests == exercise.tests:
        return exercise.id
    return _dumps(replace(exercise, reference=None, wrong=(), equivalent={}))


class Absent:
    """Stands for what belongs to the notebook's own process."""

    def __init__(self, name="it"):
        self.name = name

    def __getattr__(self, name):
        return Absent(name) if name[:2] != "__" else super().__getattribute__(name)

    def __call__(self, *_, **__):
        """Say so."""
        raise RuntimeError(f"`{self.name}` belongs to the notebook, and is not there in a check")


def _dumps(value):
    """A value as bytes, with what it uses: by value what the notebook or an exercise defines."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        def persistent_id(self, given):  # a name stays one object: `mask is CAUSAL`
            return given if type(given) is str and given.isidentifier() else None

        def reducer_override(self, given):
            if isinstance(given, types.CodeType):  # with the file's name, which cloudpickle drops
                return marshal.loads, (marshal.dumps(given),)
            if isinstance(given, types.ModuleType) and sys.modules.get(given.__name__) is given:
                return importlib.import_module, (given.__name__,)  # torch.backends are odd ones
            if type(given).__name__ == "ZMQExitAutocall":
                return getattr, (sys, "exit")
            if type(given).__module__.startswith(("IPython.", "ipykernel.")):
                return Absent, (type(given).__name__,)
            return super().reducer_override(given)

    if "tinytf_course.exercises" in sys.modules:
        cloudpickle.register_pickle_by_value(sys.modules["tinytf_course.exercises"])
    file = io.BytesIO()
    Pickler(file).dump(value)
    return file.getvalue()


def _loads(packed):
    unpickler = pickle.Unpickler(io.BytesIO(packed))
    unpickler.persistent_load = sys.intern
    return unpickler.load()


def pack(answer):
    """An answer as bytes; in words, why it can't travel."""
    try:
        return _dumps(answer)
    except Exception as error:
        return f"it can't be sent to the process that checks it: {error}"


def main(forks):
    """Load all, then run an answer for each job that comes."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0), os.dup2(nothing, 1)
    from tinytf_course.trial import load

    load()
    _tell(sink, "ready")
    if forks and not select.select([source], [], [], 0)[0]:
        import torch._dynamo  # noqa: F401  which a process's first optimizer loads: a second
    while (job := _read(source)) is not None:
        if not forks or os.fork() == 0:
            _inside.append(True)
            threading.Thread(target=_end_with, args=(source,), daemon=True).start()
            _serve(pickle.loads(job), sink)
            os._exit(0)
        _tell(sink, "ended", os.waitstatus_to_exitcode(os.wait()[1]))


def _end_with(source):
    """End this process when its user's ends: nothing else comes while an answer runs."""
    source.read(1)
    os._exit(1)


def _serve(job, sink):
    """Run the answers of a job, and tell what is found."""
    from tinytf_course.grading import without_answers
    from tinytf_course.guard import shut
    from tinytf_course.trial import Outlet, as_it_is, trial

    sys.path[:], tempfile.tempdir, sys.dont_write_bytecode = job["path"], job["folder"], True
    if job.get("alone"):  # a stranger's
        os.dup2(0, 2)
        os.environ.update(dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR"), job["folder"]))
    os.chdir(job["folder"] if job.get("alone") else job["at"])
    linecache.cache.update(job["cells"])
    about, exercise = job.get("exercise"), None
    if about is not None:
        exercise = without_answers(about) if isinstance(about, str) else _loads(about)
    _limit()
    shut(job["folder"])
    if "parts" in job:
        from tinytf_course.yours import passing

        _tell(sink, "begins")
        _tell(sink, "done", passing(job["parts"]))
        return
    before = as_it_is()
    for packed in job["answers"]:
        with Outlet(lambda text: _tell(sink, "prints", text), job["lines"]) as outlet:
            answer, reason = unpack(packed)
            _tell(sink, "begins")
            if not reason:
                for each in trial(exercise, answer, job["until_wrong"], outlet, before):
                    if isinstance(each, str):
                        reason = each
                    else:
                        _tell(sink, "verdict", asdict(each))
        _tell(sink, "done", reason)


def unpack(packed):
    """The answer that `pack` or a judge has packed, and in words why there is none."""
    from tinytf_course.trial import define

    if isinstance(packed, str):
        return None, packed
    try:
        return _loads(packed) if isinstance(packed, bytes) else define(**packed), ""
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


def _tell(sink, *message):
    """Send a message: words, numbers, tensors, and lists, tuples and dicts of them."""
    import torch

    file = io.BytesIO()
    torch.save(_plain(message), file)
    _write(sink, file.getvalue())


def _plain(value):
    """The same in kinds that a loader reads without running anything."""
    import torch

    if isinstance(value, torch.Tensor):
        value = value.detach().as_subclass(torch.Tensor)
        return value.clone() if value.is_meta else value.cpu().clone()
    if isinstance(value, dict):
        return {_plain(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(map(_plain, value))
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return None if value is None else str(type(value).__name__)


def _write(file, message):
    file.write(struct.pack("<Q", len(message)) + message)
    file.flush()


def _read(file):
    """A message, or None if there is no whole one."""
    head = file.read(8)
    size = struct.unpack("<Q", head)[0] if len(head) == 8 else -1
    message = file.read(size) if 0 <= size <= _MESSAGE else b""
    return message if len(message) == size else None
