"""A study of induction: two layers of attention that learn to repeat, and what they need for it."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.attention import MultiHeadAttention, fused_attention
from tinytf.inspect import ablate_heads, record, replace
from tinytf.interpret.head_roles import mean_weight
from tinytf.interpret.induction import induction_score, key_matches
from tinytf.masks import CAUSAL
from tinytf.relative import RotaryAttention
from tinytf_course.studies.optimise import optimise

__all__ = [
    "AttentionOnly",
    "LearnedPlaces",
    "explored",
    "grow",
    "growth",
    "induction",
    "induction_places",
    "previous_score",
    "reading_bare",
    "repeat_loss",
    "repeats",
    "taken_apart",
]

SEEDS = range(5)
V, T, SHORTEST, LONGEST = 64, 64, 8, 32
KINDS = {"two layers": 2, "one layer": 1}
SIZES = (1.0, 0.02)  # of learned positions at the start; 0.02 is GPT-2's


class AttentionOnly(nn.Module):
    """Layers of causal self-attention and nothing else: no norm, no feed-forward network.

    Positions are RoPE's. What a layer reads is a sum of what all before it have written, so each
    way through the model can be multiplied out. Source: Elhage et al. 2021, "Two-layer
    attention-only transformers".
    """

    def __init__(self, num_layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(V, 64)
        layers = [MultiHeadAttention(64, 4, bias=False) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)
        for layer in layers:
            layer.attention = RotaryAttention()
        self.output = nn.Linear(64, V, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Score the next token: ids (B, T) -> logits (B, T, V)."""
        x = self.embedding(ids)  # (B, T) -> (B, T, C)
        for layer in self.layers:
            x = x + layer(x, mask=CAUSAL)
        return self.output(x)  # (B, T, C) -> (B, T, V)


class LearnedPlaces(AttentionOnly):
    """The same with a learned vector for each place (chapter 08) in RoPE's place.

    `size` is the standard deviation that these vectors begin with; those of the tokens have 1.
    """

    def __init__(self, num_layers: int = 2, size: float = 1.0) -> None:
        super().__init__(num_layers)
        self.places = nn.Parameter(size * torch.randn(T, 64))
        for layer in self.layers:
            layer.attention = fused_attention

    def forward(self, ids: Tensor) -> Tensor:
        """Score the next token: ids (B, T) -> logits (B, T, V)."""
        x = self.embedding(ids) + self.places[: ids.size(1)]  # (B, T) -> (B, T, C)
        for layer in self.layers:
            x = x + layer(x, mask=CAUSAL)
        return self.output(x)  # (B, T, C) -> (B, T, V)


def repeats(n: int, draws: torch.Generator, period: int | None = None) -> tuple[Tensor, Tensor]:
    """Draw n rows of different random tokens that begin anew after a random number of them.

    Returns ids (n, T), and (n, T) True where the next one can be known. A fixed `period` is the
    bad experiment: looking back by one distance solves it.
    """
    block = torch.rand(n, V, generator=draws).argsort(dim=-1)
    length = torch.randint(SHORTEST, LONGEST + 1, (n, 1), generator=draws)
    if period is not None:
        length = torch.full_like(length, period)
    at = torch.arange(T).expand(n, -1)
    return block.gather(1, at % length), at >= length


def repeat_loss(model: nn.Module, ids: Tensor, known: Tensor) -> Tensor:
    """Give the mean loss of the tokens that can be known, in nats."""
    asked = known[:, :-1]
    return F.cross_entropy(model(ids)[:, :-1][asked], ids[:, 1:][asked])


@torch.no_grad()
def explored(model: AttentionOnly, ids: Tensor) -> dict:
    """Run a model on one text, ids (T,): an example of the attention explorer.

    A row is the token that is read; what it goes on to is the next one, and "?" behind the last.
    """
    with record(model) as seen:
        model(ids[None])
    tokens = [str(token) for token in ids.tolist()]
    weights = torch.cat([seen[f"layers.{i}"] for i in range(len(model.layers))])  # (L, H, T, T)
    return {
        "source": tokens,
        "target": [*tokens[1:], "?"],
        "read": tokens,
        "attention": {"decoder": weights.cpu()},
    }


def previous_score(weights: Tensor) -> Tensor:
    """Give each head's mean weight on the token before: (B, H, T, T) -> (H,)."""
    before = torch.arange(weights.size(2), device=weights.device) - 1
    return mean_weight(weights, before.expand(weights.size(0), -1))


def grow(
    model: nn.Module, steps: int, seed: int = 0, every: int = 20, period: int | None = None
) -> list[dict]:
    """Train on new repeats at each step; returns what `growth` says every so many steps."""
    draws, device = torch.Generator().manual_seed(seed), model.output.weight.device
    fresh = [part.to(device) for part in repeats(32, torch.Generator().manual_seed(1000), period)]
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    rows = []

    def loss(step: int) -> Tensor:
        if (step - 1) % every == 0:
            rows.append({"step": step - 1} | growth(model, *fresh))
        ids, known = (part.to(device) for part in repeats(32, draws, period))
        return repeat_loss(model, ids, known)

    optimise(optimizer, loss, steps + 1)
    return rows


@torch.no_grad()
def growth(model: nn.Module, ids: Tensor, known: Tensor) -> dict:
    """Measure the loss on the repeat, and for each layer its heads' two scores."""
    with record(model) as seen:
        loss = repeat_loss(model, ids, known).item()
    return {
        "loss": round(loss, 4),
        "previous": [[round(s, 3) for s in previous_score(w).tolist()] for w in seen.values()],
        "induction": [
            [round(s, 3) for s in induction_score(w, ids).tolist()] for w in seen.values()
        ],
    }


@torch.no_grad()
def reading_bare(model: nn.Module, maps: str, ids: Tensor, known: Tensor) -> float:
    """Give the loss where these maps of layer 1, of "qkv", read the embeddings, not layer 0."""
    layer, x = model.layers[1], model.embedding(ids)
    bare = {part: getattr(layer, f"w_{part}")(x) for part in "qkv"}

    def loss(left: str) -> float:
        if not left:
            return repeat_loss(model, ids, known).item()
        with replace(model, f"layers.1.w_{left[0]}", lambda _: bare[left[0]]):
            return loss(left[1:])

    return loss(maps)


def induction(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train two layers and one over seeds; two are then taken apart."""
    rows = []
    for kind, num_layers in KINDS.items():
        for seed in seeds:
            torch.manual_seed(seed)
            model = AttentionOnly(num_layers)
            row = {"kind": kind, "seed": seed, "curve": grow(model, 400, seed, 50)}
            rows.append(row | taken_apart(model) if num_layers == 2 else row)
    return rows


def induction_places(seeds: Iterable[int] = SEEDS, steps: int = 600) -> list[dict]:
    """Train two layers with learned positions, begun large and small, over seeds."""
    rows = []
    for size in SIZES:
        for seed in seeds:
            torch.manual_seed(seed)
            model = LearnedPlaces(size=size)
            rows.append({"size": size, "seed": seed, "curve": grow(model, steps, seed, 100)})
    return rows


@torch.no_grad()
def taken_apart(model: nn.Module) -> dict:
    """Say what a grown model loses without each head and layer, and which maps need layer 0."""
    fresh = repeats(64, torch.Generator().manual_seed(1000))

    def without(layer, *heads):
        with replace(model, f"layers.{layer}", ablate_heads(*heads)):
            return round(repeat_loss(model, *fresh).item(), 4)

    return {
        "head": [[without(layer, h) for h in range(4)] for layer in range(2)],
        "layer": [without(layer, *range(4)) for layer in range(2)],
        "all but": [
            [without(layer, *(h for h in range(4) if h != only)) for only in range(4)]
            for layer in range(2)
        ],
        "bare": {maps: round(reading_bare(model, maps, *fresh), 4) for maps in ("q", "k", "v")},
        "matches": {
            name: [[round(key_matches(model, g, h).item(), 2) for h in heads] for g in range(4)]
            for name, heads in {"through": range(4), "past": [None]}.items()
        },
    }


STUDIES = {"induction": induction, "induction_places": induction_places}
