"""What an exercise is made of, and how its file is read."""

import inspect
from dataclasses import replace

import pytest

from tinytf_course import grading
from tinytf_course.exercise_source import stub
from tinytf_course.grading import Exercise, exercises, find, hint, mistakes


def split(x, num_heads):
    """One line.

    And more.
    """
    width = x.size(-1) // num_heads
    return x.unflatten(-1, (num_heads, width))


STUB = stub(inspect.getsource(split))
MADE = Exercise("99.1", "splitting", 2, 5, "Write it.", ("Think.", "More."), split, STUB, ())


def test_what_a_chapter_prints():
    assert (MADE.name, MADE.stars, MADE.points, MADE.solution) == ("split", "★★☆", 4, "")
    text = MADE.markdown()
    assert text.startswith("### Exercise 99.1 · splitting\n\n★★☆ · about 5 minutes\n\nWrite it.\n")
    assert "<summary>Second hint</summary>\n\nMore." in text
    assert "Solution" not in text
    assert (
        "return x.unflatten(-1, (num_heads, width))\n```"
        in replace(MADE, reference=split).markdown()
    )


def test_one_file_is_read_for_one_exercise():
    for id in ("05.1", "10.1"):
        assert find(id) is exercises()[id]
    with pytest.raises(KeyError, match=r"there are 00\.1, "):
        find("99.9")
    assert list(exercises()) == sorted(exercises())


def test_a_file_that_begins_otherwise_is_named(tmp_path, monkeypatch):
    (tmp_path / "ch99").mkdir()
    (tmp_path / "ch99" / "split.py").write_text('"""99.1 splitting"""\n')
    monkeypatch.setattr(grading, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"split\.py begins with"):
        grading.files.__wrapped__()


def test_a_mistake_edits_the_reference():
    (two, body) = mistakes(
        """
two heads, always
    x.size(-1) // num_heads => x.size(-1) // 2
    (num_heads, => (2,
    says: a
    Because
    of this.
all at once
    … =>
        if num_heads:
            return x
    says: b
    Because.
""",
        split,
    )
    assert two.edits == (("x.size(-1) // num_heads", "x.size(-1) // 2"), ("(num_heads,", "(2,"))
    assert (two.message, two.why) == ("a", "Because of this.")
    assert body.answer(3, 1) == 3
    assert body.answer(3, 0) is None
    x = grading.importlib.import_module("torch").ones(1, 6)
    assert two.answer(x, 3).shape == (1, 2, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name\n    a => b\n    says: it\n", "'name' needs edits"),
        ("name\n    says: it\n    Why.\n", "'name' needs edits"),
        ("name\n    a => b\n    Why.\n", "'name' needs edits"),
    ],
)
def test_a_mistake_that_is_not_whole_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        tuple(mistakes(text, split))


def test_a_test_carries_its_hint():
    @hint("Look.")
    def test(answer):
        """it holds"""

    assert test.hint == "Look."
