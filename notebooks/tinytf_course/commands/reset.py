"""`reset`: chapters as they were handed out; what you had is kept beside them."""

import sys
from pathlib import Path

from tinytf.support.files import CheckpointError
from tinytf_course import copies
from tinytf_course.building import MODES, mode
from tinytf_course.commands import add_folder, two_digits
from tinytf_course.notebooks import NotebookError, readable


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("reset", description=__doc__)  # fmt: skip
    parser.add_argument("chapters", nargs="+", type=two_digits, metavar="NN", help="such as 03")
    parser.add_argument("--mode", choices=MODES, help="default: as the copy was, else read")
    parser.add_argument("--to", type=Path, default=Path("mine"), help="folder (default: mine)")
    add_folder(parser)
    return parser


def run(options):
    """Write each chapter anew; 1 if there is no such chapter."""
    try:
        found = list(readable(options.notebooks, options.chapters))
        for chapter in found:
            path, notebook = options.to / chapter.path.name, copies.read(chapter.path)
            chosen = options.mode or mode_of(path) or mode()
            kept = _keep(path)
            copies.write(path, copies.fresh_copy(notebook, chosen))
            print(f"{path}: as it was handed out" + (f"; yours is {kept.name}" if kept else ""))
    except (CheckpointError, NotebookError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    missing = set(options.chapters) - {chapter.chapter for chapter in found}
    for chapter in sorted(missing):
        print(f"no chapter {chapter} in {options.notebooks}", file=sys.stderr)
    return 1 if missing else 0


def mode_of(path):
    """How the copy at `path` was made; None if there is none, or it can't be read."""
    try:
        known = copies.read(path)["metadata"]["tinytf"]["mode"]
    except (NotebookError, KeyError, TypeError):
        return None
    return known if known in MODES else None


def _keep(path):
    """Put what is there aside under the first free name; return that, or None."""
    if not path.exists():
        return None
    number = 1
    while (aside := path.with_name(f"{path.stem}.mine{number}.ipynb.txt")).exists():
        number += 1
    return path.rename(aside)
