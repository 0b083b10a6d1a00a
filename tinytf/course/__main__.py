"""`python -m tinytf.course COMMAND`: your own copy of the chapters, and how they are made."""

import argparse
import sys

from tinytf.course.commands import (
    attack,
    build,
    claims,
    exercises,
    patient,
    progress,
    readme,
    report,
    reset,
    start,
)
from tinytf.course.commands import map as parts


def main(arguments=None):
    """Run one command and return the exit status."""
    for stream in (sys.stdout, sys.stderr):  # a Windows console may know neither ✓ nor Chinese
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8")
    parser = argparse.ArgumentParser(prog="python -m tinytf.course", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    everything = (
        start, progress, reset, claims, exercises, build, readme, parts, report, attack,
        patient,
    )  # fmt: skip
    for command in everything:
        command.add(commands).set_defaults(run=command.run)
    options = parser.parse_args(arguments)
    folder = getattr(options, "notebooks", None)
    if folder is not None and not folder.is_dir():
        print(f"no folder {folder}: say with --notebooks where they are", file=sys.stderr)
        return 1
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
