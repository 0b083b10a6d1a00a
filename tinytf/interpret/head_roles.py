"""What attention heads attend to: roles, computed from their weights."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tinytf.inspect import attention_layers, record
from tinytf.masks import causal_mask
from tinytf.metrics.translation import AlignedPair, batch_of, grade_alignment
from tinytf.support.modes import evaluation_mode
from tinytf.support.protocols import SentenceTranslator
from tinytf.text.words import PAD
from tinytf.transformer import Transformer

__all__ = [
    "KINDS",
    "ROLES",
    "Head",
    "heads_of",
    "mean_weight",
    "role_scores",
    "role_targets",
    "uniform_weights",
]

ROLES = ("previous", "itself", "next", "first", "last")
KINDS = {"encoder.self": "enc", "decoder.self": "dec", "decoder.cross": "cross"}


class Head(NamedTuple):
    """One head of one attention layer: the layer's name in the model, and which of its heads."""

    layer: str
    index: int

    @property
    def kind(self) -> str:
        """`enc` or `dec` for self-attention, `cross` for cross-attention."""
        side, _, _, attention = self.layer.split(".")
        return KINDS[f"{side}.{attention.removesuffix('_attention')}"]

    @property
    def depth(self) -> int:
        """The number of its layer, counted from 0."""
        return int(self.layer.split(".")[2])

    def __str__(self) -> str:
        return f"{self.kind} {self.depth}.{self.index}"


def heads_of(model: Transformer) -> list[Head]:
    """List every head of a Transformer: encoder, decoder self-attention, cross-attention."""
    layers = attention_layers(model).items()
    heads = [Head(name, index) for name, layer in layers for index in range(layer.num_heads)]
    return sorted(heads, key=lambda head: list(KINDS.values()).index(head.kind))


def mean_weight(weights: Tensor, target: Tensor) -> Tensor:
    """Average, for each head, the weight that queries give to one key each.

    weights is (B, H, T, S); target is (B, T), the key's index, or -1 for a query that does not
    count. Returns (H,), NaN if no query counts. Raises ValueError if the shapes disagree, or for a
    key that is not there.
    """
    if target.shape != (weights.size(0), weights.size(2)):
        raise ValueError(
            f"target {tuple(target.shape)} does not fit weights {tuple(weights.shape)}: "
            f"it needs shape {(weights.size(0), weights.size(2))}"
        )
    if target.numel() and target.max() >= weights.size(3):
        raise ValueError(
            f"target names key {int(target.max())}, and there are only {weights.size(3)} keys"
        )
    counts = target >= 0
    index = target.clamp(min=0)[:, None, :, None]  # (B, T) -> (B, 1, T, 1)
    picked = weights.take_along_dim(index, dim=-1)[..., 0]  # (B, H, T, S) -> (B, H, T)
    return (picked * counts[:, None]).sum((0, 2)) / counts.sum()


def role_targets(queries: Tensor, keys: Tensor) -> dict[str, Tensor]:
    """Name the key that each query attends to in each of `ROLES`.

    queries (B, T) and keys (B, S) are True at real tokens, which come first in their row. Returns
    (B, T) tables for `mean_weight`. `first` and `last` leave out the query at that
    position, or a head that attends only to its own position would score.
    """
    at = torch.arange(queries.size(1), device=queries.device).expand_as(queries)
    length = keys.sum(dim=1, keepdim=True)
    targets = {"previous": at - 1, "itself": at, "next": at + 1}
    targets |= {"first": torch.zeros_like(at), "last": (length - 1).expand_as(at)}
    for role, target in targets.items():
        there = queries & (target >= 0) & (target < length)
        if role in ("first", "last"):
            there = there & (target != at)
        targets[role] = torch.where(there, target, -1)
    return targets


def uniform_weights(mask: Tensor) -> Tensor:
    """Spread each query's weight evenly over the keys it may see: the baseline of every score.

    mask is boolean and so is anything that broadcasts with it; a row that sees nothing gets zeros.
    """
    return mask / mask.sum(dim=-1, keepdim=True).clamp(min=1)


@torch.no_grad()
def role_scores(
    translator: SentenceTranslator, pairs: Sequence[AlignedPair], uniform: bool = False
) -> dict[str, dict[Head, float]]:
    """Score every head for each of `ROLES`, and cross-attention heads for `alignment`.

    A score is the mean weight on the key that the role names; of `alignment`, the mean weight on
    the gold source words of the word being written. The decoder's tokens are those it reads, so
    `itself` is the word written last; for cross-attention it is the source word with the same
    index. Roles a head can't play, or that mean little there, are left out. With `uniform`, the
    weights are not its own but spread evenly over what it may see. Raises ValueError for no pairs.
    """
    model, batch = translator.model, batch_of(translator, pairs)
    with evaluation_mode(model), record(model) as seen:
        model(batch.src, batch.tgt_in)
    real = {"enc": (batch.src != PAD,) * 2, "dec": (batch.tgt_in != PAD,) * 2}
    real["cross"] = real["dec"][0], real["enc"][0]
    may_see = {kind: keys[:, None, None] for kind, (_, keys) in real.items()}  # (B, 1, 1, S)
    may_see["dec"] = may_see["dec"] & causal_mask(batch.tgt_in.size(1), model.device)
    scores: dict[str, dict[Head, float]] = {role: {} for role in (*ROLES, "alignment")}
    gold = None if uniform else grade_alignment(translator, pairs)["mass"]
    for head in heads_of(model):
        weights = seen[head.layer]
        if uniform:
            weights = uniform_weights(may_see[head.kind]).expand_as(weights)
        left_out = {"enc": (), "dec": ("next", "last"), "cross": ("previous", "next")}[head.kind]
        for role, target in role_targets(*real[head.kind]).items():
            if role not in left_out:
                scores[role][head] = mean_weight(weights, target)[head.index].item()
        if head.kind == "cross":
            scores["alignment"][head] = (
                _chance(pairs) if gold is None else gold[head.depth, head.index].item()
            )
    return scores


def _chance(pairs: Sequence[AlignedPair]) -> float:
    """The weight that even spreading puts on gold links, <eos> being one of the keys."""
    shares = []
    for pair in pairs:
        for t in {t for _, t in pair.alignment}:
            links = sum(1 for _, u in pair.alignment if u == t)
            shares.append(links / (len(pair.source) + 1))
    return sum(shares) / len(shares)
