"""The pages of the teacher's edition: facts are put in, and the sheet keeps the key."""

from functools import cache
from pathlib import Path

from tinytf_course.notebooks import notebooks
from tinytf_course.release.facts import facts
from tinytf_course.release.teachers_page import index, page, sheet
from tinytf_course.release.teaching import NAMED, read, written

FOLDER = Path(__file__).parents[3] / "notebooks"


@cache
def model():
    found = {notebook.chapter: notebook for notebook in notebooks(FOLDER)}
    return read(written()["05"]), facts(found["05"])


def test_a_page_has_what_the_chapter_says():
    notes, its = model()
    shown = page(notes, its)
    assert shown.startswith(f"# 05 {its.chapter.title}")
    assert (
        f"For a reader alone: {its.chapter.core} minutes of core, {its.chapter.beside} of" in shown
    )
    for id, exercise in its.exercises.items():
        assert f"| {id} | {exercise.title} | {exercise.stars} |" in shown
    for prediction in its.predictions.values():
        assert f"{prediction.question} | {' / '.join(prediction.options)}" in shown
    strange = its._replace(claims=its.claims | {"05-15": "`<a>` <eos> 1 < 2"})
    assert "`<a>` \\<eos> 1 < 2" in page(notes, strange)
    assert f"* `05-15` {its.claims['05-15']}" in shown
    step = notes.plans[0].steps[0]
    section = "1 Averaging all words: an attempt that fails"
    assert f"| {step.minutes} | {section} | `without-attention` to `claim-05-1` |" in shown
    assert not NAMED.search(shown)


def test_the_key_is_on_the_page_and_not_on_the_sheet():
    notes, its = model()
    shown, handed_out = page(notes, its), sheet(notes, its)
    for number, item in enumerate(notes.quiz, 1):
        assert f"**{number}.** " in handed_out
        assert f"**{number}. {item.key}**" in shown if item.key else item.answer[:30] in shown
        assert item.answer[:30] not in handed_out or not item.answer
        for text, reason in item.options:
            assert text in handed_out
            assert not reason or reason not in handed_out
    assert "Key" not in handed_out


def test_the_index_leads_to_every_page():
    shown = index([(model()[1], "05_x.md")], "## Syllabi\n")
    assert "[05 Scaled dot-product attention](05_x.md)" in shown
    assert "(quiz_05_x.md)" in shown
    assert "## Syllabi" in shown
