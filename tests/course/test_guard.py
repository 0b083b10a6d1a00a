"""What an answer may not do is refused, what it changed is seen, and little comes back of it."""

import os
import subprocess
import sys
import time
import types
from dataclasses import replace

import cloudpickle
import torch

from tinytf_course import words, worker
from tinytf_course.check import grade
from tinytf_course.grading import exercises
from tinytf_course.guard import Untouched
from tinytf_course.worker import trials

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as what a notebook defines
SPLIT = exercises()["06.1"]

# Try each line in a process that is shut; say which were refused.
SHUT = """
import os, sys, tempfile
from tinytf_course.guard import shut
outside, folder = sys.argv[1], tempfile.mkdtemp()
open(outside, "w").close()
shut(folder)
lines = sys.stdin.read().splitlines()
for line in lines:
    try:
        exec(line)
    except PermissionError:
        print("refused")
    else:
        print("done")
"""
REFUSED = (
    "open(outside, 'a')", "os.open(outside, os.O_RDWR)", "os.remove(outside)", "os.fork()",
    "os.rename(outside, outside + '2')", "os.symlink(outside, folder + '/link')",
    "os.mkdir(outside + '3')", "os.system('true')", "os.kill(os.getpid(), 0)",
    "import subprocess; subprocess.run(['true'])",
    "import socket; socket.socket().connect(('127.0.0.1', 9))",
    "os.truncate(outside, 0)", "open(folder + '/../x', 'w')", "import gc; gc.get_objects()",
    "import torch; torch.save(1, outside)", "import sqlite3; sqlite3.connect(outside)",
    "import torch; torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), outside)",
    "import torch; torch.UntypedStorage.from_file(outside, True, 8)", "os.mkfifo(outside + '4')",
    "import torch; torch.from_file(outside, shared=True, size=4)",
    "import torch, safetensors.torch as st; st.save_file({'x': torch.ones(1)}, outside)",
    "import importlib; importlib.import_module('tinytf_course.exercises.ch05.lookup')",
    "from tinytf_course.grading import find; find('05.1')",
)  # fmt: skip
ALLOWED = (
    "open(outside).read()", "open(folder + '/mine', 'w')", "os.remove(folder + '/mine')",
    "open(os.devnull, 'w')", "import json; json.dumps(1)", "os.listdir('.')",
    "import torch; torch.save(1, folder + '/x')", "import io, torch; torch.save(1, io.BytesIO())",
    "import sqlite3; sqlite3.connect(':memory:')",
)  # fmt: skip


def test_only_its_own_folder_is_written_and_nothing_started(tmp_path):
    command = [sys.executable, "-c", SHUT, str(tmp_path / "outside")]
    lines = "\n".join([*REFUSED, *ALLOWED])
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    said = dict(zip([*REFUSED, *ALLOWED], done.stdout.split(), strict=True))
    assert [line for line in REFUSED if said[line] != "refused"] == []
    assert [line for line in ALLOWED if said[line] != "done"] == []


def test_a_change_of_the_course_is_seen(monkeypatch):
    untouched = Untouched()
    assert untouched.changed() == []
    monkeypatch.setattr(words, "short", lambda *_: "")
    assert untouched.changed() == ["changes the course's own tinytf_course.words.short"]


def no_grader():
    for name, module in list(sys.modules.items()):
        if name.startswith("tinytf_course"):
            for key, value in list(vars(module).items()):
                if isinstance(value, types.FunctionType):
                    setattr(module, key, lambda *_, **__: None)


def test_why_it_was_stopped_is_told():
    def slow(answer):
        """it is slow"""
        time.sleep(0.7)
        answer(torch.ones(1, 2, 4), 2)

    exercise = replace(SPLIT, id="99.9", tests=(slow,) * 5)
    assert "it was stopped after 2 s in all: does" in grade(exercise, print, seconds=2.0).text


def test_no_more_comes_back_than_is_read():
    def long_text(x, num_heads):
        return " " * 10**7

    def large(x, num_heads):
        return torch.zeros(2**21)

    def long_error(x, num_heads):
        raise ValueError("x" * 10**6)

    def long_names(x, num_heads):
        setattr(torch.nn.Linear, "x" * 10**6, print)
        return type("x" * 10**6, (), {})()

    answers = [long_text, large, long_error, long_names]
    found = [verdicts for verdicts, _ in trials(SPLIT, answers)]
    (text, *_), (tensor, *_), (error, *_), (kind, *_, untouched) = found
    assert text.found
    assert text.evidence == (" " * 10**5,)
    assert tensor.evidence == ("too long",)
    assert f"ValueError: {'x' * 300}…" in error.found
    assert all(400 < len(each.found) < 1100 for each in (kind, untouched))
    ((_, reason),) = trials(SPLIT, [type("x" * 10**5, (), {})()])
    assert len(reason) < 1100


def test_nothing_reaches_the_users_standard_error(monkeypatch, capfd):
    def writes(x, num_heads):
        os.write(2, b"here")
        no_grader()

    monkeypatch.setattr(worker, "_held", {})
    assert "it changes or ends what checks it" in grade(SPLIT, writes).text
    worker._held[os.getpid()].kill()
    assert capfd.readouterr().err == ""


def test_a_result_that_fails_the_grader_is_told_as_such():
    class Odd(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *_):
            return True

    odd = grade(SPLIT, lambda x, num_heads: torch.ones(1).as_subclass(Odd)).text
    assert "what it returns can't be checked: AttributeError: 'bool' object" in odd
    assert "it raises RuntimeError" in grade(SPLIT, min).text
