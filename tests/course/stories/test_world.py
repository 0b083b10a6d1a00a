"""Texts of the storybook's own sentences, most of them an attacker's, and the rules they break."""

import csv
from pathlib import Path

import pytest

from tinytf_course.stories import check
from tinytf_course.stories.world import RULES

with Path(__file__).with_name("texts.tsv").open(encoding="utf-8", newline="") as file:
    TEXTS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("case", TEXTS, ids=[case["what"] for case in TEXTS])
def test_sense_passes_and_nonsense_is_found(case):
    verdict = check(case["text"])
    assert (verdict.rule or "sense") == case["rule"], verdict


def test_most_rules_are_broken_by_some_text_and_some_texts_make_sense():
    broken = {case["rule"] for case in TEXTS}
    assert broken >= RULES.keys() - {"grammar", "known", "pronoun"} | {"sense"}


def test_a_text_that_is_no_story_is_told_at_once():
    begun = TEXTS[0]["text"].split(". ")[0] + ". "
    for text in (begun + "“I will help you look,” said Nora. " * 400, "a" * 10**6, ". " * 10**5):
        assert check(text).rule in ("ending", "grammar", "cause")
    assert "60 sentences or 20,000 letters" in check("a" * 10**6).why
