"""All that a GPU owes the course, by one command: `python tests/benchmarks gpu [--json FILE]`.

The tests, the notebooks among them, with --device cuda; the study of cost on a GPU; training and
decoding beside their peers. Each part runs in a process of its own with a limit of its own, all
together at most half an hour; one that fails or runs out of time is said, and the next one runs. At
the end stands one table.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import Report

__all__ = ["PARTS", "Part", "attempt", "run"]

HERE = Path(__file__).resolve().parents[2]
_BENCHMARK = ("tests/benchmarks", "--device", "cuda", "--rounds", "3")


class Part(NamedTuple):
    """One part: its name, the arguments of Python, its limit in seconds, and what it writes."""

    name: str
    arguments: Sequence[str]
    limit: float
    writes: Path | None = None


PARTS = (
    Part(
        "the study cost_gpu",
        ("-m", "tinytf_course.studies", "cost_gpu"),
        240,
        HERE / "notebooks" / "tinytf_course" / "studies" / "cost_gpu.json",
    ),
    Part("training, width 192", (*_BENCHMARK, "gpt_training_step", "--precision", "bfloat16"), 120),
    Part(
        "training, GPT-2 small",
        (*_BENCHMARK, "gpt_training_step", "--small", "--precision", "bfloat16"),
        150,
    ),
    Part("training, encoder-decoder", (*_BENCHMARK, "training_step"), 120),
    Part("writing, encoder-decoder", (*_BENCHMARK, "decoding"), 150),
    Part("writing, GPT-2 small", (*_BENCHMARK, "gpt_decoding", "--small"), 120),
    Part("ways to attend", (*_BENCHMARK, "attention"), 120),
    Part("the tests", ("-m", "pytest", "-q", "-n", "4", "--device", "cuda"), 780),
)


def attempt(part: Part) -> tuple[str, float, list[str]]:
    """Run a part to its end or its limit: how it ended, seconds, and its last lines."""
    paths = [str(HERE), str(HERE / "notebooks"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TINYTF_DEVICE": "cuda"}
    began = time.monotonic()
    # What it says goes to a file: a pipe stays open as long as any process that it has started.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as told:
        process = subprocess.Popen(
            [sys.executable, *part.arguments], cwd=HERE, env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=told, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            process.wait(timeout=part.limit)
            ended = "done" if process.returncode == 0 else f"failed ({process.returncode})"
        except subprocess.TimeoutExpired:
            ended = f"stopped after its {part.limit:.0f} s"
        finally:
            _end(process)
        told.seek(0)
        said = told.read().splitlines()
    return ended, time.monotonic() - began, said


def _end(process: subprocess.Popen) -> None:
    """End a process and what it has started: test workers and notebooks hold the GPU's memory."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):  # none of them is left
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def run(
    options: argparse.Namespace,
    report: Report,
    parts: Sequence[Part] = PARTS,
    there: Callable[[], bool] | None = None,
) -> None:
    """Run all parts and print one table. Raises RuntimeError without a CUDA GPU."""
    if there is None:
        import torch

        there = torch.cuda.is_available
    if not there():
        raise RuntimeError("this needs a CUDA GPU, and torch sees none")
    lines = []
    for part in parts:
        print(f"\n== {part.name}", flush=True)
        ended, seconds, said = attempt(part)
        print("\n".join(said[-60:]), flush=True)
        if part.writes is not None and ended == "done":
            print(part.writes.read_text(encoding="utf-8"), flush=True)
        report.value(part.name, seconds, "s", 0)
        lines.append([part.name, ended, f"{seconds:.0f}", f"{part.limit:.0f}"])
    report.table("what a GPU owes", ["part", "ended", "seconds", "at most"], lines)
