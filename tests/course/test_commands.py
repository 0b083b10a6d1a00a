"""The commands on small folders: strange notebooks are left out, chapters are found by number."""

import json

import pytest

from tinytf_course.__main__ import main
from tinytf_course.commands import two_digits
from tinytf_course.outline import CHAPTERS

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

    monkeypatch.setattr("tinytf_course.commands.claims.readable", interrupted)
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


def test_a_patient_and_its_key(tmp_path, capsys):
    path = tmp_path / "sick.py"
    assert main(["patient", "--seed", "1", "--to", str(path)]) == 0
    compile(path.read_text(), "sick", "exec")
    assert main(["patient", "--seed", "1", "--to", str(path)]) == 1
    assert "name another file" in capsys.readouterr().err
    assert main(["patient", "--seed", "1", "--key"]) == 0
    assert "line" in capsys.readouterr().out
    assert main(["patient", "--exam", "2", "--to", str(tmp_path / "exam")]) == 0
    assert "2 patients" in capsys.readouterr().out
    assert main(["patient", "--exam", "0"]) == 1
