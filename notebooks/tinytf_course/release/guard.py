"""Keep a stranger's code from what plainly is not its business, and see if it changed the grader.

This stops accidents and plain attempts. It is no sandbox: Python code that wants to can get round
an audit hook, and read all that its user can read. Grade strangers in a container, or as a user of
its own.
"""

import os
import sys

from tinytf_course.places import COURSE, is_machinery

__all__ = ["Untouched", "shut"]

_NEVER = (
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork",
    "os.forkpty", "os.kill", "os.killpg", "os.startfile", "pty.spawn", "socket.connect",
    "socket.bind", "socket.sendto", "signal.pthread_kill", "sys.addaudithook", "ctypes.dlopen",
    "gc.get_objects", "gc.get_referrers", "gc.get_referents",
)  # fmt: skip
_CHANGES = (
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.link",
    "os.symlink", "os.truncate", "os.utime", "shutil.rmtree", "shutil.move",
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def shut(folder):
    """From here on this process writes only under `folder`, starts nothing and calls nobody.

    What is refused raises PermissionError. It can't be taken back.
    """
    folder = os.path.realpath(folder)

    def inside(path):
        if isinstance(path, int):  # an open file
            return True
        path = os.path.realpath(os.fsdecode(path))
        return path == os.devnull or path.startswith(folder + os.sep) or path == folder

    def hook(event, arguments):
        if event in _NEVER:
            raise PermissionError(f"{event} is not allowed in an answer")
        if event in _CHANGES:
            paths = [part for part in arguments if isinstance(part, str | bytes | os.PathLike)]
        elif event == "open" and _writes(*arguments[1:3]):
            paths = arguments[:1]
        else:
            return
        if not all(map(inside, paths)):
            raise PermissionError(f"an answer may not write to {paths[0]!r}")

    sys.addaudithook(hook)


def _writes(mode, flags):
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING)


class Untouched:
    """What the course's modules were made of, to be compared later."""

    def __init__(self):
        self.before = _made_of()

    def changed(self):
        """The full name of something of the course that is another now, or None."""
        now = _made_of()
        return next((name for name, was in self.before.items() if now.get(name) != was), None)


def _made_of():
    """Functions and classes of the course's modules: which object, and which code."""
    here, found = str(COURSE), {}
    for module_name, module in list(sys.modules.items()):
        if not is_machinery(module_name) or not _lies_in(module, here):
            continue
        for name, value in list(vars(module).items()):
            if isinstance(value, type):
                for part, inner in list(vars(value).items()):
                    if callable(inner) or isinstance(inner, property):
                        found[f"{module_name}.{name}.{part}"] = _identity(inner)
            if callable(value):
                found[f"{module_name}.{name}"] = _identity(value)
    return found


def _lies_in(module, folder):
    return str(getattr(module, "__file__", None) or "").startswith(folder)


def _identity(value):
    value = getattr(value, "__wrapped__", value)
    return id(value), id(getattr(value, "__code__", None)), repr(getattr(value, "__defaults__", 0))
