"""The tables of the encoder: cloze by both sides and by one, probes by layer, starts, a bug."""

from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from tinytf.metrics.counting import count_parameters
from tinytf.text.words import EOS, WordTokenizer
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies.blanks import Blanks
from tinytf_course.studies.encoder import (
    GROUPS,
    LAYERS,
    Blank,
    Cloze,
    blank_batch,
    blanks_of,
    build,
    constant_losses,
    exact,
    first_nouns,
    floors,
    layer_losses,
    losses,
    reverser,
    sentences,
    train,
)
from tinytf_course.studies.threads import one_thread

SEEDS = range(5)


def likeness(model: Cloze) -> float:
    """The mean cosine between the weights of different layers, over their matrices."""
    cosines = []
    layers = [dict(layer.named_parameters()) for layer in model.encoder.layers]
    for name in (n for n, p in layers[0].items() if p.dim() > 1):
        flat = F.normalize(torch.stack([p[name].detach().flatten() for p in layers]), dim=1)
        cosines.append((flat @ flat.T)[*torch.triu_indices(LAYERS, LAYERS, 1)].mean())
    return torch.stack(cosines).mean().item()


def _by_group(values: Tensor, blanks: Sequence[Blank]) -> dict[str, float]:
    table = {}
    for group in GROUPS:
        table[group] = round(values[[b.group == group for b in blanks]].mean().item(), 4)
    return table | {"all": round(values.mean().item(), 4)}


@one_thread()
def cloze(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train encoders on both sides and on the left only, and grade them."""
    book = Phrasebook()
    words, odds = WordTokenizer(book.source_words), Blanks(book, ["because"])
    rows = [[*words.encode(p.source), EOS] for p in sentences(book, 20_000)]
    blanks = [b for p in sentences(book, 300, "test", 1) for b in blanks_of(p)]
    asked = blank_batch(words, blanks)
    table = [
        {"run": f"floor, {side}", "loss": _by_group(floors(odds, blanks, both), blanks)}
        for side, both in (("both sides", True), ("left only", False))
    ]
    for seed in tqdm(seeds):
        for side in ("both sides", "left only"):
            model = build(words, seed, side == "left only")
            row: dict = {"run": side, "seed": seed}
            history = train(model, rows, seed)
            row["curve"] = [round(x, 4) for x in history.view(-1, 50).mean(dim=1).tolist()]
            row["loss"] = _by_group(losses(model, asked), blanks)
            table.append(row)
    return table


@one_thread()
def layers(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Read missing first nouns off each layer of trained and untrained encoders, by probes.

    The trained ones are those of `cloze` that see both sides. All probes are fitted to the same
    6,000 training sentences, and all are graded on the same 300 of the test split.
    """
    book = Phrasebook()
    words = WordTokenizer(book.source_words)
    rows = [[*words.encode(p.source), EOS] for p in sentences(book, 20_000)]
    known = blank_batch(words, first_nouns(sentences(book, 6000, seed=9)))
    asked = blank_batch(words, first_nouns(sentences(book, 300, "test", 1)))
    table: list[dict] = [{"constant guess": round(constant_losses(known, asked).mean().item(), 4)}]
    for seed in tqdm(seeds):
        model, row = build(words, seed), {"seed": seed}
        for name in ("untrained", "trained"):
            if name == "trained":
                train(model, rows, seed)
                row["loss"] = round(losses(model, asked).mean().item(), 4)
            per = layer_losses(model, known, asked).mean(dim=1)
            row[name] = [round(x, 4) for x in per.tolist()]
        table.append(row)
    return table


@one_thread()
def start(seeds: Iterable[int] = SEEDS, steps: int = 300) -> list[dict]:
    """Train layers that start as their own, as equal copies, and as one layer used three times."""
    book = Phrasebook()
    words = WordTokenizer(book.source_words)
    rows = [[*words.encode(p.source), EOS] for p in sentences(book, 6000)]
    blanks = [b for p in sentences(book, 300, "test", 1) for b in blanks_of(p)]
    asked, table = blank_batch(words, blanks), []
    for kind, seed in tqdm([(k, s) for s in seeds for k in ("own", "equal", "shared")]):
        model = build(words, seed, start=kind)
        row = {"start": kind, "seed": seed, "before": round(likeness(model), 4)}
        row["parameters"] = count_parameters(model.encoder)
        train(model, rows, seed, steps)
        row |= {"after": round(likeness(model), 4)}
        row["loss"] = round(losses(model, asked).mean().item(), 4)
        table.append(row)
    return table


@one_thread()
def bug(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train Transformers to reverse, with a sound encoder and with a causal one; write freely."""
    runs = [(seed, wrong) for seed in seeds for wrong in (False, True)]
    return [
        {"bug": wrong, "seed": seed, "exact": round(exact(reverser(seed, wrong)), 4)}
        for seed, wrong in tqdm(runs)
    ]


STUDIES = {
    "encoder_bug": bug, "encoder_start": start, "encoder_cloze": cloze, "encoder_layers": layers,
}  # fmt: skip
