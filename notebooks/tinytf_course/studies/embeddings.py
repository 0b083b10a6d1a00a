"""What a wrong scale of the embeddings costs; its tables ship, and no chapter needs them yet."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from tqdm import tqdm

from tinytf.cli.train import build
from tinytf.metrics.translation import exact_match
from tinytf.training.trainer import TrainingConfig
from tinytf.transformer import Transformer
from tinytf_course.phrasebook import Phrasebook

__all__ = ["STARTS", "Start", "begin", "embedding_scale", "train"]


class Start(NamedTuple):
    """How the embeddings and positions of a model begin.

    std: of the tables' numbers; factor: what they are multiplied by on the way in; positions: what
    the encodings are multiplied by. d_model is 128, its root 11.3. Adam moves each number of a
    table by about the learning rate whatever its size, so the factor also says how far a step moves
    the vectors that the model sees.
    """

    std: float
    factor: float
    positions: float = 1.0


ROOT = math.sqrt(128)
STARTS = {
    "std 1/√d, × √d": Start(1 / ROOT, ROOT),  # as the package has it
    "std 1, no factor": Start(1.0, 1.0),  # the same vectors, moved √d times less
    "std 1, × √d": Start(1.0, ROOT),  # nn.Embedding as it comes
    "std 1, × √d, positions × √d": Start(1.0, ROOT, ROOT),  # their ratio put right
    "std 0.02/√d, × √d": Start(0.02 / ROOT, ROOT),
    "std 0.02, no factor": Start(0.02, 1.0),  # the same vectors, moved √d times less
}


def begin(model: Transformer, start: Start) -> None:
    """Give a fresh model another start; its output matrix must be a table of its own."""
    if model.config.tie_output or model.config.share_embeddings:
        raise ValueError("the tables are shared: build the model with tie_output=False")
    with torch.no_grad():
        for table in (model.src_embedding, model.tgt_embedding):
            table.weight.mul_(start.std * math.sqrt(model.config.d_model))
            table.scale = start.factor
        model.positions.table.mul_(start.positions)


def train(
    start: str,
    seed: int,
    steps: int = 300,
    test_size: int = 300,
    norm: str = "pre",
    bar: bool = True,
) -> dict:
    """Train the phrasebook's translator from one of STARTS; its losses and its exact match.

    The output matrix is not tied to the embedding here, so that only the input changes.
    """
    config = TrainingConfig(steps=steps, warmup=min(100, steps // 2), seed=seed)
    trainer, translator = build(config, batch_size=64, tie_output=False, norm=norm)
    begin(trainer.model, STARTS[start])
    with tqdm(total=steps, desc=f"{start}, seed {seed}", mininterval=1.0, disable=not bar) as shown:
        trainer.run(bar=shown, log_every=20)
    test = Phrasebook().sample(test_size, "test", seed=7)
    return {
        "start": start,
        "seed": seed,
        "test": round(exact_match(translator, test), 4),
        "history": [{"step": r["step"], "loss": round(r["loss"], 4)} for r in trainer.history],
    }


def embedding_scale(seeds: Iterable[int] = range(5)) -> list[dict]:
    """Train from every start, over seeds."""
    return [train(start, seed) for seed in seeds for start in STARTS]


def embedding_scale_post(seeds: Iterable[int] = range(5)) -> list[dict]:
    """Train with post-norm, as in the paper, from the package's start and the loud ones."""
    starts = ("std 1/√d, × √d", "std 1, × √d", "std 1, × √d, positions × √d")
    return [train(start, seed, norm="post") for seed in seeds for start in starts]


STUDIES = {"embedding_scale": embedding_scale, "embedding_scale_post": embedding_scale_post}
