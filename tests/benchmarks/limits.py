"""What the machine can do at best: products of matrices, and reading of memory."""

import time
from collections.abc import Sequence

import torch

from benchmarks.products import Call, Shape, shapes
from benchmarks.report import Report
from tinytf_course.studies.interleaved import Clock, interleave

__all__ = ["bandwidth", "has_bfloat16", "matmul_rates", "show"]


def matmul_rates(
    wanted: Sequence[Shape],
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    *,
    rounds: int = 5,
    clock: Clock = time.perf_counter,
    least: float = 0.02,
) -> dict[Shape, float]:
    """Give the floating-point operations a second of (m, k) times (k, n), 2mkn each."""
    runs = {}
    for m, k, n in wanted:
        a, b = (
            torch.randn(m, k, device=device).to(dtype),
            torch.randn(k, n, device=device).to(dtype),
        )
        runs[f"{m} {k} {n}"] = lambda a=a, b=b: a @ b
    timings = interleave(runs, rounds, clock=clock, least=least)
    return {
        (m, k, n): 2 * m * k * n / timings.of(f"{m} {k} {n}").median for m, k, n in wanted
    }  # fmt: skip


def has_bfloat16(device: torch.device | str = "cpu", clock: Clock = time.perf_counter) -> bool:
    """Say whether a product in bfloat16 is faster here than in float32."""
    shape = (1024, 128, 512)
    rates = [
        matmul_rates([shape], dtype, device, rounds=3, clock=clock, least=0.005)[shape]
        for dtype in (torch.bfloat16, torch.float32)
    ]
    return rates[0] > rates[1]


@torch.no_grad()
def bandwidth(
    device: torch.device | str = "cpu",
    *,
    megabytes: int = 512,
    rounds: int = 5,
    clock: Clock = time.perf_counter,
) -> dict[str, float]:
    """Give the bytes a second of reading a buffer once: as a sum, and times a vector.

    The product is that of a token that is decoded alone, its weights as `nn.Linear` keeps them.
    """
    rows = max(megabytes * 2**20 // (4 * 4096), 1)
    buffer = torch.ones(rows, 4096, device=device)
    vector = torch.ones(1, 4096, device=device)
    runs = {"sum": lambda: buffer.sum(), "matrix times vector": lambda: vector @ buffer.t()}
    timings = interleave(runs, rounds, warm_up=1, clock=clock)
    return {name: buffer.nbytes / timings.of(name).median for name in runs}


def show(
    report: Report,
    calls: Sequence[Call],
    device: torch.device | str = "cpu",
    *,
    clock: Clock = time.perf_counter,
    most: int = 4,
    megabytes: int = 512,
) -> float:
    """Say the limits at those shapes of `calls` that have the most work.

    Returns the highest rate in float32, in operations a second.
    """
    count = shapes(calls)
    work = {s: 2 * s[0] * s[1] * s[2] * times for s, times in count.items()}
    largest = sorted(work, key=work.get, reverse=True)[:most]
    report.say(f"\nthe machine: {sum(work.values()) / 1e9:.3g} GFLOP in {count.total()} matmuls")
    kinds = [torch.float32]
    if has_bfloat16(device, clock):
        kinds.append(torch.bfloat16)
    rates: dict[torch.dtype, dict[Shape, float]] = {}
    for dtype in kinds:
        rates[dtype] = matmul_rates(largest, dtype, device, clock=clock)
        for shape, rate in rates[dtype].items():
            share = work[shape] / sum(work.values())
            words = f"{dtype} {' x '.join(map(str, shape))} ({share:.0%} of the work)"
            report.value(words.removeprefix("torch."), rate / 1e9, "GFLOP/s", 0)
    if torch.bfloat16 not in kinds:
        report.say("bfloat16 is no faster than float32 here")
    for name, rate in bandwidth(device, megabytes=megabytes, clock=clock).items():
        report.value(f"memory read, {name}", rate / 1e9, "GB/s", 1)
    return max(rates[torch.float32].values())
