"""The commands of `python -m tinytf_course`, one file each.

Each has `add`, which describes it to the parser, and `run`, which returns the exit status.
"""

from pathlib import Path

from tinytf_course.places import ROOT


def two_digits(chapter):
    """`3` as file names have it: `03`."""
    return chapter.zfill(2 + (not chapter[-1:].isdigit()))


def add_folder(parser):
    """The option --notebooks: the folder of the chapters."""
    parser.add_argument("--notebooks", type=Path, default=here(), help="folder of the chapters")


def here():
    """The notebooks in this folder, else those beside an editable install."""
    local = Path("notebooks")
    return local if local.is_dir() else ROOT / "notebooks"
