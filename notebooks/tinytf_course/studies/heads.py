"""Studies of heads: how many lookups one makes, and what those of five trained translators do."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import torch
import torch.nn.functional as F
from torch import nn

from tinytf.apps.translator import Translator
from tinytf.attention import MultiHeadAttention
from tinytf.cli.train import build
from tinytf.feedforward import FeedForward
from tinytf.inspect import record
from tinytf.interpret.head_roles import Head, heads_of, role_scores
from tinytf.metrics.translation import batch_of, teacher_forced
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf_course import studies
from tinytf_course.lessons.ablation import ablation_effect, mean_outputs
from tinytf_course.lessons.coreference import coreference_scores, noun_shares
from tinytf_course.phrasebook import Pair, Phrasebook
from tinytf_course.studies.optimise import optimise

__all__ = [
    "Lookups",
    "describe",
    "draw_twins",
    "grade_lookups",
    "lookups",
    "noun_rows",
    "nouns",
    "roles",
    "train_lookups",
    "unseen_twins",
    "untrained",
]

SEEDS = range(5)
WORDS = LENGTH = 10


class Lookups(nn.Module):
    """One attention layer on a ring of ten words; read off it, for each word, words nearby."""

    def __init__(
        self, num_heads: int, offsets: Sequence[int] = (-1, 2, -4), ffn: bool = False
    ) -> None:
        super().__init__()
        self.offsets = offsets
        self.words = nn.Embedding(10, 32)
        self.places = nn.Embedding(10, 32)
        self.attention = MultiHeadAttention(32, num_heads)
        self.feed_forward = FeedForward(32, 128) if ffn else None
        self.output = nn.Linear(32, len(offsets) * 10)

    def forward(self, ids):
        """Score, for each word of ids (B, T), the words looked for: (B, T, lookups, words)."""
        y = self.attention(self.words(ids) + self.places.weight)
        if self.feed_forward is not None:
            y = y + self.feed_forward(y)
        return self.output(y).unflatten(-1, (len(self.offsets), -1))


def answers(ids, offsets):
    """For each word, the words at these offsets round the ring: (B, T) -> (B, T, lookups)."""
    return torch.stack([ids.roll(-offset, dims=1) for offset in offsets], dim=-1)


def train_lookups(model, seed=0, steps=900, lr=3e-3):
    """Train on rings drawn anew at each step; returns the losses, a number per step."""
    device, draws = model.output.weight.device, torch.Generator().manual_seed(1000 + seed)

    def loss(_):
        ids = torch.randint(WORDS, (64, LENGTH), generator=draws).to(device)
        return F.cross_entropy(model(ids).flatten(0, 2), answers(ids, model.offsets).flatten())

    return optimise(torch.optim.Adam(model.parameters(), lr=lr), loss, steps)


@torch.no_grad()
def grade_lookups(model):
    """On 512 new rings: share of right answers, loss, and each head's mean weight by offset."""
    device, draws = model.output.weight.device, torch.Generator().manual_seed(7)
    ids = torch.randint(WORDS, (512, LENGTH), generator=draws).to(device)
    with record(model) as seen:
        logits = model(ids)
    wanted = answers(ids, model.offsets)
    right = (logits.argmax(-1) == wanted).float().mean().item()
    loss = F.cross_entropy(logits.flatten(0, 2), wanted.flatten()).item()
    at = torch.arange(LENGTH)
    weights = seen["attention"].mean(dim=0).cpu()  # (B, H, T, S) -> (H, T, S)
    by_offset = [weights[:, at, (at + offset) % LENGTH].mean(-1) for offset in range(LENGTH)]
    return right, loss, torch.stack(by_offset, dim=-1)


def lookups(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train one layer on two and three lookups, with more and more heads, over seeds."""
    rows = []
    for ffn in (False, True):
        for offsets in ((-1, 2), (-1, 2, -4)):
            for num_heads in (1, 2, 4, 8):
                for seed in seeds:
                    torch.manual_seed(seed)
                    model = Lookups(num_heads, offsets, ffn)
                    train_lookups(model, seed)
                    right, loss, by_offset = grade_lookups(model)
                    rows.append(
                        {
                            "ffn": ffn,
                            "lookups": len(offsets),
                            "heads": num_heads,
                            "seed": seed,
                            "right": round(right, 4),
                            "loss": round(loss, 6),
                            "offsets": by_offset.argmax(-1).tolist(),
                            "weights": [round(w, 3) for w in by_offset.amax(-1).tolist()],
                        }
                    )
    return rows


def draw_twins(n: int = 1200, seed: int = 3) -> list[dict]:
    """Draw `n` twins and keep those of which training shows neither; `it` the first noun first."""
    book, rows = Phrasebook(), []
    for pair in book.twins(n, seed):
        if all(book.split_of(p.source) != "train" for p in pair):
            first, second = sorted(pair, key=lambda p: p.antecedent[1])
            rows.append({"first": first.english, "second": second.english})
    return rows


def unseen_twins(book: Phrasebook) -> list[tuple[Pair, Pair]]:
    """Read the twins of `draw_twins` that ship: (`it` is the first noun, `it` is the second)."""
    rows = studies.load("head_twins")["rows"]
    return [(book.translate(row["first"]), book.translate(row["second"])) for row in rows]


def describe(
    translator: Translator, test: Sequence[Pair], pairs: Sequence[tuple[Pair, Pair]]
) -> dict:
    """Score every head; ablate each, each pair of a layer, all but one, and whole layers."""
    model, heads = translator.model, heads_of(translator.model)
    batches = {
        "test": batch_of(translator, test),
        "twins": batch_of(translator, [p for two in pairs for p in two]),
    }
    scores = role_scores(translator, test) | {"antecedent": coreference_scores(translator, pairs)}
    means = mean_outputs(model, batches["test"])
    layers: dict[str, list[Head]] = {}
    for head in heads:
        layers.setdefault(f"{head.kind} {head.depth}", []).append(head)
    row = {
        "heads": [str(head) for head in heads],
        "scores": {
            role: [round(of[head], 3) if head in of else None for head in heads]
            for role, of in scores.items()
        },
    }
    for name, batch in batches.items():
        intact = teacher_forced(model, batch)

        def cost(silent, to=None, batch=batch, intact=intact):
            effect = ablation_effect(model, batch, silent, to, intact)
            return [round(100 * effect.exact, 2), round(effect.loss, 4)]

        row[name] = {
            "exact": round(intact[0].float().mean().item(), 4),
            "zero": [cost([head]) for head in heads],
            "mean": [cost([head], means) for head in heads],
            "pairs": {
                f"{a}, {b}": cost([a, b])
                for layer in layers.values()
                for a, b in combinations(layer, 2)
            },
            "all but": [
                cost([h for h in layers[f"{head.kind} {head.depth}"] if h != head])
                for head in heads
            ],
            "layers": {layer: cost(group) for layer, group in layers.items()},
        }
    return row


def untrained(seed: int) -> tuple[Trainer, Translator]:
    """Make the translator that `roles` and `nouns` train with this seed, and its trainer."""
    return build(TrainingConfig(steps=2000, seed=seed), batch_size=64)


def roles(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train five translators and say what every head looks at and what is lost without it."""
    book = Phrasebook()
    test, pairs = book.sample(500, "test", seed=7), unseen_twins(book)
    rows = []
    for seed in seeds:
        trainer, translator = untrained(seed)
        before = role_scores(translator, test)
        trainer.run()
        row = {"seed": seed} | describe(translator, test, pairs)
        row["untrained"] = {
            role: [round(min(of.values()), 3), round(max(of.values()), 3)]
            for role, of in before.items()
        }
        rows.append(row)
    return rows


def noun_rows(translator: Translator, pairs: Sequence[tuple[Pair, Pair]]) -> dict:
    """Say which noun is written for `it` with each layer ablated, and with each head."""
    heads = heads_of(translator.model)
    layers: dict[str, list[Head]] = {"nothing": []}
    for head in heads:
        layers.setdefault(f"{head.kind} {head.depth}", []).append(head)
    groups = layers | {str(head): [head] for head in heads}
    return {
        name: [round(share, 4) for share in noun_shares(translator, pairs, group)]
        for name, group in groups.items()
    }


def nouns(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train the translators of `roles` again, and see which noun they write without a layer."""
    pairs, rows = unseen_twins(Phrasebook()), []
    for seed in seeds:
        trainer, translator = untrained(seed)
        trainer.run()
        rows.append({"seed": seed} | noun_rows(translator, pairs))
    return rows


STUDIES = {
    "head_twins": draw_twins,
    "head_lookups": lookups,
    "head_roles": roles,
    "head_nouns": nouns,
}
