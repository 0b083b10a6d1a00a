"""Remake a study's table: `python -m tinytf_course.studies NAME`.

Each module lists its own in STUDIES.
"""

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path

from tinytf.cli.shell import attempt
from tinytf.support.files import try_to_write
from tinytf_course import studies


def available() -> dict[str, Callable[[], list[dict]]]:
    """Every study by name, from the STUDIES of the modules beside this one."""
    found = [m.name for m in pkgutil.iter_modules(studies.__path__) if m.name != "__main__"]
    modules = [importlib.import_module(f"tinytf_course.studies.{name}") for name in sorted(found)]
    return {name: run for m in modules for name, run in getattr(m, "STUDIES", {}).items()}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    That the table can be written is tried first: a study takes minutes to hours.
    """
    known = available()
    parser = argparse.ArgumentParser(prog="python -m tinytf_course.studies", description=__doc__)
    parser.add_argument("name", choices=sorted(known))
    parser.add_argument("--folder", type=Path, default=studies.FOLDER, help="where to write it")
    options = parser.parse_args(arguments)

    def remake() -> int:
        try_to_write(studies.table(options.name, options.folder))
        studies.save(options.name, known[options.name](), options.folder)
        return 0

    return attempt(remake)


if __name__ == "__main__":
    sys.exit(main())
