"""Coreference: which heads find the noun that `it` stands for, and what is said without them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from tinytf.inspect import record
from tinytf.interpret.head_roles import KINDS, Head, heads_of
from tinytf.metrics.translation import AlignedPair, batch_of
from tinytf.support.modes import evaluation_mode
from tinytf.support.protocols import SentenceTranslator
from tinytf_course.lessons.ablation import ablated

__all__ = [
    "CoreferencePair",
    "NounShares",
    "antecedent_preferences",
    "coreference_scores",
    "noun_shares",
]


class CoreferencePair(AlignedPair, Protocol):
    """A pair that says where `it`, the noun it stands for, and that noun said again are."""

    antecedent: tuple[int, int, int] | None


def coreference_scores(
    translator: SentenceTranslator, twins: Sequence[tuple[CoreferencePair, CoreferencePair]]
) -> dict[Head, float]:
    """Say how much each head prefers the noun that `it` stands for, whichever noun that is.

    The worse of the two `antecedent_preferences`: -1 for a head that always looks at the same noun,
    0 for one that looks at neither or at both alike, 1 for one that finds the right noun. Raises
    ValueError for no twins.
    """
    first, second = antecedent_preferences(translator, twins)
    return {head: min(first[head], second[head]) for head in first}


@torch.no_grad()
def antecedent_preferences(
    translator: SentenceTranslator, twins: Sequence[tuple[CoreferencePair, CoreferencePair]]
) -> tuple[dict[Head, float], dict[Head, float]]:
    """Measure each head's weight on the right noun minus that on the other, in two cases.

    Twins differ in their last English word and so in the noun that `it` stands for: the first noun
    of the sentence (case one), or the second (case two). An encoder head is read where it reads
    `it`, a decoder head where the noun is about to be said again. Raises ValueError for no twins.
    """
    model, preferences = translator.model, []
    for pairs, others in _cases(twins):
        batch = batch_of(translator, pairs)
        with evaluation_mode(model), record(model) as seen:
            model(batch.src, batch.tgt_in)
        places = {kind: _places(kind, pairs, others) for kind in KINDS.values()}
        rows = torch.arange(len(pairs), device=model.device)
        preference = {}
        for head in heads_of(model):
            at, right, wrong = places[head.kind].to(model.device)
            weights = seen[head.layer][rows, head.index, at]  # (B, S)
            preference[head] = (weights[rows, right] - weights[rows, wrong]).mean().item()
        preferences.append(preference)
    return preferences[0], preferences[1]


def _cases(
    twins: Sequence[tuple[CoreferencePair, CoreferencePair]],
) -> list[tuple[list[CoreferencePair], list[CoreferencePair]]]:
    """The sentences where `it` is the first noun with their twins, and the other way round."""
    if not twins:
        raise ValueError("there are no twins to score")
    ordered = [sorted(pair, key=lambda p: p.antecedent[1]) for pair in twins]
    first, second = [pair[0] for pair in ordered], [pair[1] for pair in ordered]
    return [(first, second), (second, first)]


def _places(
    kind: str, pairs: Sequence[CoreferencePair], others: Sequence[CoreferencePair]
) -> Tensor:
    """The query to read, the key of the right noun and the key of the other: (3, B)."""
    rows = []
    for pair, other in zip(pairs, others, strict=True):
        it, noun, again = pair.antecedent
        wrong = other.antecedent[1]
        if kind == "enc":
            rows.append((it, noun, wrong))
        elif kind == "cross":
            rows.append((again, noun, wrong))
        else:  # the decoder reads <bos> first, so target word t is its token t + 1
            written = {s: t + 1 for s, t in pair.alignment if s in (noun, wrong) and t != again}
            rows.append((again, written[noun], written[wrong]))
    return torch.tensor(rows).T


class NounShares(NamedTuple):
    """Which noun is written where a sentence says one again: shares of the sentences."""

    right: float  # the one that `it` stands for
    other: float  # the other noun of the sentence; what is left is some other word


@torch.no_grad()
def noun_shares(
    translator: SentenceTranslator,
    twins: Sequence[tuple[CoreferencePair, CoreferencePair]],
    heads: Iterable[Head] = (),
) -> NounShares:
    """With these heads ablated, see which noun is likeliest for `it` after the gold words.

    Raises KeyError or ValueError for a head that is not there, and ValueError for no twins.
    """
    model = translator.model
    cases, heads, counts = _cases(twins), list(heads), torch.zeros(2)
    for pairs, others in cases:
        batch = batch_of(translator, pairs)
        with evaluation_mode(model), ablated(model, heads):
            likeliest = model.output(model.decode(batch.tgt_in, model.encode(batch.src))).argmax(-1)
        for row, (pair, other) in enumerate(zip(pairs, others, strict=True)):
            at = pair.antecedent[2]
            nouns = [pair.target[at], other.target[other.antecedent[2]]]
            word = likeliest[row, at].item()
            counts += torch.tensor([word == i for i in translator.target.encode(nouns)])
    right, other = (counts / (2 * len(twins))).tolist()
    return NounShares(right, other)
