"""What the commands share: options of a run, its files, when it may go on, and what is said."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from tinytf.support.files import CheckpointError, plain_words, try_to_write
from tinytf.support.locks import sole_writer
from tinytf.training.distributed import Team, TeamError
from tinytf.training.trainer import Trainer

__all__ = ["add_run_options", "attempt", "check_options", "resume", "run_files", "say_stopped"]


def add_run_options(parser: argparse.ArgumentParser, out: Path, warmup: int) -> None:
    """Add the options of every training run; `warmup` is that of a run that is long enough."""
    parser.add_argument("--out", type=Path, default=out, help="the run's file")
    parser.add_argument(
        "--warmup", type=int, help=f"steps (default: {warmup}, or half of a short run)"
    )
    parser.add_argument("--min-lr", type=float, default=0.0, help="what the rate falls to")
    parser.add_argument(
        "--precision", choices=["auto", "float32", "bfloat16"], default="auto",
        help="of the computation; auto: the faster one here",
    )  # fmt: skip
    parser.add_argument(
        "--attention", choices=["auto", "fused", "explicit"], default="fused",
        help="how it is computed; auto: the faster one here",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of weights, data order and dropout")
    parser.add_argument("--device", choices=["cpu", "cuda", "mps"], help="default: the best here")
    parser.add_argument(
        "--resume", nargs="?", const="file", choices=["file", "auto"],
        help="go on from the file at --out; with `auto`, begin if there is none, as torchrun needs "
        "it, which starts the same command again",
    )  # fmt: skip
    parser.add_argument(
        "--parallel", choices=["ddp", "fsdp"], default="ddp",
        help="of several processes each has the whole model, or (fsdp) a part of it",
    )  # fmt: skip
    parser.add_argument(
        "--recompute", action="store_true", help="activation checkpointing: less memory, more time"
    )
    parser.add_argument(
        "--save-every", type=float, default=60.0, help="seconds between two savings"
    )
    parser.add_argument("--export", type=Path, help="also write the weights alone, in float16")


def attempt(command: Callable[[], int]) -> int:
    """Run a command; what goes wrong outside the program is said in a line, without a traceback.

    Returns the exit status: the command's, 2 after an error, 130 after Ctrl-C.
    """
    try:
        return command()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except (CheckpointError, FloatingPointError, ImportError, TeamError, ValueError) as error:
        return _complain(str(error))
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _complain(f"{name}{plain_words(error)}")


def _complain(words: str) -> int:
    """Say what is wrong, and by which process where there are several; returns the exit status."""
    many = int(os.environ.get("WORLD_SIZE", "1")) > 1
    who = f"process {os.environ.get('RANK', '?')}: " if many else ""
    print(f"{who}error: {words}", file=sys.stderr)
    return 2


def check_options(options: argparse.Namespace) -> None:
    """Refuse what no run can want; the rest is `TrainingConfig`'s to refuse."""
    if options.lr == 0:
        raise ValueError("--lr 0 would leave every weight as it is")
    if not options.save_every >= 0:
        raise ValueError(f"--save-every must be at least 0 seconds, got {options.save_every}")


@contextmanager
def run_files(options: argparse.Namespace, team: Team, device: torch.device) -> Iterator[None]:
    """Keep --out for this run alone, once it is seen that all it will write can be written.

    In a team only the main process does so; with `--resume auto` it is the one to say whether there
    is a file. Raises CheckpointError or ValueError before anything is computed.
    """
    out, export = options.out, options.export
    if options.resume == "auto":
        (there,) = team.total([team.is_main and out.exists()], device)
        options.resume = "file" if there else None
    if team.is_main:
        named = {"--out": out, "--export": export, "--text": getattr(options, "text", None)}
        _check_different({name: path for name, path in named.items() if path is not None})
        if options.resume and not out.exists():
            raise ValueError(f"there is no checkpoint at {out} to go on from")
        if export is not None:
            try_to_write(export)
        try_to_write(out)
        if out.exists() and not options.resume:
            raise ValueError(f"{out} exists: add --resume to go on, or choose another --out")
        with sole_writer(out):
            yield
    else:
        yield


def _check_different(named: Mapping[str, Path]) -> None:
    """Raise ValueError if two options mean one file, by whatever name, link or hard link."""
    options = list(named)
    for i, one in enumerate(options):
        for other in options[i + 1 :]:
            a, b = named[one], named[other]
            same = os.path.realpath(a) == os.path.realpath(b)
            if same or (a.exists() and b.exists() and a.samefile(b)):
                raise ValueError(f"{other} {b} is the file of {one}: one would destroy the other")


def resume(
    trainer: Trainer,
    options: argparse.Namespace,
    header: Mapping[str, Any],
    same: Mapping[str, str],
) -> None:
    """Load the run at --out if --resume was given.

    `same` names the entries of the header that must be those of the run's file, each with the words
    to say if it is not. Raises ValueError for a file that is another run's, and as `Trainer.load`.
    """
    if not options.resume:
        return
    out = options.out
    saved = {"pool": 50} | trainer.load(out)  # older files do not say
    if missing := {*same, "batch_size"} - saved.keys():
        raise ValueError(
            f"{out.name} was not written by this command: it lacks {', '.join(sorted(missing))}"
        )
    for key, words in same.items():
        mine = header[key]
        theirs = saved[key]
        if isinstance(mine, tuple) and isinstance(theirs, list):
            theirs = tuple(theirs)
        if theirs != mine:
            raise ValueError(f"{out.name} was trained {words}: start a new run")
    for key in ("batch_size", "pool"):
        if key in header and saved[key] != header[key]:
            raise ValueError(
                f"{out.name} was trained with {key}={saved[key]}, "
                f"but this run has {key}={header[key]}"
            )


def say_stopped(trainer: Trainer, out: Path) -> int:
    """Say where an interrupted run stands, and what of it is on disk; returns the exit status."""
    step, saved, steps = trainer.step, trainer.saved_step, trainer.config.steps
    if saved == step:
        print(f"stopped after step {step} of {steps}; add --resume to go on")
    elif saved is None:
        print(f"stopped at once, after step {step} of {steps}: nothing was saved")
    else:
        print(
            f"stopped at once, after step {step} of {steps}: {out} holds the first {saved}; "
            "add --resume to go on from there"
        )
    return 130
