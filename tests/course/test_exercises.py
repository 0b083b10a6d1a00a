"""Every grader is graded: the reference passes, every named mistake is caught and named."""

import ast
import functools
import inspect

import pytest
from torch import nn

from tinytf_course.check import UNTOUCHED, grade, grades
from tinytf_course.grading import exercises

EXERCISES = list(exercises().values())
WRONG = [(exercise, wrong) for exercise in EXERCISES for wrong in exercise.wrong]


def by_id(exercise):
    return exercise.id


def by_name(pair):
    return f"{pair[0].id} {pair[1].name}"


@functools.cache
def of_wrong(exercise):
    """What the grader says of each mistake; two tests ask, and they are run once."""
    answers = [wrong.answer for wrong in exercise.wrong]
    return dict(zip(exercise.wrong, grades(exercise, answers), strict=True))


@pytest.mark.parametrize("exercise", EXERCISES, ids=by_id)
def test_reference_passes(exercise):
    result = grade(exercise, exercise.reference)
    assert result.passed, result.text
    assert len(result.held) == len(exercise.tests)


@pytest.mark.parametrize("pair", WRONG, ids=map(by_name, WRONG))
def test_wrong_answer_is_rejected_and_named(pair):
    wrong, result = pair[1], of_wrong(pair[0])[pair[1]]
    assert result.failed
    assert result.mistake is wrong, result.text
    found = [message for _, message in result.problems]
    assert any(wrong.message in message for message in found), found
    assert wrong.name in result.text
    assert wrong.why in result.text
    assert all("raises Mismatch" not in message for message in found)


@pytest.mark.parametrize("exercise", EXERCISES, ids=by_id)
def test_each_test_is_needed(exercise):
    """Some wrong answer fails each test of every exercise."""
    results = of_wrong(exercise).values()
    failed = {says for result in results for says, _ in result.problems} - {UNTOUCHED}
    written = {inspect.getdoc(test).splitlines()[0] for test in exercise.tests}
    assert failed == written, written - failed


@pytest.mark.parametrize("exercise", EXERCISES, ids=by_id)
def test_stub_is_not_yet(exercise):
    scope = {"nn": nn}  # for a stub that is a module
    exec(exercise.stub, scope)
    unwritten = (scope[exercise.name], lambda *_: None, lambda *_: ..., None, ...)
    assert all(result.not_yet for result in grades(exercise, unwritten))


@pytest.mark.parametrize("exercise", EXERCISES, ids=by_id)
def test_nonsense_is_refused_politely(exercise):
    junk = ("a string", {}, object(), 7, [[1], [2, 3]], True)
    answers = [lambda *_, one=one: one for one in junk]
    for one, result in zip(junk, grades(exercise, answers, until_wrong=True), strict=True):
        assert not result.passed, one
        assert "Traceback" not in result.text, one


@pytest.mark.parametrize("exercise", EXERCISES, ids=by_id)
def test_is_complete(exercise):
    assert len(exercise.wrong) >= 3
    assert len({wrong.name for wrong in exercise.wrong}) == len(exercise.wrong)
    assert exercise.difficulty in (1, 2, 3)
    assert 2 <= exercise.minutes <= 60
    assert all((exercise.title, exercise.statement, exercise.hints, exercise.tests))
    assert f".ch{exercise.id[:2]}." in exercise.tests[0].__module__
    assert not exercise.tests[0].__module__.endswith("_test")  # pytest would collect it
    ast.parse(exercise.solution)


def test_ids_are_unique():
    listed = [exercise.id for exercise in EXERCISES]
    assert len(set(listed)) == len(listed)
    assert len(WRONG) == len({by_name(pair) for pair in WRONG})
