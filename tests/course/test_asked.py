"""An exercise's file is where its cells come from."""

from pathlib import Path

import pytest

from tinytf_course import asked, build
from tinytf_course.exercise_source import stub
from tinytf_course.grading import Exercise, find
from tinytf_course.notebooks import notebooks

NOTEBOOKS = notebooks(Path(__file__).parents[2] / "notebooks")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.path.stem)
def test_a_chapter_is_saved_as_its_exercises_have_it(notebook):
    written = build.dump(build.load(notebook.path))
    assert written == notebook.path.read_text(encoding="utf-8"), (
        f"python -m tinytf_course build {notebook.chapter}"
    )


def cells(*texts):
    kinds = [("code" if "check(" in text else "markdown", text) for text in texts]
    return [{"cell_type": kind, "source": text} for kind, text in kinds]


def test_statement_and_stub_come_from_the_file():
    of_05 = cells(
        "### Exercise 05.2 · old\n\nOld text.",
        'x = 1\ndef my_decoder_mask(old):\n    return old\n\n\ncheck("05.2", my_decoder_mask)',
    )
    asked.with_exercises(of_05, "99")
    exercise = find("05.2")
    assert of_05[0]["source"] == exercise.markdown().rstrip("\n")
    answer = f'x = 1\n{exercise.stub}\n\ncheck("05.2", my_decoder_mask)'
    assert of_05[1]["source"] == answer


def test_a_new_exercise_comes_at_the_end_of_the_core(monkeypatch):
    def my_new(x):
        """Twice x."""
        return 2 * x

    source = 'def my_new(x):\n    """Twice x."""\n    return 2 * x\n'
    made = Exercise("99.1", "new", 1, 5, "Write it.", ("Add.",), my_new, stub(source), ())
    monkeypatch.setattr(asked, "exercises", lambda: {"99.1": made})
    of_99 = cells("# 99 New", "## 1 Text", "## What you built", "## Further")
    asked.with_exercises(of_99, "99")
    assert [cell["source"].split("\n")[0] for cell in of_99] == [
        "# 99 New", "## 1 Text", "### Exercise 99.1 · new", "def my_new(x):", "## What you built",
        "## Further",
    ]  # fmt: skip
    assert of_99[3]["id"] == "exercise-99-1-answer"
    assert of_99[3]["source"].endswith('raise NotImplementedError\n\n\ncheck("99.1", my_new)')


def test_a_heading_without_a_file_is_named():
    with pytest.raises(KeyError, match=r"no exercise '05\.9'"):
        asked.with_exercises(cells("### Exercise 05.9 · none"), "05")
