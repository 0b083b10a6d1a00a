"""BLEU: how many of a translation's n-grams its references hold (Papineni et al. 2002)."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

__all__ = [
    "BLEU",
    "brevity_penalty",
    "clipped_matches",
    "closest_length",
    "corpus_bleu",
    "ngram_precisions",
    "ngrams",
]

SMOOTHINGS = ("none", "exp")


@dataclass(frozen=True)
class BLEU:
    """A corpus' score and what it is made of; scores and precisions are in percent, 0 to 100."""

    score: float
    precisions: tuple[float, ...]  # of 1-grams, 2-grams, ...
    brevity_penalty: float  # 1 unless the translations are shorter than their references
    matches: tuple[int, ...]  # n-grams found in a reference, each as often as it occurs there
    totals: tuple[int, ...]  # n-grams in the translations
    length: int  # tokens in the translations
    reference_length: int  # tokens in the references closest in length


def ngrams(tokens: Sequence[Hashable], n: int) -> Counter:
    """Count the runs of n tokens, each as a tuple."""
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def clipped_matches(
    translation: Sequence[Hashable], references: Sequence[Sequence[Hashable]], n: int
) -> tuple[int, int]:
    """Count the translation's n-grams that a reference has, and all of them: (matches, total).

    Each counts at most as often as it occurs in the reference that has it most often.
    """
    have, allowed = ngrams(translation, n), Counter()
    for reference in references:
        allowed |= ngrams(reference, n)
    return (have & allowed).total(), have.total()


def closest_length(length: int, references: Sequence[Sequence[Hashable]]) -> int:
    """Return the length of the reference nearest to `length`, the shorter where two are as near."""
    return min((len(r) for r in references), key=lambda other: (abs(other - length), other))


def brevity_penalty(length: int, reference_length: int) -> float:
    """Return e^(1 - r/c) for c tokens in all translations and r in the references if c < r, else 1.

    A length of 0 gives 0, unless the references have none either.
    """
    if length >= reference_length:
        return 1.0
    return math.exp(1 - reference_length / length) if length else 0.0


def ngram_precisions(
    matches: Sequence[int], totals: Sequence[int], smoothing: str = "none"
) -> list[float]:
    """Divide matches by totals, in percent; a total of 0 gives 0.

    The smoothing "exp" gives the k-th precision without a match the value of 1 / 2^k matches,
    unless no token at all matches.
    """
    precisions, credit = [], 1.0
    for matched, total in zip(matches, totals, strict=True):
        if matched == 0 and total and smoothing == "exp" and any(matches):
            credit /= 2
            matched = credit
        precisions.append(100 * matched / total if total else 0.0)
    return precisions


def corpus_bleu(
    translations: Sequence[Sequence[Hashable]],
    references: Sequence[Sequence[Sequence[Hashable]]],
    max_n: int = 4,
    smoothing: str = "none",
) -> BLEU:
    """Score translations, lists of tokens, against one or more references for each of them.

    The geometric mean of the n-gram precisions, times exp(1 - r / c) where the c tokens of the
    translations are fewer than the r of the references (of each sentence the reference closest in
    length, the shorter where two are). Counts are summed over the corpus before any is divided.
    Without smoothing a score is 0 as soon as one precision is; "exp" gives the k-th such precision
    the value of 1 / 2^k matches (Chen and Cherry 2014, method 3; sacrebleu's default), unless no
    token at all matches.

    Raises ValueError for numbers of sentences that differ, no sentence, a sentence without
    reference; TypeError where a string or a single reference is given in place of a list.
    Source: Papineni et al. 2002, section 2.3.
    """
    _check(translations, references, max_n, smoothing)
    matches, totals, length, reference_length = [0] * max_n, [0] * max_n, 0, 0
    for translation, group in zip(translations, references, strict=True):
        length += len(translation)
        reference_length += closest_length(len(translation), group)
        for n in range(1, max_n + 1):
            matched, total = clipped_matches(translation, group, n)
            matches[n - 1] += matched
            totals[n - 1] += total
    precisions = ngram_precisions(matches, totals, smoothing)
    brevity = brevity_penalty(length, reference_length)
    score = 0.0
    if min(precisions) > 0:
        score = brevity * math.exp(sum(math.log(p) for p in precisions) / max_n)
    return BLEU(
        score, tuple(precisions), brevity, tuple(matches), tuple(totals), length, reference_length
    )


def _check(translations: Sequence, references: Sequence, max_n: int, smoothing: str) -> None:
    if max_n < 1:
        raise ValueError(f"max_n must be at least 1, got {max_n}")
    if smoothing not in SMOOTHINGS:
        raise ValueError(f"smoothing={smoothing!r} is not one of {SMOOTHINGS}")
    if len(translations) != len(references):
        raise ValueError(
            f"{len(translations)} translations do not match {len(references)} sets of references"
        )
    if len(translations) == 0:
        raise ValueError("there is no translation to score")
    for i, (translation, group) in enumerate(zip(translations, references, strict=True)):
        if isinstance(translation, str):
            raise TypeError(f"translation {i} is a string: split it into tokens first")
        if isinstance(group, str) or any(not isinstance(r, (list, tuple)) for r in group):
            raise TypeError(
                f"the references of translation {i} must be a list of lists of tokens, "
                f"got {group!r:.60}"
            )
        if len(group) == 0:
            raise ValueError(f"translation {i} has no reference")
