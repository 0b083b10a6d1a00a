"""What a test finds: the first mismatch is shown, and the test goes on to its end."""

import functools
import signal
from contextlib import contextmanager
from threading import current_thread, main_thread


class Mismatch(AssertionError):
    """What a test found, in words for the learner."""


_noted = [None]  # the mismatches of the test that runs now, where it is to go on to its end


_REST = 2.5  # seconds that the rest of a test has after a mismatch


class _Enough(BaseException):
    """Ends the rest of a test. Not an Exception: `except` in an answer lets it pass."""


@contextmanager
def noting():
    """A block whose mismatches go to the list that it gives instead of being raised.

    So a test goes on to its end, and what an answer does in every case of it is evidence. Of an
    answer that is wrong first and then never ends, the mismatch is told: where there are alarm
    signals, one ends the rest.
    """
    before, _noted[0] = _noted[0], _Notes()
    try:
        yield _noted[0]
    finally:
        notes, _noted[0] = _noted[0], before
        notes.close()


class _Notes(list):
    """The mismatches of a test."""

    alarm = None

    def append(self, mismatch):
        if not self and hasattr(signal, "setitimer") and current_thread() is main_thread():
            self.alarm = signal.signal(signal.SIGALRM, self._ring) or signal.SIG_DFL
            signal.setitimer(signal.ITIMER_REAL, _REST)
        super().append(mismatch)

    def _ring(self, *_):
        if self.alarm is not None:
            raise _Enough

    def close(self):
        if self.alarm is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            before, self.alarm = self.alarm, None
            signal.signal(signal.SIGALRM, before)


def word(function):
    """A word of the tests: where mismatches are noted, its own is, and the test goes on."""

    @functools.wraps(function)
    def noted(*arguments, **named):
        notes, _noted[0] = _noted[0], None  # one word may use another, and ends with it
        try:
            return function(*arguments, **named)
        except Mismatch as mismatch:
            if notes is None:
                raise
            notes.append(mismatch)
        finally:
            _noted[0] = notes

    return noted
