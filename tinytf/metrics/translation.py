"""Grading: translations against the gold sentence, attention against the gold alignment."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from tinytf.inspect import record
from tinytf.support.modes import evaluation_mode
from tinytf.support.protocols import SentenceTranslator, Seq2Seq
from tinytf.text.words import BOS, PAD
from tinytf.training.losses import Batch, make_batch

__all__ = [
    "alignment_error_rate",
    "batch_of",
    "exact_match",
    "exact_match_by_kind",
    "grade_alignment",
    "is_exact",
    "teacher_forced",
]


class AlignedPair(Protocol):
    """What is graded against: the two sides, their links (source index, target index), the kind."""

    source: Sequence[str]
    target: Sequence[str]
    alignment: Sequence[tuple[int, int]]
    kind: str


def batch_of(translator: SentenceTranslator, pairs: Sequence[AlignedPair]) -> Batch:
    """Make one batch of ids of gold pairs, on the model's device."""
    return make_batch(
        [translator.source.encode(p.source) for p in pairs],
        [translator.target.encode(p.target) for p in pairs],
    ).to(translator.model.device)


@torch.no_grad()
def teacher_forced(model: Seq2Seq, batch: Batch) -> tuple[Tensor, float]:
    """Read the gold target in one pass: which sentences are right in every word, and the loss.

    A sentence is right if each word is the likeliest after the gold words before it, <eos>
    included, and of words that decoding may write (<pad> and <bos> it may not). Greedy decoding
    gets the same sentences right, since up to its first mistake it has written the gold words; only
    where two words are as likely to the last bit may rounding decide otherwise. Returns booleans
    (B,) and nats per token.
    """
    real = batch.tgt_out != PAD
    with evaluation_mode(model):
        hidden = model.decode(batch.tgt_in, model.encode(batch.src))
        log_p = model.output(hidden[real]).float().log_softmax(-1)  # (B, T, C) -> (tokens, V)
    gold = batch.tgt_out[real]
    wrong = torch.zeros_like(real)
    loss = -log_p.gather(-1, gold[:, None]).mean().item()
    log_p[:, [PAD, BOS]] = -torch.inf
    wrong[real] = log_p.argmax(-1) != gold
    return ~wrong.any(dim=1), loss


def is_exact(
    translator: SentenceTranslator,
    pairs: Sequence[AlignedPair],
    batch_size: int = 256,
    beam: int | None = None,
) -> list[bool]:
    """Say for each pair whether the translation equals the gold target, word for word.

    Raises ValueError if there are no pairs, UnknownWordError for a word outside the vocabulary.
    """
    if not pairs:
        raise ValueError("there are no pairs to grade")
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i].source))
    right = [False] * len(pairs)
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        outputs = translator.batch([pairs[i].source for i in rows], beam)
        for i, output in zip(rows, outputs, strict=True):
            right[i] = output.words == tuple(pairs[i].target)
    return right


def exact_match(
    translator: SentenceTranslator,
    pairs: Sequence[AlignedPair],
    batch_size: int = 256,
    beam: int | None = None,
) -> float:
    """Give the share of pairs translated word for word as the gold target, in [0, 1]."""
    right = is_exact(translator, pairs, batch_size, beam)
    return sum(right) / len(right)


def exact_match_by_kind(
    translator: SentenceTranslator, pairs: Sequence[AlignedPair], batch_size: int = 256
) -> dict[str, float]:
    """Give `exact_match` for each kind of sentence, worst first."""
    by_kind = defaultdict(list)
    for pair, right in zip(pairs, is_exact(translator, pairs, batch_size), strict=True):
        by_kind[pair.kind].append(right)
    shares = {kind: sum(r) / len(r) for kind, r in by_kind.items()}
    return dict(sorted(shares.items(), key=lambda item: item[1]))


def alignment_error_rate(
    links: Iterable[tuple[int, int]], gold: Iterable[tuple[int, int]]
) -> float:
    """Compare two sets of links: 1 - 2|A ∩ G| / (|A| + |G|), 0 when equal, 1 when disjoint.

    Source: Och and Ney 2003, section 5, with every gold link sure. Raises ValueError if both are
    empty.
    """
    links, gold = set(links), set(gold)
    if not links and not gold:
        raise ValueError("there are no links to compare")
    return 1 - 2 * len(links & gold) / (len(links) + len(gold))


@torch.no_grad()
def grade_alignment(
    translator: SentenceTranslator, pairs: Sequence[AlignedPair], batch_size: int = 128
) -> dict[str, Tensor]:
    """Grade each cross-attention head of each layer against gold alignment, on gold prefixes.

    The head's link for a target word is its largest weight in the row that writes the word, <eos>
    included among the choices. Returns (layers, heads) tables: `accuracy`, the share of aligned
    target words whose link is gold; `aer`, the alignment error rate of those links over all pairs
    together; `mass`, the mean weight on gold source words. Raises ValueError if there is no pair
    or no link.
    """
    if not pairs:
        raise ValueError("there are no pairs to grade")
    model = translator.model
    hits, mass, rows, gold_links = 0, 0, 0, 0
    for start in range(0, len(pairs), batch_size):
        part = pairs[start : start + batch_size]
        batch = batch_of(translator, part)
        with evaluation_mode(model), record(model) as seen:
            model(batch.src, batch.tgt_in)
        weights = torch.stack([w for n, w in seen.items() if "cross_attention" in n], dim=1)
        weights = weights.float().cpu()  # (B, L, H, T, S)
        gold = torch.zeros(weights.size(0), weights.size(3), weights.size(4))
        for b, pair in enumerate(part):
            for s, t in pair.alignment:
                gold[b, t, s] = 1.0
        aligned = (gold.sum(-1) > 0) & (batch.tgt_out != PAD).cpu()
        # (B, T, S) -> (N, S) and (B, L, H, T, S) -> (N, L, H, S), N aligned target words
        chosen, gold = weights.permute(0, 3, 1, 2, 4)[aligned], gold[aligned]
        best = chosen.argmax(dim=-1)
        hits = hits + gold[:, None, None].expand_as(chosen).gather(-1, best[..., None]).sum((0, 3))
        mass = mass + (chosen * gold[:, None, None]).sum(-1).sum(0)
        rows, gold_links = rows + len(chosen), gold_links + int(gold.sum())
    if not rows:
        raise ValueError("the pairs have no gold links to grade against")
    return {
        "accuracy": hits / rows,
        "aer": 1 - 2 * hits / (rows + gold_links),
        "mass": mass / rows,
    }
