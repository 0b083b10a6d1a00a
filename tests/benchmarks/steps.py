"""Training steps of several models, timed in turn: what both training benchmarks share."""

import argparse
import math
from collections.abc import Callable, Mapping

import torch

from benchmarks import limits, products
from benchmarks.recipe import Peer
from benchmarks.report import Report
from tinytf.metrics.counting import count_parameters
from tinytf_course.studies.interleaved import Timings, interleave

__all__ = ["FLOOR", "agreement", "fastest", "measure"]

FLOOR = "matmuls alone"


def agreement(
    peers: Mapping[str, Peer], at_first: float = 1e-6
) -> Callable[[int, dict[str, float]], None]:
    """Make a check of each round's losses: the same at first, the same but for rounding later."""

    def check(number: int, losses: dict[str, float]) -> None:
        first: dict[str, tuple[str, float]] = {}
        for name, peer in peers.items():
            limit = (at_first if number == 0 else 1e-3) if peer.exact else 2e-2
            if not math.isfinite(losses[name]):
                raise AssertionError(f"the loss of {name} is {losses[name]} in round {number}")
            other, loss = first.setdefault(peer.group or name, (name, losses[name]))
            if not math.isclose(losses[name], loss, rel_tol=limit):
                raise AssertionError(
                    f"round {number}: the loss of {name} is {losses[name]}, that of {other} {loss}"
                )

    return check


def measure(
    report: Report,
    options: argparse.Namespace,
    found: Mapping[str, Peer],
    rounds: int,
    title: str,
    megabytes: int = 512,
) -> Timings:
    """Take one step of each and compare the losses, then time them, and print the table.

    The reference's matrix products are written down and replayed as one run among the others; the
    share of a step is that run's time over the step's. With dropout no losses are compared: each
    model drops other numbers.
    """
    # a GPU has other kernels for other shapes, and each adds up in an order of its own
    on_cpu = torch.device(options.device).type == "cpu"
    check = agreement(found, 1e-6 if on_cpu else 1e-5)
    losses = {name: peer.step() for name, peer in found.items() if name != "reference"}
    calls = products.recorded(lambda: losses.update(reference=found["reference"].step()))

    def after(number: int, losses: dict[str, float]) -> None:
        if not options.dropout:
            check(number, losses)

    after(0, losses)
    last: dict[str, float] = {}

    def later(number: int, losses: dict[str, float]) -> None:
        after(number + 1, losses)
        last.update(losses)

    timed = {name: peer.step for name, peer in found.items()} | {FLOOR: products.replay(calls)}
    timings = interleave(timed, rounds, clock=options.clock, after=later)
    full = [name for name, peer in found.items() if peer.exact]  # as the floor is
    report.timings(
        title,
        timings,
        [name for name in found if name.startswith("tinytf")],
        {name: peer.note for name, peer in found.items()} | {FLOOR: "the reference's, replayed"},
        **{
            "matmul share": {n: f"{timings.ratio(FLOOR, n).median:.0%}" for n in full},
            "parameters": {n: count_parameters(peer.model) for n, peer in found.items()},
            "last loss": {n: f"{last[n]:.5f}" for n in found},
        },
    )
    limits.show(report, calls, options.device, clock=options.clock, megabytes=megabytes)
    return timings


def fastest(timings: Timings, found: Mapping[str, Peer], but: str = "tinytf") -> str:
    """Name the peer that takes the shortest time, of those whose name does not begin so."""
    others = [name for name in found if not name.startswith(but)]
    return min(others, key=lambda name: timings.of(name).median)
