"""What is taken out of an exercise's file, what stays, and what is stored."""

import ast
import types

import pytest

from tinytf_course.check import grade
from tinytf_course.grading import exercise_of, files, find
from tinytf_course.release.recording import recorded
from tinytf_course.stored import Told

FILE = '''"""99.1 doubled (★☆☆, 5 minutes)

Write `doubled(x, f)`.
"""

import functools

import torch

from tinytf_course.expect import agrees, expect, gradients, same

COUNT = []


def doubled(x, f=None):
    """Twice f of x."""
    return 2 * (f(x) if f else x)


def _sum(x, f=None):
    """The same."""
    return _called(f, x) + _called(f, x)


def _called(f, x):
    return f(x) if f else x


def _square(x):
    return x * x


def _half(got):
    return got / 2


def _counted(x):
    COUNT.append(x)
    return len(COUNT)


def _both(f, g):
    return lambda x: f(g(x))


@functools.cache
def _many(n):
    """A list."""
    return [torch.arange(float(n)), None, {"n": n}]


def test_one(answer):
    """one number"""
    agrees(answer, _sum, 3)
    agrees(answer, _sum, torch.ones(2), _square)
    gradients(answer, _sum, torch.ones(2))
    same(_half(answer(4)), 4, "half")


def test_two(answer):
    """several"""
    _counted(1), _counted(1)
    expect(answer(1) == 2, "no")
    same(answer(_many(3)[0]), _sum(_many(3)[0]), "many")
    agrees(answer, _sum, torch.ones(2), _both(_square, _square))


def test_of_places(answer):
    """what it says when there is no answer in it"""
    same(_sum(2), 4 if _sum.__doc__ == "The same." else 5, "twice two")
    expect(_sum.__code__.co_names, "its code is there")
'''


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A made exercise, and what is recorded of it."""
    path = tmp_path_factory.mktemp("exercises") / "ch99" / "doubled.py"
    path.parent.mkdir()
    path.write_text(FILE, encoding="utf-8")
    module = types.ModuleType("tinytf_course.exercises.ch99.doubled")
    exec(compile(FILE, str(path), "exec"), vars(module))
    return recorded(exercise_of(module, path), path)


def bodies(text):
    """{function: its body}."""
    nodes = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
    return {node.name: ast.unparse(node.body[-1]) for node in nodes}


def theirs(exercise, text, held):
    """The exercise as a student has it."""
    path = files()[exercise.id]
    module = types.ModuleType(f"tinytf_course.exercises.{path.parent.name}.{path.stem}")
    text = text.replace('Told(stored(__name__, "results"))', "TOLD")
    vars(module)["TOLD"] = Told(held["results"])
    exec(compile(text, str(path), "exec"), vars(module))
    return exercise_of(module, path)


def test_what_is_right_is_taken_out_and_the_rest_stays(made):
    text, held, _ = made
    left = bodies(text)
    assert left["_sum"] == left["_called"] == left["_many"] == "..."
    assert left["_square"] == "return x * x"  # an answer calls it
    assert left["_half"] == "return got / 2"  # what an answer returned goes through it
    assert "COUNT.append" in text  # it gives another result each time
    assert left["_both"] == "return lambda x: f(g(x))"  # no file holds a function
    assert "f(x) if f else x" not in text
    assert "gradients(answer, _told('line" in text
    assert '"""Twice f of x."""\n    raise NotImplementedError' in text
    assert held["mistakes"] == []


def test_what_is_only_used_inside_has_no_table(made):
    results = made[1]["results"]
    assert len(results) == 4  # _sum, _called, _many, gradients
    assert sorted(map(len, results.values())) == [0, 1, 1, 5]


def test_a_test_that_the_reference_fails_there_is_left_out(made):
    text, _, left_out = made
    assert left_out == 1
    assert "ELSEWHERE = 1" in text
    assert "test_of_places" not in text


@pytest.mark.parametrize("id", ["05.1", "10.1", "13.2"])
def test_answers_are_told_the_same(id):
    exercise = find(id)
    student = theirs(exercise, *recorded(exercise, files()[id])[:2])
    assert grade(student, exercise.reference).passed
    for wrong in exercise.wrong:
        mine, yours = (grade(each, wrong.answer) for each in (student, exercise))
        assert mine.problems == yours.problems, wrong.name
        assert mine.held == yours.held, wrong.name


def test_mistakes_are_stored_by_what_fails():
    exercise = find("05.1")
    _, held, left_out = recorded(exercise, files()["05.1"])
    assert left_out == 0
    assert [each["name"] for each in held["mistakes"]] == [each.name for each in exercise.wrong]
    verdicts = [verdict for each in held["mistakes"] for verdict in each["verdicts"]]
    assert all(verdict.found and not verdict.calls for verdict in verdicts)
