"""What a function could change for the rest of the notebook: read before it, put back after it."""

import builtins
import math
import os
import random
import sys
import warnings

import numpy
import torch
from torch import nn

# In words, how it is read, and how it is written.
_FLAGS = {
    "torch's default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "torch's default device": (torch.get_default_device, lambda d: torch.set_default_device(
        None if d == torch.device("cpu") else d)),
    "whether torch records gradients": (torch.is_grad_enabled, torch.set_grad_enabled),
    "torch's number of threads": (torch.get_num_threads, torch.set_num_threads),
    "torch's deterministic mode": (
        lambda: (torch.are_deterministic_algorithms_enabled(),
                 torch.is_deterministic_algorithms_warn_only_enabled()),
        lambda mode: torch.use_deterministic_algorithms(mode[0], warn_only=mode[1])),
    "torch's precision of float32 products": (
        torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "torch's anomaly detection": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    "autocast": (lambda: torch.is_autocast_enabled("cpu"),
                 lambda on: torch.set_autocast_enabled("cpu", on)),
    "the working directory": (lambda: _folder(), lambda folder: folder and os.chdir(folder)),
    "Python's recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
}  # fmt: skip

_OFTEN = (torch, nn.functional, torch.Tensor)
_PLACES = (
    *_OFTEN, nn, torch.linalg, torch.optim, torch.backends.cudnn, torch._tensor_str.PRINT_OPTS,
    numpy, numpy.random, math, random, os, builtins,
    *{value for value in vars(nn).values() if isinstance(value, type)},
)  # fmt: skip


class Settings:
    """What torch, numpy and Python are set to when it is made.

    Where `briefly`, only what a grader's next line depends on.
    """

    def __init__(self, briefly=False):
        self.flags = {words: read() for words, (read, _) in _FLAGS.items()}
        self.places = [(p, _read(p)) for p in (_OFTEN if briefly else _PLACES)]
        self.environment = None if briefly else dict(os.environ)
        self.compiler = "torch._dynamo" in sys.modules

    def put_back(self):
        """Set everything as it was; return what was otherwise, in words.

        Replaced attributes of torch and its classes are among it; environment variables are put
        back in silence, since an import may set some.
        """
        told = []
        for words, (read, write) in _FLAGS.items():
            now, before = read(), self.flags[words]
            if now != before:
                write(before)
                told.append(f"changes {words} from {_plain(before)} to {_plain(now)}")
        # torch's compiler, loaded by an optimizer's first step, wraps some of torch's functions
        loaded = ("torch._dynamo" in sys.modules) > self.compiler
        for place, before in self.places:
            if vars(place) != before:
                told += _restored(place, before, keep="torch" if loaded else None)
        if self.environment is not None and dict(os.environ) != self.environment:
            os.environ.clear()
            os.environ.update(self.environment)
        return told


class Randomness:
    """A block that draws the same numbers every time, and leaves the streams as they were."""

    def __enter__(self):
        self.kept = [(put, get()) for get, put, _ in _streams()]
        self.warnings = warnings.catch_warnings()
        self.warnings.__enter__()
        for _, _, seed in _streams():
            seed(0)

    def __exit__(self, *error):
        self.warnings.__exit__(*error)
        for put, state in self.kept:
            put(state)


_last_read = {}  # by a place's id: to compare its attributes is quicker than to copy them


def _read(place):
    if vars(place) != _last_read.get(id(place)):
        _last_read[id(place)] = dict(vars(place))
    return _last_read[id(place)]


def _streams():
    """How each stream of random numbers is read, written and seeded."""
    # not torch.manual_seed: that queues a note for every kind of device the machine hasn't got
    cpu = torch.default_generator
    streams = [
        (random.getstate, random.setstate, random.seed),
        (numpy.random.get_state, numpy.random.set_state, numpy.random.seed),
        (cpu.get_state, cpu.set_state, cpu.manual_seed),
    ]
    if torch.cuda.is_initialized():
        gpu = torch.cuda
        streams.append((gpu.get_rng_state_all, gpu.set_rng_state_all, gpu.manual_seed_all))
    if torch.backends.mps.is_available():
        gpu = torch.mps
        streams.append((gpu.get_rng_state, gpu.set_rng_state, gpu.manual_seed))
    return streams


def _restored(place, before, keep=None):
    """Put back the attributes that were replaced, and take away those that a class has gained.

    What the package `keep` has replaced by a function of the same name stays so.
    """
    now, told = dict(vars(place)), []
    if keep:
        theirs = {name for name, value in now.items() if _wraps(keep, name, value)}
        now = {name: value for name, value in now.items() if name not in theirs}
        before = {name: value for name, value in before.items() if name not in theirs}
    for name, value in before.items():
        if now.get(name) is not value:
            setattr(place, name, value)
            told.append(f"replaces {_name(place)}.{name}")
    if isinstance(place, type):
        for name in now.keys() - before.keys():
            delattr(place, name)
            told.append(f"replaces {_name(place)}.{name}")
    return told


def _wraps(package, name, value):
    whose = str(getattr(value, "__module__", "")).partition(".")[0]
    return whose == package and getattr(value, "__name__", "") == name


def _name(place):
    if isinstance(place, type):
        return f"torch.{'nn.' * (place is not torch.Tensor)}{place.__name__}"
    return getattr(place, "__name__", "torch's print options")


def _folder():
    try:
        return os.getcwd()
    except OSError:
        return None


def _plain(value):
    return str(value).removeprefix("torch.") if not isinstance(value, tuple) else str(value[0])
