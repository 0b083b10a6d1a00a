"""`site`: the chapters as pages for a browser, complete without a network."""

import sys
import time
from pathlib import Path

from tinytf_course.commands import add_folder, two_digits


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("site", description=__doc__)
    parser.add_argument("to", type=Path, metavar="DIR", help="where to write it")
    parser.add_argument("chapters", nargs="*", type=two_digits, metavar="NN",
                        help="only these, such as 05")  # fmt: skip
    parser.add_argument("--stills", action="store_true",
                        help="run no chapter: panels stay as the chapters show them")  # fmt: skip
    add_folder(parser)
    return parser


def run(options):
    """Build the site, say how large it is. 1 if nothing can be built, or something went wrong."""
    from tinytf_course.site import MissingPackage, build_site

    began = time.monotonic()
    try:
        number, warnings = build_site(
            options.notebooks, options.to, options.chapters, not options.stills, _say
        )
    except (MissingPackage, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    for warning in warnings:
        print(warning, file=sys.stderr)
    size = sum(path.stat().st_size for path in options.to.rglob("*") if path.is_file())
    seconds = time.monotonic() - began
    print(f"{options.to}: {number} chapters, {size / 2**20:.0f} MB, {seconds:.0f} s; "
          f"open {options.to / 'index.html'}")  # fmt: skip
    return int(bool(warnings))


def _say(text):
    print(text, file=sys.stderr, flush=True)
