"""Keep an answer from what plainly is not its business, and see if it changed the grader.

This stops accidents, habits (`torch.save`) and plain attempts. It is not a sandbox: Python code
written to do so can get round an audit hook, C code can write anywhere, and both can read whatever
the user can read. Grade strangers in a container, or as a user of its own.
"""

import builtins
import math
import os
import sys

import numpy
import safetensors.torch
import torch
from torch import nn

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


_ANSWERS = str(COURSE / "exercises")
# Writers in C and Rust, which tell no hook
_WRITERS = (
    (torch._C, "PyTorchFileWriter"), (torch.jit, "save"), (torch.UntypedStorage, "from_file"),
    (torch, "from_file"), (safetensors.torch, "save_file"), (os, "mkfifo"), (os, "mknod"),
)  # fmt: skip


def shut(folder):
    """From here on this process writes only under `folder`, starts nothing and calls nobody.

    Nor does it read the exercises' files. What is refused raises PermissionError. It can't be taken
    back.
    """
    folder = os.path.realpath(folder)
    for name in [name for name in sys.modules if name.startswith("tinytf_course.exercises")]:
        del sys.modules[name]  # what tests share; a reference was never there

    def inside(path):
        if isinstance(path, int):  # an open file
            return True
        path = os.path.realpath(os.fsdecode(path))
        return path in (os.devnull, folder) or path.startswith(folder + os.sep)

    def hook(event, arguments):
        if event in _NEVER:
            raise PermissionError(f"{event} is not allowed in an answer")
        if event in _CHANGES:
            paths = [part for part in arguments if isinstance(part, str | bytes | os.PathLike)]
        elif event == "sqlite3.connect":
            paths = [path for path in arguments[:1] if path != ":memory:"]
        elif event == "open" and _writes(*arguments[1:3]):
            paths = arguments[:1]
        elif event == "open" and str(arguments[0]).startswith(_ANSWERS):
            raise PermissionError("an answer may not read the exercises")
        else:
            return
        if not all(map(inside, paths)):
            raise PermissionError(f"an answer may not write to {paths[0]!r}")

    for place, name in _WRITERS:
        if hasattr(place, name):
            setattr(place, name, _telling(getattr(place, name)))
    sys.addaudithook(hook)


def _telling(write):
    """A writer that tells the hook of the file that it opens."""

    def told(*arguments, **named):
        for part in (*arguments, *named.values()):
            if isinstance(part, str | os.PathLike):
                sys.audit("open", os.fspath(part), "w", 0)
        return write(*arguments, **named)

    return told


def _writes(mode, flags):
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING)


_PLACES = {
    "torch": torch,
    "torch.nn.functional": nn.functional,
    "torch.linalg": torch.linalg,
    "torch.Tensor": torch.Tensor,
    "math": math,
    "numpy": numpy,
    "builtins": builtins,
}
_PLACES |= {f"torch.nn.{n}": c for n, c in vars(nn).items() if isinstance(c, type)}  # fmt: skip


class Untouched:
    """What torch, Python and the course's modules are made of, to be compared later."""

    def __init__(self):
        self.before, self.course = _functions(), _made_of()
        self.compiler = "torch._dynamo" in sys.modules

    def changed(self):
        """In words, what is another now."""
        now, course = _functions(), _made_of()
        # torch's compiler, loaded by an optimizer's first step, wraps some of torch's functions
        compiler = ("torch._dynamo" in sys.modules) > self.compiler
        told = []
        for place, before in self.before.items():
            gained = now[place].keys() if isinstance(_PLACES[place], type) else ()
            for name in dict.fromkeys([*before, *gained]):
                value = now[place].get(name)
                theirs = compiler and str(getattr(value, "__module__", "")).startswith("torch")
                if value is not before.get(name) and not theirs:
                    told.append(f"replaces {place}.{name}")
        names = (name for name, was in self.course.items() if course.get(name) != was)
        return told + [f"changes the course's own {name}" for name in names]


def _functions():
    """Functions and classes of what tests compute with."""
    return {place: {name: value for name, value in vars(it).items() if callable(value)}
            for place, it in _PLACES.items()}  # fmt: skip


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
