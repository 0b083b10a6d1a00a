"""The odds of words at a blank, from the grammar."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from tinytf_course.phrasebook import synchronous
from tinytf_course.studies import encoder as lab
from tinytf_course.studies.blanks import Blanks

TEXT = "the animal did not cross the street because it was too tired"


SENTENCE = TEXT.split()


@pytest.fixture(scope="module")
def odds(book):
    return Blanks(book)


def test_odds_from_the_left_are_those_of_the_phrasebook(book, odds):
    """Against what it draws: the first word, and the second after `the`."""
    pairs = book.sample(8000, "train", seed=5)
    for head in ((), ("the",)):
        after = [p.source[len(head)] for p in pairs if p.source[: len(head)] == head]
        said = odds.odds([*head, "the"], len(head), both=False)
        assert said.sum() == pytest.approx(1)
        for word, count in Counter(after).most_common(15):
            p = said[odds.column[word]]
            error = 4 * (p * (1 - p) / len(after)) ** 0.5 + 0.02 * p
            assert count / len(after) == pytest.approx(p, abs=error), (head, word)


def test_odds_from_both_sides_are_those_from_the_left_multiplied(book):
    """Chain rule: these sentences end after the adjective, so left odds multiply to the joint."""
    because = Blanks(book, ["because"])

    def joint(words):
        steps = [because.odds(words, t, both=False)[because.column[w]] for t, w in enumerate(words)]
        return np.prod(steps)

    for blank, others in ((1, ["cat", "sheep"]), (6, ["river", "bridge"]), (11, ["wide", "slow"])):
        both = because.odds(SENTENCE, blank)
        for word in others:
            other = [*SENTENCE[:blank], word, *SENTENCE[blank + 1 :]]
            ratio = both[because.column[word]] / both[because.column[SENTENCE[blank]]]
            assert ratio == pytest.approx(joint(other) / joint(SENTENCE), rel=1e-9)


def small_grammar(monkeypatch, largest):
    """A grammar with a reserved phrase and a reserved rule of large weight, and its 7 sentences.

    largest: the number of phrases up to which a symbol is written out in full.
    """
    monkeypatch.setattr(synchronous, "FLAT", largest)
    grammar = synchronous.Grammar()
    grammar.rule("noun", "cat", "mao<cat>", weight=3)
    grammar.rule("noun", "dog", "gou<dog>", weight=1)
    grammar.rule("thing", "black {n=noun}", "hei<black> {n}", weight=2)
    grammar.rule("thing", "black egg", "hei<black> dan<egg>", weight=5, reserved=True)
    grammar.rule("thing", "egg", "dan<egg>", weight=3)
    grammar.rule("because", "the {n=noun} saw {t=thing}", "{n} kan<saw> {t}", weight=1)
    grammar.rule("because", "the {t=thing} sat", "{t} zuo<sat>", weight=1)
    grammar.close()
    book = SimpleNamespace(source_words=tuple(sorted(grammar.words()[0])), grammar=grammar)
    things = {"black cat": 0.15, "black dog": 0.05, "egg": 0.3}  # of 1; 0.5 is reserved
    joint = {f"the {t} sat": 0.5 * p for t, p in things.items()}
    for noun, share in (("cat", 0.75), ("dog", 0.25)):
        joint |= {f"the {noun} saw {t}": 0.5 * share * p for t, p in things.items()}
    return book, {tuple(text.split()): p for text, p in joint.items()}


@pytest.mark.parametrize("largest", [1, 2, 4, 1500])
def test_odds_are_those_of_a_grammar_written_out_by_hand(monkeypatch, largest):
    """All sentences and their odds listed, the reserved ones left out; then only sums."""
    small, joint = small_grammar(monkeypatch, largest)
    odds = Blanks(small, ["because"])
    for sentence in joint:
        for blank in range(len(sentence)):
            for both in (True, False):
                expected = np.zeros(len(odds.words))
                for other, p in joint.items():
                    fits = other[:blank] == sentence[:blank] and len(other) > blank
                    if both:
                        fits = fits and other[blank + 1 :] == sentence[blank + 1 :]
                    if fits:
                        expected[odds.column[other[blank]]] += p
                found = odds.odds(sentence, blank, both)
                np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-12)


def test_bad_blanks(book, odds):
    with pytest.raises(ValueError, match="blank=12 is not among"):
        odds.odds(SENTENCE, 12)
    with pytest.raises(ValueError, match="no sentence 'because ___ cat'"):
        odds.odds(["because", "the", "cat"], 1)
    few = Blanks(book, ["because"])
    with pytest.raises(ValueError, match="no sentence"):
        few.odds(["two", "black", "cats"], 1)


def test_blanks_name_the_parts_of_a_sentence(book):
    pair = book.translate(" ".join(SENTENCE))
    groups = {b.word: b.group for b in lab.blanks_of(pair)}
    assert groups["animal"] == "first noun"
    assert groups["cross"] == "verb"
    assert groups["street"] == "second noun"
    assert groups["tired"] == "adjective"
    assert groups["it"] == "the others"
    for pair in lab.sentences(book, 200):
        assert Counter(b.group for b in lab.blanks_of(pair)) >= Counter(lab.GROUPS[:4])
