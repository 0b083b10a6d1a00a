"""`collect`: what a class handed in, as a table; answers are graded here, not believed."""

import importlib.util
import sys
from pathlib import Path

from tinytf.course.notebooks import NotebookError


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("collect", description=__doc__)  # fmt: skip
    parser.add_argument("folder", type=Path, help="a sub-folder per student, or a file")
    parser.add_argument("--to", type=Path, help="the table (default: collected.csv in the folder)")
    parser.add_argument("--saved", action="store_true", help="believe the saved outputs (quick)")
    return parser


def run(options):
    """Print a line for each notebook and write the table; 1 where there is nothing to read."""
    if importlib.util.find_spec("tinytf.course.release") is None:
        print("this is a student edition: collect with the full course", file=sys.stderr)
        return 1
    from tinytf.course.release import collected

    table = options.to or options.folder / "collected.csv"
    if not options.folder.is_dir():
        print(f"no folder {options.folder}", file=sys.stderr)
        return 1
    rows = []
    for student, path, why in collected.submissions(options.folder):
        if path == table:
            continue
        try:
            if why:
                raise NotebookError(why)
            rows.append(collected.row_of(student, path, options.saved))
        except (NotebookError, OSError, RuntimeError) as error:
            print(f"skipped {path.relative_to(options.folder)}: {error}", file=sys.stderr)
        else:
            if len(rows) == 1:
                print(_line("student", "chapter", "predicted", "exercises", "parts", "minutes"))
            print(_told(rows[-1]), flush=True)
    if not rows:
        print(f"no notebook of the course in {options.folder}", file=sys.stderr)
        return 1
    collected.write_table(table, rows)
    print(f"{table}: {len(rows)} rows\n{collected.FORGEABLE[options.saved]}")
    return 0


def _told(row):
    done = f"{row.exercises_passed} of {row.of_exercises}"
    said = f"{row.predicted} ({row.predicted_right} right)"
    minutes = f"{row.minutes_at_work or '?'} ({row.minutes_worth})"
    line = _line(row.student, row.chapter, said, done, str(row.parts_built), minutes)
    more = [f"    calls {row.calls}"] * bool(row.calls) + [f"    {row.remarks}"] * bool(row.remarks)
    return "\n".join([line, *more])


def _line(student, *cells):
    return f"{student[:24]:<25}" + "".join(f"{cell:>13}" for cell in cells)
