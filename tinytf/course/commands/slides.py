"""`slides`: the chapters as slides for a class, complete without a network."""

import sys
from pathlib import Path

from tinytf.course.commands import add_folder, two_digits


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("slides", help="make slides of chapters", description=__doc__)
    parser.add_argument("to", type=Path, metavar="DIR", help="where to write them")
    parser.add_argument("chapters", nargs="*", type=two_digits, metavar="NN",
                        help="only these, such as 05")  # fmt: skip
    add_folder(parser)
    return parser


def run(options):
    """Write the decks, say how many slides each has. 1 if a package or every chapter is missing."""
    from tinytf.course.site import MissingPackage
    from tinytf.course.slides import build_slides

    try:
        made = build_slides(options.notebooks, options.to, options.chapters)
    except (MissingPackage, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    for name, number in made.items():
        print(f"{options.to / name}: {number} slides")
    print(f"{sum(made.values())} slides; S shows the speaker's notes")
    return 0
