"""The package's face: a name is loaded when it is used, and nothing before."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tinytf

HERE = Path(tinytf.__file__)


def loaded_by(statement):
    """What a new process has loaded after a statement: (our modules, whether torch is there)."""
    ask = (
        f"import sys\n{statement}\n"
        "print(*(name for name in sys.modules if name.split('.')[0] == 'tinytf'), end='|')\n"
        "print('torch' in sys.modules, end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True, check=True, cwd=HERE.parents[1]
    )
    names, torch = done.stdout.split("|")
    return names.split(), torch == "True"


@pytest.mark.parametrize(
    ("statement", "most", "torch"),
    [
        ("import tinytf", 1, False),
        ("import tinytf.attention", 8, True),
        ("from tinytf.attention import MultiHeadAttention", 8, True),
        ("from tinytf import Transformer", 15, True),
        ("from tinytf.__main__ import main; main(['--help'])", 2, False),
    ],
)
def test_an_import_loads_what_it_needs(statement, most, torch):
    shown = f"import contextlib, io\n{QUIET}{statement}" if "main" in statement else statement
    names, has_torch = loaded_by(shown)
    assert "tinytf" in names
    assert len(names) <= most, f"{statement} loads {len(names)} modules: {names}"
    assert has_torch is torch


QUIET = "with contextlib.redirect_stdout(io.StringIO()): "


def test_every_public_name_can_be_had():
    assert len(tinytf.__all__) > 50
    for name in tinytf.__all__:
        assert getattr(tinytf, name).__name__ == name
    assert set(tinytf.__all__) <= set(dir(tinytf))


def test_another_name_is_an_error_as_in_any_module():
    with pytest.raises(AttributeError, match="module 'tinytf' has no attribute 'Reformer'"):
        tinytf.Reformer  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Reformer'"):
        from tinytf import Reformer  # noqa: F401


def test_an_editor_is_told_the_same_names_and_homes():
    tree = ast.parse(HERE.with_suffix(".pyi").read_text(encoding="utf-8"))
    told = {
        alias.asname: node.module.removeprefix("tinytf.")
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told == tinytf._HOME
