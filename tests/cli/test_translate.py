"""One sentence translated from the shell."""

import os
import subprocess
import sys

import pytest

from tinytf.__main__ import main


def test_a_sentence_is_translated_quoted_or_not(capsys):
    assert main(["translate", "the cat sat on the mat"]) == 0
    assert capsys.readouterr().out == "猫 坐 在 垫子 上\n"
    assert main(["translate", "the", "cat", "sat", "on", "the", "mat", "--beam", "2"]) == 0
    assert capsys.readouterr().out == "猫 坐 在 垫子 上\n"
    assert main(["translate", "the big black cat sat on the mat"]) == 0
    assert "(not a sentence of the phrasebook; mean log-prob" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["The cat sat"], "did you mean 'the'"),
        ([""], "error: "),
        (["the cat sat", "--beam", "0"], "error: "),
        (["the cat sat", "--model", "none.safetensors"], "there is no checkpoint"),
    ],
)
def test_what_can_t_be_translated_is_said_in_a_line(arguments, said, capsys):
    assert main(["translate", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_a_console_without_chinese_gets_it_nevertheless():
    command = [sys.executable, "-m", "tinytf", "translate", "the cat sat on the mat"]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=ascii_only, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode("utf-8").split() == ["猫", "坐", "在", "垫子", "上"]
