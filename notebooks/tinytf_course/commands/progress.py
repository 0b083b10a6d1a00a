"""`progress`: what you predicted, solved and built so far, read from your own copy."""

import sys
from pathlib import Path

from tinytf_course.sofar import so_far


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("progress", description=__doc__)  # fmt: skip
    parser.add_argument("--to", type=Path, default=Path("mine"), help="folder (default: mine)")
    return parser


def run(options):
    """Print a line for each chapter that was begun, and the sums; 1 where there is no copy."""
    if not options.to.is_dir():
        print(f"no folder {options.to}: `python -m tinytf_course start` makes it", file=sys.stderr)
        return 1
    print(so_far(options.to))
    return 0
