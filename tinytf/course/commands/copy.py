"""`copy`: chapters of one's own, without outputs, to read or to build."""

import sys
from pathlib import Path

from tinytf.course import copies
from tinytf.course.building import MODES, mode
from tinytf.course.commands import add_folder, two_digits
from tinytf.course.notebooks import NotebookError, readable
from tinytf.support.files import CheckpointError


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "copy", help="copies of chapters without outputs, to read or to build", description=__doc__
    )
    parser.add_argument("chapters", nargs="*", type=two_digits, metavar="NN", help="such as 03")
    parser.add_argument("--mode", choices=MODES, help="default: TINYTF_MODE, else read")
    parser.add_argument("--to", type=Path, default=Path("mine"), help="folder (default: mine)")
    add_folder(parser)
    return parser


def run(options):
    """Write the copies; one that is there already is kept. 1 if there was nothing to copy."""
    try:
        chosen = options.mode or mode()
        found = list(readable(options.notebooks, options.chapters))
        for notebook in found:
            path = options.to / notebook.path.name
            if path.exists():
                print(f"{path}: kept, it is yours")
                continue
            copies.write(path, copies.fresh_copy(copies.read(notebook.path), chosen))
            print(path)
    except (CheckpointError, NotebookError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if not found:
        print(f"no such chapter in {options.notebooks}", file=sys.stderr)
    return 0 if found else 1
