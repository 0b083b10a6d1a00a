"""Where things are: the package, the course beside it, and the folder that holds both.

The two trees may lie apart, so nobody else counts folders upwards.
"""

from importlib.util import find_spec
from pathlib import Path

__all__ = ["COURSE", "PACKAGE", "PATHS", "ROOT", "TREES", "file_of", "is_machinery", "place_of"]

PACKAGE = Path(find_spec("tinytf").origin).parent
COURSE = Path(__file__).parent
ROOT = PACKAGE.parent
NAME = __package__  # of the course, as it is imported
TREES = {NAME: COURSE, "tinytf": PACKAGE}  # the longer name first
# What has to be on a new Python's path so that it imports the same two.
PATHS = list(dict.fromkeys(str(tree.parents[name.count(".")]) for name, tree in TREES.items()))
# Of the course what a chapter teaches with; all else of it makes, grades or releases chapters.
_CONTENT = ("phrasebook", "lessons", "studies", "drawings")


def file_of(dotted):
    """The file of a module of the package or the course, or None; nothing is imported."""
    for name, tree in TREES.items():
        if dotted == name or dotted.startswith(name + "."):
            place = tree.joinpath(*dotted.removeprefix(name).split(".")[1:])
            files = (place.with_suffix(".py"), place / "__init__.py")
            return next((path for path in files if path.is_file()), None)
    return None


def place_of(file):
    """A file of either tree as the repository names it: `tinytf/masks.py`."""
    return Path(file).relative_to(ROOT).as_posix()


def is_machinery(module):
    """Whether a module, by its name, is what makes and grades chapters."""
    inside = module.removeprefix(NAME)
    return inside != module and inside[:1] in ("", ".") and inside.split(".")[1:2] not in (
        [[name] for name in _CONTENT]
    )  # fmt: skip
