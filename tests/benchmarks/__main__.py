"""Run benchmarks by name: `python tests/benchmarks training_step gpt_decoding --threads 2`.

Without a name it lists them; `all` runs all but `gpu`. What is compared takes turns; a table gives
its first row's time over each row's, round by round, and milliseconds, as medians with quartiles.
--cpu counts the processor's time instead of the clock's, for a machine that is busy (then use one
thread). --against runs another checkout's in turn with this one's and says what is slower. Peers of
Hugging Face need `pip install transformers`.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
if __name__ == "__main__":  # for `benchmarks` and `support`
    sys.path[0] = str(HERE / "tests")

from benchmarks import BENCHMARKS


def parse(arguments=None):
    """Read the command line; also returns what each checkout gets of it."""
    parser = argparse.ArgumentParser(
        prog="python tests/benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME")
    add("--against", type=Path, metavar="CHECKOUT", help="this checkout's time over that one's")
    add("--turns", type=int, default=4, help="--against: how often both are run")
    add("--json", type=Path, metavar="FILE", help="also write everything to a file")
    add("--threads", type=int, default=2)
    add("--rounds", type=int, help="timings of each (default: the benchmark's own)")
    add("--cpu", action="store_true", help="the processor's time instead of the clock's")
    add("--device", choices=["cpu", "cuda", "mps"], help="default: the best here")
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
    add("--recipe", action="store_true", help="exact_match: nn.Transformer by our trainer, too")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in (*BENCHMARKS, "all")]:
        parser.error(f"there is no {unknown[0]}; there are {', '.join(BENCHMARKS)}, and all")
    if "all" in options.names:
        options.names = [name for name in BENCHMARKS if name != "gpu"]
    given = list(sys.argv[1:] if arguments is None else arguments)
    for option in ("--against", "--turns", "--json"):
        if option in given:
            del given[given.index(option) : given.index(option) + 2]
    return options, [one for one in given if one not in (*BENCHMARKS, "all")]


def find(name):
    """Give a benchmark: a function of the options that yields comparisons, tables and lines."""
    return getattr(importlib.import_module(f"benchmarks.{BENCHMARKS[name]}"), name)


def run(name, options):
    """Run a benchmark, print what it yields, and return it as JSON can hold it."""
    print(f"\n== {name}: {find(name).__doc__.splitlines()[0]}")
    rows, lines = [], []
    for said in find(name)(options):
        print(said, flush=True)
        if isinstance(said, str):
            lines.append(said)
        else:
            seconds = said.timings.seconds.items()
            rows += [{"table": said.title, "name": row, "seconds": s} for row, s in seconds]
    return {"benchmark": name, "rows": rows, "lines": lines}


def medians(checkout, name, arguments):
    """Run a benchmark in a checkout: each row's median of seconds, by its table and its name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.json"
        command = [sys.executable, "tests/benchmarks", name, *arguments, "--json", str(path)]
        paths = os.pathsep.join([str(checkout), str(checkout / "notebooks")])
        ran = subprocess.run(command, cwd=checkout, env={**os.environ, "PYTHONPATH": paths},
                             capture_output=True, text=True)  # fmt: skip
        if ran.returncode:
            raise RuntimeError(f"{checkout}: {ran.stderr.strip() or ran.stdout.strip()}")
        (record,) = json.loads(path.read_text(encoding="utf-8"))
    return {(r["table"], r["name"]): statistics.median(r["seconds"]) for r in record["rows"]}


def against(there, names, arguments, turns):
    """Run benchmarks in two checkouts in turn; above 1 says that this one is slower."""
    from benchmarks.comparing import between, table
    from tinytf_course.studies.interleaved import spread

    for name in names:
        taken = [{}, {}]  # a row's medians, turn by turn, here and there
        for turn in range(turns):
            for which in (0, 1)[:: -1 if turn % 2 else 1]:
                found = medians((HERE, there.resolve())[which], name, arguments)
                for row, seconds in found.items():
                    taken[which].setdefault(row, []).append(seconds)
        lines = []
        for row in [row for row in taken[0] if row in taken[1]]:
            here, other = (side[row] for side in taken)
            ratios = spread([a / b for a, b in zip(here, other, strict=True)])
            ms = (f"{1000 * statistics.median(side):.2f}" for side in (here, other))
            lines.append([", ".join(row), between(ratios, 3), *ms])
        print(table([name, "here / there", "ms here", "ms there"], lines), flush=True)


def main(arguments=None):
    """List or run; returns the exit status."""
    options, passed_on = parse(arguments)
    if not options.names:
        for name in BENCHMARKS:
            print(f"{name:18} {find(name).__doc__.splitlines()[0]}")
    elif options.against:
        against(options.against, options.names, passed_on, options.turns)
    else:
        import torch

        from benchmarks.comparing import machine
        from tinytf.support.device import choose_device
        from tinytf_course.studies.interleaved import make_clock

        warnings.filterwarnings("ignore")
        torch.set_num_threads(options.threads)
        options.device = choose_device(options.device)
        options.clock = make_clock(options.cpu, options.device)
        where, records = machine(options), []
        print(where)
        for name in options.names:
            torch.manual_seed(0)
            records.append(run(name, options) | {"machine": where, "options": passed_on})
            if options.json:
                options.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
