"""What every benchmark is made of: named runs that take turns, checked and put into a table."""

import os
import platform
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from tinytf_course.studies.interleaved import Timings, interleave


@dataclass
class Compared:
    """Timings of several runs, the first of which is divided by each; a string says it all.

    Milliseconds are those of a run over `per` (tokens, say). A column gives some rows an entry.
    """

    title: str
    timings: Timings
    per: float = 1.0
    columns: dict = field(default_factory=dict)

    def ratio(self, name, other):
        """The median of one run's time over another's."""
        return self.timings.ratio(name, other).median

    def __str__(self):
        first = next(iter(self.timings.seconds))
        lines = [
            [
                name,
                between(self.timings.ratio(first, name), 3),
                between(self.timings.of(name).scaled(1000 / self.per), 2),
                *(str(column.get(name, "")) for column in self.columns.values()),
            ]
            for name in self.timings.seconds
        ]
        return f"\n{self.title}\n" + table(["", f"{first} / it", "ms", *self.columns], lines)


def compare(title, runs, options, rounds, *, same=(), close=0.0, per=1.0, **settings):
    """Time runs in turn. Raises AssertionError where those that `same` names together part.

    `same` is a list of lists of names; what these return, ids, numbers or tensors, may differ by a
    share `close`, and by a thousandth more after the first round, when rounding has added up.
    """

    def after(number, results):
        limit = close + (1e-3 if number and close else 0.0)
        for first, *others in same:
            for name in others:
                torch.testing.assert_close(
                    results[name], results[first], rtol=limit, atol=limit,
                    msg=lambda text, name=name, first=first: f"{name} is not {first}: {text}",
                )  # fmt: skip

    timings = interleave(
        runs, options.rounds or rounds, clock=options.clock, after=after, warm_up=1, **settings
    )
    return Compared(title, timings, per)


def table(headers, rows):
    """Line up columns: the first and notes to the left, numbers to the right."""
    lines = [headers, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    left = [i == 0 or head == "note" for i, head in enumerate(headers)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if to_left else cell.rjust(width)
            for cell, width, to_left in zip(line, widths, left, strict=True)
        ).rstrip()
        for line in lines
    )


def between(value, digits):
    """Write a median and its quartiles."""
    return f"{value.median:.{digits}f} ({value.low:.{digits}f}-{value.high:.{digits}f})"


def aim(what, measured, *, most=None, least=None):
    """Say a number beside what is aimed at."""
    reached = measured <= most if least is None else measured >= least
    words = f"at most {most:g}" if least is None else f"at least {least:g}"
    verdict = "reached" if reached else "missed"
    return f"aim: {what}: {measured:,.3f}, {words} is aimed at: {verdict}"


def work(run):
    """Count the floating-point operations of the matrix products of one call of `run`."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def limits(options, size=1024, megabytes=256):
    """Measure what the machine can do: operations a second in products, bytes a second in reading.

    Reading is that of a token that is decoded alone: a vector times weights as `nn.Linear` has them
    """
    square = torch.randn(size, size, device=options.device)
    tall = torch.ones(max(megabytes * 2**20 // (4 * 4096), 1), 4096, device=options.device)
    runs = {"product": lambda: square @ square, "read": lambda: tall[:1] @ tall.t()}
    timings = interleave(runs, 5, clock=options.clock, least=0.02)
    return 2 * size**3 / timings.of("product").median, tall.nbytes / timings.of("read").median


def machine(options):
    """Say where something was measured, and what can be done there at best."""
    info = Path("/proc/cpuinfo")
    models = [line for line in info.read_text().splitlines() if line.startswith("model name")] \
        if info.exists() else []  # fmt: skip
    name = models[0].partition(":")[2].strip() if models else platform.processor()
    if options.device.type == "cuda":
        name = torch.cuda.get_device_name(options.device)
    rate, read = limits(options)
    return (
        f"{options.device} ({name}), {os.cpu_count()} cores, {torch.get_num_threads()} threads, "
        f"torch {torch.__version__}, Python {platform.python_version()}, {platform.system()}; "
        f"products {rate / 1e9:.0f} GFLOP/s, memory read {read / 1e9:.1f} GB/s"
    )
