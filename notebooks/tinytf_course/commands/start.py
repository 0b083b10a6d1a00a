"""`start`: your own copy of the course, opened in JupyterLab."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from tinytf.support.files import CheckpointError
from tinytf_course import copies
from tinytf_course.building import MODES, mode
from tinytf_course.commands import add_folder, two_digits
from tinytf_course.commands.reset import mode_of
from tinytf_course.notebooks import NotebookError, readable

_LAB = Path(__file__).parents[1] / "lab"  # JupyterLab's settings: no question about its news


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "start",
        description=__doc__,
        epilog="Options that are not listed here go on to JupyterLab, such as --allow-root, or "
        "with a value --port=8889.",
    )
    parser.set_defaults(jupyter=())
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
    if options.no_open and options.jupyter:
        more = " ".join(options.jupyter)
        print(f"{more} is JupyterLab's, and --no-open starts none", file=sys.stderr)
        return 2
    try:
        chosen = options.mode or mode()
        chapters = list(readable(options.notebooks, options.chapters))
        if not chapters:
            print(f"no such chapter in {options.notebooks}", file=sys.stderr)
            return 1
        if options.mode and (wrong := _refusal(chapters, options)):
            print(wrong, file=sys.stderr)
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
    command = [sys.executable, "-m", "jupyterlab", *options.jupyter, str(first)]
    return subprocess.call(command, env=lab_environment())


def lab_environment():
    """The environment for JupyterLab: the course's settings before any others."""
    paths = filter(None, [str(_LAB), os.environ.get("JUPYTER_CONFIG_PATH")])
    return {**os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(paths)}


def _refusal(chapters, options):
    """What keeps --mode from being met: copies that were made for the other mode, in words."""
    other = MODES[1 - MODES.index(options.mode)]
    numbers = [
        chapter.chapter for chapter in chapters if mode_of(options.to / chapter.path.name) == other
    ]
    if not numbers:
        return ""
    words = {"read": "reading", "build": "building"}
    are, it, one = (
        ("is a copy", "it", "one") if len(numbers) == 1 else ("are copies", "them", "ones")
    )
    return (
        f"{', '.join(numbers)} {are} for {words[other]}; `reset {' '.join(numbers)} --mode "
        f"{options.mode}` makes {it} {one} for {words[options.mode]}, and keeps what you wrote"
    )


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
        print(f"{path}: left as it is: {error} (`reset` puts it aside and gives the chapter back)")
        return
    if brought != copies.read(path):
        copies.write(path, brought)
    if did:
        print(f"{path}: {len(did.new)} cells new, {len(did.changed)} changed, {len(did.gone)} gone")
    for id in did.kept:
        print(f"{path}: kept what you wrote in {id!r}; the chapter's is another now")
