"""The best of all sentences: every one counted, or all but those that can't win left out."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from tinytf.decoding.search import (
    Hypothesis,
    check_search,
    length_limit,
    length_penalty,
    next_scores,
)
from tinytf.support.modes import evaluation_mode
from tinytf.support.protocols import Seq2Seq
from tinytf.text.words import BOS, EOS
from tinytf.transformer import Memory

__all__ = ["Best", "best_of_all", "every_sentence"]

ROWS = 2048  # prefixes read at once


class Best(NamedTuple):
    """What an exhaustive search found."""

    hypothesis: Hypothesis | None  # None where nothing beats `at_least`
    prefixes: int  # that the model had to read
    proven: bool  # False where the search was given up: then it is only the best so far


@torch.no_grad()
def every_sentence(
    model: Seq2Seq, src: Tensor, max_len: int, alpha: float = 0.0
) -> list[Hypothesis]:
    """Score all outputs for one sentence src (1, S): those that end, those cut at max_len.

    With w words in the target vocabulary, not counting <pad>, <bos> and <eos>, they number
    w^0 + w^1 + ... + w^max_len. Best score first. Raises ValueError if src holds several sentences,
    max_len or alpha does not fit, and where scores are NaN.
    """
    memory, max_len = _begin(model, src, max_len, alpha)
    sentences, ids, total = [], src.new_full((1, 1), BOS), torch.zeros(1, dtype=torch.float64)
    with evaluation_mode(model):
        for _ in range(max_len):
            ended, ids, total = _grow(model, ids, total, memory)
            sentences += _hypotheses(*ended, alpha)
    sentences += _hypotheses(ids, total, alpha)
    return sorted(sentences, key=lambda h: -h.score)


@torch.no_grad()
def best_of_all(
    model: Seq2Seq,
    src: Tensor,
    max_len: int | None = None,
    alpha: float = 0.0,
    at_least: float = -math.inf,
    most: int = 100_000,
) -> Best:
    """Find the output of the highest score for one sentence src (1, S), and prove it.

    Prefixes that can't win any more are left out: a log-probability only falls as a prefix grows.
    `at_least` is a score that is known to be reached, a beam search's say: the nearer the truth,
    the sooner the rest can be left out; outputs that do not beat it are not returned. Gives up
    before it reads more than `most` prefixes. Ties go to the one found first.
    Raises ValueError as `every_sentence`. Source: Stahlberg and Byrne 2019, section 2.
    """
    memory, max_len = _begin(model, src, max_len, alpha)
    if math.isnan(at_least) or not most >= 1:
        raise ValueError(f"at_least={at_least} must be a number, and most={most} at least 1")
    best, score, read = None, at_least, 0
    ids, total = src.new_full((1, 1), BOS), torch.zeros(1, dtype=torch.float64)
    divisor = length_penalty(max_len, alpha)  # no length has a larger one
    with evaluation_mode(model):
        for _ in range(max_len):
            if read + len(ids) > most:
                return Best(best, read, False)
            read += len(ids)
            ended, ids, total = _grow(model, ids, total, memory, score * divisor)
            for h in _hypotheses(*ended, alpha):
                if h.score > score:
                    best, score = h, h.score
            keep = total / divisor > score
            ids, total = ids[keep.to(ids.device)], total[keep]
            if not len(ids):
                break
    for h in _hypotheses(ids, total, alpha):
        if h.score > score:
            best, score = h, h.score
    return Best(best, read, True)


def _begin(model: Seq2Seq, src: Tensor, max_len: int | None, alpha: float) -> tuple[Memory, int]:
    check_search(beam=1, alpha=alpha)
    if src.dim() != 2 or src.size(0) != 1:
        raise ValueError(f"one sentence at a time: src must be (1, S), got {tuple(src.shape)}")
    with evaluation_mode(model):
        return model.encode(src), length_limit(model, max_len)


def _grow(
    model: Seq2Seq, ids: Tensor, total: Tensor, memory: Memory, above: float = -math.inf
) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
    """Continue prefixes ids (N, T) by every token, as long as the log-probability is above `above`.

    Returns those that end in <eos> (n, T + 1) with their log-probabilities, then those that do not.
    """
    ended, ended_total, alive, alive_total = [], [], [], []
    for part, before in zip(ids.split(ROWS), total.split(ROWS), strict=True):
        several = Memory(*(m.expand(len(part), *m.shape[1:]) for m in memory))
        log_probs = next_scores(model, part, several).cpu().double().log_softmax(dim=-1)
        after = before[:, None] + log_probs  # (N, V)
        rows, tokens = (after > above).nonzero(as_tuple=True)
        longer = torch.cat([part[rows.to(part.device)], tokens.to(part)[:, None]], dim=1)
        after, end = after[rows, tokens], tokens == EOS
        here = end.to(part.device)
        ended.append(longer[here])
        ended_total.append(after[end])
        alive.append(longer[~here])
        alive_total.append(after[~end])
    ends = torch.cat(ended), torch.cat(ended_total)
    return ends, torch.cat(alive), torch.cat(alive_total)


def _hypotheses(ids: Tensor, total: Tensor, alpha: float) -> list[Hypothesis]:
    divisor = length_penalty(ids.size(1) - 1, alpha)
    rows = zip(ids[:, 1:].tolist(), total.tolist(), strict=True)
    return [Hypothesis(row, log_prob, log_prob / divisor) for row, log_prob in rows]
