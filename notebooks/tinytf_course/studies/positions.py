"""Studies of positions past the training length: five schemes, three tasks, one recipe.

A small causal model is trained on sequences of 16 symbols and tested, position by position, on 64;
a lookup over any distance is tested on up to 2048.
"""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from tinytf.blocks import Encoder, EncoderLayer, PreNorm
from tinytf.embedding import TokenEmbedding
from tinytf.masks import causal_mask
from tinytf.norm import LayerNorm
from tinytf.positional import LearnedPositionalEncoding, PositionalEncoding
from tinytf.relative import AlibiAttention, RotaryAttention
from tinytf_course.studies.optimise import optimise

__all__ = ["SCHEMES", "TASKS", "Batch", "CausalModel", "draw", "grade", "length", "reach", "train"]

SCHEMES = ("none", "sinusoidal", "learned", "RoPE", "ALiBi")
TASKS = ("three back", "next symbol", "first symbol")
SYMBOLS, TRAINED, TESTED = 12, 16, 64
STEPS = {"three back": 1000, "next symbol": 1000, "first symbol": 300}
REACHES = (64, 256, 1024, 2048)
HIDDEN = -100  # the target of a position that is not graded


class CausalModel(nn.Module):
    """Encoder layers under a causal mask, with positions by one scheme; (B, T) ids to logits."""

    def __init__(
        self, scheme: str, base: float = 10000.0, d_model: int = 64, num_heads: int = 4
    ) -> None:
        super().__init__()
        if scheme not in SCHEMES:
            raise ValueError(f"no scheme {scheme!r}; there are {', '.join(SCHEMES)}")
        self.embedding = TokenEmbedding(2 * SYMBOLS, d_model)  # each symbol plain and marked
        tables = {"sinusoidal": PositionalEncoding, "learned": LearnedPositionalEncoding}
        table = tables.get(scheme)
        self.positions = table(d_model, TESTED, 0.0) if table else nn.Identity()
        layers = [EncoderLayer(d_model, num_heads, 4 * d_model, 0.0, PreNorm) for _ in range(2)]
        for layer in layers:
            if scheme == "RoPE":
                layer.self_attention.attention = RotaryAttention(base)
            elif scheme == "ALiBi":
                layer.self_attention.attention = AlibiAttention()
        self.layers = Encoder(layers, LayerNorm(d_model))
        self.output = nn.Linear(d_model, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Map ids (B, T) to logits (B, T, SYMBOLS)."""
        x = self.positions(self.embedding(ids))
        return self.output(self.layers(x, causal_mask(ids.size(1), ids.device)))


class Batch:
    """Ids and targets (B, T), and the least possible loss at each position, in nats."""

    def __init__(self, ids: Tensor, targets: Tensor, floor: Tensor) -> None:
        self.ids, self.targets, self.floor = ids, targets, floor


def draw(task: str, count: int, length: int, generator: torch.Generator) -> Batch:
    """Draw `count` sequences of a task.

    "three back": name the symbol three places back; the first three places are not graded.
    "next symbol": guess the next symbol of a chain in which two symbols set the odds of the next.
    "first symbol": symbol 0 is marked; every later place names it. Raises ValueError for another.
    """
    ids = torch.randint(SYMBOLS, (count, length + 1), generator=generator)
    targets = torch.full((count, length), HIDDEN)
    floor = torch.zeros(count, length)
    if task == "three back":
        targets[:, 3:] = ids[:, : length - 3]
    elif task == "first symbol":
        targets[:, 1:] = ids[:, :1]
        ids[:, 0] += SYMBOLS
    elif task == "next symbol":
        odds = _odds()
        for t in range(2, length + 1):
            row = odds[ids[:, t - 2], ids[:, t - 1]]
            ids[:, t] = torch.multinomial(row, 1, generator=generator)[:, 0]
        targets[:, 1:] = ids[:, 2:]
        floor[:, 1:] = -odds[ids[:, :-2], ids[:, 1:-1], ids[:, 2:]].log()
    else:
        raise ValueError(f"no task {task!r}; there are {', '.join(TASKS)}")
    return Batch(ids[:, :length], targets, floor)


def _odds() -> Tensor:
    """Tabulate the odds of the next symbol after every two: (SYMBOLS, SYMBOLS, SYMBOLS)."""
    generator = torch.Generator().manual_seed(2022)
    return (2 * torch.randn(SYMBOLS, SYMBOLS, SYMBOLS, generator=generator)).softmax(dim=-1)


def train(
    scheme: str,
    task: str,
    seed: int = 0,
    steps: int | None = None,
    device: str | torch.device = "cpu",
    base: float = 10000.0,
) -> CausalModel:
    """Train one model on sequences of TRAINED symbols: Adam, warm-up, then a falling rate."""
    steps = steps or STEPS[task]
    torch.manual_seed(seed)
    model = CausalModel(scheme, base).to(device)
    generator = torch.Generator().manual_seed(1000 + seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, steps, pct_start=0.1)
    optimizer.register_step_post_hook(lambda *_: schedule.step())  # it moves Adam's beta_1 too

    def loss(_: int) -> Tensor:
        batch = draw(task, 64, TRAINED, generator)
        logits = model(batch.ids.to(device)).flatten(0, 1)
        return F.cross_entropy(logits, batch.targets.flatten().to(device), ignore_index=HIDDEN)

    optimise(optimizer, loss, steps, clip=1.0)
    return model


@torch.no_grad()
def grade(model: CausalModel, task: str, count: int = 2000, length: int = TESTED) -> Tensor:
    """Grade position by position on fresh sequences: (length,), NaN where nothing is asked.

    The share of right answers; for "next symbol", the loss above the least possible, in nats.
    The mask is causal, so place t of a long sequence is graded as the end of one of t + 1 symbols.
    """
    batch = draw(task, count, length, torch.Generator().manual_seed(77))
    device = next(model.parameters()).device
    logits = torch.cat(
        [model(ids.to(device)).cpu() for ids in batch.ids.split(max(1, 16000 // length))]
    )
    asked = (batch.targets != HIDDEN)[0]
    if task == "next symbol":
        targets = batch.targets.clamp_min(0)
        grades = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none") - batch.floor
    else:
        grades = (logits.argmax(dim=-1) == batch.targets).float()
    return grades.mean(dim=0).masked_fill(~asked, torch.nan)


def length(seeds: Iterable[int] = range(5)) -> list[dict]:
    """Train every scheme on two tasks over seeds and grade each far past the trained length."""
    runs = [(task, scheme, seed) for seed in seeds for task in TASKS[:2] for scheme in SCHEMES]
    rows = []
    for task, scheme, seed in tqdm(runs, mininterval=1.0):
        grades = grade(train(scheme, task, seed), task).tolist()
        curve = [None if value != value else round(value, 3) for value in grades]
        rows.append({"task": task, "scheme": scheme, "seed": seed, "by_position": curve})
    return rows


def reach(seeds: Iterable[int] = range(5)) -> list[dict]:
    """Train on "first symbol" and grade the last quarter of ever longer sequences."""
    runs = [(scheme, seed) for seed in seeds for scheme in SCHEMES if scheme != "learned"]
    rows = []
    for scheme, seed in tqdm(runs, mininterval=1.0):
        model = train(scheme, "first symbol", seed)
        if scheme == "sinusoidal":  # the formula goes on; a learned table has no more rows
            model.positions = PositionalEncoding(model.output.in_features, max(REACHES), 0.0)
        for n in REACHES:
            share = grade(model, "first symbol", 64, n)[-n // 4 :].mean()
            rows.append(
                {"scheme": scheme, "seed": seed, "length": n, "share": round(float(share), 3)}
            )
    return rows


STUDIES = {"positions_length": length, "positions_reach": reach}
