"""All that a GPU owes the course, by one command: `python tests/benchmarks gpu [--json FILE]`.

The tests, the notebooks among them, with --device cuda; the study of cost on a GPU; training and
decoding beside their peers. Each part runs in a process of its own with a limit of its own, all
together at most half an hour; one that fails or runs out of time is said, and the next one runs. At
the end stands one table.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import Report

__all__ = ["PARTS", "Part", "attempt", "run"]

HERE = Path(__file__).resolve().parents[2]
_BENCHMARK = ("tests/benchmarks", "--device", "cuda", "--rounds", "3")


class Part(NamedTuple):
    """One part: its name, the arguments of Python, and its limit in seconds."""

    name: str
    arguments: Sequence[str]
    limit: float


PARTS = (
    Part("the study cost_gpu", ("-m", "tinytf.studies", "cost_gpu"), 240),
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
    Part("the tests", ("-m", "pytest", "-q", "--device", "cuda"), 780),
)


def attempt(part: Part) -> tuple[str, float, list[str]]:
    """Run a part to its end or its limit: how it ended, seconds, and its last lines."""
    environment = {**os.environ, "PYTHONPATH": str(HERE), "TINYTF_DEVICE": "cuda"}
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *part.arguments], cwd=HERE, env=environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=part.limit)
        ended = "done" if process.returncode == 0 else f"failed ({process.returncode})"
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
        ended = f"stopped after its {part.limit:.0f} s"
    return ended, time.monotonic() - began, (said or "").splitlines()


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
        report.value(part.name, seconds, "s", 0)
        lines.append([part.name, ended, f"{seconds:.0f}", f"{part.limit:.0f}"])
    report.table("what a GPU owes", ["part", "ended", "seconds", "at most"], lines)
