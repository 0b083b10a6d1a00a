"""Attention alone, forward and backward: explicit, fused, and torch's own module.

One sentence, 4 heads of width 64, no mask, n from 64 to 4096. The first two are functions of
queries, keys and values; modules have their four linear maps in it. Time and peak memory grow as
powers of n, fitted to the upper half of the lengths. The matmuls alone are those of the explicit
one, which write n x n numbers: the fused kernel, which does not, can be faster.
"""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence

import torch
from support import attention_twins, copy_twins
from torch import Tensor, nn

from benchmarks import limits, products
from benchmarks.memory import METHOD, peak_bytes
from benchmarks.report import Report
from tinytf.attention import MultiHeadAttention, explicit_attention, fused_attention
from tinytf_course.studies.interleaved import Timings, interleave

__all__ = ["WAYS", "compare", "make", "run", "slope"]

HEADS, WIDTH = 4, 64
FLOOR = "matmuls alone"
WAYS = (
    "explicit",
    "fused",
    "tinytf module",
    "nn.MultiheadAttention",
    "nn.MultiheadAttention, no weights",
)


def make(way: str, n: int, device: str = "cpu") -> Callable[[], tuple[Tensor, ...]]:
    """Make a run that returns the output, (n, C) numbers, and the gradients of what went in."""
    generator = torch.Generator().manual_seed(0)
    draws = (1, HEADS, n, WIDTH) if way in ("explicit", "fused") else (1, n, HEADS * WIDTH)
    *inputs, probe = (torch.randn(draws, generator=generator).to(device) for _ in range(4))
    if way in ("explicit", "fused"):
        function = explicit_attention if way == "explicit" else fused_attention
        wanted = [x.requires_grad_() for x in inputs]

        def forward() -> Tensor:
            return function(*wanted)
    else:
        x, module = inputs[0].requires_grad_(), _module(way).to(device)
        wanted = [x, *module.parameters()]

        def forward() -> Tensor:
            if way == "tinytf module":
                return module(x)
            return module(x, x, x, need_weights=not way.endswith("no weights"))[0]

    def run() -> tuple[Tensor, ...]:
        out = forward()
        return out.detach(), *torch.autograd.grad(out, wanted, probe)

    return run


def _module(way: str) -> nn.Module:
    """Make one of the modules, all with the same weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        ours = MultiHeadAttention(HEADS * WIDTH, HEADS)
    if way == "tinytf module":
        return ours
    theirs = nn.MultiheadAttention(HEADS * WIDTH, HEADS, batch_first=True)
    copy_twins(attention_twins(ours, theirs))
    return theirs


def compare(n: int, rounds: int, options: argparse.Namespace, least: float = 0.02) -> Timings:
    """Time every way at one length, and the matrix products of the explicit one."""
    runs = {way: make(way, n, options.device) for way in WAYS}
    floor = products.replay(products.recorded(runs["explicit"]))

    def after(number: int, results: dict) -> None:
        for ways in (WAYS[:2], WAYS[2:]):
            for other in ways[1:]:
                for a, b in zip(results[ways[0]][:2], results[other][:2], strict=True):
                    torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3)

    return interleave(runs | {FLOOR: floor}, rounds, clock=options.clock, least=least, after=after)


def slope(values: Mapping[int, float]) -> float:
    """Fit a power of n by least squares: the slope of log value over log n."""
    xs, ys = [math.log(n) for n in values], [math.log(v) for v in values.values()]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    steep = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    return steep / sum((a - x) ** 2 for a in xs)


def run(options: argparse.Namespace, report: Report) -> None:
    """Print time and memory by length, and the slopes."""
    lengths = [2**i for i in range(6, 1 + int(math.log2(options.longest)))]
    times: dict[int, Timings] = {}
    memory: dict[int, dict[str, int]] = {}
    device = str(options.device)
    for n in lengths:
        times[n] = compare(n, options.rounds or 7, options)
        memory[n] = {
            way: peak_bytes(make, way, n, device, warm=(way, 16, device), device=device)
            for way in WAYS
        }
        report.keep(f"attention, n = {n}", times[n], WAYS, bytes=memory[n])
    upper = lengths[len(lengths) // 2 :]
    names = [*WAYS, FLOOR]
    ratios = [
        [way, *(f"{times[n].ratio('fused', way).median:.2f}" for n in lengths)] for way in names
    ]
    report.table("fused / it", ["", *map(str, lengths)], ratios)
    medians = {way: {n: times[n].of(way).median for n in lengths} for way in names}
    _grid(report, "milliseconds, forward and backward", medians, 1e3, lengths, upper)
    peaks = {way: {n: memory[n][way] for n in lengths} for way in WAYS}
    _grid(report, f"peak memory in MB ({METHOD})", peaks, 1e-6, lengths, upper)
    last = lengths[-1]
    calls = products.recorded(make("explicit", last, device))
    best = limits.show(report, calls, options.device, clock=options.clock)
    work = sum(2 * m * k * n * times_ for (m, k, n), times_ in products.shapes(calls).items())
    for way in ("explicit", "fused"):
        reached = work / times[last].of(way).median / best
        report.value(f"of the highest rate, {way} at n = {last}", 100 * reached, "%", 0)


def _grid(
    report: Report,
    title: str,
    values: Mapping[str, Mapping[int, float]],
    factor: float,
    lengths: Sequence[int],
    upper: Sequence[int],
) -> None:
    """Print numbers by way and length, and the slope of each over the upper lengths."""
    lines = []
    for way, row in values.items():
        fit = {n: row[n] for n in upper if row[n] > 0}
        steep = f"{slope(fit):.2f}" if len(fit) > 1 else "-"
        lines.append([way, *(f"{factor * row[n]:.2f}" for n in lengths), steep])
        if len(fit) > 1:
            report.values[f"{title}: power of n, {way}"] = slope(fit)
    headers = ["", *map(str, lengths), f"power of n, {upper[0]} to {upper[-1]}"]
    report.table(title, headers, lines)
