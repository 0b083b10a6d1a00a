"""nbgrader's whole cycle, one chapter, three students: right, wrong and hostile."""

import itertools
import json
import os
import sys
from pathlib import Path

import pytest

from tinytf_course import copies, worker
from tinytf_course.grading import exercises
from tinytf_course.notebooks import Notebook, source
from tinytf_course.release import assignments
from tinytf_course.release.assignments import nbgrader_course

CHAPTERS = ("11_feed_forward",)  # five exercises: one for each kind of hostile answer
CLASS = ("right", "wrong", "hostile")
HOSTILE = (
    "def {name}(*a, **k):\n    while True:\n        pass\n",
    "import sys\ndef {name}(*a, **k):\n    sys.exit(0)\n\nsys.exit(0)\n",
    "import tinytf_course.expect as x\ndef {name}(*a, **k):\n    return 1\n\n"
    "x.same = x.expect = x.agrees = lambda *a, **k: None\n",
    "def {name}(*a, **k):\n    for i in range(10**6):\n        print(i)\n",
    "def {name}(*a, **k):\n    return 1\n\nopen({outside!r}, 'w').write('x')\n",
)


def answer_cells(notebook):
    """(exercise, cell) of each cell for an answer."""
    for cell in notebook["cells"]:
        if cell["metadata"]["nbgrader"]["solution"]:
            id = cell["metadata"]["nbgrader"]["grade_id"].split("-")[1:3]
            yield exercises()[".".join(id)], cell


def hand_in(folder, chapter, student, outside):
    """Write a submission as this student would."""
    notebook = copies.read(folder / "release" / chapter / f"{chapter}.ipynb")
    for number, (exercise, cell) in enumerate(answer_cells(notebook)):
        cell["source"] = {
            "right": exercise.solution,
            "wrong": f"def {exercise.name}(*a, **k):\n    return 1\n",
            "hostile": HOSTILE[number].format(name=exercise.name, outside=str(outside)),
        }[student]
    if student == "hostile":
        for cell in notebook["cells"]:
            if cell["metadata"]["nbgrader"]["grade"]:
                cell["source"], cell["metadata"]["nbgrader"]["points"] = "pass", 100
    copies.write(folder / "submitted" / student / chapter / f"{chapter}.ipynb", notebook)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course that went through the cycle: its folder, processor seconds, scores, another file."""
    pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install -e .[class]")
    from nbgrader.api import Gradebook
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import PyFileConfigLoader

    with pytest.MonkeyPatch.context() as patch:  # nbgrader calls `alembic` by its name
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        return _cycle(tmp_path_factory, Gradebook, NbGraderAPI, PyFileConfigLoader)


def _cycle(tmp_path_factory, Gradebook, NbGraderAPI, PyFileConfigLoader):
    folder = tmp_path_factory.mktemp("course")
    outside = folder.parent / "outside"
    nbgrader_course(folder, [Notebook(folder / f"{name}.ipynb") for name in CHAPTERS])
    config = PyFileConfigLoader("nbgrader_config.py", path=str(folder)).load_config()
    config.CourseDirectory.root = str(folder)
    config.Application.log_level = "ERROR"
    api, before = NbGraderAPI(config=config), _processor()
    for name in CHAPTERS:
        assert api.generate_assignment(name, create=True)["success"]
        for student in CLASS:
            hand_in(folder, name, student, outside)
            done = api.autograde(name, student)
            assert done["success"], done
            assert api.generate_feedback(name, student)["success"]
    process = worker._held.pop(os.getpid()).process
    process.communicate()  # ended, so that its time counts, and that of its children
    seconds, scores = _processor() - before, {}
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as book:
        for name, student in itertools.product(CHAPTERS, CLASS):
            score = book.find_submission(name, student).score
            scores[name, student] = score, book.find_assignment(name).max_score
    return folder, seconds, scores, outside


def _processor():
    """The processor's time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def test_points_go_to_the_right_answers_only(course):
    _, _, scores, outside = course
    points = {"11_feed_forward": 14}
    for (name, student), (score, most) in scores.items():
        assert most == points[name]
        assert score == (most if student == "right" else 0), (name, student)
    assert not outside.exists()


def test_a_submission_is_graded_within_20_seconds(course):
    _, seconds, _, _ = course
    assert seconds / (len(CHAPTERS) * len(CLASS)) < 20  # assignments and feedback among them


def test_feedback_has_the_grader_s_words(course):
    folder, *_ = course
    page = (folder / "feedback" / "wrong" / "11_feed_forward" / "11_feed_forward.html").read_text()
    assert "11.1  keep every feature within limits" in page
    page = (
        folder / "feedback" / "hostile" / "11_feed_forward" / "11_feed_forward.html"
    ).read_text()
    assert "your code changes the course" in page


def test_students_get_stubs_and_no_solution(course):
    folder, *_ = course
    for name in CHAPTERS:
        text = (folder / "release" / name / f"{name}.ipynb").read_text()
        released = json.loads(text)
        for exercise, cell in answer_cells(released):
            assert source(cell).startswith(exercise.stub)
            lines = {line.strip() for line in exercise.solution.splitlines()[-2:]}
            assert not [line for line in lines if len(line) > 12 and json.dumps(line)[1:-1] in text]
        assert "SOLUTION" not in text


def test_an_assignment_has_what_its_exercises_need():
    made = assignments.assignment("11")
    names = {"__name__": "assignment"}
    for cell in made["cells"]:
        text = source(cell)
        if cell["cell_type"] == "code" and "check(" not in text:
            exec(compile(text, "cell", "exec"), names)
    for exercise in (each for id, each in exercises().items() if id.startswith("11.")):
        assert names[exercise.name].__doc__ == exercise.reference.__doc__
    held = [cell["metadata"]["nbgrader"].get("points") for cell in made["cells"]]
    assert sorted(filter(None, held)) == [2, 2, 2, 4, 4]
    assert assignments.assignment("99") is None
