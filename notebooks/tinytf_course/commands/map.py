"""`map`: which chapter builds which name, and which file holds it."""

import sys

from tinytf_course.commands import add_folder
from tinytf_course.house import map_table


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("map")
    add_folder(parser)
    return parser


def run(options):
    """Print the map. 1 if a notebook names something that the package has not."""
    try:
        print(map_table(options.notebooks))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
