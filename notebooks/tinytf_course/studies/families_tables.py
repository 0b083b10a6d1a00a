"""The tables of `families`: every family, trained and measured side by side."""

import copy
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from tqdm import tqdm

from tinytf.metrics.counting import count_parameters
from tinytf_course.phrasebook import Pair, Phrasebook
from tinytf_course.studies.encoder import sentences
from tinytf_course.studies.families import (
    FAMILIES,
    STEPS,
    Text,
    build,
    family_of,
    held_out,
    operations,
    pretrain,
)
from tinytf_course.studies.families_tasks import (
    GROUPS,
    Odds,
    accuracy,
    bag_of_words,
    continue_,
    divergence,
    fill,
    fill_by_rescoring,
    fine_tune,
    labelled,
    learn_to_translate,
    translated,
)
from tinytf_course.studies.threads import one_thread

__all__ = ["Bench", "measure"]


SEEDS = range(5)
LABELS = 256
RATES = (1.5e-3, 3e-3, 6e-3, 1.2e-2)


class Bench:
    """What all models of the study are measured with: held-out sentences, odds, labels."""

    def __init__(self, text: Text, sentences_: Sequence[Pair], blanks: int = 50) -> None:
        self.text, self.test = text, list(sentences_)
        self.odds = Odds(text, self.test[:blanks])
        self.rows, self.labels = labelled(text, self.test)

    def labels_for(self, seed: int, count: int = LABELS) -> tuple[list[list[int]], Tensor]:
        """The labelled sentences of the corpus that a seed learns from, others for each seed."""
        start = 300 * seed
        return labelled(self.text, self.text.pairs[start : start + count])


def measure(model, bench: Bench, seed: int) -> dict:
    """Everything that the study asks of one trained model."""
    text, family, odds = bench.text, family_of(model), bench.odds
    flops, asked = operations(model, text, fixed := text.rows(torch.Generator().manual_seed(5), 64))
    read = sum(map(len, fixed))
    row: dict = {"operations": {"per token": round(flops / read), "per loss": round(flops / asked)}}
    row["fill"] = by_group(divergence(odds.both, fill(model, odds)), odds)
    if family == "decoder-only":
        row["rescored"] = by_group(divergence(odds.both, fill_by_rescoring(model, odds)), odds)
        row["translate, as pre-trained"] = round(translated(model, text, bench.test[:150]), 4)
    row["continue"] = _mean(divergence(odds.next, continue_(model, odds)))
    if family == "encoder-only":
        row["continue, filled up"] = _mean(divergence(odds.next, continue_(model, odds, True)))
    rows, labels = bench.labels_for(seed)
    for name, made in (("classify", model), ("classify, untrained", build(family, text, seed))):
        tuned = fine_tune(made, rows, labels, seed)
        row[name] = round(accuracy(tuned, bench.rows, bench.labels), 4)
    learner = copy.deepcopy(model)
    learn_to_translate(learner, text, seed)
    row["translate"] = round(translated(learner, text, bench.test[:150]), 4)
    return row


def by_group(values: Tensor, odds: Odds) -> dict[str, float]:
    """The mean over the blanks of each group, and over all."""
    table = {g: _mean(values[[b.group == g for b in odds.blanks]]) for g in GROUPS}
    return table | {"all": _mean(values)}


def _mean(values: Tensor) -> float:
    return round(values.mean().item(), 4)


def references(bench: Bench, seeds: Iterable[int]) -> list[dict]:
    """What the grammar knows from the left alone, and what guessing and counting words gives."""
    left = divergence(bench.odds.both, bench.odds.left.log())
    most = max(bench.labels.float().mean().item(), 1 - bench.labels.float().mean().item())
    table = [{"reference": "left only", "fill": by_group(left, bench.odds)}]
    table.append({"reference": "the commoner class", "classify": round(most, 4)})
    for seed in seeds:
        share = bag_of_words(bench.text, *bench.labels_for(seed), bench.rows, bench.labels)
        table.append({"reference": "bag of words", "seed": seed, "classify": round(share, 4)})
    return table


@one_thread()
def side_by_side(
    seeds: Iterable[int] = SEEDS, steps: int = STEPS, families: Sequence[str] = FAMILIES
) -> list[dict]:
    """Train the families on the corpus and measure them."""
    text, other, seeds = Text(), Text(150, "validation"), list(seeds)
    bench = Bench(text, sentences(Phrasebook(), 300, "test", 1))
    table = references(bench, seeds)
    for seed, family in tqdm([(s, f) for s in seeds for f in families]):
        model = build(family, text, seed)
        row = {"family": family, "seed": seed, "parameters": count_parameters(model)}
        history = pretrain(model, text, seed, steps)
        row["curve"] = [round(x, 4) for x in history.view(-1, steps // 20).mean(1).tolist()]
        row["held out"] = round(held_out(model, other), 4)
        table.append(row | measure(model, bench, seed))
    return table


@one_thread()
def rates(steps: int = 800, seed: int = 10) -> list[dict]:
    """Train each family with four learning rates; its own loss on held-out rows.

    With one seed, and for fewer steps than `side_by_side` takes: a coarse choice.
    """
    text, other = Text(8000), Text(150, "validation")
    table = []
    for family, lr in tqdm([(f, r) for f in FAMILIES for r in RATES]):
        model = build(family, text, seed)
        pretrain(model, text, seed, steps, lr)
        table.append({"family": family, "lr": lr, "steps": steps})
        table[-1]["loss"] = round(held_out(model, other), 4)
    return table


def longer() -> list[dict]:
    """Give the two families that are asked for fewer words four times the steps, from one seed."""
    return side_by_side([0], 4 * STEPS, ("encoder-only", "encoder-decoder"))


STUDIES = {"families": side_by_side, "families_rates": rates, "families_longer": longer}
