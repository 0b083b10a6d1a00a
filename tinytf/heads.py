"""What attention heads do: roles read off their weights, and the damage when they are silenced."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from tinytf.decoding import evaluation
from tinytf.evaluation import AlignedPair, grade_alignment
from tinytf.inspect import attention_layers, record
from tinytf.masks import causal_mask
from tinytf.objective import Batch, make_batch
from tinytf.seq2seq import Transformer
from tinytf.tokenizer import BOS, PAD
from tinytf.translator import Translator

__all__ = [
    "ROLES",
    "Damage",
    "Head",
    "Nouns",
    "antecedent_scores",
    "batch_of",
    "damage",
    "heads_of",
    "mean_outputs",
    "mean_weight",
    "noun_preferences",
    "nouns_said",
    "role_scores",
    "role_targets",
    "silenced",
    "teacher_forced",
    "uniform_weights",
]

ROLES = ("previous", "itself", "next", "first", "last")
_KINDS = {"encoder.self": "enc", "decoder.self": "dec", "decoder.cross": "cross"}


class AntecedentPair(AlignedPair, Protocol):
    """A pair that says where `it`, the noun it stands for, and that noun said again are."""

    antecedent: tuple[int, int, int] | None


class Head(NamedTuple):
    """One head of one attention layer: the layer's name in the model, and which of its heads."""

    layer: str
    index: int

    @property
    def kind(self) -> str:
        """`enc` or `dec` for self-attention, `cross` for cross-attention."""
        side, _, _, attention = self.layer.split(".")
        return _KINDS[f"{side}.{attention.removesuffix('_attention')}"]

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
    return sorted(heads, key=lambda head: list(_KINDS.values()).index(head.kind))


def batch_of(translator: Translator, pairs: Sequence[AlignedPair]) -> Batch:
    """Make one batch of ids of gold pairs, on the model's device."""
    return make_batch(
        [translator.source.encode(p.source) for p in pairs],
        [translator.target.encode(p.target) for p in pairs],
    ).to(translator.model.device)


# ---- what a head looks at


def mean_weight(weights: Tensor, target: Tensor) -> Tensor:
    """Average, for each head, the weight that queries give to one key each.

    weights is (B, H, T, S); target is (B, T), the key's index, or -1 for a query that does not
    count. Returns (H,), NaN if no query counts. Raises ValueError if the shapes disagree.
    """
    if target.shape != (weights.size(0), weights.size(2)):
        raise ValueError(
            f"target {tuple(target.shape)} does not fit weights {tuple(weights.shape)}: "
            f"it needs shape {(weights.size(0), weights.size(2))}"
        )
    counts = target >= 0
    index = target.clamp(min=0)[:, None, :, None].expand(-1, weights.size(1), -1, 1)
    picked = weights.gather(-1, index).squeeze(-1)  # (B, H, T, S) -> (B, H, T)
    return (picked * counts[:, None]).sum((0, 2)) / counts.sum()


def role_targets(queries: Tensor, keys: Tensor) -> dict[str, Tensor]:
    """Say which key each query would look at to play each of `ROLES`.

    queries (B, T) and keys (B, S) are True at real tokens, which come first in their row. Returns
    (B, T) tables for `mean_weight`. `first` and `last` leave out the query that stands there
    itself, or a head that only looks at itself would score.
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
    translator: Translator, pairs: Sequence[AlignedPair], uniform: bool = False
) -> dict[str, dict[Head, float]]:
    """Score every head for each of `ROLES`, and cross-attention heads for `alignment`.

    A score is the mean weight on the key that the role names; of `alignment`, the mean weight on
    the gold source words of the word being written. The decoder's tokens are those it reads, so
    `itself` is the word written last; for cross-attention it is the source word with the same
    index. Roles a head can't play, or that mean little there, are left out. With `uniform`, the
    weights are not its own but spread evenly over what it may see. Raises ValueError for no pairs.
    """
    model, batch = translator.model, batch_of(translator, pairs)
    with evaluation(model), record(model) as seen:
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


def antecedent_scores(
    translator: Translator, twins: Sequence[tuple[AntecedentPair, AntecedentPair]]
) -> dict[Head, float]:
    """Say how much each head prefers the noun that `it` stands for, whichever noun that is.

    The worse of the two `noun_preferences`: -1 for a head that always looks at the same noun, 0 for
    one that looks at neither or at both alike, 1 for one that finds `it`. Raises ValueError for no
    twins.
    """
    first, second = noun_preferences(translator, twins)
    return {head: min(first[head], second[head]) for head in first}


@torch.no_grad()
def noun_preferences(
    translator: Translator, twins: Sequence[tuple[AntecedentPair, AntecedentPair]]
) -> tuple[dict[Head, float], dict[Head, float]]:
    """Measure each head's weight on the right noun minus that on the other, in two cases.

    Twins differ in their last English word and so in the noun that `it` stands for: the first noun
    of the sentence (case one), or the second (case two). An encoder head is read where it reads
    `it`, a decoder head where the noun is about to be said again. Raises ValueError for no twins.
    """
    model, preferences = translator.model, []
    for pairs, others in _cases(twins):
        batch = batch_of(translator, pairs)
        with evaluation(model), record(model) as seen:
            model(batch.src, batch.tgt_in)
        places = {kind: _places(kind, pairs, others) for kind in _KINDS.values()}
        rows = torch.arange(len(pairs), device=model.device)
        found = {}
        for head in heads_of(model):
            at, right, wrong = places[head.kind].to(model.device)
            weights = seen[head.layer][rows, head.index, at]  # (B, S)
            found[head] = (weights[rows, right] - weights[rows, wrong]).mean().item()
        preferences.append(found)
    return preferences[0], preferences[1]


def _cases(
    twins: Sequence[tuple[AntecedentPair, AntecedentPair]],
) -> list[tuple[list[AntecedentPair], list[AntecedentPair]]]:
    """The sentences where `it` is the first noun with their twins, and the other way round."""
    if not twins:
        raise ValueError("there are no twins to score")
    ordered = [sorted(pair, key=lambda p: p.antecedent[1]) for pair in twins]
    first, second = [pair[0] for pair in ordered], [pair[1] for pair in ordered]
    return [(first, second), (second, first)]


def _places(kind: str, pairs: Sequence[AntecedentPair], others: Sequence[AntecedentPair]) -> Tensor:
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
            said = {s: t + 1 for s, t in pair.alignment if s in (noun, wrong) and t != again}
            rows.append((again, said[noun], said[wrong]))
    return torch.tensor(rows).T


# ---- what happens without it


@torch.no_grad()
def mean_outputs(model: Transformer, batch: Batch) -> dict[str, Tensor]:
    """Average each layer's joined heads, what `w_o` reads, over real tokens: (C,) by layer name."""
    means: dict[str, Tensor] = {}
    hooks = []
    for name, layer in attention_layers(model).items():
        real = (batch.src if name.startswith("encoder") else batch.tgt_in) != PAD

        def keep(_: nn.Module, inputs: tuple[Tensor], name: str = name, real: Tensor = real):
            means[name] = inputs[0][real].mean(dim=0)

        hooks.append(layer.w_o.register_forward_pre_hook(keep))
    try:
        with evaluation(model):
            model(batch.src, batch.tgt_in)
    finally:
        for hook in hooks:
            hook.remove()
    return means


@contextmanager
def silenced(
    model: Transformer, heads: Iterable[Head], to: Mapping[str, Tensor] | None = None
) -> Iterator[None]:
    """Replace what these heads pass on by zeros, or by `to` (from `mean_outputs`), in the block.

    Zeros take away what a head adds on average too, which later layers count on; the mean takes
    away only what it says about this sentence. Raises KeyError for a layer the model lacks and
    ValueError for a head the layer lacks.
    """
    layers, hooks = attention_layers(model), []
    try:
        for name, index in heads:
            layer = layers[name]
            if not 0 <= index < layer.num_heads:
                raise ValueError(f"head {index} is not among {name}'s 0..{layer.num_heads - 1}")
            width = layer.d_model // layer.num_heads
            part = slice(index * width, (index + 1) * width)

            def change(_: nn.Module, inputs: tuple[Tensor], name: str = name, part: slice = part):
                joined = inputs[0].clone()
                joined[..., part] = 0.0 if to is None else to[name][part].to(joined)
                return (joined,)

            hooks.append(layer.w_o.register_forward_pre_hook(change))
        yield
    finally:
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def teacher_forced(model: Transformer, batch: Batch) -> tuple[Tensor, float]:
    """Read the gold target in one pass: which sentences are right in every word, and the loss.

    A sentence is right if each word is the likeliest after the gold words before it, <eos>
    included, and of words that decoding may write (<pad> and <bos> it may not). Greedy decoding
    gets the same sentences right, since up to its first mistake it has written the gold words; only
    where two words are as likely to the last bit may rounding decide otherwise. Returns booleans
    (B,) and nats per token.
    """
    real = batch.tgt_out != PAD
    with evaluation(model):
        hidden = model.decode(batch.tgt_in, model.encode(batch.src))
        log_p = model.output(hidden[real]).float().log_softmax(-1)  # (B, T, C) -> (tokens, V)
    gold = batch.tgt_out[real]
    wrong = torch.zeros_like(real)
    loss = -log_p.gather(-1, gold[:, None]).mean().item()
    log_p[:, [PAD, BOS]] = -torch.inf
    wrong[real] = log_p.argmax(-1) != gold
    return ~wrong.any(dim=1), loss


class Damage(NamedTuple):
    """What silencing costs: negative where it helps."""

    exact: float  # the share of sentences right in every word falls by
    loss: float  # nats per token more


def damage(
    model: Transformer,
    batch: Batch,
    heads: Iterable[Head],
    to: Mapping[str, Tensor] | None = None,
    intact: tuple[Tensor, float] | None = None,
) -> Damage:
    """Silence these heads together and compare with the `intact` model's `teacher_forced`.

    Raises KeyError for a layer the model lacks and ValueError for a head the layer lacks.
    """
    right, loss = intact or teacher_forced(model, batch)
    with silenced(model, heads, to):
        still_right, without = teacher_forced(model, batch)
    lost = right.float().mean() - still_right.float().mean()
    return Damage(lost.item(), without - loss)


class Nouns(NamedTuple):
    """Which noun is written where a sentence says one again: shares of the sentences."""

    right: float  # the one that `it` stands for
    other: float  # the other noun of the sentence; what is left is some other word


@torch.no_grad()
def nouns_said(
    translator: Translator,
    twins: Sequence[tuple[AntecedentPair, AntecedentPair]],
    heads: Iterable[Head] = (),
) -> Nouns:
    """With these heads silenced, see which noun is likeliest for `it` after the gold words.

    Raises KeyError or ValueError for a head that is not there, and ValueError for no twins.
    """
    model = translator.model
    cases, heads, found = _cases(twins), list(heads), torch.zeros(2)
    for pairs, others in cases:
        batch = batch_of(translator, pairs)
        with evaluation(model), silenced(model, heads):
            said = model.output(model.decode(batch.tgt_in, model.encode(batch.src))).argmax(-1)
        for row, (pair, other) in enumerate(zip(pairs, others, strict=True)):
            at = pair.antecedent[2]
            nouns = [pair.target[at], other.target[other.antecedent[2]]]
            word = said[row, at].item()
            found += torch.tensor([word == i for i in translator.target.encode(nouns)])
    right, other = (found / (2 * len(twins))).tolist()
    return Nouns(right, other)
