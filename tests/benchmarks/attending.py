"""What attention costs in time and memory as texts grow."""

import math
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import torch
from support import attention_twins, copy_twins
from torch import nn

from benchmarks.comparing import aim, compare, table
from tinytf.attention import MultiHeadAttention, explicit_attention, fused_attention
from tinytf.decoding.fast import fast_decoder
from tinytf.gpt import GPT, GPTConfig

HEADS, WIDTH = 4, 64
FUNCTIONS = {"fused": fused_attention, "explicit": explicit_attention}
MODULES = ("tinytf module", "nn.MultiheadAttention", "nn.MultiheadAttention, no weights")
LENGTHS = (2048, 4096, 8192, 16384)
CAUSAL = (
    "read",
    "read, fast decoder",
    "read in two parts, cached",
    "read in two parts, fast decoder",
    "forward and backward",
    "explicit, read",
)


def attend(way, n, device="cpu"):
    """Make a run that returns the output, (n, C) numbers, and the gradients of what went in."""
    generator = torch.Generator().manual_seed(0)
    draws = (1, HEADS, n, WIDTH) if way in FUNCTIONS else (1, n, HEADS * WIDTH)
    *inputs, probe = (torch.randn(draws, generator=generator).to(device) for _ in range(4))
    inputs = [x.requires_grad_() for x in inputs]
    if way not in FUNCTIONS:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            module = MultiHeadAttention(HEADS * WIDTH, HEADS)
        inputs = inputs[:1]
        if way != "tinytf module":
            ours, module = module, nn.MultiheadAttention(HEADS * WIDTH, HEADS, batch_first=True)
            copy_twins(attention_twins(ours, module))
        module.to(device)
        inputs += module.parameters()

    def forward():
        if way in FUNCTIONS:
            return FUNCTIONS[way](*inputs)
        if way == "tinytf module":
            return module(inputs[0])
        x, need_weights = inputs[0], not way.endswith("no weights")
        return module(x, x, x, need_weights=need_weights)[0]

    def run():
        out = forward()
        return out.detach(), *torch.autograd.grad(out, inputs, probe)

    return run


def attention(options):
    """explicit, fused and nn.MultiheadAttention, n = 64 to 4096: time and memory.

    One sentence, 4 heads of width 64, no mask. Time and peak memory grow as powers of n, fitted to
    the upper half of the lengths.
    """
    lengths = [2**i for i in range(6, 1 + int(math.log2(options.longest)))]
    names, device = (*FUNCTIONS, *MODULES), str(options.device)
    times, memory = {name: {} for name in names}, {name: {} for name in names}
    for n in lengths:
        runs = {name: attend(name, n, device) for name in names}
        shown = {name: lambda run=run: run()[:2] for name, run in runs.items()}
        timed = compare(f"attention, n = {n}", shown, options, 7, least=0.02, close=1e-3,
                        same=[[*FUNCTIONS], MODULES])  # fmt: skip
        yield timed
        for name in names:
            times[name][n] = 1000 * timed.timings.of(name).median
            peak = peak_bytes(attend, name, n, device, warm=(name, 16, device), device=device)
            memory[name][n] = peak / 1e6
    for title, values in (("milliseconds", times), ("peak memory, MB", memory)):
        rows = [
            [name, *(f"{v:.2f}" for v in row.values()), f"{slope(row):.2f}"]
            for name, row in values.items()
        ]
        yield f"\n{title}\n" + table(["", *map(str, lengths), "power of n"], rows)


def slope(values):
    """Fit a power of n to the upper half: the slope of log value over log n, by least squares."""
    upper = [(math.log(n), math.log(v)) for n, v in values.items() if v > 0]
    upper = upper[len(upper) // 2 :] if len(upper) > 3 else upper
    x, y = (sum(column) / len(upper) for column in zip(*upper, strict=True))
    steep = sum((a - x) * (b - y) for a, b in upper)
    return steep / (sum((a - x) ** 2 for a, _ in upper) or math.nan)


def read(way, n, device="cpu"):
    """Make a run of one layer of a GPT over one text of n tokens."""
    torch.manual_seed(0)
    vocab = 64
    model = GPT(GPTConfig(vocab, HEADS * WIDTH, HEADS, 1, max_len=n)).to(device).eval()
    ids = torch.arange(n, device=device)[None] % vocab
    if way == "forward and backward":
        return lambda: model(ids).square().mean().backward()
    if way == "explicit, read":
        model.decoder.layers[0].self_attention.attention = explicit_attention
    if "fast decoder" in way:
        model = fast_decoder(model)

    @torch.no_grad()
    def run():
        cache = model.decoder.new_cache()
        for part in ids.chunk(2, dim=1) if "two parts" in way else (ids,):
            model.decode(part, cache)

    return run


def causal_memory(options):
    """memory of causal attention, n = 2,048 to 16,384, in fresh processes.

    It must grow as n, not as n²: the kernel is told that attention is causal, so that there is no
    mask, but where a text is read in two parts with a cache. Explicit attention, which makes
    several n x n matrices a head, is not run where one takes more than 512 MB.
    """
    device, rows, peaks = str(options.device), [], {}
    matrix = {n: 4 * HEADS * n * n for n in LENGTHS}  # bytes
    for way in CAUSAL:
        lengths = [n for n in LENGTHS if way != CAUSAL[-1] or matrix[n] <= 2**29]
        warm = (way, 16, device)
        peaks[way] = {n: peak_bytes(read, way, n, device, warm=warm, device=device)
                      for n in lengths}  # fmt: skip
    for way, found in {**peaks, "(one n x n matrix of all heads)": matrix}.items():
        cells = [f"{found[n] / 1e6:.0f}" if n in found else "not run" for n in LENGTHS]
        steep = slope({n: max(peak, 1) for n, peak in [*found.items()][-2:]})
        rows.append([way, *cells, f"{steep:.2f}"])
    title = "causal attention, peak memory in MB"
    yield f"\n{title}\n" + table(["", *map(str, LENGTHS), "power of n at the end"], rows)
    last = LENGTHS[-1]
    share = peaks["read"][last] / matrix[last]
    yield aim(f"of an n x n matrix, read, n = {last}", share, most=0.1)


def peak_bytes(make, *arguments, warm, device="cpu"):
    """Give the bytes that one call of `make(*arguments)()` needs beyond what `make` made.

    On a CPU that is the growth of a child process's largest resident size, a fresh child for each
    call, where `make(*warm)()` has run before, for what torch sets up once. Pages are counted, so a
    megabyte is the least to go by. On a GPU torch's allocator says it.
    """
    if torch.device(device).type == "cuda":
        make(*warm)()
        run = make(*arguments)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        return torch.cuda.max_memory_allocated(device) - before
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", make.__module__])
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_growth, make, arguments, warm, torch.get_num_threads()).result()


def _growth(make, arguments, warm, threads):
    import resource  # not on Windows, where nothing here is measured

    def largest():
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return size if sys.platform == "darwin" else 1024 * size

    torch.set_num_threads(threads)
    make(*warm)()
    run = make(*arguments)
    before = largest()
    kept = run()
    grown = largest() - before
    del kept
    return grown
