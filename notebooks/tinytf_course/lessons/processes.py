"""Running one function in several processes of its own, which can find each other."""

import inspect
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tinytf_course.places import PATHS

__all__ = ["run_processes"]

CALL = """

if __name__ == "__main__":
    import sys

    import torch

    torch.set_num_threads(1)
    torch.save({name}(), sys.argv[1])
"""


def run_processes(worker: Callable[[], Any], processes: int, timeout: float = 120) -> list[Any]:
    """Run `worker()` in so many new Python processes, and return what each of them returned.

    Each is told by the variables that `torchrun` sets (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT)
    who it is and where to meet, on this machine alone. It starts from the function's own source, so
    `worker` imports what it needs and uses nothing from around it; it returns tensors, numbers,
    lists of them and the like. Raises RuntimeError with the last words of a process that fails, and
    for all of them TimeoutError after `timeout` seconds; none is left running.
    """
    if processes < 1:
        raise ValueError(f"processes must be at least 1, got {processes}")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        script = Path(folder, "worker.py")
        source = textwrap.dedent(inspect.getsource(worker)) + CALL.format(name=worker.__name__)
        script.write_text(source, encoding="utf-8")
        results = [Path(folder, f"{rank}.pt") for rank in range(processes)]
        environment = os.environ | _meeting(processes)
        running = []
        try:
            for rank, result in enumerate(results):
                with Path(folder, f"{rank}.txt").open("w") as words:
                    running.append(
                        subprocess.Popen(
                            [sys.executable, str(script), str(result)],
                            stdin=subprocess.DEVNULL, stdout=words, stderr=words,
                            env=environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                        )
                    )  # fmt: skip
            _wait(running, Path(folder), timeout)
        finally:
            for process in running:
                process.kill()
                process.wait()
        return [torch.load(result, weights_only=True) for result in results]


def _meeting(processes: int) -> dict[str, str]:
    """The variables by which they find each other, and our package."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = [*PATHS, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8",
    } | ({"USE_LIBUV": "0"} if sys.platform == "win32" else {})  # fmt: skip


def _wait(running: list[subprocess.Popen], folder: Path, timeout: float) -> None:
    """Until all have ended well; the first that fails, or the clock, ends them all."""
    end = time.monotonic() + timeout
    while None in (codes := [process.poll() for process in running]) or any(codes):
        for rank, code in enumerate(codes):
            if code:
                words = (folder / f"{rank}.txt").read_text(encoding="utf-8", errors="replace")
                last = "\n".join(words.strip().splitlines()[-8:])
                raise RuntimeError(f"process {rank} of {len(running)} failed:\n{last}")
        if time.monotonic() > end:
            raise TimeoutError(f"{len(running)} processes were not done after {timeout:g} s")
        time.sleep(0.02)
