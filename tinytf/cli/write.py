"""Let a trained GPT write: `python -m tinytf write "One morning, a shy girl" --temperature 0.5`."""

import argparse
import sys
from dataclasses import fields
from pathlib import Path

from tinytf.apps.writer import SHIPPED, STORYTELLER, Writer
from tinytf.cli.shell import attempt
from tinytf.decoding.sampling import Sampling
from tinytf.support.device import choose_device
from tinytf.support.help_texts import ShowDefaults

__all__ = ["main"]

_DRAWS = {
    "repetition_penalty": "divide the logits of tokens written before by it (above 1)",
    "presence_penalty": "subtract it from the logits of tokens written before",
    "temperature": "draw; below 1 likelier tokens, above 1 more varied ones",
    "top_k": "draw from the k likeliest tokens",
    "top_p": "draw from the fewest tokens with this share of the probability",
    "min_p": "draw from tokens at least this many times as likely as the likeliest",
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tinytf write",
        description="Continue a text with a trained GPT; greedily, unless an option says to draw.",
        formatter_class=ShowDefaults,
    )
    parser.add_argument("prompt", nargs="?", default="", help="default: begin a document")
    parser.add_argument(
        "--model", type=Path,
        help="a file that `pretrain` wrote; `manual` is ours that has read the Python manual "
        "(default: ours that has read short stories)",
    )  # fmt: skip
    parser.add_argument("--tokens", type=int, default=200, help="at most; an end of text stops it")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    for field in fields(Sampling):
        kind = int if field.name == "top_k" else float
        option = f"--{field.name.replace('_', '-')}"
        parser.add_argument(option, type=kind, help=_DRAWS[field.name])
    options = parser.parse_args(arguments)
    return attempt(lambda: _write(options))


def _write(options: argparse.Namespace) -> int:
    chosen = {field.name: getattr(options, field.name) for field in fields(Sampling)}
    drawing = any(value is not None for value in chosen.values())
    sampling = Sampling(**chosen) if drawing else None
    device = choose_device()  # before the file is opened: it is not to blame for the device
    ours = {None: STORYTELLER, Path("manual"): SHIPPED}
    writer = Writer.load(ours.get(options.model, options.model), device)
    print(writer.write(options.prompt, options.tokens, sampling, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
