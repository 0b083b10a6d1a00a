"""The grammar: one English side has one reading, and is told before the rest is written."""

import random

import pytest

from tinytf_course.phrasebook.synchronous import Grammar


def animals(*more):
    grammar = Grammar()
    grammar.rule("noun", "cat", "猫<cat>", weight=2.0)
    grammar.rule("noun", "dog", "狗<dog>")
    for rule in more:
        grammar.rule(*rule)
    return grammar


def test_one_english_side_with_two_readings_is_refused():
    twice = animals(("both", "the {a=noun}", "{a}"), ("both", "the cat", "猫咪<cat>"))
    with pytest.raises(ValueError, match="both: two readings of 'the cat'"):
        twice.close()


def test_what_two_rules_write_alike_is_one_phrase_with_both_their_chances():
    alike = animals(("both", "the {a=noun}", "{a}"), ("both", "the cat", "猫<cat>"))
    alike.close()
    assert [phrase.source for phrase in alike.flat["both"]] == [("the", "cat"), ("the", "dog")]
    assert alike.chances("both") == pytest.approx([2 / 3 * 1 / 2 + 1 / 2, 1 / 3 * 1 / 2])


def test_a_choice_tells_the_english_of_the_phrase_that_it_writes():
    grammar = animals(("clause", "{a=noun} saw {b=noun}", "{b} 被<saw> {a} 看见<saw>"))
    grammar.close()
    grammar.flat.pop("clause")  # expanded rule by rule, as a symbol with many phrases is
    grammar.odds["clause"] = [1.0]
    draws = random.Random(0)
    for _ in range(20):
        choice = grammar.choose("clause", draws.random)
        assert choice.source() == choice.phrase().source
        assert len(choice.phrase().links) == 4
