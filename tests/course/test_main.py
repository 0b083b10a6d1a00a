"""The commands that list claims and exercises."""

import json
import subprocess
import sys

import pytest
from course_support import cell, chapter

from tinytf_course.__main__ import COMMANDS, main
from tinytf_course.notebooks import notebooks


def test_claims_are_listed(tmp_path, capsys):
    late = "said = 'early'\nsaid = (\n    'late by {:.1f} s '\n    'and more'\n)\n"
    cells = [*chapter(), cell(late + "claim('03-9', said, 1, '<', 2)\nsaid = 'after'")]
    (tmp_path / "03_a.ipynb").write_text(json.dumps({"cells": cells}))
    assert len(notebooks(tmp_path)[0].claims()) == 6
    assert main(["claims", "--notebooks", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "03  03-0     s\n" in shown
    assert "03-9     late by … s and more\n" in shown
    assert "6 claims" in shown
    assert main(["claims", "--notebooks", str(tmp_path), "04"]) == 1


def test_exercises_are_listed(capsys):
    assert main(["exercises", "--chapter", "03"]) == 0
    assert "✓ 03.1" in capsys.readouterr().out
    assert main(["exercises", "--chapter", "03", "--markdown"]) == 0
    shown = capsys.readouterr().out
    assert "<details><summary>Solution" in shown
    assert "raise NotImplementedError" in shown


def test_claims_are_found_from_any_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["claims", "3"]) == 0
    assert "\n03  " in "\n" + capsys.readouterr().out
    assert main(["claims", "--notebooks", str(tmp_path / "none")]) == 1
    assert "say with --notebooks where they are" in capsys.readouterr().err


def test_a_chapter_without_exercises_is_named(capsys):
    assert main(["exercises", "--chapter", "3", "--markdown"]) == 0
    assert "### Exercise 03.1" in capsys.readouterr().out
    assert main(["exercises", "--chapter", "99"]) == 1
    assert "chapter 99 has no exercises" in capsys.readouterr().err


def test_help_loads_no_command_and_no_torch():
    ask = """
import sys
from tinytf_course.__main__ import main
try:
    main(["--help"])
finally:
    print(sorted({"torch", "nbformat"} & set(sys.modules)), len(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    *shown, last = done.stdout.splitlines()
    assert last.startswith("[] ")
    assert all(any(line.split()[:1] == [name] for line in shown) for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_that_is_listed_is_there(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert f"usage: python -m tinytf_course {name}" in capsys.readouterr().out


def test_a_command_that_is_not_there_is_an_error(capsys):
    with pytest.raises(SystemExit) as end:
        main(["fly"])
    assert end.value.code == 2
    assert "invalid choice: 'fly'" in capsys.readouterr().err


def test_help_gives_defaults_of_every_command(capsys):
    for command, options in {"start": ["--to", "mine"], "patient": ["--seed", "0"]}.items():
        with pytest.raises(SystemExit):
            main([command, "--help"])
        shown = " ".join(capsys.readouterr().out.split())
        assert f"{options[0]} " in shown
        assert f"(default: {options[1]})" in shown
        assert shown.count("--notebooks NOTEBOOKS folder of the chapters (default: ") == (
            command == "start"
        )


def test_what_is_missing_is_installed_from_the_course_s_folder():
    ask = "import sys; sys.modules['nbformat'] = sys.modules['matplotlib'] = None\n"
    ask += "import tinytf_course.__main__ as m; m.main(['build', '99'])"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    assert done.returncode == 1
    assert 'run pip install -e ".[course]" in the course\'s folder' in done.stderr
