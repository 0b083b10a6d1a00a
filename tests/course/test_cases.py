"""Stored tests say what the tests themselves say."""

import json
from dataclasses import replace

import pytest
import torch

from tinytf_course.cases import NotStorable, pack, stored_exercises, test_of, unpack
from tinytf_course.check import grade
from tinytf_course.grading import Exercise, exercises
from tinytf_course.release.recording import recorded

test_of.__test__ = False


def stored(id):
    """An exercise as a student has it, and what was recorded."""
    tensors = []
    entry = json.loads(json.dumps(recorded(exercises()[id], tensors)))
    held = dict(enumerate(tensors))
    tests = tuple(test_of(test, held) for test in entry["tests"])
    return replace(exercises()[id], tests=tests, elsewhere=entry["elsewhere"]), entry


@pytest.mark.parametrize("id", ["05.1", "05.2", "11.2", "11.5", "12.3", "24.2"])
def test_stored_tests_accept_the_reference_and_refuse_every_mistake(id):
    exercise, _ = stored(id)
    assert grade(exercise, exercise.reference).passed
    for wrong in exercise.wrong:
        assert not grade(exercise, wrong.answer, until_wrong=True).passed, wrong.name


def test_a_stored_test_has_the_words_of_the_test():
    exercise, entry = stored("11.5")
    assert entry["elsewhere"] == 0

    def wide_enough(width, d_ff, multiple_of=1):
        return width % multiple_of == 0 and 3 * width >= 2 * d_ff

    mine, theirs = grade(exercise, wide_enough), grade(exercises()["11.5"], wide_enough)
    assert mine.problems == theirs.problems


def test_what_can_not_be_stored_is_counted_and_said():
    exercise, entry = stored("05.2")
    assert 0 < entry["elsewhere"] < len(exercises()["05.2"].tests)
    assert "run in full where it is handed in" in grade(exercise, exercise.reference).text
    nothing = replace(exercise, tests=())
    assert "tests run where it is handed in" in grade(nothing, exercise.reference).text
    assert not grade(nothing, exercise.reference).passed


def test_values_come_back_as_they_were():
    held = []
    value = {
        "a": [1, 2.5, (None, True)],
        3: torch.ones(2, requires_grad=True),
        "t": torch.float16,
        "f": torch.relu,
        "inf": float("-inf"),
        "p": torch.nn.Parameter(torch.ones(1)),
    }
    packed = json.loads(json.dumps(pack(value, held)))
    back = unpack(packed, dict(enumerate(held)))
    assert str(back) == str(value)
    assert back[3].requires_grad
    with pytest.raises(NotStorable, match="function"):
        pack(lambda: 1, [])


def test_the_full_course_stores_nothing():
    assert stored_exercises(Exercise) == {}
