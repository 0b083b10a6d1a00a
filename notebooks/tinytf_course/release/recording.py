"""Write down what an exercise's tests compare, so that a student edition needs no answers.

Every test is run on the reference while the words of `expect.py` are listened to. What they
compare with a result of the answer's becomes a case: arguments, expected value, words. Any other
condition (of `expect`, of the test's own) can't be written down; its test is marked as not whole.
"""

import functools
import inspect
import io
import random
import sys
from contextlib import contextmanager, redirect_stdout

import torch

from tinytf.support.randomness import seeded
from tinytf_course import expect as words
from tinytf_course.cases import NotStorable, pack
from tinytf_course.evidence import copied
from tinytf_course.trial import load
from tinytf_course.words import given

__all__ = ["recorded"]


def recorded(exercise, tensors):
    """An exercise as `cases.json` holds it; its tensors go to the list `tensors`."""
    load()
    tests = [_test(exercise, test, tensors) for test in exercise.tests]
    whole = sum(test.pop("whole") for test in tests)
    return {
        "id": exercise.id,
        "title": exercise.title,
        "difficulty": exercise.difficulty,
        "minutes": exercise.minutes,
        "statement": exercise.statement,
        "hints": exercise.hints,
        "stub": exercise.stub,
        "id_of_file": f"<exercise {exercise.id}>",
        "changes": list(exercise.changes),
        "tests": [test for test in tests if test["cases"]],
        "elsewhere": len(tests) - whole,
        "none_is_a_result": exercise.none_is_a_result,
    }


def _test(exercise, test, tensors):
    """One test: what it says, its hint, its cases, and whether they are all of it."""
    listener = _Listener(exercise)
    with seeded(0), redirect_stdout(io.StringIO()), listener.listening(test):
        test(listener)
    cases = []
    whole = listener.whole and bool(listener.cases)
    for case in listener.cases:
        mine = []
        try:
            packed = {key: pack(value, mine) for key, value in case.items()}
        except (NotStorable, RuntimeError):
            whole = False
            continue
        cases.append(_renumbered(packed, len(tensors)))
        tensors += mine
    says = inspect.getdoc(test).splitlines()[0]
    return {"says": says, "hint": getattr(test, "hint", ""), "cases": cases, "whole": whole}


def _renumbered(value, by):
    """The same with its tensors counted on from `by`."""
    if isinstance(value, list):
        return [_renumbered(part, by) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        key: part + by if key in ("tensor", "parameter") and type(part) is int
        else _renumbered(part, by)
        for key, part in value.items()
    }  # fmt: skip


class _Listener:
    """Stands for the answer in a test, and hears what the test compares."""

    def __init__(self, exercise):
        functools.update_wrapper(self, exercise.function)  # its parameters have their names
        self.exercise, self.calls, self.cases = exercise, [], []
        self.whole, self.inside = True, False

    def __call__(self, *arguments, **named):
        """What the reference returns; the call is remembered."""
        kept = copied(list(arguments)), copied(named)
        before = torch.get_rng_state(), random.getstate()
        result = self.exercise.reference(*arguments, **named)
        drew = not torch.equal(before[0], torch.get_rng_state()) or before[1] != random.getstate()
        self.calls.append((result, *kept, drew))
        return result

    @contextmanager
    def listening(self, test):
        """A block in which the words of `expect`, wherever they were imported, tell this."""
        names = ("same", "expect", "gradients", "travels", "refuses", "has_parameters")
        heard = {name: getattr(self, f"_{name}") for name in names}
        self.real = {name: getattr(words, name) for name in heard}
        places = [words, sys.modules[test.__module__]]
        replaced = [
            (place, name, value)
            for place in places
            for name, value in vars(place).items()
            if name in heard and value is self.real[name]
        ]
        for place, name, _ in replaced:
            setattr(place, name, heard[name])
        try:
            yield
        finally:
            for place, name, value in replaced:
                setattr(place, name, value)

    def _quietly(self, name, *arguments, **named):
        """The real word, whose own comparisons are not heard."""
        outside, self.inside = self.inside, True
        try:
            return self.real[name](*arguments, **named)
        finally:
            self.inside = outside

    def _expect(self, holds, message):
        if not self.inside:
            self.whole = False
        return self.real["expect"](holds, message)

    def _same(self, got, expected, where, tolerance=None, note="", dtype=False):
        if not self.inside:
            found = self._found(got, expected)
            self.whole = self.whole and found is not None
            for (arguments, named), path, value in found or ():
                self.cases.append({
                    "kind": "same", "arguments": arguments, "named": named, "path": path,
                    "expected": value, "where": where, "tolerance": tolerance, "note": note,
                    "dtype": dtype,
                })  # fmt: skip
        return self._quietly("same", got, expected, where, tolerance, note, dtype)

    def _found(self, got, expected):
        """[(call, path, expected)] where `got` is a call's result or part of one; else None."""
        for result, arguments, named, drew in reversed(self.calls):
            path = _path(result, got)
            if path is not None:
                return None if drew else [((arguments, named), path, expected)]
        if isinstance(got, list | tuple) and isinstance(expected, list | tuple):
            if not got or len(got) != len(expected):
                return None
            parts = [self._found(*pair) for pair in zip(got, expected, strict=True)]
            return None if None in parts else [part for found in parts for part in found]
        return None

    def _gradients(self, answer, oracle, *arguments, tolerance=1e-6, note="", where=None):
        where = where or given(answer, arguments)
        if answer is self and not self.inside:
            expected, _ = words.gradients_of(oracle, copied(arguments))
            self._hear("gradients", arguments, where, note, expected=expected, tolerance=tolerance)
        else:
            self.whole = False
        names = {"tolerance": tolerance, "note": note, "where": where}
        return self._quietly("gradients", answer, oracle, *arguments, **names)

    def _travels(self, answer, *arguments, note="", where=None):
        where = where or given(answer, arguments)
        self._hear("travels", arguments, where, note, mine=answer is self)
        return self._quietly("travels", answer, *arguments, note=note, where=where)

    def _refuses(self, answer, *arguments, error=ValueError, note="", where=None):
        where = where or given(answer, arguments)
        simple = answer is self and isinstance(error, type)
        name = error.__name__ if simple else ""
        self._hear("refuses", arguments, where, note, mine=simple, error=name)
        return self._quietly("refuses", answer, *arguments, error=error, note=note, where=where)

    def _has_parameters(self, module, shapes, where):
        found = None if self.inside else self._found(module, dict(shapes))
        self.whole = self.whole and found is not None
        for (arguments, named), path, value in found or ():
            if path:
                self.whole = False
                continue
            self._hear("parameters", arguments, where, "", named=named, expected=value)
        return self._quietly("has_parameters", module, shapes, where)

    def _hear(self, kind, arguments, where, note, mine=True, **more):
        if mine:
            case = {"kind": kind, "arguments": copied(list(arguments)), "where": where}
            self.cases.append({**case, "note": note, **more})
        else:
            self.whole = False


def _path(result, got):
    """The steps from a call's result to `got`, or None if it is not there."""
    if got is result:
        return []
    if isinstance(result, list | tuple):
        for step, part in enumerate(result):
            if part is got and not isinstance(part, int | bool | str | None):
                return [step]
    return None
