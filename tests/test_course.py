"""The course's face: names are loaded when they are used, and are functions whatever is loaded."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tinytf_course as course


def test_every_public_name_can_be_had():
    for name in course.__all__:
        assert callable(getattr(course, name)), name
    assert set(course.__all__) <= set(dir(course))
    with pytest.raises(AttributeError, match="has no attribute 'chek'"):
        course.chek  # noqa: B018


@pytest.mark.parametrize("first", ["", "import tinytf_course.check, tinytf_course.setup\n"])
def test_a_name_is_the_function_though_its_file_is_called_so_too(first):
    ask = "from tinytf_course import check, setup; print(callable(check), callable(setup))"
    done = subprocess.run([sys.executable, "-c", first + ask], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True True\n", "")


def test_an_editor_is_told_the_same_names_and_files():
    tree = ast.parse(Path(course.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    told = {
        alias.asname: node.module.rpartition(".")[2]
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told == course._HOME
