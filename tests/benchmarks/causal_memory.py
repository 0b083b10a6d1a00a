"""Memory of a causal stack by the length of its text: it must grow as n, not as n².

One layer of a GPT, width 256, 4 heads, one text; each run in a fresh process, whose largest
resident size counts. The kernel is told that attention is causal, so that there is no mask either.
The explicit attention beside it makes several n x n matrices a head, and is not run beyond what
`MOST` allows. A text that is read in two parts with a cache needs a mask of its second part's
queries by all keys: the kernel's "causal" means the first keys, not the last. The fast decoder
takes those queries block by block.
"""

import argparse
from collections.abc import Callable

import torch

from benchmarks.attention import slope
from benchmarks.memory import METHOD, peak_bytes
from benchmarks.report import Report
from tinytf.attention import explicit_attention
from tinytf.decoding.fast import fast_decoder
from tinytf.gpt import GPT, GPTConfig

__all__ = ["LENGTHS", "WAYS", "make", "matrix_bytes", "run"]

LENGTHS = (2048, 4096, 8192, 16384)
HEADS, WIDTH, VOCAB = 4, 256, 64
WAYS = (
    "read",
    "read, fast decoder",
    "read in two parts, cached",
    "read in two parts, fast decoder",
    "forward and backward",
    "explicit, read",
)
MOST = 2**29  # bytes of one n x n matrix of all heads, where attention is explicit


def make(way: str, n: int, device: str = "cpu") -> Callable[[], object]:
    """Make a run over one text of n tokens."""
    torch.manual_seed(0)
    model = GPT(GPTConfig(VOCAB, WIDTH, HEADS, 1, max_len=n)).to(device).eval()
    ids = torch.arange(n, device=device)[None] % VOCAB
    if way == "forward and backward":
        return lambda: model(ids).square().mean().backward()
    if way == "explicit, read":
        model.decoder.layers[0].self_attention.attention = explicit_attention
    if "fast decoder" in way:
        model = fast_decoder(model)
    parts = ids.chunk(2, dim=1) if "two parts" in way else (ids,)

    @torch.no_grad()
    def read() -> None:
        cache = model.decoder.new_cache()
        for part in parts:
            model.decode(part, cache)

    return read


def matrix_bytes(n: int) -> int:
    """Give the bytes of one n x n matrix of numbers for every head."""
    return 4 * HEADS * n * n


def run(options: argparse.Namespace, report: Report) -> None:
    """Print the peaks by length, and by which power of n they grow."""
    device, lines = str(options.device), []
    for way in WAYS:
        lengths = [n for n in LENGTHS if way != WAYS[-1] or matrix_bytes(n) <= MOST]
        peaks = {
            n: peak_bytes(make, way, n, device, warm=(way, 16, device), device=device)
            for n in lengths
        }
        for n, peak in peaks.items():
            report.values[f"{way}, n = {n} [MB]"] = peak / 1e6
        steep = slope({n: max(peak, 1) for n, peak in list(peaks.items())[-2:]})
        cells = [f"{peaks[n] / 1e6:.0f}" if n in peaks else "not run" for n in LENGTHS]
        lines.append([way, *cells, f"{steep:.2f}"])
    squares = [f"{matrix_bytes(n) / 1e6:.0f}" for n in LENGTHS]
    lines.append(["(one n x n matrix of all heads)", *squares, "2.00"])
    title = f"causal attention, peak memory in MB ({METHOD})"
    report.table(title, ["", *map(str, LENGTHS), "power of n at the end"], lines)
    last = LENGTHS[-1]
    share = report.values[f"{WAYS[0]}, n = {last} [MB]"] * 1e6 / matrix_bytes(last)
    report.aim(f"of an n x n matrix, read, n = {last}", share, 0.1)
