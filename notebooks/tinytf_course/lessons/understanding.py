"""Small real tasks for an encoder: find the date, find the answer, say the section of the manual.

The first two are about phrasebook sentences, whose tags and answers the grammar knows; the third
is about sentences of the Python manual, and the documents they come from.
"""

import random
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice
from typing import NamedTuple, TypeVar

from tinytf.data.corpus import corpus
from tinytf.data.manual import manual_topics
from tinytf_course.phrasebook import Pair, Phrasebook
from tinytf_course.phrasebook.lexicon import (
    ADJECTIVES,
    KIN,
    MASSES,
    MONTHS,
    NOUNS,
    POSSESSIVES,
    YEARS,
)

__all__ = [
    "SECTIONS",
    "TAGS",
    "Question",
    "SectionSentence",
    "Tagged",
    "date_sentences",
    "date_tags",
    "lives",
    "manual_documents",
    "manual_words",
    "questions",
    "section_sentences",
    "sentences_of",
    "shuffled",
]

TAGS = ("O", "B", "I")  # outside, beginning, inside: how names and dates are marked in text
SECTIONS = (
    "compound",
    "debugger",
    "formatstrings",
    "specialnames",
    "string-methods",
    "types",
)
DETERMINERS = frozenset(("a", "an", "the", "this", "that", "some", *POSSESSIVES))
TEST_SHARE = 25  # per cent of the manual's paragraphs
Example = TypeVar("Example")


class Tagged(NamedTuple):
    """A sentence, and which of its words are a date."""

    words: tuple[str, ...]
    tags: tuple[int, ...]  # places in TAGS


class Question(NamedTuple):
    """A question, a text that answers it, and where."""

    question: tuple[str, ...]
    text: tuple[str, ...]
    start: int  # the answer's first word in text
    end: int  # its last word
    kind: str  # "it", what `it` stands for; or "subject"


class SectionSentence(NamedTuple):
    """A sentence of the manual, and its section's place in SECTIONS."""

    words: tuple[str, ...]
    section: int


def date_tags(pair: Pair) -> tuple[int, ...]:
    """Tag each English word: B for a date's first word, I for its others, O for the rest.

    A number is part of a date if its Chinese side says day or year (日, 年), so `2` is one in
    "2 march" and not in "2 o'clock".
    """
    inside = [False] * len(pair.source)
    for i, j in pair.alignment:
        word, says = pair.source[i], pair.target[j]
        inside[i] |= (word.isdigit() and says in "日年") or (word in MONTHS and says == "月")
    tags = [int(here) for here in inside]
    for i in range(1, len(tags)):
        if inside[i] and inside[i - 1]:
            tags[i] = 2
    return tuple(tags)


def date_sentences(count: int, split: str = "train", seed: int = 0) -> list[Tagged]:
    """Draw different sentences about times and dates, half of them with a date to find.

    Raises ValueError for a split the phrasebook does not have, or a negative count.
    """
    share = {True: (count + 1) // 2, False: count // 2}

    def tagged(pair: Pair) -> Iterable[Tagged]:
        found = Tagged(pair.source, date_tags(pair))
        if share[any(found.tags)] > 0:
            share[any(found.tags)] -= 1
            yield found

    return _different(tagged, count, split, seed, ("date", "time"))


def questions(count: int, split: str = "train", seed: int = 0) -> list[Question]:
    """Draw different questions about `because` sentences: two thirds ask what `it` stands for.

    "what was too wide ?" is answered by the noun phrase that `it` replaces, subject or object;
    "what did not cross ?" by the subject. Raises ValueError as `date_sentences` does.
    """

    def asked(pair: Pair) -> Iterable[Question]:
        yield _question(pair, zlib.crc32(pair.english.encode()) // 100 % 3 == 0)

    return _different(asked, count, split, seed, ("because",))


def _question(pair: Pair, about_subject: bool) -> Question:
    words = pair.source
    it, noun, _ = pair.antecedent
    subject, thing = (i for i, w in enumerate(words) if w in NOUNS or w in MASSES)
    if not about_subject:
        return Question(("what", *words[it + 1 :], "?"), words, _first(words, noun), noun, "it")
    verb = words[subject + 1 : _first(words, thing)]
    return Question(("what", *verb, "?"), words, _first(words, subject), subject, "subject")


def _first(words: tuple[str, ...], noun: int) -> int:
    """Where the noun phrase that ends in this noun begins."""
    start = noun
    while start and words[start] not in DETERMINERS and words[start - 1] in _before_nouns():
        start -= 1
    return start


@cache
def _before_nouns() -> frozenset[str]:
    return DETERMINERS | frozenset(ADJECTIVES)


def _different(
    make: Callable[[Pair], Iterable[Example]],
    count: int,
    split: str,
    seed: int,
    kinds: tuple[str, ...],
) -> list[Example]:
    """Make `count` examples of the phrasebook's pairs of some kinds, each sentence once."""
    if count < 0:
        raise ValueError(f"count={count} is negative; ask for 0 examples or more")
    seen = set()

    def fresh() -> Iterable[Example]:
        for pair in Phrasebook().pairs(split, seed, kinds):
            if pair.english not in seen:
                for example in make(pair):
                    seen.add(pair.english)
                    yield example

    return list(islice(fresh(), count))


def lives(count: int, seed: int = 0) -> list[list[tuple[str, ...]]]:
    """Write documents of four short sentences about one relative, each in a later year.

    "my mother arrived in 2004", "my mother danced in 2011": what joins a document is known, as it
    is of no text found in the world, namely the person; and so is what orders it, the year. Raises
    ValueError for a negative count.
    """
    if count < 0:
        raise ValueError(f"count={count} is negative; ask for 0 documents or more")
    draw = random.Random(seed).random
    documents = []
    for _ in range(count):
        person = KIN[int(draw() * len(KIN))]
        years = sorted(sorted(YEARS, key=lambda _: draw())[:4])
        documents.append(
            [("my", person, _DID[int(draw() * len(_DID))], "in", str(year)) for year in years]
        )
    return documents


_DID = ("arrived", "came", "slept", "cried", "ran", "danced", "swam", "laughed", "worked", "sang")


def sentences_of(text: str, shortest: int = 5, longest: int = 40) -> list[tuple[str, ...]]:
    """Cut a text into sentences of lower-case words, in order; code and tables are left out.

    A sentence is a part of a paragraph that ends in a full stop and has `shortest` to `longest`
    words. Only letters count; punctuation and numbers are dropped.
    """
    found = []
    for paragraph in text.split("\n\n"):
        prose = " ".join(paragraph.split())
        if ">>>" in prose or "::=" in prose:
            continue
        for part in re.split(r"(?<=[.!?])\s+(?=[A-Z\"*(“])", prose):
            words = tuple(re.findall(r"[a-z]+", part.lower()))
            if part.endswith((".", "!", "?")) and shortest <= len(words) <= longest:
                found.append(words)
    return found


def _is_test(paragraph: str) -> bool:
    """A paragraph is on the same side wherever it is repeated."""
    return zlib.crc32(" ".join(paragraph.split()).encode()) % 100 < TEST_SHARE


def section_sentences(split: str = "train") -> list[SectionSentence]:
    """Give the different sentences of six long sections of the manual, in their order.

    Whole paragraphs are held out for "test". A sentence that stands in two of the sections, or on
    both sides, is left out. Raises ValueError for another split.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split={split!r} is not one of train, test")
    topics = manual_topics()
    where: dict[tuple[str, ...], set[tuple[int, bool]]] = {}
    for number, name in enumerate(SECTIONS):
        for paragraph in topics[name].split("\n\n"):
            for words in sentences_of(paragraph):
                where.setdefault(words, set()).add((number, _is_test(paragraph)))
    found = []
    for words, places in where.items():
        (number, test), *others = places
        if not others and test == (split == "test"):
            found.append(SectionSentence(words, number))
    return found


@cache
def manual_documents(split: str = "train") -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Give documents as sentences in order: the manual's topics and the library's docstrings.

    "test" gives the manual's topics that `corpus` holds out; no paragraph of theirs is in "train",
    and none that holds a test sentence of `section_sentences`. Documents of one sentence are left
    out. Raises ValueError for another split.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split={split!r} is not one of train, test")
    texts = corpus(docstrings=split == "train")  # none of the library's is held out
    if split == "test":
        documents = [sentences_of(text) for text in texts.validation]
    else:
        held_out = {example.words for example in section_sentences("test")}
        seen = held_out | {words for text in texts.validation for words in sentences_of(text)}
        documents = [[s for s in sentences_of(text) if s not in seen] for text in texts.train]
    return tuple(tuple(document) for document in documents if len(document) > 1)


def manual_words(size: int = 2000) -> list[str]:
    """The `size` words that are most frequent in the training documents, the rarest last."""
    counts = Counter(w for document in manual_documents() for s in document for w in s)
    return [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:size]]


def shuffled(examples: Iterable[Example], seed: int) -> list[Example]:
    """The examples in an order that the seed alone decides, on every machine."""
    draw = random.Random(seed).random
    return sorted(examples, key=lambda _: draw())
