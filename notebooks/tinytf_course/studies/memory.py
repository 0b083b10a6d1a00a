"""Small studies of reading: recall across distance, and how much data each architecture needs."""

import itertools
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from tinytf.support.randomness import seeded
from tinytf_course.studies.optimise import optimise
from tinytf_course.studies.readers import (
    Attention,
    Classifier,
    Convolution,
    SmallEncoder,
    largest,
    last,
    recurrent,
)
from tinytf_course.studies.threads import one_thread

__all__ = ["DETECTORS", "READERS", "accuracy", "detect", "draw_pairs", "fit", "recall"]

SYMBOLS = 10  # of the recall task
LETTERS, LENGTH = 8, 20  # of the detection task
SEEDS = range(5)
DISTANCES, SIZES = (5, 10, 20, 40, 80), (50, 100, 200, 400, 800)


READERS: dict[str, Callable[[], nn.Module]] = {
    "RNN": lambda: recurrent("RNN", 64),
    "GRU": lambda: recurrent("GRU", 64),
    "LSTM": lambda: recurrent("LSTM", 64),
    "LSTM, forget bias 3": lambda: recurrent("LSTM", 64, 3.0),
    "LSTM, forget bias 5": lambda: recurrent("LSTM", 64, 5.0),
    "attention": lambda: Attention(64),
}
DETECTORS: dict[str, Callable[[], nn.Module]] = {
    "CNN": lambda: Convolution(32),
    "LSTM": lambda: recurrent("LSTM", 32),
    "Transformer": lambda: SmallEncoder(32, LENGTH),
    "Transformer, told offsets": lambda: SmallEncoder(32, LENGTH, "relative"),
}
VARIANTS: dict[str, Callable[[], nn.Module]] = {
    "Transformer, learned positions": lambda: SmallEncoder(32, LENGTH, "learned"),
    "Transformer, one layer": lambda: SmallEncoder(32, LENGTH, layers=1),
}


def fit(
    model: nn.Module, batch: Callable[[], tuple[Tensor, Tensor]], steps: int, lr: float
) -> nn.Module:
    """Train by Adam on batches of (ids, classes), gradients clipped at norm 1; return the model."""

    def loss(_: int) -> Tensor:
        ids, classes = batch()
        return F.cross_entropy(model(ids), classes)

    optimise(torch.optim.Adam(model.parameters(), lr=lr), loss, steps, clip=1.0)
    return model


@torch.no_grad()
def accuracy(model: nn.Module, ids: Tensor, classes: Tensor) -> float:
    """Give the share of rows whose best class is the right one."""
    return (model(ids).argmax(dim=-1) == classes).float().mean().item()


def recall(
    name: str,
    distance: int,
    seed: int = 0,
    steps: int = 300,
    lr: float = 3e-3,
    device: str | torch.device = "cpu",
) -> float:
    """Train a reader of READERS to say the first of `distance` random symbols after the last one.

    Every batch is new. Returns the accuracy on 1,000 further rows; guessing gives 0.1.
    """
    draws = torch.Generator().manual_seed(seed)

    def rows(count: int = 64) -> tuple[Tensor, Tensor]:
        ids = torch.randint(SYMBOLS, (count, distance), generator=draws).to(device)
        return ids, ids[:, 0]

    with seeded(seed):
        model = Classifier(SYMBOLS, SYMBOLS, 64, READERS[name](), last).to(device)
    return accuracy(fit(model, rows, steps, lr), *rows(1000))


def draw_pairs(count: int, draws: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw rows of 20 letters of 8, half of which hold an `a` (0) right before a `b` (1).

    Returns ids (count, 20) and, for each row, whether it does (count,).
    """
    classes = (torch.arange(count) < count // 2)[torch.randperm(count, generator=draws)].long()
    ids = torch.empty(count, LENGTH, dtype=torch.long)
    missing = torch.ones(count, dtype=torch.bool)
    while missing.any():  # draw again where a row is not of the class it should be
        ids[missing] = torch.randint(LETTERS, (int(missing.sum()), LENGTH), generator=draws)
        missing = ((ids[:, :-1] == 0) & (ids[:, 1:] == 1)).any(dim=1) != classes.bool()
    return ids, classes


def detect(
    name: str,
    size: int,
    seed: int = 0,
    steps: int = 600,
    lr: float = 3e-3,
    device: str | torch.device = "cpu",
) -> dict[str, float]:
    """Train a detector on `size` rows of `draw_pairs`, 50 a step, to say whether `ab` occurs.

    Returns its accuracy on those rows ("train") and on 2,000 others ("test"); guessing gives 0.5.
    """
    draws = torch.Generator().manual_seed(seed)
    ids, classes = (part.to(device) for part in draw_pairs(size, draws))
    test = [part.to(device) for part in draw_pairs(2000, torch.Generator().manual_seed(10_000))]

    def rows() -> tuple[Tensor, Tensor]:
        chosen = torch.randint(size, (50,), generator=draws).to(device)
        return ids[chosen], classes[chosen]

    with seeded(seed):
        reader = (DETECTORS | VARIANTS)[name]()
        model = Classifier(LETTERS, 2, 32, reader, largest).to(device)
    fit(model, rows, steps, lr)
    return {"train": accuracy(model, ids, classes), "test": accuracy(model, *test)}


@one_thread()
def recall_rows(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Recall of every reader at every distance; of two, at distance 20, with other rates too."""
    runs = [(name, n, seed, 3e-3) for seed in seeds for name in READERS for n in DISTANCES]
    others = itertools.product(("RNN", "LSTM"), (20,), seeds, (1e-3, 1e-2))
    rows = []
    for name, distance, seed, lr in tqdm([*runs, *others], mininterval=5):
        share = round(recall(name, distance, seed, lr=lr), 4)
        rows.append({"reader": name, "distance": distance, "seed": seed, "lr": lr, "test": share})
    return rows


@one_thread()
def data_rows(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Detection at every size; at 200 rows with other rates and two other Transformers too."""
    runs = [(name, n, seed, 3e-3) for seed in seeds for name in DETECTORS for n in SIZES]
    others = [("Transformer", 200, seed, lr) for seed in seeds for lr in (1e-3, 1e-2)]
    others += [(name, 200, seed, 3e-3) for seed in seeds for name in VARIANTS]
    rows = []
    for name, size, seed, lr in tqdm([*runs, *others], mininterval=5):
        shares = {k: round(v, 4) for k, v in detect(name, size, seed, lr=lr).items()}
        rows.append({"reader": name, "size": size, "seed": seed, "lr": lr, **shares})
    return rows


STUDIES = {"memory_recall": recall_rows, "memory_data": data_rows}
