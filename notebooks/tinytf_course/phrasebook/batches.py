"""Phrasebook pairs as batches of ids, a function of the step alone."""

import itertools
import random

from tinytf.text.words import WordTokenizer
from tinytf.training.losses import Batch, make_batch
from tinytf_course.phrasebook import Pair, Phrasebook

__all__ = ["PhrasebookBatches", "phrasebook_tokenizers"]


def phrasebook_tokenizers(book: Phrasebook) -> tuple[WordTokenizer, WordTokenizer]:
    """Number the phrasebook's English and Chinese words."""
    return WordTokenizer(book.source_words), WordTokenizer(book.target_words)


class PhrasebookBatches:
    """Batches of `size` pairs of similar length, without end, the same for the same seed and step.

    Pairs are drawn in pools of `pool` batches; a pool is sorted by length, cut, and its batches are
    shuffled, so that little of a batch is padding and the order of lengths teaches nothing.

    Sentences of one length are of one kind, so a batch of them teaches less than one of all kinds:
    a large pool saves the most time in a step, and a small one, of some four, the most in all.
    """

    def __init__(
        self, book: Phrasebook, size: int = 128, seed: int = 0, split: str = "train", pool: int = 50
    ) -> None:
        if size < 1:
            raise ValueError(f"a batch needs at least one pair, got size={size}")
        if pool < 1:
            raise ValueError(f"a pool holds at least one batch, got pool={pool}")
        self.book, self.size, self.seed, self.split, self.pool = book, size, seed, split, pool
        self.source, self.target = phrasebook_tokenizers(book)
        self._drawn: tuple[int, list[list[Pair]]] = (-1, [])

    def pairs(self, step: int) -> list[Pair]:
        """Return the pairs of a step's batch."""
        number, index = divmod(step, self.pool)
        if self._drawn[0] != number:
            stream = self.book.pairs(self.split, seed=self.seed * 1_000_003 + number)
            drawn = list(itertools.islice(stream, self.size * self.pool))
            drawn.sort(key=lambda p: (len(p.target), len(p.source)))
            batches = [drawn[i : i + self.size] for i in range(0, len(drawn), self.size)]
            random.Random(number).shuffle(batches)
            self._drawn = (number, batches)
        return self._drawn[1][index]

    def __call__(self, step: int) -> Batch:
        """Return a step's batch as ids."""
        pairs = self.pairs(step)
        return make_batch(
            [self.source.encode(p.source) for p in pairs],
            [self.target.encode(p.target) for p in pairs],
        )
