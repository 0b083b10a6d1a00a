"""`collect`: what a class handed in, as a table; answers are graded here, not believed."""

import importlib.util
import sys
import time
from pathlib import Path

from tinytf.support.files import CheckpointError, try_to_write
from tinytf_course.saved import NotebookError, printable

_EVERY = 1.0  # seconds between two savings of the table


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("collect", description=__doc__)  # fmt: skip
    parser.add_argument("folder", type=Path, help="a sub-folder per student, or a file")
    parser.add_argument("--to", type=Path, help="the table (default: collected.csv in the folder)")
    parser.add_argument("--saved", action="store_true", help="believe the saved outputs (quick)")
    return parser


def run(options):
    """Print a line for each notebook and write the table; 1 where there is nothing to read."""
    if importlib.util.find_spec("tinytf_course.release") is None:
        print("this is a student edition: collect with the full course", file=sys.stderr)
        return 1
    from tinytf_course.release import collected

    table = options.to or options.folder / "collected.csv"
    if not options.folder.is_dir():
        print(f"no folder {options.folder}", file=sys.stderr)
        return 1
    try:
        rows = _written(options, table, collected)
    except CheckpointError as error:
        print(error, file=sys.stderr)
        return 1
    if not rows:
        print(f"no notebook of the course in {options.folder}", file=sys.stderr)
        return 1
    print(f"{table}: {len(rows)} rows\n{collected.FORGEABLE[options.saved]}")
    return 0


def _written(options, table, collected):
    """The rows, in the table as they come, so that a run that ends early leaves what it had."""
    if table.is_symlink():
        print(f"{table}: the table takes the place of this link", file=sys.stderr)
    else:
        try_to_write(table)  # before there is anything to lose
    rows, last = [], -_EVERY
    try:
        for row in _rows(options, table, collected):
            rows.append(row)
            if time.monotonic() - last >= _EVERY:
                collected.write_table(table, rows)
                last = time.monotonic()
    finally:
        if rows:
            collected.write_table(table, rows)
    return rows


def _rows(options, table, collected):
    """The row of each notebook, told as it comes; what has none is named on stderr."""
    title = _line("student", "chapter", "predicted", "exercises", "parts", "minutes")
    for student, path, why in collected.submissions(options.folder):
        if path == table:
            continue
        try:
            if why:
                raise NotebookError(why)
            row = collected.row_of(student, path, options.folder, options.saved)
        except Exception as error:  # whatever a student's file does, the others get their rows
            known = isinstance(error, NotebookError | OSError | RuntimeError)
            said = str(error) if known else f"{type(error).__name__}: {error}"
            inside = path.relative_to(options.folder)
            print(f"skipped {printable(inside)}: {printable(said)}", file=sys.stderr)
        else:
            told = _told(row)
            print(f"{title}\n{told}" if title else told, flush=True)
            title = ""
            yield row


def _told(row):
    done = f"{row.exercises_passed} of {row.of_exercises}"
    said = f"{row.predicted} ({row.predicted_right} right)"
    minutes = f"{row.minutes_at_work or '?'} ({row.minutes_worth})"
    line = _line(row.student, row.chapter, said, done, str(row.parts_built), minutes)
    more = [f"    calls {row.calls}"] * bool(row.calls) + [f"    {row.remarks}"] * bool(row.remarks)
    return "\n".join(map(printable, [line, *more]))


def _line(student, *cells):
    return f"{student[:24]:<25}" + "".join(f"{cell:>13}" for cell in cells)
