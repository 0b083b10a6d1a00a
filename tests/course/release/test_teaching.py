"""The form of teacher's notes, and every chapter's notes against its chapter."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tinytf_course.notebooks import notebooks
from tinytf_course.outline import CHAPTERS
from tinytf_course.release.facts import facts, problems
from tinytf_course.release.teachers_page import page
from tinytf_course.release.teaching import NAMED, NotesError, parse, read, written

FOLDER = Path(__file__).parents[3] / "notebooks"
WRITTEN = written()
MODEL = WRITTEN["05"].read_text(encoding="utf-8")


@cache
def chapter(number):
    (notebook,) = [each for each in notebooks(FOLDER) if each.chapter == number]
    return facts(notebook)


def test_each_chapter_has_notes():
    assert set(WRITTEN) == {each.number for each in CHAPTERS}


@pytest.mark.parametrize("number", WRITTEN)
def test_notes_name_what_their_chapter_has(number):
    notes = read(WRITTEN[number])
    assert notes.chapter == number
    assert problems(notes, chapter(number)) == []
    assert not NAMED.search(page(notes, chapter(number)))


@pytest.mark.parametrize("number", WRITTEN)
def test_a_plan_says_where_each_exercise_is_done(number):
    exercises = chapter(number).exercises
    for plan in read(WRITTEN[number]).plans:
        text = plan.home + "".join(step.cells + step.text for step in plan.steps)
        named = {id: (f"{{{id}}}", f"#exercise-{id.replace('.', '-')}") for id in exercises}
        forgotten = [id for id, forms in named.items() if not any(form in text for form in forms)]
        assert not forgotten, f"{plan.minutes} minutes"


@pytest.mark.parametrize("number", WRITTEN)
def test_the_key_is_not_always_in_one_place(number):
    keys = [item.key for item in read(WRITTEN[number]).quiz if item.key]
    assert max(Counter(keys).values()) <= len(keys) / 2, keys


def test_no_letter_has_most_of_the_keys():
    keys = Counter(item.key for path in WRITTEN.values() for item in read(path).quiz if item.key)
    assert max(keys.values()) <= 0.4 * keys.total(), keys


def test_the_right_option_does_not_stand_out_by_its_length():
    asked = [item for path in WRITTEN.values() for item in read(path).quiz if item.options]
    sizes = [sorted((len(text), not reason) for text, reason in item.options) for item in asked]
    for end, what in ((-1, "longest"), (0, "shortest")):
        share = sum(right for *_, right in (size[end] for size in sizes)) / len(sizes)
        assert share < 0.35, f"the right option is the {what} in {share:.0%}"


@pytest.mark.parametrize("number", WRITTEN)
def test_questions_to_discuss_cannot_be_answered_with_yes(number):
    asked = [question.text for question in read(WRITTEN[number]).discuss]
    first = {text.split(". ")[-1].split()[0].lower() for text in asked if text.count("?") == 1}
    assert first.isdisjoint({"is", "are", "does", "do", "can", "did", "was", "has", "would"}), first


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("# 05\n", "# five\n", "not # NN"),
        ("## Aims", "## Goals", "the sections are"),
        ("* 5 · {#without", "* 6 · {#without", "the plan for 45 minutes adds up to 46"),
        ("* 5 · {#without", "* five · {#without", "MINUTES · CELLS"),
        ("\nHome: ", "\nAt home: ", "not Home|no line that begins"),
        ("+ 1/64\n", "- 1/64 ← a guess\n", "0 right of 4"),
        ("+ 1/64\n", "- 1/64\n", "does not say ← which"),
        ("\nAnswer: Run", "\nRun", "no option and no answer"),
        ("\nAsk: ", "\nThey: ", "begins with 'Ask: '"),
        ("See: {05-15} {05-17} {#claim-05-22} {05-23}", "See: below", "nothing in braces"),
        ("{05-15}", "{05 15}", "is no claim"),
        ("### The scale is cosmetic", "### -1e9 is minus infinity", "stands twice"),
    ],
)
def test_what_has_not_the_form_is_named(old, new, says):
    assert old in MODEL
    with pytest.raises(NotesError, match=says):
        parse(MODEL.replace(old, new, 1))


def test_names_of_nothing_and_walks_back_are_found():
    its = chapter("05")
    assert problems(parse(MODEL.replace("{05-15}", "{05-99}")), its) == [
        "05-99 is nothing in this chapter"
    ]
    assert problems(parse(MODEL.replace("{05.2}", "{05.9}")), its) == [
        "05.9 is nothing in this chapter"
    ]
    back = MODEL.replace("{#by-hand} to {#claim-05-4}", "{#claim-05-4} to {#by-hand}", 1)
    assert "the plan for 45 minutes walks back" in problems(parse(back), its)[0]


def test_a_file_is_named_in_what_is_wrong_with_it(tmp_path):
    (tmp_path / "ch05.md").write_text("# 05\n")
    with pytest.raises(NotesError, match=r"^ch05\.md: the sections are \[\]"):
        read(tmp_path / "ch05.md")
