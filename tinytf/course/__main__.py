"""`python -m tinytf.course COMMAND`: your own copy of the chapters, and how they are made."""

import argparse
import functools
import sys

from tinytf.support.help_texts import ShowDefaults

try:
    from tinytf.course.commands import (
        attack,
        build,
        claims,
        collect,
        exercises,
        patient,
        progress,
        readme,
        release,
        report,
        reset,
        site,
        start,
    )
    from tinytf.course.commands import map as parts
except ModuleNotFoundError as missing:  # the package alone is installed
    sys.exit(
        f"{missing.name} is not installed; the course needs it: run "
        'pip install -e ".[course]" in the course\'s folder'
    )


def main(arguments=None):
    """Run one command and return the exit status."""
    for stream in (sys.stdout, sys.stderr):  # Windows may know no ✓; names may be no text
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    parser = argparse.ArgumentParser(prog="python -m tinytf.course", description=__doc__)
    shown = functools.partial(argparse.ArgumentParser, formatter_class=ShowDefaults)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=shown)
    everything = (
        start, progress, reset, claims, exercises, build, readme, parts, report, attack,
        release, collect, site, patient
    )  # fmt: skip
    for command in everything:
        command.add(commands).set_defaults(run=command.run)
    options, more = parser.parse_known_args(arguments)
    if more and not hasattr(options, "jupyter"):
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    options.jupyter = more
    folder = getattr(options, "notebooks", None)
    if folder is not None and not folder.is_dir():
        print(
            f"no folder {folder}: the chapters are in the course's folder, which an installed "
            "tinytf does not bring; run this there, or say with --notebooks where they are",
            file=sys.stderr,
        )
        return 1
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
