"""Ctrl-C while a command still imports torch: it ends quietly, with status 130.

Imported before anything slow, and only where `python -m tinytf` is what runs; `ready` gives Ctrl-C
back its meaning.
"""

import itertools
import os
import signal
import sys
import threading

__all__ = ["ready"]


def _leave(number: int, frame: object) -> None:
    os._exit(130)  # nothing has been begun that would have to be ended


def ready() -> None:
    """Say that the command begins: from here on it answers Ctrl-C itself."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_command(arguments: list[str]) -> bool:
    """Tell `python -m tinytf …` from everything else that imports the package."""
    return "tinytf" in (b for a, b in itertools.pairwise(arguments) if a == "-m")


if (
    _is_command(sys.orig_argv)
    and sys.argv[:1] == ["-m"]  # so it is while the module is still being looked for
    and threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, _leave)
