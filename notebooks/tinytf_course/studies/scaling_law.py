"""A scaling law of small GPTs on stories: the loss of several widths after equally many tokens."""

from collections.abc import Iterable

import numpy as np
from tqdm import tqdm

from tinytf.data.blocks import TextBlocks
from tinytf.gpt import GPT
from tinytf.training.config import TrainingConfig
from tinytf.training.losses import next_token_loss
from tinytf.training.trainer import Trainer
from tinytf_course.studies.copying import LENGTH, RECIPE, SIZE, Grades, story_gpt, texts
from tinytf_course.studies.threads import one_thread

__all__ = ["WIDTHS", "fit", "fits", "scaling_law", "weights"]

SEEDS, WIDTHS, STEPS = range(3), (16, 24, 32, 48, 64, 96), 1500  # 1.5 million tokens each


def weights(model: GPT) -> int:
    """Count the weights that are multiplied with: all but the table of positions."""
    return sum(p.numel() for p in model.parameters()) - model.positions.table.numel()


def fit(sizes: Iterable[int], losses: Iterable[float], floor: float) -> tuple[float, float]:
    """Fit loss = floor + a · size^-b by least squares in the logarithms; returns a and b."""
    x, y = np.log(list(sizes)), np.log(np.array(list(losses)) - floor)
    slope, intercept = np.polyfit(x, y, 1)
    return float(np.exp(intercept)), float(-slope)


def fits(rows: list[dict], floor: float, left_out: int, draws: int = 1000) -> np.ndarray:
    """Fit the law to all widths but one, `draws` times; returns (draws, 2), each fit's a and b.

    Each fit draws one seed's loss for each width, so they spread as far as the seeds do.
    """
    widths = sorted({row["width"] for row in rows} - {left_out})
    runs = [[row for row in rows if row["width"] == width] for width in widths]
    sizes, rng = [of_width[0]["weights"] for of_width in runs], np.random.default_rng(0)
    losses = ([rng.choice([row["loss"] for row in each]) for each in runs] for _ in range(draws))
    return np.array([fit(sizes, drawn, floor) for drawn in losses])


@one_thread()
def scaling_law(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train each width on equally many tokens, over seeds."""
    tokenizer, ids = texts()
    grades, rows = Grades(tokenizer, count=100), []
    for seed, width in tqdm([(s, w) for s in seeds for w in WIDTHS]):
        model = story_gpt(seed=seed, width=width)
        config = TrainingConfig(**RECIPE, steps=STEPS)
        blocks = TextBlocks(ids, LENGTH, SIZE, seed)
        trainer = Trainer(model, blocks, config, next_token_loss)
        trainer.run()
        found = {kind: round(nats, 4) for kind, nats in grades(model).items()}
        row = {"width": width, "seed": seed, "weights": weights(model), "loss": found["all"]}
        rows.append(row | {"things": found["things"], "tokens": STEPS * SIZE * LENGTH})
    return rows


STUDIES = {"scaling_law": scaling_law}
