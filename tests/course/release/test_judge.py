"""Strangers' answers are graded, and none of them hurts the judge or gets what it did not earn."""

from pathlib import Path

import pytest

from tinytf_course import copies
from tinytf_course.grading import exercises
from tinytf_course.release.judge import judged
from tinytf_course.stubs import build_copy

HEAD = "import importlib, os, sys, torch"
RIGHT = exercises()["05.1"].solution
WRONG = "def my_lookup(*a):\n    return torch.zeros(2)"
NEARLY = "def my_lookup(query, keys, values, *a):\n    return torch.zeros_like(values[0])"


def job(*statements):
    return {"id": "05.1", "name": "my_lookup", "statements": [HEAD, *statements]}


HOSTILE = {
    "replaces the grader": job(WRONG, "m = importlib.import_module('tinytf_course.check')",
                               "m.grade = lambda e, *a, **k: m.Result(e, 'passed')"),
    "changes a class of it": job(WRONG, "m = importlib.import_module('tinytf_course.check')",
                                 "m.Result.passed = True"),
    "replaces a comparison": job(
        NEARLY, "m = importlib.import_module('tinytf_course.expect')",
        "m._same_tensors = lambda *a: None"),
    "changes its code": job(
        NEARLY, "m = importlib.import_module('tinytf_course.expect')",
        "m._same_tensors.__code__ = (lambda *a: None).__code__"),
    "replaces torch": job(NEARLY, "torch.isclose = lambda a, *k: torch.ones_like(a).bool()"),
    "imports the reference": job(
        "from tinytf_course.exercises.ch05.lookup import my_lookup"),
    "finds the reference": job(
        "from tinytf_course.grading import find\nmy_lookup = find('05.1').reference"),
    "loads the reference": job(
        "my_lookup = importlib.import_module('tinytf_course.exercises.ch05.lookup').my_lookup"),
    "finds the reference in memory": job(
        "m = [m for n, m in sys.modules.items() if 'exercises.ch05' in n]\n"
        "my_lookup = m[0].my_lookup"),
    "kills itself": job("def my_lookup(*a):\n    os.kill(os.getpid(), 9)"),
    "exits": job(WRONG, "sys.exit(0)"),
    "ends it for good": job("import ctypes", "ctypes.string_at(0)"),
    "kills the judge": job("def my_lookup(*a):\n    os.kill(os.getppid(), 9)"),
    "starts a program": job("os.system('echo hello')"),
    "sends what is no message": job(
        "def my_lookup(*a):\n    for i in range(3, 99):\n        try: os.write(i, b'x' * 999)\n"
        "        except OSError: pass"),
}  # fmt: skip


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """The verdicts on a right answer, hostile ones, and the right one again."""
    outside = tmp_path_factory.mktemp("outside") / "file"
    writes = job(f"open({str(outside)!r}, 'w').write('x')", WRONG)
    jobs = {"right": job(RIGHT), **HOSTILE, "writes outside": writes, "right again": job(RIGHT)}
    jobs["empty"] = {"statements": [], "problem": "nothing"}
    return dict(zip(jobs, judged(list(jobs.values())), strict=True)), outside


def test_hostile_answers_get_nothing_and_stop_nobody(verdicts):
    found, outside = verdicts
    passed = [name for name, verdict in found.items() if verdict["status"] == "passed"]
    assert passed == ["right", "right again"]
    assert not outside.exists()


def test_a_verdict_says_what_happened(verdicts):
    found, _ = verdicts
    assert "all 7 tests hold" in found["right"]["text"]
    assert "course's own tinytf_course.expect._same" in found["replaces a comparison"]["text"]
    assert "course's own tinytf_course.expect._same" in found["changes its code"]["text"]
    assert "replaces torch.isclose" in found["replaces torch"]["text"]
    assert "is not allowed in an answer" in found["kills the judge"]["text"]
    assert "it ends the process" in found["ends it for good"]["text"]
    assert found["empty"]["text"] == "nothing"


LOOP = "def my_lookup(*a):\n    while True:\n        pass"


def test_a_verdict_says_in_a_word_why_an_answer_got_nothing():
    reasons = {
        "wrong": job(WRONG),
        "endless": job(LOOP),
        "raises an error": job("def my_lookup(*a):\n    return nothing"),
        "ended its process": HOSTILE["ends it for good"],
        "its cell raises NameError: name 'nothing' is not defined": job("my_lookup = nothing"),
        "the answer is a int; pass the function itself": job("my_lookup = 3"),
        "its cell does not compile": job()
        | {"statements": [], "problem": "its cell does not compile"},
        "": job("def my_lookup(*a):\n    raise NotImplementedError"),
    }
    verdicts = judged([*reasons.values(), job(RIGHT)])
    assert [verdict["why"] for verdict in verdicts] == [*reasons, ""]


def test_nobody_to_judge_starts_nothing():
    assert judged([]) == []


def test_parts_of_a_build_copy_are_tested_anew(tmp_path):
    chapter = next((Path(__file__).parents[3] / "notebooks").glob("05_*.ipynb"))
    paths = [tmp_path / "solved" / chapter.name, tmp_path / "stubs" / chapter.name]
    for path, solved in zip(paths, (True, False), strict=True):
        copies.write(path, build_copy(copies.read(chapter), solved))
    solved, stubs = judged([{"parts": str(path)} for path in paths])
    assert "attention_weights" in solved["passed"]
    assert stubs["passed"] == []
