"""The phrasebook: English sentences, their Chinese, and the gold alignment between them.

A synchronous grammar (`synchronous.py`) of ordinary sentences writes both sides at once, so which
word comes from which is known and not guessed. Words are in `lexicon.py`, their pronunciation in
`pinyin.py`; the other files hold the rules. One English sentence has exactly one Chinese side, so
exact match is a fair score.

What is linked to what:

    the, articles dropped in Chinese    nothing
    a, two, this                        the numeral or 这, and the measure word: a -> 一 只
    some, many, these                   一些, 很多, 这些
    my, 's                              my -> 我 的 (我 alone before close family); 's -> 的
    big, beautiful                      the adjective with its 的: 漂亮 的
    past verb                           the verb and its 了: ate -> 吃 了
    is, was                             很, 是 or 正在; nothing beside 非常, 太 or 不
    too                                 太 and 了
    on, in, under                       both halves: on -> 在 ... 上
    that, who (relative)                的
    did not                             both words -> 没有; does not -> 不
    did, do, is ... ? (question)        吗, and 了 in the past; ? -> ？
    3 march 2021                        3 -> 3 日, march -> 3 月, 2021 -> 2021 年
    with; than; as ... as               和 ... 一起; 比; 一样 ... 和
    a, any after not and in questions   nothing: i did not buy a book -> 我 没有 买 书
    of, to, and in, on, at of time      nothing
    it                                  the repeated noun, never its antecedent

The splits: `compositional` holds every sentence with one of the word pairs `RESERVED_ADJECTIVES`,
`RESERVED_OBJECTS` or `RESERVED_NUMBERS` of `lexicon.py`. Of the rest, a checksum of the English
puts 4 % in `validation`, 4 % in `test`, and 92 % in `train`.
"""

import random
import zlib
from bisect import bisect
from collections.abc import Collection, Iterator, Sequence
from functools import cache, cached_property
from itertools import accumulate, islice
from typing import NamedTuple

from tinytf_course.phrasebook import (
    adverbials,
    because,
    clauses,
    describing,
    nouns,
    questions,
    relatives,
    sentences,
)
from tinytf_course.phrasebook.adverbials import digits_that_count
from tinytf_course.phrasebook.lexicon import FIGURES
from tinytf_course.phrasebook.pinyin import PINYIN, pinyin
from tinytf_course.phrasebook.synchronous import Grammar, Phrase

__all__ = [
    "FIGURES",
    "KINDS",
    "KIND_WEIGHTS",
    "SPLITS",
    "Pair",
    "Phrasebook",
    "digits_that_count",
    "pinyin",
]

SPLITS = ("train", "validation", "test", "compositional")
MAX_TOKENS = 24
_HELD_OUT = 4  # per cent of sentences in validation, and as many in test

KIND_WEIGHTS = {  # how often each kind is drawn
    "phrase": 3, "simple": 7, "place": 9, "adjective": 4, "comparison": 5, "time": 14, "date": 9,
    "relative": 10, "negation": 6, "yes-no": 6, "wh": 6, "because": 12, "modal": 5, "possession": 5,
    "giving": 6,
}  # fmt: skip
KINDS = tuple(KIND_WEIGHTS)


class Pair(NamedTuple):
    """A sentence in both languages. `alignment` holds sorted (source index, target index) links.

    `antecedent` is None, or (index of `it`, index in source of the noun it stands for, index in
    target of the noun said again in its place).
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    pinyin: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]
    kind: str
    antecedent: tuple[int, int, int] | None

    @property
    def english(self) -> str:
        """The source, spaced."""
        return " ".join(self.source)

    @property
    def chinese(self) -> str:
        """The target, spaced."""
        return " ".join(self.target)


@cache
def _grammar() -> Grammar:
    grammar = Grammar()
    for add in (
        nouns.add_kin, nouns.add_nouns, nouns.add_plain, nouns.add_masses, nouns.add_subjects,
        adverbials.add_times, adverbials.add_places, clauses.add_verb_phrases, clauses.add_simple,
        clauses.add_place, describing.add_adjective, describing.add_comparison, sentences.add_time,
        sentences.add_date, sentences.add_negation, sentences.add_modal, sentences.add_possession,
        sentences.add_giving, relatives.add_relative, sentences.add_phrase, questions.add_yes_no,
        questions.add_wh, because.add_because,
    ):  # fmt: skip
        add(grammar)
    grammar.close()
    return grammar


@cache
def _words() -> tuple[tuple[str, ...], tuple[str, ...]]:
    english, chinese = _grammar().words()
    return tuple(sorted(english)), tuple(sorted(chinese))


def _pair(phrase: Phrase, kind: str) -> Pair:
    target = phrase.target
    sounds = tuple(map(PINYIN.__getitem__, target))
    return Pair(phrase.source, target, sounds, tuple(sorted(phrase.links)), kind, phrase.antecedent)


def _split(phrase: Phrase) -> str:
    if phrase.reserved:
        return "compositional"
    return _bucket(phrase.source)


def _bucket(source: tuple[str, ...]) -> str:
    """The split of a sentence without a reserved pair."""
    bucket = zlib.crc32(" ".join(source).encode()) % 100
    if bucket >= 2 * _HELD_OUT:
        return "train"
    return "validation" if bucket < _HELD_OUT else "test"


def _known_split(split: str) -> None:
    if split not in SPLITS:
        raise ValueError(f"split={split!r} is not one of {', '.join(SPLITS)}")


class Phrasebook:
    """Sentence pairs without end. `seed` only chooses which are drawn; the splits are fixed."""

    def __init__(self, seed: int = 0):
        self.seed = seed

    @property
    def grammar(self) -> Grammar:
        """The rules that pairs are drawn and read by; the first use makes them, in .5 s."""
        return _grammar()

    def pairs(
        self, split: str, seed: int | None = None, kinds: Collection[str] = KINDS
    ) -> Iterator[Pair]:
        """Pairs of one split for ever, the same for the same seeds on every machine.

        With `kinds`, of those pairs the ones of these kinds. Raises ValueError for a split that is
        not in `SPLITS`, and where `kinds` has one that is not in `KINDS`, or none.
        """
        _known_split(split)
        unknown = sorted(set(kinds) - set(KINDS))
        if unknown or not kinds:
            raise ValueError(f"kinds={(*kinds,)}: choose some of {', '.join(KINDS)}")
        seeds = (self.seed, self.seed if seed is None else seed)
        return self._pairs(split, seeds, frozenset(kinds))

    def _pairs(self, split: str, seeds: tuple[int, int], kinds: frozenset[str]) -> Iterator[Pair]:
        # Only `random()` is used: it is the one method whose stream Python promises to keep.
        choose, uniform = self.grammar.choose, random.Random(_mix(split, *seeds)).random
        weights = list(accumulate(KIND_WEIGHTS.values()))
        total = weights[-1]
        while True:
            kind = KINDS[bisect(weights, uniform() * total)]
            choice = choose(kind, uniform)
            if kind not in kinds:
                continue
            if split in ("validation", "test") and _bucket(choice.source()) != split:
                continue  # before its Chinese is written: most draws end here
            phrase = choice.phrase()
            longest = max(len(phrase.source), len(phrase.target))
            if longest <= MAX_TOKENS and _split(phrase) == split:
                yield _pair(phrase, kind)

    def sample(self, n: int, split: str = "train", seed: int = 0) -> list[Pair]:
        """The first `n` of `pairs(split, seed)`. Raises ValueError for a negative `n`."""
        if n < 0:
            raise ValueError(f"n={n} is negative; ask for 0 pairs or more")
        return list(islice(self.pairs(split, seed), n))

    def translate(self, english: str) -> Pair:
        """The gold pair of any sentence the grammar covers.

        Raises ValueError naming the first word that can't be read.
        """
        return self._read(tuple(english.split()))[0]

    def split_of(self, source_tokens: Sequence[str]) -> str:
        """Which split an English sentence belongs to. Raises ValueError where `translate` would."""
        return _split(self._read(tuple(source_tokens))[1])

    def readings(self, words: Sequence[str]) -> list[Pair]:
        """Every pair whose English these words are; none where the grammar lacks the sentence.

        The sentence is parsed by the rules that sentences are drawn by, in about a millisecond.
        """
        if not 0 < len(words) <= MAX_TOKENS:
            return []
        readings, _ = self.grammar.read(KINDS, tuple(words))
        return [_pair(phrase, kind) for kind, phrase in readings]

    def _read(self, words: tuple[str, ...]) -> tuple[Pair, Phrase]:
        if not words:
            raise ValueError("the sentence is empty; write English words with spaces between them")
        for place, word in enumerate(words, 1):
            if word not in self._english:
                raise ValueError(f"{word!r} (word {place}) is not in the phrasebook's vocabulary")
        if len(words) > MAX_TOKENS:
            raise ValueError(f"the sentence has {len(words)} words; the limit is {MAX_TOKENS}")
        readings, furthest = self.grammar.read(KINDS, words)
        if readings:
            kind, phrase = readings[0]
            return _pair(phrase, kind), phrase
        if furthest == len(words):
            raise ValueError(f"the sentence breaks off after {words[-1]!r} (word {furthest})")
        raise ValueError(
            f"can't read {words[furthest]!r} (word {furthest + 1}) here: the grammar does not "
            f"continue {' '.join(words[:furthest])!r} with it"
        )

    @cached_property
    def _english(self) -> frozenset[str]:
        return frozenset(self.source_words)

    @property
    def source_words(self) -> tuple[str, ...]:
        """Every English word, sorted."""
        return _words()[0]

    @property
    def target_words(self) -> tuple[str, ...]:
        """Every Chinese word, sorted."""
        return _words()[1]

    def twins(self, n: int, seed: int = 0) -> list[tuple[Pair, Pair]]:
        """`n` pairs of `because` sentences that differ in one adjective and so in what `it` is.

        Raises ValueError for a negative `n`.
        """
        if n < 0:
            raise ValueError(f"n={n} is negative; ask for 0 twins or more")
        uniform = random.Random(_mix("twins", self.seed, seed)).random
        found: list[tuple[Pair, Pair]] = []
        while len(found) < n:
            one = _pair(self.grammar.draw("because", uniform), "because")
            others = []
            for word in because.CHINESE:
                readings, _ = self.grammar.read(["because"], (*one.source[:-1], word))
                others += [_pair(phrase, kind) for kind, phrase in readings]
            others = [pair for pair in others if pair.antecedent[1] != one.antecedent[1]]
            if others:
                found.append((one, others[int(uniform() * len(others))]))
        return found


def _mix(text: str, *numbers: int) -> int:
    """One seed from several, the same on every machine (`hash` of a string is not)."""
    return zlib.crc32("/".join([text, *map(str, numbers)]).encode())
