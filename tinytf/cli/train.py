"""Train a translator from the shell: `python -m tinytf train --help`."""

import argparse
import sys
from pathlib import Path

import torch

from tinytf.apps.translator import Translator
from tinytf.cli.shell import parser_of, run_command, train_to_the_end
from tinytf.metrics.translation import exact_match
from tinytf.support.device import choose_device
from tinytf.support.handed_in import needed
from tinytf.support.randomness import seeded
from tinytf.training.distributed import Team
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf.transformer import Transformer, TransformerConfig

__all__ = ["build", "main"]

RECIPE = TrainingConfig(precision="auto")


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
    out = Path("runs/translator.safetensors")
    parser = parser_of("train", "Train a translator on the phrasebook.", RECIPE, out)
    parser.add_argument("--batch-size", type=int, default=128, help="sentences a batch")
    parser.add_argument(
        "--pool",
        type=int,
        default=4,
        help="batches sorted by length together: more are quicker, each teaches less (default: 4; "
        "the shipped translator had 50)",
    )
    return run_command(parser.parse_args(arguments), RECIPE, _train)


def _train(
    options: argparse.Namespace, config: TrainingConfig, crew: Team, device: torch.device
) -> int:
    trainer, translator = build(config, options.batch_size, device, crew, options.pool)
    header = translator.header() | {"batch_size": options.batch_size, "pool": options.pool}
    words = "with other words than today's phrasebook has"

    def grade() -> str:
        pairs = needed("phrasebook").Phrasebook().sample(2000, "validation", seed=1)
        score = exact_match(translator, pairs)
        return f"exact match on 2,000 held-out sentences: {100 * score:.2f} %"

    same = {"source_words": words, "target_words": words}
    return train_to_the_end(trainer, translator, options, header, same, grade)


if __name__ == "__main__":
    sys.exit(main())
