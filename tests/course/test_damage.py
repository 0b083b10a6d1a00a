"""A learner's damaged notebook ends no command, stops no other chapter, and loses no work."""

import contextlib
import io
import json
import os
import random
import re

import pytest
from damage_support import MARK, damage, deep

from tinytf_course.__main__ import main


def course(folder):
    """Two chapters, and a learner's copy of each; what they wrote in the first has marks."""
    (folder / "notebooks").mkdir()
    for name in ("05_a.ipynb", "06_b.ipynb"):
        cells = [{"id": "title", "cell_type": "markdown", "metadata": {}, "source": ["# It\n"]}]
        for number in range(8):
            text = [f"x{number} = {number}\n", "y = x0 * 2\n"]
            cells.append({"id": f"c-{number}", "cell_type": "code", "metadata": {}, "outputs": [],
                          "execution_count": None, "source": text})  # fmt: skip
        notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        (folder / "notebooks" / name).write_text(json.dumps(notebook))
    assert command(folder, "start", "--no-open")[0] == 0
    written = json.loads((folder / "mine" / "05_a.ipynb").read_text())
    for number in (2, 3, 6):
        written["cells"][number]["source"].append(f"z = 3  {MARK}{number}\n")
    own = {"id": "own", "cell_type": "code", "metadata": {}, "source": [f"{MARK}9"], "outputs": []}
    written["cells"].insert(5, own)
    newer = json.loads((folder / "notebooks" / "05_a.ipynb").read_text())
    newer["cells"][4]["source"] = ["x3 = 'the chapter moved on'\n"]
    newer["cells"][1]["source"] = ["x0 = 'here as well'\n"]
    (folder / "notebooks" / "05_a.ipynb").write_text(json.dumps(newer))
    return written


def command(folder, *words):
    """The exit status of a command, and all it said."""
    places = ["--to", str(folder / "mine")]
    if words[0] != "progress":
        places += ["--notebooks", str(folder / "notebooks")]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = main([*words, *places])
    return status, said.getvalue()


def marks(folder):
    """All marks in the files of a folder, whatever they are."""
    found = [set(re.findall(rf"{MARK}(\d+)", text(path))) for path in folder.iterdir()]
    return set().union(*found)


def text(path):
    return path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""


def tried(folder, data):
    """Update, look at the progress of, and reset a damaged copy: what was said by each."""
    path = folder / "mine" / "05_a.ipynb"
    if data is not None:
        path.write_bytes(data)
    before, other = marks(folder / "mine"), (folder / "mine" / "06_b.ipynb").read_bytes()
    said = {}
    for words in (("start", "--no-open", "--update"), ("progress",), ("reset", "05")):
        status, said[words[0]] = command(folder, *words)
        assert status == 0, said
        assert before <= marks(folder / "mine"), said
    assert (folder / "mine" / "06_b.ipynb").read_bytes() == other
    reset = json.loads(path.read_text())
    assert [cell["id"] for cell in reset["cells"]] == ["title", *(f"c-{i}" for i in range(8))]
    return said


@pytest.mark.parametrize("seed", range(48))
def test_a_damaged_copy_is_read_around_and_nothing_is_lost(seed, tmp_path):
    data, _ = damage(course(tmp_path), random.Random(35_000 + seed))
    tried(tmp_path, data)


def broken(written, **changes):
    return json.dumps(written | changes).encode()


CASES = {
    "nested deeply": (lambda w: broken(w, metadata={"a": "%"}).replace(b'"%"', deep(2000).encode()),
                      "nested too deeply"),
    "metadata a list": (lambda w: broken(w, metadata=[]), "metadata has the wrong type"),
    "a cell a number": (lambda w: broken(w, cells=[*w["cells"], 3]), "cell 11 is no cell"),
    "a source a number": (lambda w: broken(w, cells=[w["cells"][0] | {"source": 3}]),
                          "cell 1 has a source that is not text"),
    "an output's metadata a list": (
        lambda w: broken(w, cells=[w["cells"][1] | {"outputs": [{"metadata": []}]}]),
        "cell 1 has an output that is none"),
    "handed out a list": (lambda w: broken(w, metadata={"tinytf": {"handed_out": []}}),
                          "nothing says what is yours"),
    "not UTF-8": (lambda w: b"\xff\xfe{}", "it is not UTF-8"),
    "an entry twice": (lambda w: b'{"cells": [], "cells": []}', "'cells' is given twice"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_with_a_copy_is_said_in_a_sentence(case, tmp_path):
    make, words = CASES[case]
    said = tried(tmp_path, make(course(tmp_path)))
    assert f"left as it is: {'05_a.ipynb' if 'nothing' not in words else ''}" in said["start"]
    assert words in said["start"]
    assert "05_a.mine1.ipynb.txt" in said["reset"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "huge"])
def test_what_is_no_plain_file_is_said_and_reset_puts_it_aside(kind, tmp_path):
    course(tmp_path)
    path = tmp_path / "mine" / "05_a.ipynb"
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "huge":
        path.touch()
        os.truncate(path, 60 * 2**20)
    else:
        path.symlink_to("/dev/zero")
    said = tried(tmp_path, None)
    words = "is larger than 50 MB" if kind == "huge" else "is a folder or a device, not a file"
    assert words in said["start"]
    assert words in said["progress"]
    assert "05_a.mine1.ipynb.txt" in said["reset"]
    assert os.path.lexists(tmp_path / "mine" / "05_a.mine1.ipynb.txt")


def test_a_half_written_cell_does_not_hide_a_chapters_progress(tmp_path):
    written = course(tmp_path)
    written["cells"][2]["source"] = "def half("
    written["cells"][1]["outputs"] = [
        {"output_type": "display_data", "data": {},
         "metadata": {"check": {"id": "05.1", "status": "passed"}}}]  # fmt: skip
    (tmp_path / "mine" / "05_a.ipynb").write_text(json.dumps(written))
    status, said = command(tmp_path, "progress")
    assert status == 0
    assert "1 of 1" in said
    assert "left out" not in said


def test_names_that_are_no_text_are_shown_as_escapes(tmp_path):
    course(tmp_path)
    for name in (b"07_\xff.ipynb", b"08_\x1b[2J.ipynb"):
        with open(os.fsencode(tmp_path / "mine") + b"/" + name, "wb") as file:
            file.write(b"{")
    status, said = command(tmp_path, "progress")
    assert status == 0
    assert r"07_\udcff.ipynb is not a notebook" in said
    assert r"08_\x1b[2J.ipynb is not a notebook" in said
    said.encode("utf-8")
