"""The commands on small folders: strange notebooks are left out, chapters are found by number."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tinytf.course import teaching
from tinytf.course.__main__ import main
from tinytf.course.commands import two_digits
from tinytf.course.commands.notes import html
from tinytf.course.outline import CHAPTERS

CLAIM = "claim('03-1', 'a sentence', 1, '<', 2)"


def text(*sources):
    """The JSON of a notebook; a cell that begins with # is Markdown."""
    cells = [
        {
            "cell_type": "markdown" if source.startswith("#") else "code",
            "id": "c",
            "metadata": {},
            "outputs": [],
            "source": source,
        }
        for source in sources
    ]
    return json.dumps({"cells": cells})


@pytest.mark.parametrize(
    ("given", "number"), [("3", "03"), ("03", "03"), ("14b", "14b"), ("4b", "04b")]
)
def test_numbers_of_chapters(given, number):
    assert two_digits(given) == number


@pytest.mark.parametrize("command", ["claims", "map", "report"])
def test_strange_notebooks_are_named_and_left_out(command, tmp_path, capsys):
    (tmp_path / "01_magic.ipynb").write_text(text("x = !ls", "%%bash\nls *", "torch?"))
    (tmp_path / "02_syntax.ipynb").write_text(text("x = = 2"))
    (tmp_path / "03_good.ipynb").write_text(text(CLAIM))
    (tmp_path / "04_broken.ipynb").write_text("{")
    assert main([command, "--notebooks", str(tmp_path)]) == 0
    shown = capsys.readouterr().err.splitlines()
    assert [line[:30] for line in shown] == [
        "left out: 02_syntax.ipynb, the",
        "left out: 04_broken.ipynb is n",
    ]


@pytest.mark.parametrize("command", ["build", "readme", "claims", "map", "report"])
def test_a_folder_that_is_not_there(command, tmp_path, capsys):
    assert main([command, "--notebooks", str(tmp_path / "none")]) == 1
    assert "say with --notebooks where they are" in capsys.readouterr().err


def test_ctrl_c_is_no_traceback(tmp_path, capsys, monkeypatch):
    def interrupted(folder, chapters):
        raise KeyboardInterrupt

    monkeypatch.setattr("tinytf.course.commands.claims.readable", interrupted)
    assert main(["claims", "--notebooks", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_report_names_what_is_long(tmp_path, capsys):
    (tmp_path / "03_a.ipynb").write_text(text("# 03 T\n\nwords", "# Further\n\nmore", "x\n" * 13))
    command = ["report", "--notebooks", str(tmp_path)]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    minutes = next(one.minutes for one in CHAPTERS if one.number == "03")
    assert lines[1].split()[:4] == ["03", "main", "2", "0"]
    assert lines[1].split()[-2:] == [str(minutes), "0"]
    assert lines[2].split()[:4] == ["side", "2", "13", "0.2"]
    assert main([*command, "3"]) == 0
    assert "03: 13 lines in c" in capsys.readouterr().out
    assert main([*command, "7"]) == 1
    assert "no such chapter" in capsys.readouterr().err


# notes

FOLDER = Path(__file__).parents[2] / "notebooks"


@pytest.fixture
def chapters(tmp_path):
    """A folder with three of the course's chapters."""
    (tmp_path / "n").mkdir()
    for number in ("05", "06", "24"):
        (path,) = FOLDER.glob(f"{number}_*.ipynb")
        shutil.copy(path, tmp_path / "n")
    return str(tmp_path / "n")


def test_notes_are_written_and_their_links_lead_somewhere(chapters, tmp_path, capsys):
    assert main(["notes", str(tmp_path / "t"), "--notebooks", chapters]) == 0
    files = {path.name for path in (tmp_path / "t").iterdir()}
    assert {"index.md", "05_scaled_dot_product_attention.md"} <= files
    for name in files:
        text = (tmp_path / "t" / name).read_text(encoding="utf-8")
        links = re.findall(r'\]\(([^)]+)\)|href="([^"]+)"', text)
        for link in {a or b for a, b in links} - {""}:
            assert link in files, (name, link)
    told = capsys.readouterr().out
    assert "notes for 3 chapters" in told
    assert "without notes or notebook: 00, 01" in told


def test_html_has_the_tables():
    pytest.importorskip("mistune")
    made = html({"a.md": "# A & B\n\n| x | y |\n| --- | --- |\n| 1 | [b](b.md) |\n"})
    assert list(made) == ["a.html"]
    assert "<title>A &amp; B</title>" in made["a.html"]
    assert '<td><a href="b.html">b</a></td>' in made["a.html"]


def test_notes_that_name_nothing_stop_it(chapters, tmp_path, capsys, monkeypatch):
    (tmp_path / "ch05.md").write_text(
        teaching.written()["05"].read_text(encoding="utf-8").replace("{05-15}", "{05-99}"),
        encoding="utf-8",
    )
    monkeypatch.setattr(teaching, "FOLDER", tmp_path)
    assert main(["notes", str(tmp_path / "t"), "--notebooks", chapters]) == 1
    assert "ch05.md: 05-99 is nothing in this chapter" in capsys.readouterr().err
    assert not (tmp_path / "t").exists()


def test_an_edition_without_notes_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(teaching, "FOLDER", tmp_path / "none")
    assert main(["notes", str(tmp_path / "t"), "--notebooks", str(FOLDER)]) == 1
    assert capsys.readouterr().err == "this edition has no teacher's notes\n"
