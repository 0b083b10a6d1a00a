"""What the commands share: options of a run, its files, when it may go on, and what is said."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from tinytf.support.device import choose_device
from tinytf.support.files import CheckpointError, plain_words, try_to_write
from tinytf.support.help_texts import ShowDefaults
from tinytf.support.locks import sole_writer
from tinytf.training.distributed import Team, TeamError, team
from tinytf.training.trainer import Trainer, TrainingConfig

__all__ = ["add_option", "attempt", "parser_of", "run_command", "train_to_the_end"]

TRAINING = {  # settings of TrainingConfig that are options of every run
    "steps": "of training",
    "lr": "the highest learning rate",
    "warmup": "steps (default: {}, or half of a short run)",
    "min_lr": "what the rate falls to",
    "accumulate": "batches a step",
    "precision": "of the computation; auto: the faster one here",
    "attention": "how it is computed; auto: the faster one here",
    "parallel": "of several processes each has the whole model, or (fsdp) a part of it",
    "recompute": "activation checkpointing: less memory, more time",
    "seed": "of weights, data order and dropout",
}
CHOICES = {
    "precision": ["auto", "float32", "bfloat16"],
    "attention": ["auto", "fused", "explicit"],
    "parallel": ["ddp", "fsdp"],
}


def add_option(parser: argparse.ArgumentParser, name: str, default: Any, words: str) -> None:
    """Add an option of a setting's name and its default's type."""
    option = f"--{name.replace('_', '-')}"
    if isinstance(default, bool):
        parser.add_argument(option, action="store_true", help=words)
    else:
        choices = CHOICES.get(name)
        parser.add_argument(
            option, type=type(default), default=default, choices=choices, help=words
        )


def parser_of(name: str, words: str, recipe: TrainingConfig, out: Path) -> argparse.ArgumentParser:
    """Make the parser of a command that trains, with the options of every run."""
    parser = argparse.ArgumentParser(
        prog=f"python -m tinytf {name}", description=words, formatter_class=ShowDefaults
    )
    for setting, said in TRAINING.items():
        add_option(parser, setting, getattr(recipe, setting), said.format(recipe.warmup))
    parser.set_defaults(warmup=None)
    parser.add_argument("--out", type=Path, default=out, help="the run's file")
    parser.add_argument("--device", choices=["cpu", "cuda", "mps"], help="default: the best here")
    parser.add_argument(
        "--resume", nargs="?", const="file", choices=["file", "auto"],
        help="go on from the file at --out; with `auto`, begin if there is none, as torchrun needs "
        "it, which starts the same command again",
    )  # fmt: skip
    parser.add_argument(
        "--save-every", type=float, default=60.0, help="seconds between two savings"
    )
    parser.add_argument("--export", type=Path, help="also write the weights alone, in float16")
    return parser


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
    for (one, a), (other, b) in combinations(named.items(), 2):
        same = os.path.realpath(a) == os.path.realpath(b)
        if same or (a.exists() and b.exists() and a.samefile(b)):
            raise ValueError(f"{other} {b} is the file of {one}: one would destroy the other")


def run_command(
    options: argparse.Namespace,
    recipe: TrainingConfig,
    work: Callable[[argparse.Namespace, TrainingConfig, Team, torch.device], int],
) -> int:
    """Do the work of a command that trains, its file kept for it alone; returns the exit status.

    The options change the recipe; `work` gets them, the settings, the team and the device.
    """

    def command() -> int:
        chosen = {name: getattr(options, name) for name in TRAINING}
        if options.warmup is None:
            chosen["warmup"] = min(recipe.warmup, max(1, options.steps // 2))
        if options.lr == 0:
            raise ValueError("--lr 0 would leave every weight as it is")
        if not options.save_every >= 0:
            raise ValueError(f"--save-every must be at least 0 seconds, got {options.save_every}")
        config = replace(recipe, **chosen)
        with (
            team(choose_device(options.device)) as (crew, device),
            run_files(options, crew, device),
        ):
            return work(options, config, crew, device)

    return attempt(command)


def _resume(
    trainer: Trainer, out: Path, header: Mapping[str, Any], same: Mapping[str, str]
) -> None:
    """Load the run at `out`. Raises ValueError if it is another run's, and as `Trainer.load`."""
    saved = {"pool": 50} | trainer.load(out)  # older files do not say
    if missing := {*same, "batch_size"} - saved.keys():
        raise ValueError(
            f"{out.name} was not written by this command: it lacks {', '.join(sorted(missing))}"
        )
    for key, words in same.items():
        if json.loads(json.dumps(header[key])) != saved[key]:
            raise ValueError(f"{out.name} was trained {words}: start a new run")
    for key in ("batch_size", "pool"):
        if key in header and saved[key] != header[key]:
            raise ValueError(
                f"{out.name} was trained with {key}={saved[key]}, "
                f"but this run has {key}={header[key]}"
            )


def _stopped(trainer: Trainer, out: Path) -> str:
    """Say where an interrupted run stands, and what of it is on disk."""
    step, saved, steps = trainer.step, trainer.saved_step, trainer.config.steps
    if saved == step:
        return f"stopped after step {step} of {steps}; add --resume to go on"
    if saved is None:
        return f"stopped at once, after step {step} of {steps}: nothing was saved"
    return (
        f"stopped at once, after step {step} of {steps}: {out} holds the first {saved}; "
        "add --resume to go on from there"
    )


def train_to_the_end(
    trainer: Trainer,
    whole: Any,
    options: argparse.Namespace,
    header: Mapping[str, Any],
    same: Mapping[str, str],
    grade: Callable[[], str],
    every: int | None = None,
) -> int:
    """Take up the run if --resume was given, train it to the end, and say its grade.

    `whole` is the translator or writer that is trained; `header` is added to the file's, and
    entries of it that must be a resumed run's are named by `same`, each with what to say if they
    are not. `grade()` gives a sentence, also on the way, `every` so many steps. Returns the exit
    status: 130 after Ctrl-C, with the finished steps saved.
    """
    config, main = trainer.config, trainer.team.is_main
    if options.resume:
        _resume(trainer, options.out, header, same)
    every = every or config.steps
    saving = {"save_to": options.out, "save_every": options.save_every, "header": header}
    with tqdm(
        total=config.steps, initial=trainer.step, desc="training", unit="step", mininterval=0.5,
        disable=not main,
    ) as bar:  # fmt: skip
        try:
            while trainer.step < config.steps:
                until = min(config.steps, (trainer.step // every + 1) * every)
                trainer.run(until, bar, **saving)
                if until < config.steps:
                    trainer.weights_into(whole.model)
                    if main:
                        bar.write(f"step {until}: {grade()}")
        except KeyboardInterrupt:
            bar.close()
            if main:
                print(_stopped(trainer, options.out))
            return 130
    trainer.weights_into(whole.model)
    if main:
        print(f"{config.steps} steps in {trainer.seconds:.0f} s; {grade()}")
        if options.export:
            whole.save(options.export)
    return 0
