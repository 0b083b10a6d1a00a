"""Run benchmarks by name: `python tests/benchmarks training_step gpt_decoding --threads 2`.

Without a name it lists them; `all` runs all. Every benchmark warms up, takes turns, and prints
ratios first, then medians with their quartiles, with the machine's own limits beside them. --cpu
counts the processor's time instead of the clock's, for a machine that is busy (then use one
thread). --against runs another checkout's in turn with this one's and says what is slower. Peers of
Hugging Face need `pip install transformers`.
"""

import argparse
import importlib
import sys
import warnings
from pathlib import Path

if __name__ == "__main__":  # for `benchmarks` and `support`
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import BENCHMARKS, against


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python tests/benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME")
    add("--threads", type=int, default=2)
    add("--rounds", type=int, help="timings of each (default: the benchmark's own)")
    add("--cpu", action="store_true", help="the processor's time instead of the clock's")
    add("--device", choices=["cpu", "cuda", "mps"], help="default: the best here")
    add("--json", type=Path, metavar="FILE", help="also write everything to a file")
    add("--against", type=Path, metavar="CHECKOUT", help="this checkout's time over that one's")
    add("--turns", type=int, default=4, help="--against: how often both are run")
    add("--base", action="store_true", help="training_step: width 512, 6+6 layers")
    add("--small", action="store_true", help="gpt_*: the size of GPT-2 small")
    add("--dropout", type=float, default=0.0, help="*training_step")
    add("--precision", choices=["float32", "bfloat16"], default="float32",
        help="*training_step: bfloat16 adds rows in it")  # fmt: skip
    add("--tokens", type=int, default=128, help="gpt_decoding: tokens of each text")
    add("--longest", type=int, default=4096, help="attention: the largest n")
    add("--merges", type=int, default=2000, help="tokenizing")
    add("--seeds", type=int, default=3, help="exact_match: runs from seeds 0, 1, …")
    add("--steps", type=int, default=3000, help="exact_match: length of the schedule")
    add("--recipe", action="store_true", help="exact_match: nn.Transformer with ours, too")
    add("--quick", action="store_true", help="exact_match: one seed, at most 1,200 steps, 90 %%")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in (*BENCHMARKS, "all")]:
        parser.error(f"there is no {unknown[0]}; there are {', '.join(BENCHMARKS)}, and all")
    return options


def passed_on(arguments: list[str] | None, options: argparse.Namespace) -> list[str]:
    """Give the options of the command line that each checkout gets: all but names and turns."""
    left = list(sys.argv[1:] if arguments is None else arguments)
    for option in ("--against", "--turns", "--json"):
        if option in left:
            del left[left.index(option) : left.index(option) + 2]
    return [argument for argument in left if argument not in options.names]


def main(arguments: list[str] | None = None) -> int:
    """List or run; returns the exit status."""
    options = parse(arguments)
    if not options.names:
        for name, summary in BENCHMARKS.items():
            print(f"{name:18} {summary}")
        return 0
    names = [n for n in BENCHMARKS if n != "gpu"] if "all" in options.names else options.names
    if options.against:
        against.run(options.against, names, passed_on(arguments, options), options.turns)
        return 0
    import torch

    from benchmarks import report
    from tinytf.support.device import choose_device
    from tinytf_course.studies.interleaved import make_clock

    warnings.filterwarnings("ignore")
    torch.set_num_threads(options.threads)
    device = choose_device(options.device)
    clock = make_clock(options.cpu, device)
    where = report.machine(device)
    print(", ".join(f"{key} {value}" for key, value in where.items()))
    records = []
    for name in names:
        print(f"\n== {name}: {BENCHMARKS[name]}")
        torch.manual_seed(0)
        told = report.Report(name)
        settings = argparse.Namespace(**vars(options) | {"device": device, "clock": clock})
        importlib.import_module(f"benchmarks.{name}").run(settings, told)
        records.append(told.record(vars(options), where))
        if options.json:
            report.write(options.json, records)
    return 0


if __name__ == "__main__":
    sys.exit(main())
