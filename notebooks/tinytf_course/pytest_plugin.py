"""The pytest plugin of the course: `--device`, threads under xdist, and what to skip.

Loaded by `-p tinytf_course.pytest_plugin` in pyproject.toml; it serves unit tests and the chapters
that nbval runs alike.
"""

import gc
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

DEVICES = ("cpu", "cuda", "mps")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# A tenth of the time went into looking for cycles among torch's own objects, which stay.
SELDOM = (20_000, 50, 100)
gc.set_threshold(*SELDOM)
# nbformat would load a grammar of addresses by it, .8 s in each process; no notebook's format asks
# for one.
sys.modules.setdefault("rfc3987_syntax", None)


def pytest_addoption(parser):
    """Add --device."""
    parser.addoption("--device", choices=DEVICES, help="run everything on this device")


def pytest_configure(config):
    """Set the environment that kernels and xdist's workers inherit."""
    device = config.getoption("--device")
    if device:
        if not _present(device):
            raise pytest.UsageError(f"--device {device}: this machine has no {device} device")
        os.environ["TINYTF_DEVICE"] = device
    if sys.platform == "linux":
        from tinytf_course.kernels import fork_kernels

        fork_kernels()
    if not hasattr(config, "workerinput"):  # workers inherit it
        _kernels_of_their_own(config)
    workers = getattr(config.option, "numprocesses", None)
    if workers:
        threads = str(max(1, (os.cpu_count() or 1) // int(workers)))
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, threads)


def pytest_unconfigure():
    """Leave what there is to the end of the process: searching it for cycles took nine seconds."""
    gc.freeze()


def pytest_report_header(config):
    """Say which device."""
    return f"tinytf device: {os.environ.get('TINYTF_DEVICE', 'chosen by the machine')}"


def pytest_collection_modifyitems(items):
    """Skip what this machine cannot run."""
    absent = {}
    if any(item.get_closest_marker("gpu") for item in items) and not _present("cuda"):
        absent["gpu"] = "no CUDA device"
    if not importlib.util.find_spec("playwright") or not any(map(shutil.which, BROWSERS)):
        absent["browser"] = "no playwright or no Chromium"
    for item in items:
        for marker, reason in absent.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def _kernels_of_their_own(config):
    """Kernels neither read this user's IPython profile nor look for cycles often."""
    folder = tempfile.TemporaryDirectory(prefix="ipython-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    start = Path(folder.name, "profile_default", "startup", "seldom.py")
    start.parent.mkdir(parents=True)
    start.write_text(f"__import__('gc').set_threshold{SELDOM}\n")
    os.environ["IPYTHONDIR"] = folder.name


def _present(device):
    if device == "cpu":
        return True
    import torch

    return torch.cuda.is_available() if device == "cuda" else torch.backends.mps.is_available()
