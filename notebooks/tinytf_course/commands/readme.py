"""`readme`: write the parts of README.md that follow from the course."""

import sys

from tinytf.support.files import write_atomically
from tinytf_course.commands import add_folder
from tinytf_course.readme import readme_of, refreshed


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("readme")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if it would change")
    add_folder(parser)
    return parser


def run(options):
    """Refresh the README beside the notebooks. 1 if it has no place for what is written."""
    path = readme_of(options.notebooks)
    if path is None:
        print(f"no README.md beside {options.notebooks}", file=sys.stderr)
        return 1
    return refresh(path, options)


def refresh(path, options):
    """Write the README if it changes, and say so; with --check, 1 if it would."""
    try:
        before = path.read_text(encoding="utf-8")
        after = refreshed(before, options.notebooks)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    if after == before:
        print("README.md: unchanged")
        return 0
    if not options.check:
        write_atomically(path, after.encode())
    print("README.md: would change" if options.check else "README.md: written anew")
    return int(options.check)
