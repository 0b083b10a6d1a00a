"""Seconds of training to 99 % exact match on the phrasebook, ours beside `nn.Transformer`.

Ours is the recipe of `python -m tinytf train --attention auto`. They train in turns of 50 steps, so
that both meet the same noise; only training counts, the drawing of sentences included, and not the
ten passes before it that choose the attention. After each turn 2,000 sentences held out are graded.
Who is there first stops, and the other goes on alone. The share of matmuls is that of a typical
step of ours.
"""

import argparse
from collections.abc import Mapping
from typing import NamedTuple

from benchmarks import limits, products
from benchmarks.contestants import OURS, THEIRS, Contestant, contestants, share_exact
from benchmarks.report import Report, between
from tinytf.training.losses import Batch
from tinytf.training.trainer import TrainingConfig
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.phrasebook.batches import PhrasebookBatches
from tinytf_course.studies.interleaved import Clock, Timings, in_turn, interleave

__all__ = ["Result", "held_out", "race", "run"]

CHUNK = 50


class Result(NamedTuple):
    """How long one took to reach the target, or how far it came."""

    seconds: float
    steps: int
    share: float
    reached: bool


def held_out(count: int = 2000, size: int = 250) -> list[Batch]:
    """Draw validation sentences, in batches."""
    batches = PhrasebookBatches(Phrasebook(), size, seed=1, split="validation", pool=count // size)
    return [batches(step) for step in range(count // size)]


def race(
    racers: Mapping[str, Contestant],
    grading: list[Batch],
    target: float,
    steps: int,
    clock: Clock,
    chunk: int = CHUNK,
) -> dict[str, Result]:
    """Train all in turns until each has reached the target or the last step."""
    seconds = dict.fromkeys(racers, 0.0)
    results: dict[str, Result] = {}
    for number, step in enumerate(range(chunk, steps + 1, chunk)):
        for name in in_turn([*racers], number):
            if name in results:
                continue
            begin = clock()
            racers[name].until(step)
            seconds[name] += clock() - begin
            share = share_exact(racers[name].model, grading)
            if share >= target or step + chunk > steps:
                results[name] = Result(seconds[name], step, share, share >= target)
    return {name: results[name] for name in racers}


def run(options: argparse.Namespace, report: Report) -> None:
    """Print seconds and steps by seed, and the ratio."""
    seeds, steps, target = options.seeds, options.steps, 0.99
    if options.quick:
        seeds, steps, target = 1, min(steps, 1200), 0.90
    grading = [batch.to(options.device) for batch in held_out()]
    runs: dict[str, list[Result]] = {}
    for seed in range(seeds):
        config = TrainingConfig(
            steps=steps, warmup=min(200, steps // 2), precision="auto", attention="auto", seed=seed
        )
        racers = contestants(config, device=options.device, mixed=options.recipe)
        for name, result in race(racers, grading, target, steps, options.clock).items():
            runs.setdefault(name, []).append(result)
            end = "" if result.reached else f", only {result.share:.2%}"
            report.say(f"seed {seed}: {name}: {result.seconds:.1f} s, {result.steps} steps{end}")
    timings = Timings({name: [r.seconds for r in rows] for name, rows in runs.items()})
    taken = {name: str([r.steps for r in rows]) for name, rows in runs.items()}
    missed = {
        name: f"{sum(not r.reached for r in rows)} of {seeds} never got there"
        for name, rows in runs.items()
        if not all(r.reached for r in rows)
    }
    title = f"training to {target:.0%} exact match, by seed; a schedule of {steps} steps"
    report.timings(title, timings, [OURS], missed, steps=taken)
    _floor(report, options)
    if missed:
        report.say(f"no ratio: {'; '.join(f'{name}: {words}' for name, words in missed.items())}")
    else:
        report.aim(f"{OURS} over {THEIRS}", timings.ratio(OURS, THEIRS).median, 0.5)


def _floor(report: Report, options: argparse.Namespace) -> None:
    """Time steps of ours and their matrix products alone."""
    config = TrainingConfig(steps=1000, precision="auto", attention="auto")
    racer = contestants(config, device=options.device)[OURS]
    racer.until(10)
    calls = products.recorded(lambda: racer.until(11))
    done = 11

    def step() -> None:
        nonlocal done
        done += 1
        racer.until(done)

    timings = interleave({"step": step, "matmuls": products.replay(calls)}, 21, clock=options.clock)
    share = between(timings.ratio("matmuls", "step").scaled(100), 0)
    report.say(f"a step's matmuls alone take {share} % of a step's time (one step's, replayed)")
    limits.show(report, calls, options.device, clock=options.clock)
