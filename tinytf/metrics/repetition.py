"""How a text repeats itself, and how a model spreads its bets: measures on ids and on logits.

They count, they do not judge: a text can score as human text does on all of them and make no sense.
"""

import torch
from torch import Tensor

__all__ = [
    "distinct_ngrams",
    "ends_in_loop",
    "entropy",
    "longest_repeat",
    "repeated_ngrams",
]


def distinct_ngrams(ids: Tensor, n: int) -> Tensor:
    """Count the different n-grams of each row, per n-gram there is: ids (B, T) -> (B,) in (0, 1].

    Called distinct-n. It falls with the length of any text, so compare texts of equal length.
    Raises ValueError if n is not in 1..T. Source: Li et al. 2016, which divides by the number of
    tokens instead.
    """
    _check_length(ids, n, "n")
    windows = ids.unfold(1, n, 1)  # (B, T) -> (B, T - n + 1, n)
    counts = [len(row.unique(dim=0)) for row in windows]
    return torch.tensor(counts, device=ids.device) / windows.size(1)


def repeated_ngrams(ids: Tensor, n: int = 4) -> Tensor:
    """Return the share of each row's n-grams that stood in it before: ids (B, T) -> (B,) in [0, 1).

    That is 1 - `distinct_ngrams`. Raises ValueError if n is not in 1..T. Source: Welleck et al.
    2020 (seq-rep-n).
    """
    return 1 - distinct_ngrams(ids, n)


def ends_in_loop(ids: Tensor, times: int = 3, shortest: int = 2) -> Tensor:
    """Tell which rows end in a phrase said over and over: ids (B, T) -> bool (B,).

    The phrase is of `shortest` tokens or more and stands at the end `times` times or more, without
    a gap. Raises ValueError for times below 2, shortest below 1, and rows too short for such a
    loop. Source: Holtzman et al. 2020, section 5.3.
    """
    if times < 2 or shortest < 1:
        raise ValueError(f"times={times} must be at least 2, shortest={shortest} at least 1")
    _check_length(ids, times * shortest, "times * shortest")
    looping = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    for period in range(shortest, ids.size(1) // times + 1):
        tail = ids[:, -times * period :]
        looping |= (tail[:, period:] == tail[:, :-period]).all(dim=1)
    return looping


def longest_repeat(ids: Tensor) -> Tensor:
    """Return the length of the longest span that stands twice in a row: ids (B, T) -> (B,).

    The two may overlap: a loop counts in full, but for its first round. 0 if all ids differ.
    Raises ValueError for rows without a token.
    """
    _check_length(ids, 1, "1")
    longest = ids.new_zeros(len(ids), dtype=torch.long)
    for shift in range(1, ids.size(1)):
        same = ids[:, shift:] == ids[:, :-shift]
        place = torch.arange(1, same.size(1) + 1, device=ids.device).expand_as(same)
        broken = place.masked_fill(same, 0).cummax(dim=1).values  # the last place that differs
        longest = torch.maximum(longest, (place - broken).amax(dim=1))
    return longest


def entropy(logits: Tensor) -> Tensor:
    """Return the entropy of softmax(logits) in nats: (..., V) -> (...), from 0 to ln V.

    Tokens at -inf add nothing. NaN for a row that is all -inf. Source: Shannon 1948, section 6.
    """
    log_p = logits.log_softmax(dim=-1)
    return -(log_p.exp() * log_p.masked_fill(logits == -torch.inf, 0.0)).sum(dim=-1)


def _check_length(ids: Tensor, least: int, name: str) -> None:
    if ids.dim() != 2 or ids.is_floating_point():
        raise ValueError(f"ids must be whole numbers (B, T), got {ids.dtype} {tuple(ids.shape)}")
    if not 1 <= least <= ids.size(1):
        raise ValueError(f"{name}={least} must lie in 1..{ids.size(1)}, the length of a row")
