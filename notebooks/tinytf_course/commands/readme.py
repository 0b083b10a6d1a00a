"""`readme`: write the parts of README.md and of two pages that follow from the course."""

import sys

from tinytf.support.files import write_atomically
from tinytf_course.commands import add_folder
from tinytf_course.readme import PAGES, readme_of, refreshed


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


def refresh(readme, options):
    """Write the README and the pages that are beside it where they change; say which.

    With --check nothing is written, and the status is 1 if something would be.
    """
    status, said = 0, []
    for page in PAGES:
        path = readme.parent / page
        if not path.is_file():
            continue
        before = path.read_text(encoding="utf-8")
        try:
            after = refreshed(before, options.notebooks, page)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
        if after == before:
            continue
        if not options.check:
            write_atomically(path, after.encode())
        status |= options.check
        said.append(f"{page}: {'would change' if options.check else 'written anew'}")
    print("\n".join(said) or "README.md: unchanged")
    return int(status)
