"""How much memory a run needs at most, beyond what it began with."""

import multiprocessing
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

__all__ = ["METHOD", "peak_bytes"]

METHOD = "the growth of a child process's largest resident size; on a GPU, the allocator's peak"
Make = Callable[..., Callable[[], object]]


def peak_bytes(make: Make, *arguments: Any, warm: tuple[Any, ...], device: str = "cpu") -> int:
    """Give the bytes that one call of `make(*arguments)()` needs beyond what `make` made.

    On a CPU that is measured in a child process, one for each call, where `make(*warm)()` has run
    before: something small, for what torch sets up once. Pages are counted, so a megabyte is the
    least to go by. On a GPU torch's allocator says it, and that has run before, too.
    """
    if torch.device(device).type == "cuda":
        make(*warm)()  # a library's workspace comes from the same allocator
        run = make(*arguments)
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", make.__module__])
    ours, childs = context.Pipe(duplex=False)
    child = context.Process(
        target=_measure, args=(childs, make, arguments, warm, torch.get_num_threads())
    )
    child.start()
    childs.close()
    try:
        return ours.recv()
    except EOFError as error:
        child.join()
        raise RuntimeError(f"the child that measured ended with {child.exitcode}") from error
    finally:
        child.join()


def _measure(
    answer: Connection, make: Make, arguments: tuple, warm: tuple[Any, ...], threads: int
) -> None:
    torch.set_num_threads(threads)
    make(*warm)()
    run = make(*arguments)
    before = _largest()
    kept = run()
    answer.send(_largest() - before)
    del kept


def _largest() -> int:
    import resource  # not on Windows, where nothing here is measured

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size
