"""What an answer may not do is refused, and what it changed is seen."""

import subprocess
import sys

from tinytf_course import words
from tinytf_course.release.guard import Untouched

# Try each line in a process that is shut; say which were refused.
SHUT = """
import os, sys, tempfile
from tinytf_course.release.guard import shut
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
)  # fmt: skip
ALLOWED = (
    "open(outside).read()", "open(folder + '/mine', 'w')", "os.remove(folder + '/mine')",
    "open(os.devnull, 'w')", "import json; json.dumps(1)", "os.listdir('.')",
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
    assert untouched.changed() is None
    monkeypatch.setattr(words, "short", lambda *_: "")
    assert untouched.changed() == "tinytf_course.words.short"
