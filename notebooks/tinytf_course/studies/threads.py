"""One thread for many small steps."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one CPU thread inside the block, and as many as before after it.

    Thousands of operations on a few thousand numbers each gain nothing from a second thread, and
    where other programs are running each of them waits until that thread gets its turn. It also
    makes the order of every sum the same on machines with one core and with many.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
