"""Break files and kill processes for some minutes: `python -m tests.faults --minutes 15`.

`python -m tests.faults --nodes 20` kills processes and nodes of jobs of two nodes instead.

Every fault is drawn from --seed. A load of a broken file must raise CheckpointError or give what
the file meant; a run that is stopped in any way must go on to the bits of one that was not.
Prints a table by kind and ends with status 1 if anything was lost, crashed or raised raw.

Columns: a clear error; unharmed, what was loaded is what the whole file held; accepted, a change
that a file may have (another word, another weight in a folder without a digest).
"""

import argparse
import itertools
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from .files import try_files
from .nodes import try_nodes
from .processes import try_processes
from .report import BAD, table


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=15.0, help="at most")
    parser.add_argument("--files", type=int, default=1200, help="broken files, at most")
    parser.add_argument("--processes", type=int, default=240, help="stopped processes, at most")
    parser.add_argument("--nodes", type=int, default=0, help="jobs of two nodes, and nothing else")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    begun, found = time.monotonic(), []
    middle, until = (begun + share * options.minutes for share in (30, 60))  # half for each
    files, processes = (0, 0) if options.nodes else (options.files, options.processes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in itertools.chain(
            try_nodes(folder / "nodes", options.seed, options.nodes),
            try_files(folder / "files", options.seed, files, middle),
            try_processes(folder / "runs", options.seed, processes, until),
        ):
            found.append(case)
            if case.outcome in BAD:
                print(f"{case.outcome}: {case.kind} of {case.what}: {case.words}", flush=True)
    print(table(found))
    taken = (time.monotonic() - begun) / 60
    print(f"{len(found)} faults in {taken:.1f} minutes, seed {options.seed}")
    return 1 if any(case.outcome in BAD for case in found) else 0


if __name__ == "__main__":
    sys.exit(main())
