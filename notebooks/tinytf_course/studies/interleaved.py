"""Timing several things against each other in one process: A B C D once a round, in turn.

A machine that slows down for a while slows all of them, so that ratios hold where milliseconds
don't. A ratio is taken round by round; its median and quartiles are reported. What stands before
leaves its marks in caches and in memory, so that the order changes from round to round.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

__all__ = ["Clock", "Spread", "Timings", "in_turn", "interleave", "make_clock", "spread"]

Clock = Callable[[], float]


class Spread(NamedTuple):
    """A median between its quartiles."""

    median: float
    low: float
    high: float

    def scaled(self, factor: float) -> "Spread":
        """Give all three in another unit."""
        return Spread(*(factor * value for value in self))


def spread(values: Sequence[float]) -> Spread:
    """Give the median and the quartiles, which lie among the values as the median does."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


@dataclass(frozen=True)
class Timings:
    """The seconds that each run took, one entry a round."""

    seconds: dict[str, list[float]]

    def of(self, name: str) -> Spread:
        """Give the seconds of one run."""
        return spread(self.seconds[name])

    def ratio(self, name: str, other: str) -> Spread:
        """Divide one run's seconds by another's, round by round."""
        pairs = zip(self.seconds[name], self.seconds[other], strict=True)
        return spread([a / b for a, b in pairs])


def make_clock(cpu: bool = False, device: torch.device | str = "cpu") -> Clock:
    """Make a clock: the wall's, or the processor's time where others are at work on the machine.

    On a GPU, Apple's too, it waits for what was asked of it to be done.
    """
    read = time.process_time if cpu else time.perf_counter
    kind = torch.device(device).type
    if kind not in ("cuda", "mps"):
        return read

    def waiting() -> float:
        torch.cuda.synchronize(device) if kind == "cuda" else torch.mps.synchronize()
        return read()

    return waiting


def in_turn(names: Sequence[str], number: int) -> list[str]:
    """Give the order of a round: each is first in turn, and neighbours change.

    Over as many rounds as there are names, twice as many if these are odd in number, each comes
    right after each other one equally often. Source: Williams 1949, a design balanced for residual
    effects.
    """
    n = len(names)
    zigzag = [(i + 1) // 2 if i % 2 else (n - i // 2) % n for i in range(n)]
    order = [names[(place + number) % n] for place in zigzag]
    return order[::-1] if number // n % 2 else order


def interleave(
    runs: Mapping[str, Callable[[], Any]],
    rounds: int,
    *,
    warm_up: int = 2,
    clock: Clock = time.perf_counter,
    least: float = 0.0,
    after: Callable[[int, dict[str, Any]], None] | None = None,
) -> Timings:
    """Time every run once a round, after rounds that warm up.

    `after` is called with the number of each round, warming ones first, and what the runs returned.
    A run that takes less than `least` seconds is repeated in each of its timings to take about as
    long, and its seconds are those of one call. Raises ValueError for no runs or no rounds.
    """
    if not runs or rounds < 1:
        raise ValueError(f"{len(runs)} runs in {rounds} rounds: at least one of each is needed")
    calls = dict.fromkeys(runs, 1)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for i in range(warm_up + rounds):
        results = {}
        for name in in_turn([*runs], i):
            begin = clock()
            for _ in range(calls[name]):
                results[name] = runs[name]()
            taken = (clock() - begin) / calls[name]
            if i >= warm_up:
                seconds[name].append(taken)
            else:
                calls[name] = max(1, round(least / max(taken, 1e-9)))
        if after is not None:
            after(i, results)
    return Timings(seconds)
