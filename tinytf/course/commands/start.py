"""`start`: your own copy of the course, opened in JupyterLab."""

import importlib.util
import subprocess
import sys
from pathlib import Path

from tinytf.course import copies
from tinytf.course.building import MODES, mode
from tinytf.course.commands import add_folder, two_digits
from tinytf.course.notebooks import NotebookError, readable
from tinytf.support.files import CheckpointError


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("start", description=__doc__)  # fmt: skip
    parser.add_argument("chapters", nargs="*", type=two_digits, metavar="NN",
                        help="only these, such as 05")  # fmt: skip
    parser.add_argument("--mode", choices=MODES, help="default: TINYTF_MODE, else read")
    parser.add_argument("--to", type=Path, default=Path("mine"), help="folder (default: mine)")
    parser.add_argument("--update", action="store_true",
                        help="bring what is new into copies that are there")  # fmt: skip
    parser.add_argument("--no-open", action="store_true", help="only make the copies")
    add_folder(parser)
    return parser


def run(options):
    """Make the copies that are missing, update the others if asked to, open the first."""
    try:
        chosen = options.mode or mode()
        chapters = list(readable(options.notebooks, options.chapters))
        if not chapters:
            print(f"no such chapter in {options.notebooks}", file=sys.stderr)
            return 1
        made = [_copied(chapter, options, chosen) for chapter in chapters]
    except (CheckpointError, NotebookError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{options.to}: {sum(made)} chapters copied, {len(made) - sum(made)} were there")
    if options.no_open:
        return 0
    first = options.to / chapters[0].path.name
    if importlib.util.find_spec("jupyterlab") is None:
        print(f"JupyterLab is not installed; open {first} in your own editor")
        return 0
    return subprocess.call([sys.executable, "-m", "jupyterlab", str(first)])


def _copied(chapter, options, chosen):
    """Copy a chapter unless a copy is there, which is updated if asked for; whether it was new."""
    path, notebook = options.to / chapter.path.name, copies.read(chapter.path)
    if not path.exists():
        copies.write(path, copies.fresh_copy(notebook, chosen))
        return True
    if options.update:
        _update(path, notebook)
    return False


def _update(path, notebook):
    try:
        brought, did = copies.update(copies.read(path), notebook)
    except (NotebookError, ValueError) as error:
        print(f"{path}: left as it is: {error}")
        return
    if did:
        copies.write(path, brought)
        print(f"{path}: {len(did.new)} cells new, {len(did.changed)} changed, {len(did.gone)} gone")
    for id in did.kept:
        print(f"{path}: kept what you wrote in {id!r}; the chapter's is another now")
