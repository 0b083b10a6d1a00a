"""Two checkouts against each other: their benchmarks take turns, each in a process of its own.

A turn runs the benchmark in both, in an order that changes from turn to turn. A row's ratio is
that of its medians within a turn, here over there: above 1 means that this checkout is slower.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.report import between, table
from tinytf_course.studies.interleaved import spread

HERE = Path(__file__).resolve().parents[2]

Medians = dict[tuple[str, str], float]


def medians(checkout: Path, arguments: Sequence[str]) -> Medians:
    """Run benchmarks in a checkout: each row's median of seconds, by its table and its name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.json"
        command = [sys.executable, "tests/benchmarks", *arguments, "--json", str(path)]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(checkout), str(checkout / "notebooks")]),
        }
        run = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError(f"{checkout}: {run.stderr.strip() or run.stdout.strip()}")
        records = json.loads(path.read_text(encoding="utf-8"))
    rows = [(record["benchmark"], row) for record in records for row in record["rows"]]
    return {
        (f"{benchmark}: {row['table']}", row["name"]): statistics.median(row["seconds"])
        for benchmark, row in rows
    }


def compared(turns: Sequence[tuple[Medians, Medians]]) -> str:
    """Say for each row that both have: here over there, turn by turn, and milliseconds."""
    lines = []
    for row in turns[0][0]:
        if all(row in medians for turn in turns for medians in turn):
            ratio = spread([here[row] / there[row] for here, there in turns])
            ms = [spread([1000 * turn[i][row] for turn in turns]).median for i in (0, 1)]
            lines.append([f"{row[0]}, {row[1]}", between(ratio, 3), *(f"{x:.2f}" for x in ms)])
    return table(["", "here / there", "ms here", "ms there"], lines)


def run(there: Path, names: Sequence[str], arguments: Sequence[str], turns: int) -> None:
    """Print a table for each benchmark, after its last turn."""
    for name in names:
        taken: list[Mapping[Path, Medians]] = []
        for turn in range(turns):
            order = [HERE, there.resolve()][:: -1 if turn % 2 else 1]
            taken.append({checkout: medians(checkout, [name, *arguments]) for checkout in order})
        print(compared([(turn[HERE], turn[there.resolve()]) for turn in taken]), flush=True)
