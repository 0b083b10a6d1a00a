"""Run somebody else's function so that it can neither hang, end, flood nor change the notebook.

`contained(function, seconds)` is the whole of it. What cannot be stopped from inside Python: a
single call of a C function that does not return (one huge matrix product, say), and a process that
kills itself with a signal.
"""

import ctypes
import os
import signal
import sys
import threading

import torch

from tinytf_course.settings import Randomness, Settings

_HERE = os.path.dirname(__file__)
_GUARDS = (__file__, os.path.join(_HERE, "check.py"), os.path.join(_HERE, "settings.py"))
# bytes beyond what the process has, where the system can limit it; CUDA reserves addresses freely
_MEMORY, _WITH_CUDA = 3 * 2**30, 2**40


class TooLong(BaseException):
    """Raised inside the function when its time is up. Not an Exception: `except` lets it pass."""


class Contained:
    """What came of it: a value, or the error (of any kind) that ended it; what it changed."""

    def __init__(self):
        self.value = self.error = None
        self.changed = []


def contained(function, seconds, settings=None):
    """Call `function` for at most so many seconds; return a `Contained`. Only Ctrl-C passes.

    Random streams start from the same seed in every call. They, torch's settings, replaced
    functions, warning filters, the environment and the working directory are put back. `settings`
    are those to put back to, where a caller has read them already: many calls need one reading.
    """
    done = Contained()
    settings = settings or Settings()
    with Interrupts() as interrupts:
        try:
            with Randomness(), _no_way_out(), _memory_limit():
                done.value, done.error = _limited(function, seconds)
        finally:
            done.changed = settings.put_back()
    if interrupts.seen:
        raise KeyboardInterrupt
    return done


def _limited(function, seconds):
    """The function's value and None, or None and the error that it ended with."""
    try:
        with time_limit(seconds):
            return function(), None
    except BaseException as error:  # what an answer raises is a finding, whatever it is
        return None, error


def time_limit(seconds, alarm=None):
    """A block in which TooLong is raised after so many seconds, again and again until it ends.

    An alarm signal where there is one (it interrupts `sleep` as well); else, and outside the main
    thread, a second thread that raises it in this one.
    """
    if alarm is None:
        alarm = hasattr(signal, "setitimer") and _in_main_thread()
    return _Alarm(seconds) if alarm else _Watchdog(seconds)


class _Alarm:
    def __init__(self, seconds):
        self.seconds, self.on = seconds, False

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self._ring)
        self.on = True
        signal.setitimer(signal.ITIMER_REAL, self.seconds, 0.002)

    def _ring(self, _, frame):
        if _importing(frame):  # half a module is worse than none: another while
            signal.setitimer(signal.ITIMER_REAL, self.seconds, 0.002)
        elif self.on and not _guarding(frame):
            raise TooLong

    def __exit__(self, *_):
        self.on = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before or signal.SIG_DFL)


class _Watchdog:
    def __init__(self, seconds):
        self.seconds, self.thread = seconds, threading.get_ident()
        self.over, self.lock = threading.Event(), threading.Lock()

    def __enter__(self):
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        wait = self.seconds
        while not self.over.wait(wait):
            wait = 0.002
            with self.lock:
                frame = sys._current_frames().get(self.thread)
                if _importing(frame):
                    wait = self.seconds
                elif not self.over.is_set() and not _guarding(frame):
                    self._raise(TooLong)

    def _raise(self, error):
        error = None if error is None else ctypes.py_object(error)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread), error)

    def __exit__(self, *_):
        for _ in range(3):  # one that was already on its way may arrive here
            try:
                with self.lock:
                    self.over.set()
                    self._raise(None)
                return
            except TooLong:
                continue


def _guarding(frame):
    """Whether the innermost frame is the guard's own."""
    return frame is None or frame.f_code.co_filename in _GUARDS


def _importing(frame):
    """Whether a module is being loaded, such as torch's compiler by an optimizer's first step."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


class Interrupts:
    """Tells a real Ctrl-C, which passes, from a KeyboardInterrupt that the function raises."""

    def __init__(self):
        self.seen = False

    def __enter__(self):
        self.before = signal.getsignal(signal.SIGINT) if _in_main_thread() else None
        if callable(self.before):
            signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number, frame):
        self.seen = True
        self.before(number, frame)

    def __exit__(self, *_):
        if callable(self.before):
            signal.signal(signal.SIGINT, self.before)


class _no_way_out:
    """os._exit, os.abort and a notebook's `exit` raise SystemExit in here."""

    def __enter__(self):
        self.kept = os._exit, os.abort
        os._exit = os.abort = _leave
        self.shell = _shell()
        if self.shell is not None:
            self.shell.ask_exit = _leave

    def __exit__(self, *_):
        os._exit, os.abort = self.kept
        if self.shell is not None:
            vars(self.shell).pop("ask_exit", None)


def _leave(*_):
    raise SystemExit


class _memory_limit:
    """A limit on memory where the system has one."""

    def __enter__(self):
        self.before = None
        if sys.platform == "linux":
            import resource

            self.before = resource.getrlimit(resource.RLIMIT_AS)
            with open("/proc/self/statm") as file:
                size = int(file.read().split()[0]) * resource.getpagesize()
            soft = [limit for limit in self.before if limit != resource.RLIM_INFINITY]
            more = _WITH_CUDA if torch.cuda.is_available() else _MEMORY
            limit = min([size + more, *soft])
            resource.setrlimit(resource.RLIMIT_AS, (limit, self.before[1]))

    def __exit__(self, *_):
        if self.before is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, self.before)


class Outlet:
    """Lets the first lines of output through and counts the rest; says so when it closes.

    With lines=0 nothing goes through, and nothing is said.
    """

    def __init__(self, lines=40, characters=8000):
        self.lines, self.characters, self.left_out = lines, characters, 0
        self.silent = lines == 0
        self.heard = False  # whether anything was written

    def __enter__(self):
        self.kept = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = (_Through(stream, self) for stream in self.kept)
        return self

    def __exit__(self, *_):
        sys.stdout, sys.stderr = self.kept
        if self.left_out and not self.silent:
            print(f"\n… and {self.left_out:,} more lines of output, left out")


class _Through:
    def __init__(self, stream, outlet):
        self.stream, self.outlet = stream, outlet

    def write(self, text):
        outlet, text = self.outlet, str(text)
        outlet.heard = True
        if outlet.lines <= 0 or outlet.characters <= 0:
            outlet.left_out += text.count("\n")
            return len(text)
        outlet.lines -= text.count("\n")
        shown = text[: outlet.characters]
        outlet.characters -= len(text)
        self.stream.write(shown)
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __getattr__(self, name):
        return getattr(self.stream, name)


def _in_main_thread():
    return threading.current_thread() is threading.main_thread()


def _shell():
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None
