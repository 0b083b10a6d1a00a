"""Exercises work without their answers, which an edition for students leaves out."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_exercises import EXERCISES

from tinytf_course import exercises as folder
from tinytf_course.grading import reference

CHAPTERS = sorted(Path(folder.__path__[0]).glob("ch*.py"))


def asked(path):
    """The exercises whose reference a chapter's tests ask for."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return {call.args[0].value for call in calls if getattr(call.func, "id", "") == "reference"}


# Grade each source given with the folder of answers out of reach.
STUDENT = """
import json, sys

class LeftOut:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("tinytf_course.answers"):
            raise ModuleNotFoundError(name)

from tinytf_course import grading
find = grading.importlib.util.find_spec
grading.importlib.util.find_spec = lambda name: None if name.endswith("answers") else find(name)
sys.meta_path.insert(0, LeftOut())
from tinytf_course.check import grade

outcomes = {}
for id, (name, path, source) in json.load(sys.stdin).items():
    exercise = grading.exercises()[id]
    scope = {"__name__": "student"}
    exec(compile(source, path, "exec"), scope)
    right = grade(exercise, scope[name], 60.0)
    wrong = grade(exercise, lambda *_, **__: "nonsense", 60.0)
    assert exercise.reference is None and exercise.wrong == () and wrong.mistake is None
    assert "Solution" not in exercise.markdown()
    outcomes[id] = [right.text, right.passed, wrong.passed]
assert not [name for name in sys.modules if name.startswith("tinytf_course.answers")]
print(json.dumps(outcomes))
"""


def test_every_exercise_is_graded_without_answers():
    sources = {}
    for exercise in EXERCISES:
        path = Path(sys.modules[exercise.reference.__module__].__file__)
        # what a student would have: the code, and none of the course's classes of answers
        tree = ast.parse(path.read_text())
        tree.body = [node for node in tree.body if not is_answers(node)]
        sources[exercise.id] = (exercise.name, str(path), ast.unparse(tree))
    done = subprocess.run(
        [sys.executable, "-c", STUDENT], input=json.dumps(sources), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout.splitlines()[-1])
    assert outcomes.keys() == sources.keys()
    for text, right, wrong in outcomes.values():
        assert right, text
        assert not wrong


def is_answers(node):
    """Whether a statement lists answers: it needs the named mistakes."""
    called = getattr(getattr(node, "value", None), "func", None)
    names = [target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)]
    return getattr(called, "id", "") == "Answers" or names == ["ANSWERS"]


def test_no_test_asks_for_a_reference():
    assert {path.stem: sorted(asked(path)) for path in CHAPTERS if asked(path)} == {}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_exercise_imports_an_answer(path):
    nodes = ast.walk(ast.parse(path.read_text()))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not [ast.unparse(node) for node in imports if "answers" in ast.unparse(node)]


def test_a_missing_reference_is_named():
    with pytest.raises(LookupError, match=r"99\.9 cannot be graded without its answer"):
        reference("99.9")
