"""Break files and kill processes for some minutes: `python -m tests.faults --minutes 15`.

`python -m tests.faults --nodes 20` kills processes and nodes of jobs of two nodes instead.

Every fault is drawn from --seed. A load of a broken file must raise CheckpointError or give what
the file meant; a run that is stopped in any way must go on to the bits of one that was not.
Prints a table by kind and ends with status 1 if anything was lost, crashed or raised raw.

Columns: a clear error; unharmed, what was loaded is what the whole file held; accepted, a change
that a file may have (another word, another weight in a folder without a digest).
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from .files import try_files
from .nodes import try_nodes
from .processes import try_processes
from .report import BAD, Case, table


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
    begun = time.monotonic()
    found: list[Case] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.nodes:
            options.files = options.processes = 0
        for case in try_nodes(folder / "nodes", options.seed, options.nodes):
            _note(case, found)
        # half of the time for each; what the first leaves is the second's
        middle = begun + 30 * options.minutes
        until = begun + 60 * options.minutes
        for case in try_files(folder / "files", options.seed, options.files, middle):
            _note(case, found)
        for case in try_processes(folder / "runs", options.seed, options.processes, until):
            _note(case, found)
    print(table(found))
    taken = (time.monotonic() - begun) / 60
    print(f"{len(found)} faults in {taken:.1f} minutes, seed {options.seed}")
    return 1 if any(case.outcome in BAD for case in found) else 0


def _note(case: Case, found: list[Case]) -> None:
    found.append(case)
    if case.outcome in BAD:
        print(f"{case.outcome}: {case.kind} of {case.what}: {case.words}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
