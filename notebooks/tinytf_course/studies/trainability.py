"""Which depths and learning rates train, for each place of the norm: one task, one recipe.

An encoder stack reads eight digits and writes them sorted, all at once. Everything but the norm,
the depth, the learning rate and its warm-up is the same in every run of a seed: rows, steps, width,
Xavier weights, and Adam without clipping, decay or dropout. Some rows change one thing more, and
say so: `steps`, `gain` (what norms start from), `scaled` (GPT-2's small start of what is added).
"""

import functools
import math
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from tinytf.blocks import Encoder, EncoderLayer
from tinytf.embedding import TokenEmbedding
from tinytf.initialisation import scale_residual, xavier
from tinytf.interpret.similarity import token_similarity
from tinytf.norm import LayerNorm
from tinytf.positional import PositionalEncoding
from tinytf.residual import PostNorm, PreNorm
from tinytf.support.randomness import seeded
from tinytf_course.studies import load
from tinytf_course.studies.optimise import optimise
from tinytf_course.studies.threads import one_thread

__all__ = [
    "DEPTHS", "NORMS", "RATES", "Sorter", "by_place", "cell", "draw", "grid", "rows", "train_cell",
]  # fmt: skip

DIGITS, LENGTH, WIDTH = 10, 8, 32
DEPTHS, RATES, SEEDS = (2, 4, 8, 16), (3e-4, 1e-3, 3e-3, 1e-2), range(5)
STEPS, BATCH, WARMUP, EVERY = 300, 32, 100, 50
NORMS: dict[str, tuple[Callable[..., nn.Module], Callable[[int], nn.Module]]] = {
    "post": (PostNorm, nn.Identity),  # the residual, and the norm at the end of the stack
    "pre": (PreNorm, LayerNorm),
    "none": (functools.partial(PreNorm, norm=nn.Identity), nn.Identity),
}


class Sorter(nn.Module):
    """An encoder stack over digits and sinusoidal positions: ids (B, T) to logits (B, T, V).

    `gain` is what the weights of all LayerNorms start from, the last one's included; `scaled`
    divides what writes to the stream by sqrt(2 * depth). Raises KeyError for an unknown norm.
    """

    def __init__(self, norm: str, depth: int, gain: float = 1.0, scaled: bool = False) -> None:
        super().__init__()
        residual, final_norm = NORMS[norm]
        self.embedding = TokenEmbedding(DIGITS, WIDTH)
        self.positions = PositionalEncoding(WIDTH, LENGTH, dropout=0.0)
        layers = [EncoderLayer(WIDTH, 2, 2 * WIDTH, 0.0, residual) for _ in range(depth)]
        self.encoder = Encoder(layers, final_norm(WIDTH))
        self.output = nn.Linear(WIDTH, DIGITS)
        xavier(self)
        if scaled:
            scale_residual(self, 2 * depth)
        for module in self.modules():
            if isinstance(module, LayerNorm):
                nn.init.constant_(module.weight, gain)

    def forward(self, ids: Tensor) -> Tensor:
        """Score the digit to be written at each place."""
        return self.output(self.states(ids))

    def states(self, ids: Tensor) -> Tensor:
        """Give what the stack hands to the output: ids (B, T) -> (B, T, C)."""
        return self.encoder(self.positions(self.embedding(ids)))


def draw(
    count: int, generator: torch.Generator, device: str | torch.device = "cpu"
) -> tuple[Tensor, Tensor]:
    """Draw rows of random digits and the same rows sorted, both ids (B, T)."""
    ids = torch.randint(DIGITS, (count, LENGTH), generator=generator).to(device)
    return ids, ids.sort(dim=1).values


def by_place() -> tuple[float, float]:
    """Loss (nats) and accuracy of the best answer that knows the place but not what it read.

    Exact, from the distribution of the k-th smallest of eight digits. A run that stays at this loss
    has learned nothing about its input; one at log 10 = 2.303 not even that.
    """
    below = torch.arange(DIGITS + 1, dtype=torch.float64) / DIGITS  # P(one digit < v)
    loss = accuracy = 0.0
    for k in range(LENGTH):
        at_least = sum(
            math.comb(LENGTH, j) * below**j * (1 - below) ** (LENGTH - j)
            for j in range(k + 1, LENGTH + 1)
        )  # P(more than k digits are below v)
        p = at_least.diff()
        loss -= p.xlogy(p).sum().item() / LENGTH
        accuracy += p.max().item() / LENGTH
    return loss, accuracy


def train_cell(
    norm: str,
    depth: int,
    lr: float,
    warmup: int = 1,
    seed: int = 0,
    steps: int = STEPS,
    gain: float = 1.0,
    scaled: bool = False,
    device: str | torch.device = "cpu",
) -> dict:
    """Train one stack and grade it on 256 rows drawn apart from those of training.

    The learning rate rises to `lr` over `warmup` steps (1: at once) and stays there. Returns the
    settings with `accuracy`; `curve`, the mean training loss (nats) of every 50 steps, None once it
    is not finite; `loss`, its last; `alike_before` and `alike`, the mean cosine of two tokens of a
    row at the end of the stack, before and after training.
    """
    draws = torch.Generator().manual_seed(seed)
    with seeded(seed):
        model = Sorter(norm, depth, gain, scaled).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)

    def loss(_: int) -> Tensor:
        ids, targets = draw(BATCH, draws, device)
        return F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())

    before = grade(model)
    losses = optimise(optimizer, loss, steps, lambda step: lr * min(1.0, step / warmup)).tolist()
    whole = range(EVERY, steps + 1, EVERY)
    curve = [short(sum(losses[end - EVERY : end]) / EVERY) for end in whole]
    after = grade(model)
    return {
        "norm": norm, "depth": depth, "lr": lr, "warmup": warmup, "steps": steps, "gain": gain,
        "scaled": scaled, "seed": seed, "accuracy": after["accuracy"],
        "loss": curve[-1] if curve else None, "alike_before": before["alike"],
        "alike": after["alike"], "curve": curve,
    }  # fmt: skip


@torch.no_grad()
def grade(model: Sorter) -> dict[str, float | None]:
    """Grade 256 rows: share of digits right, and how alike tokens are.

    Of the 10^8 rows there are, training draws its own: one that it shares with these is rare.
    """
    device = model.output.weight.device
    ids, targets = draw(256, torch.Generator().manual_seed(10_000), device)
    states = model.states(ids)
    right = model.output(states).argmax(dim=-1) == targets
    alike = token_similarity(states).mean().item()
    return {"accuracy": round(right.float().mean().item(), 4), "alike": short(alike)}


def short(number: float) -> float | None:
    """Four digits of a number for a table; None if it is not finite."""
    return float(f"{number:.4g}") if math.isfinite(number) else None


def cell(seeds: Iterable[int] = SEEDS, **settings: object) -> dict:
    """Run `train_cell` over seeds: one row, with a list over seeds for everything measured."""
    runs = [train_cell(seed=seed, **settings) for seed in seeds]
    measured = ("seed", "accuracy", "loss", "alike_before", "alike", "curve")
    return {
        key: [run[key] for run in runs] if key in measured else value
        for key, value in runs[0].items()
    }


def grid(norm: str, warmup: int = 1, scaled: bool = False) -> Tensor:
    """Read the shipped map of one kind of stack: accuracies, (depths, rates, seeds).

    In the order of `DEPTHS`, `RATES` and the seeds 0 to 4. Raises KeyError for a kind that was not
    tried.
    """
    kind = {"norm": norm, "warmup": warmup, "scaled": scaled, "steps": STEPS, "gain": 1.0}
    found = {
        (row["depth"], row["lr"]): row["accuracy"]
        for row in load("trainability")["rows"]
        if all(row[key] == value for key, value in kind.items())
    }
    return torch.tensor([[found[depth, rate] for rate in RATES] for depth in DEPTHS])


@one_thread()
def rows(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """The map; the stuck runs continued; gains that start at 0.1; and two scaled maps."""
    variants = [("post", 1), ("post", WARMUP), ("pre", 1), ("pre", WARMUP), ("none", 1)]
    seeds = list(seeds)
    todo: list[tuple[list[int], dict]] = [
        (seeds, {"norm": norm, "warmup": warmup, "depth": depth, "lr": lr})
        for depth in DEPTHS
        for lr in RATES
        for norm, warmup in variants
    ]
    stuck = {"norm": "post", "depth": 16, "lr": 1e-3}
    todo += [
        (seeds[:3], stuck | {"lr": lr, "warmup": warmup, "steps": more * STEPS})
        for lr, more in ((1e-3, 3), (3e-4, 10))
        for warmup in (1, WARMUP)
    ]
    todo += [
        (seeds, {"norm": norm, "warmup": 1, "depth": 8, "lr": lr, "gain": 0.1})
        for norm in ("post", "pre")
        for lr in (1e-3, 3e-3)
    ]
    todo += [
        (seeds, {"norm": norm, "warmup": 1, "depth": depth, "lr": lr, "scaled": True})
        for depth in DEPTHS
        for lr in RATES
        for norm in ("post", "none")
    ]
    table = [cell(chosen, **settings) for chosen, settings in tqdm(todo, mininterval=5)]
    for row in table:
        if row["steps"] == STEPS:  # short curves are not worth their place in the file
            del row["curve"]
    return table


STUDIES = {"trainability": rows}
