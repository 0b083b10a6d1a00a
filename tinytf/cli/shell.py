"""What the training commands share: their common options, and when a run may begin or go on."""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinytf.training.trainer import Trainer

__all__ = ["add_run_options", "begin_or_resume", "complain"]


def add_run_options(parser: argparse.ArgumentParser, out: Path, warmup: int) -> None:
    """Add the options of every training run; `warmup` is that of a run that is long enough."""
    parser.add_argument("--out", type=Path, default=out)
    parser.add_argument(
        "--warmup", type=int, help=f"steps (default: {warmup}, or half of a short run)"
    )
    parser.add_argument("--precision", choices=["auto", "float32", "bfloat16"], default="auto")
    parser.add_argument("--attention", choices=["auto", "fused", "explicit"], default="fused")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=["cpu", "cuda", "mps"], help="default: the best here")
    parser.add_argument("--resume", action="store_true", help="go on from the file at --out")
    parser.add_argument("--save-every", type=float, default=60.0, help="seconds")
    parser.add_argument("--export", type=Path, help="also write the weights alone, in float16")


def complain(error: Exception) -> int:
    """Say what is wrong, and by which process where there are several; returns the exit status."""
    many = int(os.environ.get("WORLD_SIZE", "1")) > 1
    who = f"process {os.environ.get('RANK', '?')}: " if many else ""
    print(f"{who}error: {error}", file=sys.stderr)
    return 2


def begin_or_resume(
    trainer: Trainer,
    options: argparse.Namespace,
    header: Mapping[str, Any],
    same: Mapping[str, str],
) -> None:
    """Load the run at --out if --resume was given; otherwise make sure that nothing is there.

    `same` names the entries of the header that must be those of the run's file, each with the words
    to say if it is not. Raises ValueError for a file that is there or is another run's, and as
    `Trainer.load`.
    """
    out = options.out
    if not options.resume:
        if out.is_dir():
            raise ValueError(f"{out} is a folder: name a file in it")
        if out.exists():
            raise ValueError(f"{out} exists: add --resume to go on, or choose another --out")
        return
    saved = {"pool": 50} | trainer.load(out)  # older files do not say
    if missing := {*same, "batch_size"} - saved.keys():
        raise ValueError(
            f"{out.name} was not written by this command: it lacks {', '.join(sorted(missing))}"
        )
    for key, words in same.items():
        mine = header[key]
        if (tuple(saved[key]) if isinstance(mine, tuple) else saved[key]) != mine:
            raise ValueError(f"{out.name} was trained {words}: start a new run")
    for key in ("batch_size", "pool"):
        if key in header and saved[key] != header[key]:
            raise ValueError(
                f"{out.name} was trained with {key}={saved[key]}, "
                f"but this run has {key}={header[key]}"
            )
