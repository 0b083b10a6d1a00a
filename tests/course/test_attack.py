"""No mutant of a reference is accepted, but for those written down as right.

A few mutants of each exercise here; `python -m tinytf_course attack` makes them all.
"""

import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest
from test_exercises import EXERCISES, by_id

from tinytf_course.__main__ import main
from tinytf_course.attack import (
    Attack,
    attack,
    attack_part,
    chosen,
    chosen_parts,
    matches,
    report,
)
from tinytf_course.check import grade
from tinytf_course.house import parts as graduations
from tinytf_course.notebooks import readable
from tinytf_course.parts import parts


@cache
def read(folder):
    return graduations(readable(folder))


@pytest.fixture
def read_once(monkeypatch):
    """The notebooks are read once: they stay as they are while this runs."""
    monkeypatch.setattr("tinytf_course.attack.readable", lambda folder: folder)
    monkeypatch.setattr("tinytf_course.house.parts", read)


@pytest.mark.parametrize("exercise", EXERCISES, ids=by_id)
def test_a_few_mutants_are_rejected(exercise):
    assert attack(exercise, at_most=6).accepted == []


def test_a_part_is_attacked_without_its_checks():
    part = parts()["tinytf.masks.written_out"]
    result = attack_part(part)
    assert result.tried > 40
    assert result.tried == result.rejected + len(result.equivalent) + len(result.accepted)
    assert not any("raise" in change or "keys:" in change for change in result.accepted)
    careless = replace(part, scripts=dict(list(part.scripts.items())[:1]))
    assert len(attack_part(careless).accepted) > len(result.accepted)
    with pytest.raises(ValueError, match="written_out does not pass"):
        attack_part(replace(part, scripts={next(iter(part.scripts)): lambda _: 7}))


def test_a_part_whose_tests_ask_for_an_error_is_attacked_with_its_checks():
    part = parts()["tinytf.positional.PositionalEncoding"]
    words = ("what it learns is counted", "one is longer than its table")
    careless = replace(part, scripts={name: part.scripts[name] for name in words})
    accepted = attack_part(careless).accepted  # without its check, every mutant would be rejected
    assert any("x - self.table" in change for change in accepted)


def test_parts_are_chosen(read_once):
    def names(*chosen):
        return [part.name for part in chosen_parts(chosen)]

    assert names("7") == names("07")
    assert "MultiHeadAttention" in names("07")  # where it is built, whatever file its tests are in
    assert "MultiHeadAttention" not in names("05")
    assert names("LayerNorm") == ["LayerNorm"]
    assert len(names()) == len(parts())
    with pytest.raises(ValueError, match="NoSuchPart"):
        names("NoSuchPart")


@pytest.mark.parametrize("exercise", EXERCISES, ids=by_id)
def test_reasons_are_given(exercise):
    assert all(len(why.split()) > 3 for why in exercise.equivalent.values())


def weak(exercise):
    """The exercise with its first test only."""
    return replace(exercise, tests=exercise.tests[:1])


def test_a_weak_grader_is_found_out():
    split = next(each for each in EXERCISES if each.id == "06.1")
    whole, half = attack(split), attack(weak(split))
    assert not whole.accepted
    assert whole.tried == whole.rejected
    assert half.tried == half.rejected + len(half.accepted)
    assert any("unflatten(-1, (-1, num_heads))" in change for change in half.accepted)


def test_only_what_a_test_asks_a_gradient_of_is_cut_off(monkeypatch):
    split = next(each for each in EXERCISES if each.id == "06.1")
    right = grade(split, split.reference)
    attacking = sys.modules["tinytf_course.attack"]
    monkeypatch.setattr(attacking, "grades", lambda _, made, *__, **___: [right] * len(made))
    assert any(".detach()" in change for change in attack(split).accepted)
    assert not any(".detach()" in change for change in attack(weak(split)).accepted)


def test_a_refused_reference_is_an_error():
    split = next(each for each in EXERCISES if each.id == "06.1")

    def never(answer):
        """never"""
        raise AssertionError

    with pytest.raises(ValueError, match="the reference is not accepted"):
        attack(replace(split, tests=(never,)))


def test_lines_written_down_may_leave_text_open():
    assert matches("a[0] * b => c", "a[0] * b => c")
    assert not matches("a[0] * b => c", "a0 * b => c")
    assert matches("… => ….detach()…", "return x => return x.detach()")
    assert not matches("… => ….detach()…", "return x => return x.float()")


def test_what_is_written_down_is_equivalent_until_it_is_stale():
    split = weak(next(each for each in EXERCISES if each.id == "06.1"))
    listed = {"… => …(-1, num_heads)…": "here both give the same shape", "a => b": "never"}
    found = attack(replace(split, equivalent=listed))
    assert len(found.equivalent) == 1
    assert not [change for change in found.accepted if "(-1, num_heads)" in change]
    assert found.stale == ["a => b"]


def test_a_report_lists_and_adds_up():
    lines = []
    attacks = [
        Attack("06.1", tried=5, rejected=3, accepted=["a => b"], equivalent=["c => d"]),
        Attack("10.1", tried=2, rejected=2, stale=["e => f"]),
    ]
    assert not report(attacks, lines.append)
    assert lines[0] == "06.1  accepted: a => b"
    assert "not accepted: e => f" in lines[1]
    assert lines[-1].split() == ["all", "7", "5", "0", "1", "1", "0.0"]
    assert report([Attack("06.1", tried=1, rejected=1)], lines.append)


def test_exercises_are_chosen():
    def ids(*names):
        return [each.id for each in chosen(EXERCISES, names)]

    assert ids("06.1", "10") == ["06.1", "10.1", "10.2", "10.3", "10.4"]
    assert len(ids()) == len(EXERCISES)
    with pytest.raises(ValueError, match="99"):
        ids("99")


def test_what_changed_is_chosen(monkeypatch):
    def changed(files):
        def run(*_, **__):
            return subprocess.CompletedProcess([], 0, stdout=files)

        monkeypatch.setattr(subprocess, "run", run)
        return {each.id.split(".")[0] for each in chosen(EXERCISES, since="main")}

    folder = "notebooks/tinytf_course"
    assert changed(f"{folder}/exercises/ch06/x.py\n{folder}/exercises/ch23/y.py") == {"06", "23"}
    assert changed(f"{folder}/glossary.py") == set()
    assert len(changed(f"{folder}/expect.py")) > 10
    assert len(changed(f"{folder}/exercises/__init__.py")) > 10
    assert changed("notebooks/tinytf_course/parts/__init__.py") == set()


def test_parts_whose_tests_changed_are_chosen(read_once, monkeypatch):
    def changed(files):
        done = subprocess.CompletedProcess([], 0, stdout=files)
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
        return {part.name for part in chosen_parts(since="main")}

    folder = "notebooks/tinytf_course"
    assert {"LayerNorm", "PreNorm"} <= changed(f"{folder}/parts/ch10.py")
    assert "MultiHeadAttention" not in changed(f"{folder}/parts/ch10.py")
    assert changed(f"{folder}/exercises/ch10.py\n{folder}/glossary.py") == set()
    assert len(changed(f"{folder}/parts/__init__.py")) == len(parts())
    assert len(changed(f"{folder}/building.py")) == len(parts())


def test_the_command_says_whether_a_mutant_is_accepted(capsys):
    assert main(["attack", "06.1", "--at-most", "5"]) == 0
    assert "06.1" in capsys.readouterr().out
    assert main(["attack", "--parts", "causal_mask", "--at-most", "3"]) == 0
    assert "causal_mask" in capsys.readouterr().out
    assert main(["attack", "99"]) == 1
    assert "99" in capsys.readouterr().err
