"""The student edition gives no solution away: its text, its syntax trees and its imports say so."""

import ast
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinytf_course.grading import exercises
from tinytf_course.notebooks import Notebook, notebooks, source
from tinytf_course.places import COURSE, PACKAGE
from tinytf_course.release import students

CHAPTERS = notebooks(Path(__file__).parents[3] / "notebooks")
CONTENT = {"studies", "drawings", "phrasebook", "lessons"}


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    """The whole edition, and how many tests it stores."""
    folder = tmp_path_factory.mktemp("class") / "edition"
    return folder, students.student_edition(folder, CHAPTERS)


def lines_of(text):
    return {line.split("  #")[0].strip() for line in text.splitlines()}


def body_of(function):
    """The syntax tree of a definition without its name and description."""
    body = function.body[ast.get_docstring(function) is not None :]
    return "\n".join(map(ast.dump, body))


def course_files(folder):
    """What makes and grades chapters, not what they teach with."""
    files = [path for path in folder.rglob("*.py") if COURSE.name in path.parts]
    return [path for path in files if not CONTENT & set(path.parts)]


@pytest.fixture(scope="module")
def taught():
    """What the product and the chapters' own cells say: what the course is about."""
    files = sorted({*PACKAGE.rglob("*.py"), *COURSE.rglob("*.py")} - set(course_files(COURSE)))
    texts = [path.read_text(encoding="utf-8") for path in files]
    return "\n".join(texts + [source(cell) for chapter in CHAPTERS for cell in chapter.code])


def distinctive(exercise, taught):
    """The lines of a solution that nobody could have from elsewhere in the course."""
    body = ast.Module(ast.parse(exercise.solution).body[0].body, [])
    lines = lines_of(ast.unparse(body)) | lines_of(exercise.solution)
    known = "\n".join((taught, exercise.stub, exercise.statement, *exercise.hints))
    return {line for line in lines if len(line) >= 24 and line not in known}


def test_no_line_of_a_solution_stands_in_it(edition, taught):
    folder, _ = edition
    texts = [path for path in folder.rglob("*") if path.suffix in (".py", ".json", ".ipynb", ".md")]
    whole = "\n".join(path.read_text(encoding="utf-8") for path in texts)
    whole += "\n".join(source(c) for n in notebooks(folder / "notebooks") for c in n.cells)
    whole = whole.replace('\\"', '"')
    looked_for = {id: distinctive(each, taught) for id, each in exercises().items()}
    found = {id: [line for line in lines if line in whole] for id, lines in looked_for.items()}
    assert {id: lines for id, lines in found.items() if lines} == {}
    assert sum(map(bool, looked_for.values())) > 0.8 * len(looked_for)  # the search can fail


def test_no_definition_has_the_body_of_a_reference(edition):
    folder, _ = edition
    references = {body_of(ast.parse(e.solution).body[0]): e.id for e in exercises().values()}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in course_files(folder)]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    assert len(nodes) > 10_000
    kinds = ast.FunctionDef | ast.ClassDef
    assert [references[body_of(n)] for n in nodes if isinstance(n, kinds) and body_of(n) in
            references] == []  # fmt: skip


# Import every module of the course and tell the code of all its functions.
IMPORTED = """
import hashlib, importlib.util, inspect, json, pkgutil, sys, types
# a student's environment has no editable install of the whole course
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in getattr(f, "__module__", "")]
import tinytf_course
from tinytf_course.grading import exercises, has_answers
from tinytf_course.places import is_machinery
for name in ("exercises", "release"):
    assert importlib.util.find_spec("tinytf_course." + name) is None, name
for found in pkgutil.walk_packages(tinytf_course.__path__, "tinytf_course."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
for exercise in exercises().values():
    assert exercise.reference is None and exercise.wrong == () and exercise.solution == ""
    assert "Solution" not in exercise.markdown() and exercise.stub and exercise.function
ours = {n: m for n, m in sys.modules.items() if n.split(".")[0] in ("tinytf", "tinytf_course")}
codes = [inspect.getfile(m) for m in ours.values()]
def inner(code):
    yield hashlib.sha256(code.co_code + repr(code.co_names).encode()).hexdigest()
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from inner(part)
hashes = set()
for name, module in ours.items():
    if is_machinery(name):
        with open(module.__file__, encoding="utf-8") as file:
            hashes |= set(inner(compile(file.read(), name, "exec")))
print(json.dumps([has_answers(), codes, sorted(hashes), sorted(exercises())]))
"""


def test_nothing_importable_is_a_reference(edition):
    folder, _ = edition
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(folder / "notebooks")]),
    }
    done = subprocess.run([sys.executable, "-c", IMPORTED], cwd=folder, env=environment,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers, files, hashes, ids = json.loads(done.stdout.splitlines()[-1])
    assert answers is False
    assert ids == sorted(exercises())
    assert [file for file in files if not Path(file).is_relative_to(folder)] == []
    for exercise in exercises().values():
        code = getattr(exercise.reference, "__code__", None)
        if code is not None and len(code.co_code) > 40:
            key = hashlib.sha256(code.co_code + repr(code.co_names).encode()).hexdigest()
            assert key not in hashes, exercise.id


def test_chapters_are_cleared_and_only_hints_stay_folded(edition):
    folder, made = edition
    theirs = notebooks(folder / "notebooks")
    assert [n.path.name for n in theirs] == [n.path.name for n in CHAPTERS]
    assert made[0] == len(theirs)
    for notebook in theirs:
        assert notebook.outputs == []
        text = "\n".join(map(source, notebook.cells))
        folds = text.split("<summary>")[1:]
        assert {fold.split("</summary>")[0] for fold in folds} <= {"Hint"}, notebook.path.name


def test_it_says_how_much_it_can_test_and_needs_a_new_folder(edition):
    folder, (_, whole, tests) = edition
    assert 0.3 * tests < whole < tests  # falls if the words of `expect` are no longer heard
    with pytest.raises(ValueError, match="is not empty"):
        students.student_edition(folder, CHAPTERS)
    assert "nbgrader" not in (folder / "requirements.txt").read_text()
    assert "-e ." in (folder / "requirements.txt").read_text()


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_edition_that_is_stopped_leaves_nothing_that_looks_like_one(
    error, tmp_path, monkeypatch
):
    """Stopped while the cases are written: no folder. Killed: the next call makes it all anew."""
    folder, part = tmp_path / "class", tmp_path / ".class.part"

    def stopped(_):
        assert not folder.exists()
        raise error

    monkeypatch.setattr(students, "write_cases", stopped)
    with pytest.raises(error):
        students.student_edition(folder, CHAPTERS[:1])
    assert list(tmp_path.iterdir()) == []
    (part / "tinytf" / "course").mkdir(parents=True)  # as a killed process leaves it
    (part / "tinytf" / "course" / "half.py").touch()
    folder.mkdir()  # an empty one is as good as none
    monkeypatch.setattr(students, "write_cases", lambda _: 1)
    assert students.student_edition(folder, CHAPTERS[:1])[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["class"]
    assert not (folder / "tinytf" / "course" / "half.py").exists()
    assert (folder / "requirements.txt").exists()


def test_a_question_stays_and_its_answer_goes():
    text = (
        "<details><summary>Hint</summary>\n\nA.\n\n</details>\n"
        "<details>\n<summary>A model answer</summary>\n\nB.\n\n</details>\n"
        "<details><summary>Is it so?</summary>\n\nC.\n\n</details>\n"
    )
    cell = {"cell_type": "markdown", "source": text}
    (done,) = students.without_answers({"cells": [cell]})["cells"]
    text = source(done)
    assert "A." in text
    assert "B." not in text
    assert "model answer" not in text
    assert "**Is it so?**" in text
    assert "C." not in text


def test_a_chapter_that_is_read_stays_as_it_is():
    before = CHAPTERS[5].path.read_bytes()
    students.without_answers(json.loads(before))
    assert Notebook(CHAPTERS[5].path).path.read_bytes() == before
