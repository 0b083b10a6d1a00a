"""All that a GPU owes the course, by one command: `python tests/benchmarks gpu`."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.comparing import table

HERE = Path(__file__).resolve().parents[2]
_BENCHMARK = ("tests/benchmarks", "--device", "cuda", "--rounds", "3")
_GPT_STEP = (*_BENCHMARK, "gpt_training_step", "--precision", "bfloat16")
COSTS = HERE / "notebooks" / "tinytf_course" / "studies" / "cost_gpu.json"
# a part: its name, the arguments of Python, its limit in seconds
PARTS = (
    ("the study cost_gpu", ("-m", "tinytf_course.studies", "cost_gpu"), 240),
    ("training, width 192", _GPT_STEP, 120),
    ("training, GPT-2 small", (*_GPT_STEP, "--small"), 150),
    ("training, encoder-decoder", (*_BENCHMARK, "training_step"), 120),
    ("writing, encoder-decoder", (*_BENCHMARK, "decoding"), 150),
    ("writing, GPT-2 small", (*_BENCHMARK, "gpt_decoding", "--small"), 120),
    ("ways to attend", (*_BENCHMARK, "attention"), 120),
    ("the tests", ("-m", "pytest", "-q", "-n", "4", "--device", "cuda"), 780),
)


def attempt(arguments, limit):
    """Run a part to its end or its limit: how it ended, and what it said."""
    paths = [str(HERE), str(HERE / "notebooks"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TINYTF_DEVICE": "cuda"}
    # What it says goes to a file: a pipe stays open as long as any process that it has started.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as told:
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=HERE, env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=told, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            status = process.wait(timeout=limit)
            ended = f"failed ({status})" if status else "done"
        except subprocess.TimeoutExpired:
            ended = f"stopped after its {limit} s"
        finally:  # what it has started ends with it: test workers and notebooks hold memory
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        told.seek(0)
        return ended, told.read().splitlines()


def gpu(options, parts=PARTS, writes=COSTS):
    """all that a GPU owes the course: tests, costs, training, writing (not among `all`).

    Each part runs in a process of its own with a limit of its own, all together at most half an
    hour; one that fails or runs out of time is said, and the next one runs.
    """
    if options.device.type != "cuda":
        raise RuntimeError(f"this needs a CUDA GPU, and here is {options.device}")
    rows = []
    for name, arguments, limit in parts:
        began = time.monotonic()
        ended, said = attempt(arguments, limit)
        rows.append([name, ended, f"{time.monotonic() - began:.0f}", f"{limit}"])
        yield "\n".join([f"\n== {name}", *said[-60:]])
        if name == parts[0][0] and ended == "done":
            yield writes.read_text(encoding="utf-8")
    yield "\nwhat a GPU owes\n" + table(["part", "ended", "seconds", "at most"], rows)
