"""A reader's own copies: what they wrote is kept, what they only ran follows the chapter."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tinytf_course import copies
from tinytf_course.__main__ import main
from tinytf_course.copies import fresh_copy, update
from tinytf_course.notebooks import NotebookError, source


def cell(id, text, kind="code", **more):
    extra = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"id": id, "cell_type": kind, "metadata": {}, "source": [text], **extra, **more}


def chapter(*cells):
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def texts(notebook):
    return [source(cell) for cell in notebook["cells"]]


FIRST = chapter(cell("title", "# 07 It", "markdown"), cell("a", "x = 1"), cell("b", "y = 2"))


def test_what_was_only_run_follows_the_chapter_and_what_was_written_stays():
    mine = fresh_copy(FIRST)
    mine["cells"][1]["outputs"] = ["ran"]
    mine["cells"][2]["source"] = ["y = 5  # mine"]
    mine["cells"].insert(3, cell("own", "print('my own')"))
    second = chapter(
        cell("title", "# 07 It, again", "markdown"), cell("a", "x = 1"), cell("new", "z = 3"),
        cell("b", "y = 4"),
    )  # fmt: skip
    after, did = update(mine, second)
    assert texts(after) == ["# 07 It, again", "x = 1", "z = 3", "y = 5  # mine", "print('my own')"]
    assert after["cells"][1]["outputs"] == ["ran"]
    assert did == (["new"], ["title"], [], ["b"])
    again, did = update(after, second)
    assert texts(again) == texts(after)
    assert not did.new + did.changed + did.gone


def test_cells_that_are_gone_go_unless_something_was_written_in_them():
    mine = fresh_copy(FIRST)
    mine["cells"][2]["source"] = ["y = 5  # mine"]
    after, did = update(mine, chapter(FIRST["cells"][0]))
    assert texts(after) == ["# 07 It", "y = 5  # mine"]
    assert did.gone == ["a"]


def test_an_update_of_what_is_no_copy_is_refused():
    with pytest.raises(ValueError, match="nothing says what is yours"):
        update(chapter(cell("a", "x")), FIRST)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "07_it.ipynb").write_text(json.dumps(FIRST))
    return tmp_path


def run(folder, command, *options):
    places = ["--to", str(folder / "mine")]
    if command != "progress":
        places += ["--notebooks", str(folder / "notebooks")]
    return main([command, *options, *places])


def mine(folder):
    return folder / "mine" / "07_it.ipynb"


def test_start_copies_once_and_update_brings_what_is_new(folder, capsys):
    assert run(folder, "start", "--no-open") == 0
    assert "1 chapters copied, 0 were there" in capsys.readouterr().out
    written = json.loads(mine(folder).read_text())
    written["cells"][2]["source"] = ["y = 5  # mine"]
    mine(folder).write_text(json.dumps(written))
    newer = chapter(*FIRST["cells"], cell("c", "z = 3"))
    (folder / "notebooks" / "07_it.ipynb").write_text(json.dumps(newer))
    assert run(folder, "start", "--no-open") == 0
    assert texts(json.loads(mine(folder).read_text()))[-1] == "y = 5  # mine"
    assert run(folder, "start", "--no-open", "--update") == 0
    assert texts(json.loads(mine(folder).read_text()))[-2:] == ["y = 5  # mine", "z = 3"]
    assert "1 cells new, 0 changed, 0 gone" in capsys.readouterr().out


def git(where, *words):
    who = {f"GIT_{role}_{part}": "reader@example.org"
           for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}  # fmt: skip
    clean = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", "-C", str(where), *words], capture_output=True, text=True,
                          env={**os.environ, **who, **clean})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_pull_never_meets_a_reader_s_copy(folder, tmp_path_factory):
    ignored = (Path(__file__).parents[2] / ".gitignore").read_text()
    (folder / ".gitignore").write_text(ignored)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    reader = tmp_path_factory.mktemp("reader") / "tinytf"
    git(reader.parent, "clone", "-q", str(folder), "tinytf")
    run(reader, "start", "--no-open")
    written = json.loads(mine(reader).read_text())
    written["cells"][2] |= {"source": ["y = 5  # mine"], "outputs": [output("5")]}
    mine(reader).write_text(json.dumps(written))
    assert git(reader, "status", "--porcelain") == ""  # working leaves the course as it was
    newer = chapter(*FIRST["cells"][:2], cell("b", "y = 20"), cell("c", "z = 3"))
    (folder / "notebooks" / "07_it.ipynb").write_text(json.dumps(newer))
    git(folder, "commit", "-qam", "second")
    git(reader, "pull", "-q", "--ff-only")
    assert json.loads((reader / "notebooks" / "07_it.ipynb").read_text()) == newer
    assert json.loads(mine(reader).read_text()) == written
    assert run(reader, "start", "--no-open", "--update") == 0
    assert texts(json.loads(mine(reader).read_text()))[-2:] == ["y = 5  # mine", "z = 3"]
    assert git(reader, "status", "--porcelain") == ""


def test_a_copy_that_is_no_notebook_is_left_and_named(folder, capsys):
    run(folder, "start", "--no-open")
    mine(folder).write_text("what is this")
    assert run(folder, "start", "--no-open", "--update") == 0
    assert "left as it is: 07_it.ipynb is not a notebook" in capsys.readouterr().out
    assert mine(folder).read_text() == "what is this"


def test_start_without_chapters_says_so(tmp_path, capsys):
    (tmp_path / "notebooks").mkdir()
    assert run(tmp_path, "start", "--no-open") == 1
    assert "no such chapter in" in capsys.readouterr().err


def test_reset_gives_a_chapter_back_and_keeps_what_was_there(folder, capsys):
    run(folder, "start", "--no-open", "--mode", "build")
    mine(folder).write_text(mine(folder).read_text().replace("y = 2", "y = 9"))
    assert run(folder, "reset", "7") == 0
    copied = json.loads(mine(folder).read_text())
    assert "y = 2" in texts(copied)
    assert copied["metadata"]["tinytf"]["mode"] == "build"
    assert "y = 9" in (folder / "mine" / "07_it.mine1.ipynb.txt").read_text()
    assert run(folder, "reset", "7") == 0
    assert (folder / "mine" / "07_it.mine2.ipynb.txt").exists()
    assert run(folder, "reset", "08") == 1
    assert "no chapter 08" in capsys.readouterr().err


def output(text="", **metadata):
    return {"output_type": "display_data", "data": {"text/plain": text}, "metadata": metadata}


def test_progress_counts_what_was_said_solved_and_built(folder, capsys):
    assert run(folder, "progress") == 1
    assert "`python -m tinytf_course start` makes it" in capsys.readouterr().err
    run(folder, "start", "--no-open")
    assert run(folder, "progress") == 0
    assert "nothing yet" in capsys.readouterr().out
    outputs = [
        output("✓ 11-a  you said: 2; measured: 2"), output("→ 11-b  you said: 3; measured: 4"),
        output("→ 11-c  measured: 4"),
        output(check={"id": "11.1", "status": "passed"}),
        output(check={"id": "11.2", "status": "failed"}),
        output(check={"id": "11.3", "status": "not yet"}),
        output(built={"name": "gelu", "status": "passed"}),
    ]  # fmt: skip
    for name in ("07_it.ipynb", "08_other.ipynb"):
        copied = chapter(cell("a", "x = 1", outputs=outputs))
        (folder / "mine" / name).write_text(json.dumps(copied))
    capsys.readouterr()
    assert run(folder, "progress") == 0
    lines = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    lines = [[part.strip() for part in line if part.strip()] for line in lines]
    assert lines[1] == ["07", "1 of 2", "1 of 2", "1 of 1"]
    assert lines[-1] == ["all", "2 of 4", "2 of 4", "2 of 2"]


def test_a_copy_is_read_or_what_is_wrong_with_it_is_said(tmp_path):
    from tinytf_course.copies import read

    with pytest.raises(NotebookError, match=r"gone\.ipynb: there is no such file"):
        read(tmp_path / "gone.ipynb")
    (tmp_path / "list.ipynb").write_text("[]")
    with pytest.raises(NotebookError, match=r"list\.ipynb is not a notebook"):
        read(tmp_path / "list.ipynb")


def test_a_copy_of_before_the_course_moved_gets_the_new_names_and_keeps_what_is_written():
    chapter = {"cells": [
        {"cell_type": "code", "id": "first", "metadata": {}, "outputs": [], "source":
            ["from tinytf_course import check\n"]},
        {"cell_type": "code", "id": "mine", "metadata": {}, "outputs": [], "source": ["a = 1"]},
    ], "metadata": {}}  # fmt: skip
    mine = copies.fresh_copy(chapter)
    mine["cells"][0]["source"] = ["from tinytf.course import check  # my note\n"]
    own = {"cell_type": "code", "id": "own", "metadata": {}, "outputs": [], "source":
           ["from tinytf import GPT, viz\n", "answer = 42"]}  # fmt: skip
    mine["cells"].append(own)
    brought, _ = copies.update(mine, chapter)
    assert ["".join(cell["source"]) for cell in brought["cells"]] == [
        "from tinytf_course import check  # my note\n",
        "a = 1",
        "from tinytf import GPT\nfrom tinytf_course import drawings as viz\nanswer = 42",
    ]
