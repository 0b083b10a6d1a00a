"""`python -m tinytf_course COMMAND`: your own copy of the chapters, and how they are made."""

import argparse
import functools
import importlib
import sys

from tinytf.support.help_texts import ShowDefaults

# nbformat's validator would load a grammar of addresses by it, which takes seconds; no notebook's
# format needs one.
sys.modules.setdefault("rfc3987_syntax", None)

COMMANDS = {
    "start": "begin, or go on, with a copy of your own",
    "progress": "what you predicted, solved and built so far",
    "reset": "give chapters of your copy back as they were",
    "claims": "list what the chapters claim and measured",
    "exercises": "grade every reference and wrong answer",
    "build": "run chapters and save what they show",
    "readme": "write the tables of README and the pages beside it",
    "map": "which chapter builds which name of which file",
    "report": "words, lines, figures, minutes of each chapter",
    "attack": "list the mutants that graders accept",
    "release": "make an edition for a class",
    "collect": "results of submitted notebooks, graded anew",
    "site": "build the web edition",
    "story": "tell a story, or check a text and mark its first fault",
    "storyteller": "train the GPT that writes such stories",
    "patient": "a program with a silent bug, or none, to find",
}


def main(arguments=None):
    """Run one command and return the exit status. Only the command that is named is loaded."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):  # Windows may know no ✓; names may be no text
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    parser = _parser(arguments[:1])
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


def _parser(named):
    """The parser of the command that is named; of the others it knows a line each."""
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description=__doc__)
    shown = functools.partial(argparse.ArgumentParser, formatter_class=ShowDefaults)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=shown)
    for name, words in COMMANDS.items():
        if name not in named:
            commands.add_parser(name, help=words)
            continue
        try:
            command = importlib.import_module(f"{__package__}.commands.{name}")
        except ModuleNotFoundError as missing:  # the package alone is installed
            sys.exit(
                f"{missing.name} is not installed; the course needs it: run "
                'pip install -e ".[course]" in the course\'s folder'
            )
        command.add(commands).set_defaults(run=command.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
