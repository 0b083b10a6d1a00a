"""BatchNorm against LayerNorm and RMSNorm in one small encoder, on rows of different lengths.

A pre-norm stack sorts rows of 3 to 10 digits, padded to the longest of their batch. The norm and
the batch size are all that differs; each run is graded with running and with batch statistics, and
again with 40 more columns of padding, which hold nothing.
"""

import copy
import functools
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from tinytf.blocks import Encoder, EncoderLayer
from tinytf.embedding import TokenEmbedding
from tinytf.initialisation import xavier
from tinytf.masks import padding_mask
from tinytf.norm import LayerNorm, RMSNorm
from tinytf.positional import PositionalEncoding
from tinytf.residual import PreNorm
from tinytf.support.randomness import seeded
from tinytf_course.studies.optimise import optimise
from tinytf_course.studies.threads import one_thread

__all__ = [
    "NORMS",
    "PaddedSorter",
    "TokenBatchNorm",
    "cell",
    "draw",
    "grade",
    "train",
    "train_cell",
]

PAD, DIGITS, SHORTEST, LONGEST = 0, 10, 3, 10  # ids 1 to 10 are the digits
MORE_PADS = (5, 10, 20, 40)  # columns of padding added to a batch
WIDTH, DEPTH, SEEDS = 32, 2, range(5)
STEPS = {2: 2000, 4: 2000, 16: 600, 64: 600}  # by batch size: small batches learn less in a step


class TokenBatchNorm(nn.Module):
    """`nn.BatchNorm1d` over the tokens of a batch: each feature by its mean over all of them.

    x (B, T, C) counts as B*T rows; with `real`, boolean (B, T), only those tokens count, and the
    others become 0. In training mode the mean and variance are the batch's, in eval mode the
    running ones. Source: Ioffe and Szegedy 2015, algorithms 1 and 2.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(d_model)
        self.real: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, C) to (B, T, C)."""
        if self.real is None:
            return self.norm(x.flatten(0, 1)).view_as(x)
        out = torch.zeros_like(x)
        out[self.real] = self.norm(x[self.real])  # (B, T, C) -> (tokens, C) and back
        return out


NORMS: dict[str, Callable[[int], nn.Module]] = {
    "layer": LayerNorm,
    "rms": RMSNorm,
    "batch": TokenBatchNorm,  # over real tokens and padding
    "batch, real": TokenBatchNorm,  # told by the model which tokens are real
}


class PaddedSorter(nn.Module):
    """A pre-norm stack over padded rows: ids (B, T) to logits (B, T, 11).

    Raises KeyError for an unknown norm.
    """

    def __init__(self, norm: str) -> None:
        super().__init__()
        residual = functools.partial(PreNorm, norm=NORMS[norm])
        self.embedding = TokenEmbedding(1 + DIGITS, WIDTH)
        self.positions = PositionalEncoding(WIDTH, LONGEST + max(MORE_PADS), dropout=0.0)
        layers = [EncoderLayer(WIDTH, 2, 2 * WIDTH, 0.0, residual) for _ in range(DEPTH)]
        self.encoder = Encoder(layers, NORMS[norm](WIDTH))
        self.output = nn.Linear(WIDTH, 1 + DIGITS)
        xavier(self)
        self.told = [m for m in self.modules() if isinstance(m, TokenBatchNorm)]
        self.told = self.told if norm == "batch, real" else []

    def forward(self, ids: Tensor) -> Tensor:
        """Score the digit to be written at each place."""
        for norm in self.told:
            norm.real = ids != PAD
        return self.output(
            self.encoder(self.positions(self.embedding(ids)), padding_mask(ids, PAD))
        )


def draw(
    count: int, generator: torch.Generator, device: str | torch.device = "cpu"
) -> tuple[Tensor, Tensor]:
    """Draw rows of 3 to 10 random digits, padded to the longest, and the same rows sorted."""
    lengths = torch.randint(SHORTEST, LONGEST + 1, (count, 1), generator=generator)
    ids = torch.randint(1, 1 + DIGITS, (count, LONGEST), generator=generator)
    real = torch.arange(LONGEST) < lengths
    order = ids.masked_fill(~real, 1 + DIGITS).sort(dim=1).values  # padding goes last
    longest = int(lengths.max())
    ids, targets = ids.masked_fill(~real, PAD), order.masked_fill(~real, PAD)
    return ids[:, :longest].to(device), targets[:, :longest].to(device)


def train(
    norm: str,
    batch: int,
    lr: float = 3e-3,
    seed: int = 0,
    steps: int = 600,
    device: str | torch.device = "cpu",
) -> tuple[PaddedSorter, float]:
    """Train one stack by Adam; return it with the mean loss of the last 50 steps (nats a token)."""
    draws = torch.Generator().manual_seed(seed)
    with seeded(seed):
        model = PaddedSorter(norm).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)

    def loss(_: int) -> Tensor:
        ids, targets = draw(batch, draws, device)
        return F.cross_entropy(model(ids).flatten(0, 1), targets.flatten(), ignore_index=PAD)

    last = optimise(optimizer, loss, steps)[-50:].tolist()
    return model, sum(last) / max(1, len(last))


@torch.no_grad()
def grade(model: PaddedSorter, batch: int, pads: int = 0, training: bool = False) -> Tensor:
    """Score the 512 rows of `graded` in batches of `batch`: logits of real tokens (tokens, 11).

    `pads` columns of padding are added to every batch; `training` uses training mode, in which
    BatchNorm takes the batch's own statistics. The model itself is left as it is.
    """
    model = copy.deepcopy(model).train(training)  # training mode moves the running statistics
    scores = []
    for ids, _ in graded(batch, model.output.weight.device):
        ids = F.pad(ids, (0, pads), value=PAD)
        scores.append(model(ids)[ids != PAD])
    return torch.cat(scores)


def graded(
    batch: int, device: str | torch.device = "cpu", count: int = 512
) -> list[tuple[Tensor, Tensor]]:
    """The rows that grade every model, cut into batches of `batch`, each padded to its longest.

    They are drawn apart from training's, but not all are new to it: there are only a thousand rows
    of three digits. What is compared is norms, on the same rows.
    """
    ids, targets = draw(count, torch.Generator().manual_seed(10_000), device)
    parts = zip(ids.split(batch), targets.split(batch), strict=True)
    return [(i[:, (i != PAD).any(0)], t[:, (t != PAD).any(0)]) for i, t in parts]


def train_cell(
    norm: str, batch: int, lr: float = 3e-3, seed: int = 0, steps: int = 600, **more: object
) -> dict:
    """Train one stack and grade it with running and with batch statistics, and among pads.

    Returns the settings with the share of digits right: `eval` (BatchNorm: running statistics),
    `train` (batch statistics, of batches as large as in training), both again with 40 more pads,
    `eval_pads` and `train_pads`, and `train_by_pads` with 5, 10, 20 and 40; `gap`, the mean
    difference of a logit between the modes; `loss` at the end of training.
    """
    model, loss = train(norm, batch, lr, seed, steps, **more)
    gold = torch.cat([t[t != PAD] for _, t in graded(batch, model.output.weight.device)])

    def right(scores: Tensor) -> float:
        return round((scores.argmax(dim=-1) == gold).float().mean().item(), 4)

    running, own = grade(model, batch), grade(model, batch, training=True)
    by_pads = [right(grade(model, batch, pads, training=True)) for pads in MORE_PADS]
    return {
        "norm": norm, "batch": batch, "lr": lr, "steps": steps, "seed": seed,
        "eval": right(running), "eval_pads": right(grade(model, batch, MORE_PADS[-1])),
        "train": right(own), "train_pads": by_pads[-1], "train_by_pads": by_pads,
        "gap": round((own - running).abs().mean().item(), 4), "loss": round(loss, 4),
    }  # fmt: skip


def cell(seeds: Iterable[int] = SEEDS, **settings: object) -> dict:
    """Run `train_cell` over seeds: one row, with a list over seeds for everything measured."""
    runs = [train_cell(seed=seed, **settings) for seed in seeds]
    fixed = ("norm", "batch", "lr", "steps")
    return {k: v if k in fixed else [run[k] for run in runs] for k, v in runs[0].items()}


@one_thread()
def rows(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Every norm at every batch size; then batches of 4 at a third of the learning rate."""
    seeds = list(seeds)
    todo = [
        (seeds, {"norm": norm, "batch": batch, "steps": STEPS[batch]})
        for batch in STEPS
        for norm in NORMS
    ]
    todo += [(seeds[:3], {"norm": norm, "batch": 4, "lr": 1e-3, "steps": 2000}) for norm in NORMS]
    return [cell(chosen, **settings) for chosen, settings in tqdm(todo, mininterval=5)]


STUDIES = {"batch_norm": rows}
