"""Syllabi: hours from the outline, and weeks that are what they say."""

import pytest

from tinytf_course.outline import CHAPTERS, in_hours
from tinytf_course.release.syllabus import rendered, weeks
from tinytf_course.release.teaching import FOLDER, NotesError

BY_NUMBER = {chapter.number: chapter for chapter in CHAPTERS}
SYLLABI = (FOLDER / "syllabi.md").read_text(encoding="utf-8")


def test_hours_come_from_the_outline():
    text = (
        "Two:\n\n{2 weeks}\n* 05, 10/2 · masks,\n  drawn · 05.3\n* 24 · theirs · 24.1\n\n"
        "{core} and {electives}"
    )
    first, second = weeks(text)[2]
    five, ten = BY_NUMBER["05"], BY_NUMBER["10"]
    assert first.minutes == five.core + ten.core / 2
    assert first.beside == five.beside + ten.beside / 2
    assert (second.minutes, second.beside) == (0, BY_NUMBER["24"].beside)
    assert first.in_class == "masks, drawn"
    shown = rendered(text)
    hours = f"{first.minutes / 60:.1f} | {first.beside / 60:.1f} |"
    assert f"| 1 | 05, 10 (part) | masks, drawn | 05.3 | {hours}" in shown
    whole = f"{first.minutes / 60:.1f} | {(first.beside + second.beside) / 60:.1f} |"
    assert f"all together, hours | {whole}" in shown
    core, beside = in_hours()
    assert f"\n\n{core} and {beside}" in shown


@pytest.mark.parametrize("line", ["* 05 · class", "* 5 · class · home", "* 99 · class · home"])
def test_lines_that_are_no_week(line):
    with pytest.raises(NotesError):
        weeks(f"{{1 weeks}}\n{line}\n")


def test_a_table_has_as_many_lines_as_weeks():
    with pytest.raises(NotesError, match="2 weeks have 1 lines"):
        weeks("{2 weeks}\n* 05 · class · home\n")


def test_ours_are_of_six_and_twelve_weeks():
    found = weeks(SYLLABI)
    assert set(found) == {6, 12}
    for number, course in found.items():
        order = [chapter for week in course for chapter in week.chapters]
        assert order == sorted(order)
        shares = {
            chapter: sum(week.chapters.get(chapter, 0) for week in course) for chapter in order
        }
        assert all(share <= 1 for share in shares.values()), shares
        longest, shortest = (most(week.minutes for week in course) for most in (max, min))
        assert longest <= 2 * shortest, (number, [week.minutes for week in course])


def test_the_long_one_reads_every_chapter():
    read = {chapter for week in weeks(SYLLABI)[12] for chapter in week.chapters}
    assert read == set(BY_NUMBER)
