"""Sentence pairs a second, drawn from the training split by one thread."""

import argparse

from benchmarks.report import Report
from tinytf_course.phrasebook import Pair, Phrasebook
from tinytf_course.studies.interleaved import Clock, Timings, interleave

__all__ = ["compare", "run"]

PAIRS = 20_000
FLOOR = "as many pairs made of ready parts"


def compare(pairs: int, rounds: int, clock: Clock) -> Timings:
    """Time the drawing, and the making of the same tuples alone."""
    book = Phrasebook()
    ready = [tuple(pair) for pair in book.sample(pairs)]
    runs = {
        "drawn": lambda: book.sample(pairs),
        FLOOR: lambda: [Pair(*parts) for parts in ready],
    }
    return interleave(runs, rounds, warm_up=1, clock=clock)


def run(options: argparse.Namespace, report: Report) -> None:
    """Print pairs a second."""
    timings = compare(PAIRS, options.rounds or 5, options.clock)
    rate = PAIRS / timings.of("drawn").median
    note = "what Python takes for that"
    report.timings(f"{PAIRS:,} pairs", timings, ["drawn"], {FLOOR: note})
    report.value("drawn", rate, "pairs/s", 0)
    report.aim("pairs a second", rate, 20_000, least=True)
