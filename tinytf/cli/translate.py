"""Translate a sentence from the shell: `python -m tinytf translate "the cat sat on the mat"`."""

import argparse
import sys
from pathlib import Path

from tinytf.apps.translator import Translator
from tinytf.cli.shell import attempt
from tinytf.support.device import choose_device
from tinytf.support.help_texts import ShowDefaults

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tinytf translate",
        description="Translate a sentence of the phrasebook's words into Chinese.",
        formatter_class=ShowDefaults,
    )
    parser.add_argument("words", nargs="+", help="the sentence, in quotes or without")
    parser.add_argument("--beam", type=int, help="hypotheses kept at each step (default: greedy)")
    parser.add_argument("--model", type=Path, help="a file that `train` wrote (default: ours)")
    options = parser.parse_args(arguments)
    return attempt(lambda: _translate(options))


def _translate(options: argparse.Namespace) -> int:
    device = choose_device()  # before the file is opened: it is not to blame for the device
    translation = Translator.load(options.model, device)(" ".join(options.words), options.beam)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")  # a Windows console may know no Chinese
    print(translation.judged())
    return 0


if __name__ == "__main__":
    sys.exit(main())
