"""Pairs of sentences that differ in one word, and what the translator says to them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tinytf.apps.translator import Translator
from tinytf.metrics.translation import batch_of
from tinytf.transformer import Transformer
from tinytf_course.phrasebook import Pair, Phrasebook

__all__ = ["TwinRuns", "count_runs", "more_twins", "twin_runs"]


class TwinRuns(NamedTuple):
    """Twins as a model reads them, and where in them is what.

    The first of two twins means its first noun, the second its second. Up to the place that
    answers both have the same Chinese, so one target serves both runs.
    """

    first: Tensor  # source ids (B, S)
    second: Tensor  # source ids (B, S)
    written: Tensor  # target ids (B, T) that the decoder reads, those of the first
    at: Tensor  # (B,): the place of the target that says the noun next
    right: Tensor  # (B,): the noun that the first sentence says there
    wrong: Tensor  # (B,): the noun that the second says
    places: dict[str, Tensor]  # (B,) by what stands there: positions of the source

    def ask(self, model: Transformer, source: Tensor) -> Tensor:
        """How much further up the first noun's logit is than the second's, (B,)."""
        logits = model(source, self.written)
        rows = torch.arange(len(source), device=source.device)
        here = logits[rows, self.at]  # (B, T, V) -> (B, V)
        return here[rows, self.right] - here[rows, self.wrong]


def twin_runs(translator: Translator, twins: Sequence[tuple[Pair, Pair]]) -> TwinRuns:
    """Make ids and places of twins, the one whose `it` is the first noun standing first.

    Raises ValueError where two twins are of different lengths.
    """
    ordered = [sorted(pair, key=lambda p: p.antecedent[1]) for pair in twins]
    firsts, seconds = [pair[0] for pair in ordered], [pair[1] for pair in ordered]
    if any(len(a.source) != len(b.source) for a, b in ordered):
        raise ValueError("twins of different lengths: their places can't be compared")
    batch, other = batch_of(translator, firsts), batch_of(translator, seconds)
    it = torch.tensor([pair.antecedent[0] for pair in firsts])
    last = torch.tensor([len(pair.source) for pair in firsts])
    places = {
        "first noun": torch.tensor([pair.antecedent[1] for pair in firsts]),
        "second noun": torch.tensor([pair.antecedent[1] for pair in seconds]),
        "because": it - 1,
        "it": it,
        "was": it + 1,
        "adjective": last - 1,
        "<eos>": last,
    }
    device = translator.model.device
    at = torch.tensor([pair.antecedent[2] for pair in firsts], device=device)
    rows = torch.arange(len(at), device=device)
    right, wrong = batch.tgt_out[rows, at], other.tgt_out[rows, at]
    places = {name: where.to(device) for name, where in places.items()}
    return TwinRuns(batch.src, other.src, batch.tgt_in, at, right, wrong, places)


def more_twins(book: Phrasebook, known: Sequence[tuple[Pair, Pair]], n: int, seed: int = 11):
    """Draw `n` twins or fewer, none of whose sentences is among the `known` ones."""
    there = {pair.english for two in known for pair in two}
    return [two for two in book.twins(n, seed) if not there & {pair.english for pair in two}]


NUMBERS = {"two": "three", "three": "two", "four": "five", "five": "four"}


def _recounted(book: Phrasebook, pair: Pair) -> tuple[Pair, int, int] | None:
    """The pair with another number, and where in source and target it stands; None without one."""
    at = [i for i, word in enumerate(pair.source) if word in NUMBERS]
    if len(at) != 1:
        return None
    words = list(pair.source)
    words[at[0]] = NUMBERS[words[at[0]]]
    other = book.translate(" ".join(words))
    differ = [i for i, two in enumerate(zip(pair.target, other.target)) if two[0] != two[1]]
    alike = len(other.target) == len(pair.target) and len(differ) == 1
    return (other, at[0], differ[0]) if alike else None


def count_runs(translator: Translator, book: Phrasebook, n: int, seed: int = 7) -> TwinRuns:
    """Make pairs of n test sentences that hold a number: each with it, and with another one.

    What is asked is the number's Chinese word. Sentences without a number, or with two, are left.
    """
    drawn = book.sample(n, "test", seed=seed)
    kept = [(pair, found) for pair in drawn if (found := _recounted(book, pair))]
    batch = batch_of(translator, [pair for pair, _ in kept])
    other = batch_of(translator, [found[0] for _, found in kept])
    device = translator.model.device
    number, at = torch.tensor([found[1:] for _, found in kept], device=device).T
    rows = torch.arange(len(kept), device=device)
    last = (batch.src != 0).sum(dim=1) - 1
    places = {"number": number, "next word": number + 1, "<eos>": last}
    right, wrong = batch.tgt_out[rows, at], other.tgt_out[rows, at]
    return TwinRuns(batch.src, other.src, batch.tgt_in, at, right, wrong, places)
