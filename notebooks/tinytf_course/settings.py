"""What an answer could set for the tests that follow: read before it, put back after it."""

import os
import sys

import torch

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


class Settings:
    """What torch and Python are set to when it is made."""

    def __init__(self):
        self.flags = {words: read() for words, (read, _) in _FLAGS.items()}

    def put_back(self):
        """Set everything as it was; return what was otherwise, in words."""
        told = []
        for words, (read, write) in _FLAGS.items():
            now, before = read(), self.flags[words]
            if now != before:
                write(before)
                told.append(f"changes {words} from {_plain(before)} to {_plain(now)}")
        return told


def _folder():
    try:
        return os.getcwd()
    except OSError:
        return None


def _plain(value):
    return str(value).removeprefix("torch.") if not isinstance(value, tuple) else str(value[0])
