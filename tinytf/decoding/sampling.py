"""Sampling: functions from logits to logits that say which tokens may come, and a draw from them.

Each takes a batch of logits and returns new ones, with -inf for a token that is ruled out; none
changes its argument, and a row's result does not depend on the other rows. `Sampling` composes them
in one order: penalties on what has been said, temperature, top-k, top-p, min-p. That is the order
of Hugging Face's `generate`.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tinytf.embedding import check_ids

__all__ = [
    "Sampling",
    "check_scores",
    "min_p",
    "presence_penalty",
    "repetition_penalty",
    "sample",
    "seen_tokens",
    "temperature",
    "top_k",
    "top_p",
    "wide",
]


def temperature(logits: Tensor, value: float) -> Tensor:
    """Divide logits (..., V) by a temperature: below 1 sharpens, above 1 flattens, 1 changes none.

    Raises ValueError if the temperature is not positive and finite: at 0 nothing is left to draw,
    take the highest logit. Source: Ackley et al. 1985.
    """
    _check_temperature(value)
    _check_logits(logits)
    return logits / value


def top_k(logits: Tensor, k: int) -> Tensor:
    """Keep the k likeliest tokens of each row of logits (..., V), exactly k of them.

    Of tokens that tie for the last place the lowest ids stay (Hugging Face keeps all that tie).
    Tokens ruled out before stay out. Raises ValueError if k is not in 1..V. Source: Fan et al.
    2018.
    """
    _check_k(k, logits.size(-1))
    _check_logits(logits)
    last = logits.topk(k, dim=-1).values[..., -1:]
    ties = logits == last
    room = k - (logits > last).sum(dim=-1, keepdim=True)
    return logits.masked_fill((logits < last) | (ties & (ties.cumsum(dim=-1) > room)), -math.inf)


def top_p(logits: Tensor, p: float) -> Tensor:
    """Keep the smallest set of tokens that holds a share p of each row's probability (the nucleus).

    logits is (..., V). Tokens enter by falling probability, the lowest id first where they tie,
    until their sum is at least p: a set that holds exactly p is complete. At p = 1 all stay. Sums
    are those of the logits' own precision, float32 at least. Raises ValueError if p is not in
    (0, 1]. Source: Holtzman et al. 2020, section 3.1.
    """
    _check_share("top_p", p)
    _check_logits(logits)
    if p == 1:
        return logits.clone()
    ranked, order = wide(logits).sort(dim=-1, descending=True, stable=True)
    total = ranked.softmax(dim=-1).cumsum(dim=-1)
    enough = (total >= p).roll(1, dims=-1)  # held already before this token entered
    enough[..., 0] = False
    return logits.masked_fill(torch.zeros_like(enough).scatter(-1, order, enough), -math.inf)


def min_p(logits: Tensor, p: float) -> Tensor:
    """Keep the tokens at least p times as likely as the likeliest of their row of logits (..., V).

    Probabilities are in float32 at least. Raises ValueError if p is not in (0, 1]. Source: Nguyen
    et al. 2024.
    """
    _check_share("min_p", p)
    _check_logits(logits)
    probs = wide(logits).softmax(dim=-1)
    return logits.masked_fill(probs < p * probs.amax(dim=-1, keepdim=True), -math.inf)


def repetition_penalty(logits: Tensor, ids: Tensor, penalty: float) -> Tensor:
    """Make the tokens in ids less likely: divide their logits if positive, else multiply.

    logits is (B, V), ids (B, T) what each row has said, prompt included. A penalty above 1 makes
    repetition rarer, 1 changes nothing. The paper divides whatever the sign, which *raises* a
    negative logit; this is the form of Hugging Face, and in use. Raises ValueError if the penalty
    is not positive and finite, or the ids do not fit. Source: Keskar et al. 2019 (CTRL), section
    4.1.
    """
    _check_penalty(penalty)
    seen = seen_tokens(logits, ids)  # a constant added to all logits changes what comes of it
    return torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


def presence_penalty(logits: Tensor, ids: Tensor, alpha: float) -> Tensor:
    """Subtract alpha from the logits of the tokens in ids: their odds fall by e^-alpha, once.

    logits is (B, V), ids (B, T). What many tutorials call the repetition penalty. A negative
    alpha invites repetition. Raises ValueError if alpha is not finite, or the ids do not fit.
    """
    if not math.isfinite(alpha):
        raise ValueError(f"presence_penalty must be finite, got {alpha}")
    return logits - alpha * seen_tokens(logits, ids).to(logits.dtype)


def sample(logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draw one token of each row: logits (B, V) -> ids (B,), with probability softmax(logits).

    The draw is made on the generator's device, so that a CPU generator gives the same text on every
    device, as far as the logits agree. Raises ValueError for another shape, and for a row with
    nothing to draw.
    """
    _check_rows(logits)
    probs = wide(logits).softmax(dim=-1)
    if generator is not None:
        probs = probs.to(generator.device)
    return torch.multinomial(probs, 1, generator=generator)[:, 0].to(logits.device)


@dataclass(frozen=True)
class Sampling:
    """How to turn a row of logits into a choice; what is left at None changes nothing.

    Raises ValueError when it is made, for the values that the function of that name refuses; for a
    top_k beyond the vocabulary, when it is used. `top_k=1` is greedy search, penalties included.
    """

    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        """Refuse a value that the function of its name refuses."""
        _check_sampling(self)

    def __call__(self, logits: Tensor, ids: Tensor) -> Tensor:
        """Apply all of them in the order of the fields: (B, V) logits, (B, T) ids said so far."""
        if self.repetition_penalty is not None:
            logits = repetition_penalty(logits, ids, self.repetition_penalty)
        if self.presence_penalty is not None:
            logits = presence_penalty(logits, ids, self.presence_penalty)
        if self.temperature is not None:
            logits = temperature(logits, self.temperature)
        if self.top_k is not None:
            logits = top_k(logits, self.top_k)
        if self.top_p is not None:
            logits = top_p(logits, self.top_p)
        if self.min_p is not None:
            logits = min_p(logits, self.min_p)
        return logits


def wide(logits: Tensor) -> Tensor:
    """Return logits in float32 at least: half precision can't sum a vocabulary to 1."""
    return logits if logits.dtype == torch.float64 else logits.float()


def seen_tokens(logits: Tensor, ids: Tensor) -> Tensor:
    """Mark the tokens that each row has said: ids (B, T) -> (B, V).

    Raises ValueError if the two are not of one batch, or an id is not one of 0..V-1; TypeError for
    ids that are no whole numbers.
    """
    _check_logits(logits)
    if logits.dim() != 2 or ids.dim() != 2 or len(logits) != len(ids):
        raise ValueError(
            f"logits (B, V) and ids (B, T) must be of one batch, got {tuple(logits.shape)} "
            f"and {tuple(ids.shape)}"
        )
    if ids.numel():
        check_ids(ids, logits.size(1))
    return torch.zeros_like(logits, dtype=torch.bool).scatter(1, ids.long(), True)


def _check_logits(logits: Tensor) -> None:
    """Refuse logits that are no floats, or hold a row from which no token can be drawn."""
    _check_floats(logits)
    _check_best(logits.amax(dim=-1))


def _check_floats(logits: Tensor) -> None:
    if not logits.is_floating_point() or logits.dim() == 0 or logits.numel() == 0:
        raise ValueError(
            f"logits must be floats of shape (..., V), got {logits.dtype} {tuple(logits.shape)}"
        )


def check_scores(scores: Tensor, step: int) -> None:
    """Refuse scores (B, V) of a step of decoding with a row that has no best token.

    A weight that is NaN makes all scores NaN, and the token that is then likeliest says nothing.
    Raises ValueError, naming the step (the first is 1). It waits for the device, once a step.
    """
    _check_best(scores.amax(dim=-1), f"step {step}: ")


def _check_best(best: Tensor, where: str = "") -> None:
    """Refuse rows whose highest logit is not finite; it is NaN where a row holds one."""
    values = best.flatten().tolist()
    if all(map(math.isfinite, values)):
        return
    for row, value in enumerate(values):
        if not math.isfinite(value):
            what = "no token that is not -inf" if value == -math.inf else f"a logit of {value}"
            raise ValueError(
                f"{where}row {row} of the logits has {what}: there is nothing to draw from"
            )


def _check_rows(logits: Tensor) -> None:
    """Refuse all but a batch of rows (B, V) that can be drawn from."""
    if logits.dim() != 2:
        raise ValueError(f"logits must be of shape (B, V), got {tuple(logits.shape)}")
    _check_logits(logits)


def _check_temperature(value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(
            f"temperature must be positive and finite, got {value} (to take the likeliest token, "
            "do not draw: logits.argmax(dim=-1))"
        )


def _check_k(k: int, vocab_size: int | None = None) -> None:
    if isinstance(k, bool) or not isinstance(k, int):
        raise ValueError(f"top_k must be a whole number, got {k!r}")
    if k < 1 or (vocab_size is not None and k > vocab_size):
        highest = "the size of the vocabulary" if vocab_size is None else vocab_size
        raise ValueError(f"top_k={k} must lie in 1..{highest}")


def _check_share(name: str, p: float) -> None:
    if not 0 < p <= 1:
        raise ValueError(f"{name} must lie in (0, 1], got {p}")


def _check_sampling(rules: Sampling) -> None:
    """Refuse the values that the function of that name refuses; None is for what is not used."""
    if rules.repetition_penalty is not None:
        _check_penalty(rules.repetition_penalty)
    if rules.presence_penalty is not None and not math.isfinite(rules.presence_penalty):
        raise ValueError(f"presence_penalty must be finite, got {rules.presence_penalty}")
    if rules.temperature is not None:
        _check_temperature(rules.temperature)
    if rules.top_k is not None:
        _check_k(rules.top_k)
    for name in ("top_p", "min_p"):
        if getattr(rules, name) is not None:
            _check_share(name, getattr(rules, name))


def _check_penalty(penalty: float) -> None:
    if not 0 < penalty < math.inf:
        raise ValueError(f"repetition_penalty must be positive and finite, got {penalty}")
