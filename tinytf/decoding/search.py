"""Turning scores into sentences: greedy and beam search, batched, with cached keys and values."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tinytf.decoding.sampling import check_scores
from tinytf.support.compiled import compiled_method
from tinytf.support.modes import evaluation_mode, without_gradients
from tinytf.support.protocols import Seq2Seq
from tinytf.text.words import BOS, EOS, PAD
from tinytf.transformer import Memory

__all__ = [
    "Hypothesis",
    "beam_search",
    "candidates",
    "check_search",
    "finish",
    "greedy",
    "length_limit",
    "length_penalty",
    "next_scores",
    "scored_greedy",
    "settled",
]

LONGEST = 64  # tokens of output, where the caller names no limit


def next_scores(model: Seq2Seq, ids: Tensor, memory: Memory, cache: list | None = None) -> Tensor:
    """Score the token after ids (B, T), of which a cache has seen all but the last: (B, V).

    Scores are in float32. <pad> and <bos> are never generated: their score is -inf. Raises
    ValueError, naming the step, where scores are NaN.
    """
    decode = compiled_method(model, "decode")
    hidden = decode(ids if cache is None else ids[:, -1:], memory, cache)
    scores = model.output(hidden[:, -1]).float()  # (B, T, C) -> (B, V)
    scores[:, [PAD, BOS]] = -torch.inf
    check_scores(scores, step=ids.size(1))
    return scores


def greedy(
    model: Seq2Seq, src: Tensor, max_len: int | None = None, use_cache: bool = True
) -> Tensor:
    """Take the likeliest token at every step until each row has produced <eos>.

    src is (B, S); returns ids (B, T), T ≤ max_len (default: 64, or the model's own if that is
    less), without <bos>, each row ending in <eos> and padding unless max_len cut it. The model is
    used in evaluation mode and left as it was found. Raises ValueError if max_len does not fit, and
    where scores are NaN.
    `use_cache=False` recomputes every prefix from its beginning: same result, more work.
    """
    max_len = length_limit(model, max_len)
    with evaluation_mode(model), without_gradients(model):
        memory = model.encode(src)
        cache = model.decoder.new_cache() if use_cache else None
        ids = src.new_full((src.size(0), 1), BOS)
        running = torch.ones(src.size(0), dtype=torch.bool, device=src.device)
        for _ in range(max_len):
            token = next_scores(model, ids, memory, cache).argmax(dim=-1)
            token = torch.where(running, token, PAD)
            ids = torch.cat([ids, token[:, None]], dim=1)
            running = running & (token != EOS)
            if not running.any():
                break
    return ids[:, 1:].clone()


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation: ids without <bos>, its log-probability in nats, its search score."""

    ids: list[int]
    log_prob: float
    score: float


def scored_greedy(model: Seq2Seq, src: Tensor, max_len: int | None = None) -> list[Hypothesis]:
    """Search as `greedy` does, and give each sentence's hypothesis as `beam_search` gives them.

    Arguments, errors and tokens are those of `greedy`; a score is the log-probability itself.
    """
    max_len = length_limit(model, max_len)
    with evaluation_mode(model), without_gradients(model):
        memory, cache = model.encode(src), model.decoder.new_cache()
        ids, steps = src.new_full((src.size(0), 1), BOS), []
        running = torch.ones(src.size(0), dtype=torch.bool, device=src.device)
        for _ in range(max_len):
            scores = next_scores(model, ids, memory, cache)
            steps.append(scores.amax(dim=-1) - scores.logsumexp(dim=-1))  # (B,)
            token = torch.where(running, scores.argmax(dim=-1), PAD)
            ids = torch.cat([ids, token[:, None]], dim=1)
            running = running & (token != EOS)
            if not running.any():
                break
    found = []
    for row, log_probs in zip(ids[:, 1:].tolist(), torch.stack(steps, 1).tolist(), strict=True):
        length = row.index(EOS) + 1 if EOS in row else len(row)
        log_prob = sum(log_probs[:length])
        found.append(Hypothesis(row[:length], log_prob, log_prob))
    return found


def length_penalty(length: int, alpha: float) -> float:
    """Divide log-probabilities by this so that long outputs can win: ((5 + length) / 6)^alpha.

    Source: Wu et al. 2016, equation 14.
    """
    return ((5 + length) / 6) ** alpha


def candidates(alive: Tensor, log_probs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Find the best ways to continue K prefixes of each sentence by one token.

    alive (B, K) holds their log-probabilities, log_probs (B * K, V) those of the next token.
    Returns the log-probabilities, the prefix (0 to K - 1) and the token of each, (B, 2K), best
    first; 2K because at most K of them end in <eos>, so K are left to continue.
    """
    beam, vocab = alive.size(1), log_probs.size(-1)
    total = alive[:, :, None] + log_probs.view(-1, beam, vocab)  # (B, K, V)
    best, index = total.flatten(1).topk(min(2 * beam, beam * vocab), dim=-1)
    return best, index // vocab, index % vocab


def finish(
    done: list[Hypothesis], ids: list[int], log_prob: float, alpha: float, beam: int
) -> None:
    """Add a hypothesis to a sentence's list in place, and keep the `beam` best, best first."""
    done.append(Hypothesis(ids, log_prob, log_prob / length_penalty(len(ids), alpha)))
    done.sort(key=lambda h: -h.score)
    del done[beam:]


def settled(
    finished: list[list[Hypothesis]], alive: Tensor, beam: int, alpha: float, max_len: int
) -> bool:
    """Return whether no living prefix of any sentence can overtake its `beam` finished ones.

    alive is (B, K), best first. A log-probability only falls as a prefix grows, and max_len has the
    largest divisor of all lengths: this bounds every score to come.
    """
    bounds = (alive[:, 0] / length_penalty(max_len, alpha)).tolist()
    return all(
        len(done) >= beam and done[-1].score >= bound
        for done, bound in zip(finished, bounds, strict=True)
    )


def beam_search(
    model: Seq2Seq, src: Tensor, beam: int = 4, alpha: float = 0.6, max_len: int | None = None
) -> list[list[Hypothesis]]:
    """Keep the `beam` best prefixes of every sentence at each step; alpha is the length penalty's.

    src is (B, S). Returns, per sentence, up to `beam` hypotheses, best score first. A hypothesis
    ends in <eos>, or is max_len tokens long. A sentence is done when no living prefix could still
    overtake its worst finished hypothesis, but its rows are computed until all sentences are done.
    A beam of 1 is not quite greedy: it keeps an <eos> that comes second, too, and with an alpha
    above 0 it goes on after one that comes first. Raises ValueError if beam or max_len is not a
    whole number above 0, max_len above the model's own, alpha below 0 or not finite, and where
    scores are NaN.
    """
    max_len = length_limit(model, max_len)
    check_search(beam, alpha)
    with evaluation_mode(model), without_gradients(model):
        memory = Memory(*(part.repeat_interleave(beam, dim=0) for part in model.encode(src)))
        cache = model.decoder.new_cache()
        ids = src.new_full((src.size(0) * beam, 1), BOS)
        first = torch.arange(0, len(ids), beam, device=src.device)[:, None]  # rows of beam 0
        alive = torch.full((src.size(0), beam), -torch.inf, device=src.device)
        alive[:, 0] = 0.0  # all beams of a sentence start equal, so only one may live
        finished = [[] for _ in alive]
        for _ in range(max_len):
            log_probs = next_scores(model, ids, memory, cache).log_softmax(dim=-1)
            best, beams, tokens = candidates(alive, log_probs)  # (B, 2K) each
            ends = tokens == EOS
            for b, c in (ends & best.isfinite()).nonzero().tolist():
                prefix = ids[b * beam + int(beams[b, c]), 1:].tolist()
                finish(finished[b], [*prefix, EOS], float(best[b, c]), alpha, beam)
            alive, pick = best.masked_fill(ends, -torch.inf).topk(beam, dim=-1)
            rows = (first + beams.gather(1, pick)).flatten()  # where they were in the batch
            ids = torch.cat([ids[rows], tokens.gather(1, pick).view(-1, 1)], dim=1)
            for layer in cache:
                layer.select(rows)  # keys and values go along
            if settled(finished, alive, beam, alpha, max_len):
                return finished
    for b, k in alive.isfinite().nonzero().tolist():  # max_len cuts these
        finish(finished[b], ids[b * beam + k, 1:].tolist(), float(alive[b, k]), alpha, beam)
    return finished


def check_search(beam: int, alpha: float) -> None:
    """Raise ValueError for a beam that is not a whole number above 0, or alpha below 0 or NaN."""
    if not _is_whole(beam):
        raise ValueError(f"beam must be a whole number, got {beam!r}")
    if beam < 1:
        raise ValueError(f"beam must be at least 1, got {beam}")
    if not isinstance(alpha, int | float) or not 0 <= alpha < math.inf:
        raise ValueError(f"alpha must be a finite number, at least 0, got {alpha!r}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def length_limit(model: Seq2Seq, max_len: int | None) -> int:
    """Return max_len, or where it is None the default. Raises ValueError if it does not fit."""
    limit = model.config.max_len
    if max_len is None:
        return min(LONGEST, limit)
    if not _is_whole(max_len) or not 1 <= max_len <= limit:
        raise ValueError(f"max_len={max_len} must lie in 1..{limit}, the model's own max_len")
    return max_len
