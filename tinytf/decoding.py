"""Turning scores into sentences: greedy and beam search, batched, with cached keys and values."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from tinytf.protocols import Seq2Seq
from tinytf.seq2seq import Memory
from tinytf.tokenizer import BOS, EOS, PAD

__all__ = ["Hypothesis", "beam_search", "evaluation", "greedy", "length_penalty"]

LONGEST = 64  # tokens of output, where the caller names no limit


@torch.no_grad()
def greedy(
    model: Seq2Seq, src: Tensor, max_len: int | None = None, use_cache: bool = True
) -> Tensor:
    """Take the likeliest token at every step until each row has said <eos>.

    src is (B, S); returns ids (B, T), T ≤ max_len (default: 64, or the model's own if that is
    less), without <bos>, each row ending in <eos> and padding unless max_len cut it. The model is
    used in evaluation mode and left as it was found. Raises ValueError if max_len does not fit.
    `use_cache=False` recomputes every prefix from its beginning: same result, more work.
    """
    max_len = _length(model, max_len)
    with evaluation(model):
        memory = model.encode(src)
        cache = model.decoder.new_cache() if use_cache else None
        ids = src.new_full((src.size(0), 1), BOS)
        running = torch.ones(src.size(0), dtype=torch.bool, device=src.device)
        for _ in range(max_len):
            token = _next_scores(model, ids, memory, cache).argmax(dim=-1)
            token = torch.where(running, token, PAD)
            ids = torch.cat([ids, token[:, None]], dim=1)
            running = running & (token != EOS)
            if not running.any():
                break
        return ids[:, 1:]


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation: ids without <bos>, its log-probability in nats, its search score."""

    ids: list[int]
    log_prob: float
    score: float


def length_penalty(length: int, alpha: float) -> float:
    """Divide log-probabilities by this so that long outputs can win: ((5 + length) / 6)^alpha.

    Source: Wu et al. 2016, equation 14.
    """
    return ((5 + length) / 6) ** alpha


@torch.no_grad()
def beam_search(
    model: Seq2Seq, src: Tensor, beam: int = 4, alpha: float = 0.6, max_len: int | None = None
) -> list[list[Hypothesis]]:
    """Keep the `beam` best prefixes of every sentence at each step; alpha is the length penalty's.

    src is (B, S). Returns, per sentence, up to `beam` hypotheses, best score first. A hypothesis
    ends in <eos>, or is max_len tokens long. A sentence is done when no living prefix could still
    overtake its worst finished hypothesis. Raises ValueError if beam or max_len is below 1.
    """
    max_len = _length(model, max_len)
    if beam < 1:
        raise ValueError(f"beam must be at least 1, got {beam}")
    if alpha < 0:
        raise ValueError(f"alpha must be at least 0, got {alpha}")
    batch, device = src.size(0), src.device
    with evaluation(model):
        memory = model.encode(src)
        memory = Memory(*(part.repeat_interleave(beam, dim=0) for part in memory))
        cache = model.decoder.new_cache()
        ids = src.new_full((batch * beam, 1), BOS)
        # all beams of a sentence start equal, so only the first may live
        alive = torch.full((batch, beam), -torch.inf, device=device)
        alive[:, 0] = 0.0
        finished: list[list[Hypothesis]] = [[] for _ in range(batch)]
        for _ in range(max_len):
            scores = _next_scores(model, ids, memory, cache).log_softmax(dim=-1)
            vocab = scores.size(-1)
            total = (alive[:, :, None] + scores.view(batch, beam, vocab)).flatten(1)
            # twice as many candidates as beams: at most `beam` of them can end here
            top, index = total.topk(min(2 * beam, total.size(1)), dim=-1)
            rows, tokens = index // vocab, index % vocab
            ends = (tokens == EOS) & top.isfinite()
            for b, c in ends.nonzero().tolist():
                prefix = ids[b * beam + int(rows[b, c]), 1:].tolist()
                _finish(finished[b], [*prefix, EOS], float(top[b, c]), alpha, beam)
            alive, pick = top.masked_fill(tokens == EOS, -torch.inf).topk(beam, dim=-1)
            source = (torch.arange(batch, device=device)[:, None] * beam) + rows.gather(1, pick)
            token = tokens.gather(1, pick).flatten()
            ids = torch.cat([ids[source.flatten()], token[:, None]], dim=1)
            for layer in cache:
                layer.select(source.flatten())
            # log-probabilities only fall and max_len has the largest divisor: bounds what may come
            bound = alive[:, 0] / length_penalty(max_len, alpha)
            if all(
                len(done) >= beam and done[-1].score >= float(best)
                for done, best in zip(finished, bound, strict=True)
            ):
                break
        else:
            for b in range(batch):
                for k in range(beam):
                    if alive[b, k].isfinite():
                        cut = ids[b * beam + k, 1:].tolist()
                        _finish(finished[b], cut, float(alive[b, k]), alpha, beam)
    return finished


def _next_scores(model: Seq2Seq, ids: Tensor, memory: Memory, cache: list | None) -> Tensor:
    """Score the token after ids (B, T), of which a cache has seen all but the last: (B, V)."""
    hidden = model.decode(ids if cache is None else ids[:, -1:], memory, cache)
    scores = model.output(hidden[:, -1]).float()
    scores[:, [PAD, BOS]] = -torch.inf  # not words: never part of an output
    return scores


def _finish(
    done: list[Hypothesis], ids: list[int], log_prob: float, alpha: float, beam: int
) -> None:
    done.append(Hypothesis(ids, log_prob, log_prob / length_penalty(len(ids), alpha)))
    done.sort(key=lambda h: -h.score)
    del done[beam:]


def _length(model: Seq2Seq, max_len: int | None) -> int:
    limit = model.config.max_len
    if max_len is None:
        return min(LONGEST, limit)
    if not 1 <= max_len <= limit:
        raise ValueError(f"max_len={max_len} must lie in 1..{limit}, the model's own max_len")
    return max_len


@contextmanager
def evaluation(model: torch.nn.Module) -> Iterator[None]:
    """Put a model in evaluation mode for a while and leave it in the mode it was found in."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
