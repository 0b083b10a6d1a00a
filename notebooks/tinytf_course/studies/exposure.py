"""What one wrong word in the prefix does to the words that follow it."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytf.support.modes import evaluation_mode
from tinytf.text.words import BOS, EOS, PAD
from tinytf.training.losses import Batch
from tinytf.transformer import Transformer

__all__ = ["Slips", "edits", "go_on", "right_after", "slip"]


class Slips(NamedTuple):
    """A batch whose decoder input has one wrong word in each row."""

    batch: Batch
    place: Tensor  # (B,) where in tgt_in the wrong word stands
    missed: Tensor  # (B,) the gold word it stands for


@torch.no_grad()
def slip(model: Transformer, batch: Batch, seed: int, likely: bool = False) -> Slips:
    """Put one wrong word into each row of the prefix, so that 3 words or more follow.

    The word is drawn from all others of the vocabulary, or, if `likely`, is the one that the model
    finds likeliest there after the gold word. Rows need at least 4 words (ValueError otherwise).
    """
    lengths = (batch.tgt_out != PAD).sum(dim=1)  # with <eos>
    if (lengths < 5).any():
        raise ValueError(f"rows need at least 4 words, the shortest has {int(lengths.min()) - 1}")
    draws = torch.Generator().manual_seed(seed)
    uniform = torch.rand(2, lengths.size(0), generator=draws).to(batch.src.device)
    place = 1 + (uniform[0] * (lengths - 4)).long()
    rows = torch.arange(lengths.size(0), device=place.device)
    gold = batch.tgt_in[rows, place]
    if likely:
        with evaluation_mode(model):
            logits = model(batch.src, batch.tgt_in)[rows, place - 1]
        logits[:, [PAD, BOS, EOS]] = -torch.inf
        logits[rows, gold] = -torch.inf
        wrong = logits.argmax(dim=-1)
    else:
        words = model.output.weight.size(0) - 3  # after <pad>, <bos> and <eos>
        wrong = 3 + (gold - 3 + 1 + (uniform[1] * (words - 1)).long()) % words
    tgt_in = batch.tgt_in.clone()
    tgt_in[rows, place] = wrong
    return Slips(batch._replace(tgt_in=tgt_in), place, gold)


@torch.no_grad()
def right_after(model: Transformer, slips: Slips, reach: int = 5) -> list[float]:
    """Read gold words round the wrong one: the share of words right 0, 1, ... places after it."""
    batch = slips.batch
    with evaluation_mode(model):
        right = model(batch.src, batch.tgt_in).argmax(dim=-1) == batch.tgt_out
    shares = []
    for later in range(reach):
        at = slips.place + later
        there = at < (batch.tgt_out != PAD).sum(dim=1)
        shares.append(right[there].gather(1, at[there, None]).float().mean().item())
    return shares


@torch.no_grad()
def go_on(model: Transformer, slips: Slips, longest: int = 30) -> Tensor:
    """Write on, greedily, from the prefix that ends in the wrong word: ids (B, T) without <bos>.

    T is `longest` - 1, or as long as the target where that is more. A row ends in <eos> and
    padding, unless it is cut.
    """
    batch = slips.batch
    longest = max(longest, batch.tgt_in.size(1))  # or gold words would stand at the end
    ids = F.pad(batch.tgt_in, (0, longest - batch.tgt_in.size(1)), value=PAD)
    with evaluation_mode(model):
        memory, cache = model.encode(batch.src), model.decoder.new_cache()
        for t in range(longest - 1):
            scores = model.output(model.decode(ids[:, t : t + 1], memory, cache)[:, -1])
            scores[:, [PAD, BOS]] = -torch.inf
            free = t + 1 > slips.place
            ids[free, t + 1] = scores.argmax(dim=-1)[free]
    written = ids[:, 1:]
    ended = ((written == EOS).cumsum(dim=1) - (written == EOS).long()) > 0
    return written.masked_fill(ended, PAD)


def edits(one: list, other: list) -> int:
    """Count the words to insert, delete or replace to make one list the other (Levenshtein)."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]
