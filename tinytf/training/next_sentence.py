"""Pairs of sentences for BERT: did the second follow the first? And three ways to make one up."""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor

from tinytf.text.words import BOS, EOS, pad_batch

__all__ = [
    "SentencePair",
    "another_document",
    "join",
    "join_batch",
    "same_document",
    "sentence_pairs",
    "swapped",
]

Sentence = Sequence[int]
Documents = Sequence[Sequence[Sentence]]
Uniform = Callable[[], float]


class SentencePair(NamedTuple):
    """Two sentences, and whether the second followed the first in its document."""

    first: Sentence
    second: Sentence
    is_next: bool


def sentence_pairs(
    documents: Documents,
    seed: int = 0,
    made_up: Callable[[Documents, int, int, Uniform], tuple[Sentence, Sentence]] | None = None,
) -> list[SentencePair]:
    """Pair each sentence with the next one or, with probability 1/2, make up a pair that is not.

    `documents` are lists of sentences, sentences lists of ids (or words). `made_up` gives the wrong
    pair for a document and a place in it: by default `another_document`, as BERT has it;
    `same_document` and `swapped` are harder. One pair for each two neighbours, the same for the
    same seed. Raises ValueError where a wrong pair can't be made. Source: Devlin et al. 2019,
    section 3.1, task 2; its code joins several sentences to a segment.
    """
    uniform = random.Random(seed).random
    made_up = made_up or another_document
    pairs = []
    for d, document in enumerate(documents):
        for i in range(len(document) - 1):
            if uniform() < 0.5:
                pairs.append(SentencePair(document[i], document[i + 1], True))
            else:
                pairs.append(SentencePair(*made_up(documents, d, i, uniform), False))
    if not pairs:
        raise ValueError("no document has two sentences: there is nothing to pair")
    return pairs


def another_document(
    documents: Documents, d: int, i: int, uniform: Uniform
) -> tuple[Sentence, Sentence]:
    """Follow a sentence by any of any other document: BERT's next-sentence prediction."""
    others = [other for k, other in enumerate(documents) if k != d and len(other)]
    if not others:
        raise ValueError("there is only one document: a wrong sentence must come from another")
    other = others[int(uniform() * len(others))]
    return documents[d][i], other[int(uniform() * len(other))]


def same_document(
    documents: Documents, d: int, i: int, uniform: Uniform
) -> tuple[Sentence, Sentence]:
    """Follow a sentence by another of its own document: neither itself nor the next."""
    others = [s for k, s in enumerate(documents[d]) if k not in (i, i + 1)]
    if not others:
        raise ValueError(f"document {d} has two sentences: a third is needed to make up a pair")
    return documents[d][i], others[int(uniform() * len(others))]


def swapped(documents: Documents, d: int, i: int, uniform: Uniform) -> tuple[Sentence, Sentence]:
    """Put a sentence after the one that followed it: sentence-order prediction.

    Source: Lan et al. 2020 (ALBERT), section 3.1.
    """
    return documents[d][i + 1], documents[d][i]


def join(
    first: Sentence, second: Sentence | None = None, max_len: int = 512
) -> tuple[list[int], list[int]]:
    """Write one or two sentences as BERT reads them: (ids, segments), not padded.

    <bos> stands for BERT's [CLS], <eos> for its [SEP]: <bos> first <eos> second <eos>. Segments are
    0 up to the first <eos>, it included, then 1. What is too long for max_len loses words from the
    end of the longer sentence. Raises ValueError for a max_len that leaves no word of each, and
    for an empty sentence.
    """
    parts = [list(first)] if second is None else [list(first), list(second)]
    if not all(parts):
        raise ValueError("a sentence is empty: give at least one word")
    room = max_len - 1 - len(parts)
    if room < len(parts):
        raise ValueError(f"max_len={max_len} leaves no room: {len(parts)} sentences need "
                         f"{1 + 2 * len(parts)} places at least")  # fmt: skip
    while sum(map(len, parts)) > room:
        max(reversed(parts), key=len).pop()
    ids, segments = [BOS], [0]
    for segment, part in enumerate(parts):
        ids += [*part, EOS]
        segments += [segment] * (len(part) + 1)
    return ids, segments


def join_batch(
    pairs: Sequence[tuple[Sentence, Sentence | None]], max_len: int = 512, device=None
) -> tuple[Tensor, Tensor]:
    """Join pairs (or single sentences, whose second is None) and pad: ids and segments (B, S)."""
    joined = [join(first, second, max_len) for first, second in pairs]
    ids, segments = zip(*joined, strict=True) if joined else ((), ())
    return pad_batch(ids, device), pad_batch(segments, device)
