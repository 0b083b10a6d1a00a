"""Train a translator from the shell: `python -m tinytf train --help`."""

import argparse
import sys
from pathlib import Path

import torch
from tqdm import tqdm

from tinytf.apps.translator import Translator
from tinytf.cli.shell import (
    add_run_options,
    attempt,
    check_options,
    resume,
    run_files,
    say_stopped,
)
from tinytf.metrics.translation import exact_match
from tinytf.support.device import choose_device
from tinytf.support.handed_in import needed
from tinytf.support.help_texts import ShowDefaults
from tinytf.support.randomness import seeded
from tinytf.training.distributed import Team, team
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf.transformer import Transformer, TransformerConfig

__all__ = ["build", "main"]


def build(
    config: TrainingConfig,
    batch_size: int = 128,
    device: str | torch.device | None = None,
    team: Team | None = None,
    pool: int = 50,
    **sizes: object,
) -> tuple[Trainer, Translator]:
    """Make an untrained translator of the phrasebook and the trainer that trains it.

    `config.seed` decides initial weights, data order and dropout; `pool` is how many batches are
    sorted by length together (50: as the shipped translator's; the command has 4, which learns more
    in a minute, see `PhrasebookBatches`); `sizes` override the model's. Raises NotHandedIn where
    the course, which brings the phrasebook, is not installed.
    """
    book = needed("phrasebook").Phrasebook()
    batches = needed("phrasebook's batches")(book, batch_size, config.seed, pool=pool)
    with seeded(config.seed):
        model = Transformer(
            TransformerConfig(
                **{
                    "src_vocab_size": len(batches.source),
                    "tgt_vocab_size": len(batches.target),
                    "d_model": 128,
                    "num_heads": 4,
                    "num_layers": 2,
                    "d_ff": 512,
                    "dropout": 0.0,  # the data hardly ever repeat, so there is little to over-fit
                    "max_len": 64,
                    "norm": "pre",
                    **sizes,
                }
            )
        ).to(choose_device(device))
    plain = team.spare(model, config.parallel) if team else model
    trainer = Trainer(model, batches, config, team=team)
    return trainer, Translator(plain, batches.source, batches.target)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    defaults = TrainingConfig()
    parser = argparse.ArgumentParser(
        prog="python -m tinytf train",
        description="Train a translator on the phrasebook.",
        formatter_class=ShowDefaults,
    )
    parser.add_argument("--steps", type=int, default=defaults.steps, help="of training")
    parser.add_argument("--batch-size", type=int, default=128, help="sentences a step")
    parser.add_argument("--lr", type=float, default=defaults.lr, help="the highest learning rate")
    parser.add_argument(
        "--pool",
        type=int,
        default=4,
        help="batches sorted by length together: more are quicker, each teaches less (default: 4; "
        "the shipped translator had 50)",
    )
    add_run_options(parser, Path("runs/translator.safetensors"), defaults.warmup)
    options = parser.parse_args(arguments)
    if options.warmup is None:
        options.warmup = min(defaults.warmup, max(1, options.steps // 2))
    return attempt(lambda: _command(options))


def _command(options: argparse.Namespace) -> int:
    check_options(options)
    with (
        team(choose_device(options.device)) as (crew, device),
        run_files(options, crew, device),
    ):
        return _train(options, crew, device)


def _train(options: argparse.Namespace, crew: Team, device: torch.device) -> int:
    config = TrainingConfig(
        steps=options.steps,
        lr=options.lr,
        warmup=options.warmup,
        min_lr=options.min_lr,
        precision=options.precision,
        attention=options.attention,
        parallel=options.parallel,
        recompute=options.recompute,
        seed=options.seed,
    )
    trainer, translator = build(config, options.batch_size, device, crew, options.pool)
    header = translator.header() | {"batch_size": options.batch_size, "pool": options.pool}
    words = "with other words than today's phrasebook has"
    resume(trainer, options, header, {"source_words": words, "target_words": words})
    with tqdm(
        total=config.steps,
        initial=trainer.step,
        desc="training",
        unit="step",
        mininterval=0.5,
        disable=not crew.is_main,
    ) as bar:
        try:
            trainer.run(bar=bar, save_to=options.out, save_every=options.save_every, header=header)
        except KeyboardInterrupt:
            bar.close()
            return say_stopped(trainer, options.out) if crew.is_main else 130
    trainer.weights_into(translator.model)
    if not crew.is_main:
        return 0
    pairs = needed("phrasebook").Phrasebook().sample(2000, "validation", seed=1)
    score = exact_match(translator, pairs)
    print(
        f"{config.steps} steps in {trainer.seconds:.0f} s; exact match on 2,000 held-out "
        f"sentences: {100 * score:.2f} %"
    )
    if options.export:
        translator.save(options.export)
    return 0


if __name__ == "__main__":
    sys.exit(main())
