"""The student edition gives no solution away: its text, its syntax trees and its imports say so."""

import ast
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinytf_course.exercise_source import edited
from tinytf_course.grading import exercises, files
from tinytf_course.notebooks import Notebook, notebooks, source
from tinytf_course.places import COURSE, PACKAGE
from tinytf_course.release import students

CHAPTERS = notebooks(Path(__file__).parents[3] / "notebooks")
CONTENT = {"studies", "drawings", "phrasebook", "lessons"}


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    """The whole edition, and how many tests it can run."""
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


ALONE = """
import sys
# a student's environment has no editable install of the whole course
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in getattr(f, "__module__", "")]
"""

# Import every module of the course and tell the code of all its functions.
IMPORTED = """
import hashlib, importlib.util, json, pkgutil, types
import tinytf_course
from tinytf_course.grading import exercises, has_answers
from tinytf_course.places import is_machinery
assert importlib.util.find_spec("tinytf_course.release") is None
for found in pkgutil.walk_packages(tinytf_course.__path__, "tinytf_course."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
for exercise in exercises().values():
    assert exercise.reference is None and exercise.solution == ""
    assert all(wrong.edits == () and wrong.reference is None for wrong in exercise.wrong)
    assert "Solution" not in exercise.markdown() and exercise.stub and exercise.function
ours = {n: m for n, m in sys.modules.items() if n.split(".")[0] in ("tinytf", "tinytf_course")}
codes = [m.__file__ for m in ours.values() if getattr(m, "__file__", None)]
def inner(code):
    yield hashlib.sha256(code.co_code + repr(code.co_names).encode()).hexdigest()
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from inner(part)
hashes = set()
for name, module in ours.items():
    if is_machinery(name) and getattr(module, "__file__", None):
        with open(module.__file__, encoding="utf-8") as file:
            hashes |= set(inner(compile(file.read(), name, "exec")))
print(json.dumps([has_answers(), codes, sorted(hashes), sorted(exercises())]))
"""


def in_it(folder, program, given=None):
    """What a program that runs in the edition prints last, read as JSON."""
    path = os.pathsep.join([str(folder), str(folder / "notebooks")])
    done = subprocess.run([sys.executable, "-c", ALONE + program], cwd=folder, text=True,
                          env={**os.environ, "PYTHONPATH": path}, capture_output=True,
                          input=json.dumps(given))  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_nothing_importable_is_a_reference(edition):
    folder, _ = edition
    answers, files, hashes, ids = in_it(folder, IMPORTED)
    assert answers is False
    assert ids == sorted(exercises())
    assert [file for file in files if not Path(file).is_relative_to(folder)] == []
    for exercise in exercises().values():
        code = getattr(exercise.reference, "__code__", None)
        if code is not None and len(code.co_code) > 40:
            key = hashlib.sha256(code.co_code + repr(code.co_names).encode()).hexdigest()
            assert key not in hashes, exercise.id


# Grade each answer, by its source and the file in which it stands, and whatever an exercise's own
# file defines.
GRADED = """
import json, linecache
from tinytf_course.check import grades
from tinytf_course.grading import find
told = {}
for id, (around, sources) in json.load(sys.stdin).items():
    exercise, answers = find(id), []
    for number, source in enumerate(sources):
        names, file = {"__name__": "__main__"}, f"<answer {number} to {id}>"
        exec(around, names)
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), names)
        answers.append(names[exercise.name])
    results = grades(exercise, answers)
    own = vars(sys.modules[exercise.function.__module__])
    names = [n for n, it in own.items() if getattr(it, "__module__", "") == own["__name__"]
             and not n.startswith("test_")]
    theirs = grades(exercise, [own[name] for name in names], until_wrong=True)
    passing = [name for name, result in zip(names, theirs) if result.passed]
    told[id] = [(r.status, r.mistake and r.mistake.name, r.text) for r in results], passing
print(json.dumps(told))
"""


def test_its_check_finds_what_the_teachers_finds(edition):
    """Every reference passes, and mistakes have their names; nothing that is there passes."""
    folder, _ = edition
    given = {}
    for number, (id, each) in enumerate(exercises().items()):
        wrong = each.wrong if number % 5 == 0 else each.wrong[:1]  # all take minutes
        answers = [each.solution, *(edited(each.solution, one.edits) for one in wrong)]
        given[id] = files()[id].read_text(encoding="utf-8"), answers
    for id, (results, passing) in in_it(folder, GRADED, given).items():
        (status, _, text), *wrong = results
        assert status == "passed", text
        for mistake, (status, name, text) in zip(exercises()[id].wrong, wrong, strict=False):
            assert (status, name) == ("failed", mistake.name), text
        assert passing == [], id


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
    folder, (_, there, tests) = edition
    assert 0.98 * tests < there <= tests
    with pytest.raises(ValueError, match="is not empty"):
        students.student_edition(folder, CHAPTERS)
    assert "nbgrader" not in (folder / "requirements.txt").read_text()
    assert "-e ." in (folder / "requirements.txt").read_text()


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_edition_that_is_stopped_leaves_nothing_that_looks_like_one(
    error, tmp_path, monkeypatch
):
    """Stopped while exercises are written: no folder. Killed: the next call makes it all anew."""
    folder, part = tmp_path / "class", tmp_path / ".class.part"

    def stopped(_):
        assert not folder.exists()
        raise error

    monkeypatch.setattr(students, "write_exercises", stopped)
    with pytest.raises(error):
        students.student_edition(folder, CHAPTERS[:1])
    assert list(tmp_path.iterdir()) == []
    (part / "tinytf" / "course").mkdir(parents=True)  # as a killed process leaves it
    (part / "tinytf" / "course" / "half.py").touch()
    folder.mkdir()  # an empty one is as good as none
    monkeypatch.setattr(students, "write_exercises", lambda _: 1)
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
