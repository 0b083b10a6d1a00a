"""A small language whose entropy is known: what a loss and an accuracy can't go beyond.

Each symbol is the sum of the last one and three times the one before it, modulo `SYMBOLS`, and one
more with probability `SLIP`. No reader of the past can do better than `floors` and `ceiling`.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.blocks import Encoder, EncoderLayer, PreNorm
from tinytf.embedding import TokenEmbedding
from tinytf.masks import causal_mask
from tinytf.norm import LayerNorm
from tinytf.positional import PositionalEncoding
from tinytf_course.studies.optimise import optimise
from tinytf_course.studies.threads import one_thread

__all__ = ["Writer", "ceiling", "draw", "floors", "legal", "losses", "train", "write"]

SYMBOLS, LENGTH, HEADS = 6, 8, 8  # as many positions as heads
SLIP = 0.3
BOS = SYMBOLS  # one id more, read first and never said


def draw(count: int, draws: torch.Generator) -> Tensor:
    """Draw `count` sequences of LENGTH symbols: (count, LENGTH), the first two at random."""
    rows = torch.empty(count, LENGTH, dtype=torch.long)
    rows[:, :2] = torch.randint(SYMBOLS, (count, 2), generator=draws)
    slips = (torch.rand(count, LENGTH, generator=draws) < SLIP).long()
    for t in range(2, LENGTH):
        rows[:, t] = (rows[:, t - 1] + 3 * rows[:, t - 2] + slips[:, t]) % SYMBOLS
    return rows


def legal(rows: Tensor) -> Tensor:
    """Say which symbols, from the third on, the language allows: booleans (B, LENGTH - 2)."""
    step = (rows[:, 2:] - rows[:, 1:-1] - 3 * rows[:, :-2]) % SYMBOLS
    return (step == 0) | (step == 1)


def floors() -> Tensor:
    """Give the least loss in nats that is possible at each place: (LENGTH,)."""
    choice = -SLIP * math.log(SLIP) - (1 - SLIP) * math.log(1 - SLIP)
    return torch.tensor([math.log(SYMBOLS)] * 2 + [choice] * (LENGTH - 2))


def ceiling() -> float:
    """Give the largest share of symbols that can be guessed right."""
    return (2 / SYMBOLS + (LENGTH - 2) * (1 - SLIP)) / LENGTH


class Writer(nn.Module):
    """A decoder with nothing to translate: encoder layers under a mask of one's choice.

    `mask` makes, from a length and a device, what `MultiHeadAttention` takes.
    """

    def __init__(
        self, mask: Callable[..., Tensor] = causal_mask, d_model: int = 64, num_layers: int = 1
    ) -> None:
        super().__init__()
        self.mask = mask
        self.embedding = TokenEmbedding(SYMBOLS + 1, d_model)
        self.positions = PositionalEncoding(d_model, LENGTH, dropout=0.0)
        layers = [
            EncoderLayer(d_model, HEADS, 4 * d_model, 0.0, PreNorm) for _ in range(num_layers)
        ]
        self.encoder = Encoder(layers, LayerNorm(d_model))
        self.output = nn.Linear(d_model, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Score the symbol after each of ids (B, T): (B, T, SYMBOLS)."""
        return self.output(self.read(self.embedding(ids)))

    def read(self, x: Tensor) -> Tensor:
        """Map embedded symbols (B, T, C) to hidden states (B, T, C)."""
        return self.encoder(self.positions(x), self.mask(x.size(1), x.device))


def shifted(rows: Tensor) -> Tensor:
    """Put BOS in front and leave the last symbol out: (B, LENGTH) -> (B, LENGTH)."""
    return F.pad(rows[:, :-1], (1, 0), value=BOS)


@one_thread()
def train(
    model: Writer, seed: int = 0, steps: int = 300, device: str | torch.device = "cpu"
) -> Writer:
    """Train on sequences drawn anew at each step, and return the model."""
    draws = torch.Generator().manual_seed(1000 + seed)
    model = model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def loss(_: int) -> Tensor:
        rows = draw(128, draws).to(device)
        return F.cross_entropy(model(shifted(rows)).flatten(0, 1), rows.flatten())

    def rate(step: int) -> float:
        return 3e-3 * min(1, step / 20, (steps + 1 - step) / 100)

    optimise(optimizer, loss, steps, rate, clip=1.0)
    return model.eval()


@torch.no_grad()
def losses(model: Writer, rows: Tensor) -> tuple[Tensor, float]:
    """Grade on gold prefixes: the loss in nats at each place (LENGTH,), and the share right."""
    logits = model(shifted(rows))
    loss = F.cross_entropy(logits.flatten(0, 1), rows.flatten(), reduction="none")
    return loss.view_as(rows).mean(0), (logits.argmax(-1) == rows).float().mean().item()


@torch.no_grad()
def write(model: Writer, rows: Tensor) -> Tensor:
    """Write on, greedily, from the first two symbols of each row: (B, LENGTH).

    The model reads a window of LENGTH places, as in training, what is not written yet filled with
    BOS; a mask that fits one length only can be used too.
    """
    written = torch.full_like(rows, BOS)
    written[:, :2] = rows[:, :2]
    for t in range(2, LENGTH):
        written[:, t] = model(shifted(written))[:, t].argmax(-1)
    return written
