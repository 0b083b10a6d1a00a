"""Words to ids and back."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

__all__ = ["BOS", "EOS", "PAD", "SPECIALS", "UnknownWordError", "WordTokenizer", "pad_batch"]

PAD, BOS, EOS = 0, 1, 2
SPECIALS = ("<pad>", "<bos>", "<eos>")


STRAIGHT = str.maketrans("‘’“”", "''\"\"")
SHORT = {"can't": "can not", "cannot": "can not", "won't": "will not"}
ENDINGS = {"n't": "not", "'m": "am", "'re": "are", "'ve": "have", "'ll": "will"}
BEFORE_IS = (
    "he",
    "she",
    "it",
    "that",
    "there",
    "here",
    "what",
    "who",
    "where",
    "when",
    "why",
    "how",
)


class UnknownWordError(ValueError):
    """A word that the vocabulary does not hold; `word` and `position` say which and where.

    `near` holds what may have been meant, in words that the vocabulary does hold.
    """

    def __init__(self, word: str, position: int, vocab_size: int, near: Sequence[str] = ()) -> None:
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        if not near and not any(map(str.isalnum, word)):
            hint = "; leave it out"
        super().__init__(
            f"unknown word {word!r} at position {position}: "
            f"it is not among the {vocab_size} words of the vocabulary{hint}"
        )
        self.word, self.position, self.near = word, position, tuple(near)


class WordTokenizer:
    """One id per word: the specials <pad>, <bos>, <eos> are 0, 1, 2, the words follow in order.

    Raises ValueError if a word is there twice or is a special, TypeError for what is no word.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        if strange := [word for word in self.words if not isinstance(word, str)]:
            raise TypeError(f"words are strings, got {strange[0]!r:.60}")
        self.tokens = SPECIALS + self.words
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        if len(self._ids) != len(self.tokens):
            twice = sorted(t for t, count in Counter(self.tokens).items() if count > 1)
            raise ValueError(f"words must be distinct, found twice: {', '.join(twice)}")

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str | Sequence[str]) -> list[int]:
        """Turn words (or a string of words between spaces) into ids, with no specials added.

        Raises UnknownWordError for a word outside the vocabulary, ValueError for an empty text and
        TypeError for what is not text.
        """
        if not isinstance(text, Iterable):
            raise TypeError(f"a sentence is a string or a list of words, got {text!r}")
        words = text.split() if isinstance(text, str) else list(text)
        if not words:
            raise ValueError("the sentence is empty: give at least one word")
        ids = []
        for position, word in enumerate(words):
            if not isinstance(word, str):
                raise TypeError(f"words are strings, got {word!r} at position {position}")
            if word not in self._ids or word in SPECIALS:
                raise UnknownWordError(word, position, len(self.words), self._near(word))
            ids.append(self._ids[word])
        return ids

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Turn ids back into words, up to the first <eos>, without <bos> and <pad>.

        Raises ValueError for an id outside the vocabulary.
        """
        words = []
        for i in map(int, ids):
            if i == EOS:
                break
            if not 0 <= i < len(self.tokens):
                raise ValueError(f"id {i} is outside the vocabulary of {len(self)}")
            if i not in (PAD, BOS):
                words.append(self.tokens[i])
        return words

    def _near(self, word: str) -> list[str]:
        """What may have been meant by a word that is not there."""
        word = word.lower().translate(STRAIGHT)
        known = set(self.words)
        core = re.sub(r"^\W+|\W+$", "", word)
        if word in known or not core or word in SPECIALS:
            return [word] * (word in known)
        marks = [mark for mark in word[word.index(core) + len(core) :] if mark in known]
        words = [core] if core in known else written_out(core)
        if known.issuperset(words):
            return [" ".join([*words, *marks])]  # punctuation is a word of its own
        return difflib.get_close_matches(core, self.words, n=2, cutoff=0.7)


def written_out(word: str) -> list[str]:
    """Take a contraction apart, and a possessive: don't -> do not, mother's -> mother 's."""
    if word in SHORT:
        return SHORT[word].split()
    for ending, full in ENDINGS.items():
        if word.endswith(ending):
            return [word.removesuffix(ending), full]
    if word.endswith("'s"):
        stem = word.removesuffix("'s")
        return [stem, "is" if stem in BEFORE_IS else "'s"]
    return [word]


def pad_batch(rows: Sequence[Sequence[int]], device: torch.device | None = None) -> Tensor:
    """Stack rows of ids of different lengths: (B, longest), filled up with <pad> on the right.

    Raises ValueError for an empty batch.
    """
    if not rows:
        raise ValueError("the batch is empty: give at least one sentence")
    longest = max(map(len, rows))
    padded = [list(row) + [PAD] * (longest - len(row)) for row in rows]
    return torch.tensor(padded, dtype=torch.long, device=device)
