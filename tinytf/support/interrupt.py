"""Ctrl-C that waits for the step to end."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["deferred_interrupt"]


@contextmanager
def deferred_interrupt(pause: float = 0.0) -> Iterator[list[int]]:
    """Collect Ctrl-C and termination in a list, instead of letting them tear a step apart.

    A second Ctrl-C is obeyed at once, if it comes `pause` seconds after the first or later. Outside
    the main thread, signals are left alone.
    """
    seen: list[int] = []
    since = 0.0
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return

    def note(number: int, _frame: object) -> None:
        nonlocal since
        if not seen:
            seen.append(number)
            since = time.monotonic()
        elif time.monotonic() - since >= pause:
            raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {n: signal.signal(n, note) for n in numbers}
    try:
        yield seen
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)
