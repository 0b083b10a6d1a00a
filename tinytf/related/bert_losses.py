"""Losses of BERT's heads, and the best span of those it scores (Devlin et al. 2019)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytf.related.bert_heads import BertForPretraining

__all__ = ["best_span", "masked_word_loss", "span_loss", "tag_loss"]


def masked_word_loss(
    model: BertForPretraining, states: Tensor, ids: Tensor, chosen: Tensor
) -> Tensor:
    """Return the mean cross-entropy over the chosen words, in nats.

    states (B, S, C) are those of the masked text, ids (B, S) are the original words, and `chosen`
    (B, S) is True at the words that count. Logits are computed only there. If no word was chosen
    the loss is 0, computed from the states so that `backward` can be called.
    """
    if not chosen.any():
        return states.sum() * 0
    return F.cross_entropy(model.words(states[chosen]), ids[chosen])


def tag_loss(logits: Tensor, tags: Tensor) -> Tensor:
    """Return the mean cross-entropy over the tokens that have a tag, in nats.

    logits (B, S, tags), tags (B, S), below 0 where a token has none (padding, special tokens).
    Raises ValueError if no token has a tag.
    """
    known = tags >= 0
    if not known.any():
        raise ValueError("no token has a tag: tags are all below 0")
    return F.cross_entropy(logits[known], tags[known])


def span_loss(logits: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Return the mean cross-entropy of the first and the last token of the answers, in nats.

    logits (B, S, 2); start and end (B,) are positions in 0..S-1, the end itself included.
    Raises ValueError if a position is outside the text, or an answer ends before it starts.
    """
    length = logits.size(1)
    if int(start.min()) < 0 or int(end.max()) >= length or bool((end < start).any()):
        raise ValueError(f"answers must satisfy 0 <= start <= end < {length}, the texts' length")
    return (F.cross_entropy(logits[..., 0], start) + F.cross_entropy(logits[..., 1], end)) / 2


def best_span(logits: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Find the span whose start and end score most together: (B, S, 2) -> start (B,), end (B,).

    A span ends no earlier than it starts, and both its ends stand where `allowed` (B, S) is True:
    in the text, not in the question. Raises ValueError if a row allows nothing.
    """
    if not bool(allowed.any(dim=1).all()):
        raise ValueError("a row of `allowed` is all False: there is nowhere to look for an answer")
    start, end = logits.masked_fill(~allowed[..., None], -torch.inf).unbind(dim=-1)
    scores = start[:, :, None] + end[:, None, :]  # (B, S starts, S ends)
    length = logits.size(1)
    backward = torch.ones(length, length, dtype=torch.bool, device=logits.device).tril(-1)
    best = scores.masked_fill(backward, -torch.inf).flatten(1).argmax(dim=1)
    return best // length, best % length
