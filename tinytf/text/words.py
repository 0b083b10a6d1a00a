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
    """One id per word: <pad>, <bos> and <eos> have the ids 0, 1, 2, and the words follow in order.

    `tokens` is the whole vocabulary: position i holds the token with the id i.

    Raises ValueError if a word occurs twice or is a special token, TypeError for a word that is
    not a string.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        self._check_words()
        self.tokens = SPECIALS + self.words
        self._ids = {token: i for i, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str | Sequence[str]) -> list[int]:
        """Turn words (or a string of words between spaces) into ids, without special tokens.

        Raises UnknownWordError for a word outside the vocabulary, ValueError for an empty text and
        TypeError for what is not text.
        """
        if not isinstance(text, Iterable):
            raise TypeError(f"a sentence is a string or a list of words, got {text!r}")
        words = text.split() if isinstance(text, str) else list(text)
        self._check_known(words)
        return [self._ids[word] for word in words]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Turn ids back into words, up to the first <eos>, without <bos> and <pad>.

        Returns a list of strings. Raises ValueError for an id outside the vocabulary.
        """
        words = []
        for i in map(int, ids):
            if i == EOS:
                break
            self._check_id(i)
            if i not in (PAD, BOS):
                words.append(self.tokens[i])
        return words

    def _check_words(self) -> None:
        """Refuse what is no word, what is there twice, and specials."""
        if strange := [word for word in self.words if not isinstance(word, str)]:
            raise TypeError(f"words are strings, got {strange[0]!r:.60}")
        counts = Counter(SPECIALS + self.words)
        if twice := sorted(token for token, count in counts.items() if count > 1):
            raise ValueError(f"words must be distinct, found twice: {', '.join(twice)}")

    def _check_known(self, words: list[str]) -> None:
        """Refuse a sentence without words, and words that the vocabulary lacks."""
        if not words:
            raise ValueError("the sentence is empty: give at least one word")
        for position, word in enumerate(words):
            if not isinstance(word, str):
                raise TypeError(f"words are strings, got {word!r} at position {position}")
            if word not in self._ids or word in SPECIALS:
                raise UnknownWordError(word, position, len(self.words), near(word, self.words))

    def _check_id(self, i: int) -> None:
        if not 0 <= i < len(self.tokens):
            raise ValueError(f"id {i} is outside the vocabulary of {len(self)}")


def near(word: str, words: Sequence[str]) -> list[str]:
    """Find what may have been meant by a word that is not among these."""
    word = word.lower().translate(STRAIGHT)
    known = set(words)
    core = re.sub(r"^\W+|\W+$", "", word)
    if word in known or not core or word in SPECIALS:
        return [word] * (word in known)
    marks = [mark for mark in word[word.index(core) + len(core) :] if mark in known]
    parts = [core] if core in known else written_out(core)
    if known.issuperset(parts):
        return [" ".join([*parts, *marks])]  # punctuation is a word of its own
    return difflib.get_close_matches(core, words, n=2, cutoff=0.7)


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
    """Fill up rows of ids with <pad> on the right: a tensor (B, longest) of whole numbers.

    Raises ValueError for an empty batch.
    """
    if not rows:
        raise ValueError("the batch is empty: give at least one sentence")
    longest = max(map(len, rows))
    padded = [list(row) + [PAD] * (longest - len(row)) for row in rows]
    return torch.tensor(padded, dtype=torch.long, device=device)
