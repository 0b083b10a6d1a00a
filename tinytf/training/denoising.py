"""Ways to corrupt a text for a model to repair: T5's span corruption and BART's five noises.

Each takes one row of ids (N,) and a generator on the CPU, which alone decides what is drawn. Each
returns new tensors on the device of the ids and leaves the ids unchanged.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = [
    "Corrupted",
    "corrupt_spans",
    "cut_at_random",
    "delete_words",
    "drop_spans",
    "infill_spans",
    "mask_words",
    "permute_sentences",
    "restore_spans",
    "rotate_document",
    "span_noise",
]


class Corrupted(NamedTuple):
    """A text with spans dropped."""

    corrupted: Tensor  # the encoder's input: what is left, with a sentinel for each span
    target: Tensor  # the decoder's target: each sentinel and its span, and one more sentinel


def cut_at_random(total: int, parts: int, generator: torch.Generator) -> list[int]:
    """Cut `total` things into `parts` pieces, none of them empty, and return their lengths.

    Every way to cut is equally likely: one `torch.randperm` of the gaps between neighbours is
    drawn, and its first entries are the cuts. Returns a list of ints. Raises ValueError for fewer
    parts than one or more than there are things.
    """
    if not 1 <= parts <= total:
        raise ValueError(f"{total} things can't be cut into {parts} parts, none of them empty")
    cuts = torch.randperm(total - 1, generator=generator)[: parts - 1].sort().values + 1
    edges = [0, *cuts.tolist(), total]
    return [end - start for start, end in pairwise(edges)]


def span_noise(
    length: int,
    generator: torch.Generator,
    share: float = 0.15,
    mean_length: float = 3.0,
    roll: bool = False,
) -> Tensor:
    """Choose spans of a text to drop: a boolean tensor (length,), True in them.

    The numbers of tokens and of spans are fixed by rounding, at least one of each, and at least one
    token is kept; the positions are random, and all ways to choose them are equally likely. Kept
    and dropped stretches alternate, none is empty, and the first is kept. So the first token is
    never dropped and the last one always, unless `roll` rotates the result by a random number of
    positions, which T5's code offers (`random_roll`) and leaves off. Draws come in this order: the
    cuts of the kept tokens, the cuts of the dropped ones, then the shift (`randint`). Raises
    ValueError for fewer than two tokens, a share outside (0, 1), a mean_length below 1, and more
    spans than there are tokens to keep between them. Source: Raffel et al. 2020 (T5), section
    3.1.4, and `random_spans_noise_mask` of its code.
    """
    _check_share(share, low=0.0)
    if length < 2:
        raise ValueError(f"length={length}: two tokens at least, one to keep and one to drop")
    if mean_length < 1:
        raise ValueError(f"mean_length must be at least 1, got {mean_length}")
    dropped = min(max(round(length * share), 1), length - 1)
    spans = max(round(dropped / mean_length), 1)
    kept = length - dropped
    if spans > kept:
        raise ValueError(f"{spans} spans need {spans} tokens kept before them, only {kept} are")
    keep, drop = (cut_at_random(total, spans, generator) for total in (kept, dropped))
    noise = []
    for kept_here, dropped_here in zip(keep, drop, strict=True):
        noise += [False] * kept_here + [True] * dropped_here
    shift = int(torch.randint(length, (), generator=generator)) if roll else 0
    return torch.tensor(noise).roll(shift)


def drop_spans(ids: Tensor, noise: Tensor, sentinels: Sequence[int]) -> Corrupted:
    """Drop the tokens of ids (N,) where `noise` (N,) is True, with a sentinel for each run of them.

    Sentinels are used in the order given. The target ends with one more, which marks the end, so a
    text with K runs needs K + 1 of them. Returns `Corrupted`, two tensors of the dtype of ids.
    Raises ValueError for fewer, for one that is listed twice or occurs in the text, for ids
    that are not one row, and for a noise that is not boolean (N,). Source: Raffel et al. 2020,
    section 3.1.4 and figure 2. (Their code writes the last sentinel only where something is kept
    after the last span.)
    """
    _check_spans(ids, noise, sentinels)
    corrupted, target, marks, before = [], [], iter(sentinels), False
    for token, dropped in zip(ids.tolist(), noise.tolist(), strict=True):
        if dropped and not before:  # a span begins
            mark = next(marks)
            corrupted.append(mark)
            target.append(mark)
        (target if dropped else corrupted).append(token)
        before = dropped
    target.append(next(marks))
    return Corrupted(ids.new_tensor(corrupted), ids.new_tensor(target))


def corrupt_spans(
    ids: Tensor,
    sentinels: Sequence[int],
    generator: torch.Generator,
    share: float = 0.15,
    mean_length: float = 3.0,
    roll: bool = False,
) -> Corrupted:
    """Drop random spans of ids (N,) as T5 does: `span_noise` chooses them, `drop_spans` drops.

    Returns `Corrupted`. Raises ValueError as these two do. Source: Raffel et al. 2020, section
    3.1.4.
    """
    _check_row(ids)
    noise = span_noise(len(ids), generator, share, mean_length, roll)
    return drop_spans(ids, noise, sentinels)


def restore_spans(corrupted: Tensor, target: Tensor, sentinels: Sequence[int]) -> Tensor:
    """Put the spans of a target back in the places of their sentinels: `drop_spans` undone.

    A sentinel without a span in the target leaves nothing, and tokens before the target's first
    sentinel are ignored, so any output of a model can be put in. Returns one row, a tensor of the
    dtype of `corrupted`.
    """
    spans, current = {int(mark): [] for mark in sentinels}, None
    for token in target.tolist():
        if token in spans:
            current = spans[token]
        elif current is not None:
            current.append(token)
    row = []
    for token in corrupted.tolist():
        row += spans.get(token, [token])
    return corrupted.new_tensor(row)


def mask_words(ids: Tensor, mask_id: int, generator: torch.Generator, share: float = 0.3) -> Tensor:
    """Replace each token by mask_id with probability `share`: (N,) -> (N,).

    One `torch.rand(N)` is drawn; a token below `share` is masked. Raises ValueError for a share
    outside [0, 1] and ids that are not one row. Source: Lewis et al. 2020 (BART), section 2.2,
    token masking.
    """
    _check_row(ids)
    _check_share(share)
    drawn = torch.rand(len(ids), generator=generator).to(ids.device)
    return torch.where(drawn < share, mask_id, ids)


def delete_words(ids: Tensor, generator: torch.Generator, share: float = 0.3) -> Tensor:
    """Delete each token with probability `share`, without a trace: (N,) -> (≤ N,).

    One `torch.rand(N)` is drawn; a token at `share` or above stays. If all would go, one token
    stays, drawn by `randint`. Raises ValueError as `mask_words` does.
    Source: Lewis et al. 2020, section 2.2, token deletion.
    """
    _check_row(ids)
    _check_share(share)
    kept = torch.rand(len(ids), generator=generator) >= share
    if not kept.any():
        kept[torch.randint(len(ids), (), generator=generator)] = True
    return ids[kept.to(ids.device)]


def infill_spans(
    ids: Tensor,
    mask_id: int,
    generator: torch.Generator,
    share: float = 0.3,
    mean_length: float = 3.0,
) -> Tensor:
    """Replace random spans, which hold `share` of the tokens of ids, by one mask_id each.

    Lengths are drawn by `torch.poisson` until that number of tokens, rounded, is used up; the last
    span is cut to fit. A span of length 0 inserts a mask where nothing was, so the number of tokens
    behind a mask can't be known. The kept tokens, in their order, and the spans form a row of
    items; the first entries of a `randperm` over the items are the places of the spans, in the
    order of their lengths. All arrangements are equally likely, and spans may touch. Returns a
    tensor of the dtype of ids. Raises ValueError as `mask_words` does, and for a mean_length below
    0.1, whose spans would nearly all be empty. Source: Lewis et al. 2020, section 2.2, text
    infilling.
    """
    _check_row(ids)
    _check_share(share)
    if not 0.1 <= mean_length < float("inf"):
        raise ValueError(f"mean_length must be a number of 0.1 or more, got {mean_length}")
    left, lengths = round(share * len(ids)), []
    while left > 0:
        drawn = int(torch.poisson(torch.tensor(float(mean_length)), generator))
        lengths.append(min(drawn, left))
        left -= lengths[-1]
    # the kept tokens and the spans in a random order, the tokens of one another's order
    items = len(ids) - sum(lengths) + len(lengths)
    places = torch.randperm(items, generator=generator)[: len(lengths)].tolist()
    spans, row, at = dict(zip(places, lengths, strict=True)), [], 0
    for item in range(items):
        row.append(mask_id if item in spans else int(ids[at]))
        at += spans.get(item, 1)
    return ids.new_tensor(row)


def permute_sentences(ids: Tensor, ends: Iterable[int], generator: torch.Generator) -> Tensor:
    """Put the sentences of a text in a random order, a `randperm`: (N,) -> (N,).

    A sentence ends after each of the ids `ends` (full stops and the like); what follows the last
    one is a sentence, too. Raises ValueError for ids that are not one row. Source: Lewis et al.
    2020, section 2.2, sentence permutation.
    """
    _check_row(ids)
    stops = set(map(int, ends))
    cuts = [i + 1 for i, token in enumerate(ids.tolist()) if token in stops and i + 1 < len(ids)]
    sentences = ids.tensor_split(cuts)
    order = torch.randperm(len(sentences), generator=generator).tolist()
    return torch.cat([sentences[i] for i in order])


def rotate_document(ids: Tensor, generator: torch.Generator) -> Tensor:
    """Begin a text at a random token and append what came before it: (N,) -> (N,).

    The token is drawn by one `randint`. Raises ValueError for ids that are not one row. Source:
    Lewis et al. 2020, section 2.2, document rotation.
    """
    _check_row(ids)
    first = int(torch.randint(len(ids), (), generator=generator))
    return torch.cat([ids[first:], ids[:first]])


def _check_spans(ids: Tensor, noise: Tensor, sentinels: Sequence[int]) -> None:
    _check_row(ids)
    if noise.shape != ids.shape or noise.dtype != torch.bool:
        raise ValueError(
            f"noise must be boolean, {tuple(ids.shape)} like ids, got {noise.dtype} of shape "
            f"{tuple(noise.shape)}"
        )
    spans = int((noise[1:] & ~noise[:-1]).sum() + noise[0])
    if len(sentinels) < spans + 1:
        raise ValueError(f"{spans} spans need {spans + 1} sentinels, got {len(sentinels)}")
    if len(set(sentinels)) < len(sentinels):
        raise ValueError(f"sentinels must differ, got {list(sentinels)}")
    if torch.isin(ids, ids.new_tensor(list(sentinels))).any():
        raise ValueError("a sentinel stands in the text: give ids that no token has")


def _check_row(ids: Tensor) -> None:
    if ids.dim() != 1 or len(ids) == 0:
        raise ValueError(f"ids must be one row (N,) of one token or more, got {tuple(ids.shape)}")
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise TypeError(f"ids must be integers, got {ids.dtype}")


def _check_share(share: float, low: float | None = None) -> None:
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie in [0, 1], got {share}")
    if low is not None and not low < share < 1:
        raise ValueError(f"share must lie strictly between 0 and 1, got {share}")
