"""Let a trained GPT write: `python -m tinytf write 'The "with" statement' --temperature 0.8`."""

import argparse
import sys
from dataclasses import fields
from pathlib import Path

from tinytf.apps.writer import Writer
from tinytf.cli.shell import attempt
from tinytf.decoding.sampling import Sampling
from tinytf.support.device import choose_device

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tinytf write",
        description="Continue a text with a trained GPT; greedily, unless an option says to draw.",
    )
    parser.add_argument("prompt", nargs="?", default="", help="default: begin a document")
    parser.add_argument("--model", type=Path, help="a file of tinytf.cli.pretrain (default: ours)")
    parser.add_argument("--tokens", type=int, default=200, help="at most; an end of text stops it")
    parser.add_argument("--seed", type=int, default=0)
    for field in fields(Sampling):
        kind = int if field.name == "top_k" else float
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind)
    options = parser.parse_args(arguments)
    return attempt(lambda: _write(options))


def _write(options: argparse.Namespace) -> int:
    chosen = {field.name: getattr(options, field.name) for field in fields(Sampling)}
    drawing = any(value is not None for value in chosen.values())
    sampling = Sampling(**chosen) if drawing else None
    device = choose_device()  # before the file is opened: it is not to blame for the device
    writer = Writer.load(options.model, device)
    print(writer.write(options.prompt, options.tokens, sampling, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
