"""What an answer may not do is refused, and what it changed is seen."""

import subprocess
import sys

from tinytf_course import words
from tinytf_course.guard import Untouched

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
