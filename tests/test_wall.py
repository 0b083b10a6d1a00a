"""The wall: tinytf never imports the course, it is small, and its top level is the Transformer."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE, COURSE = ROOT / "tinytf", ROOT / "notebooks" / "tinytf_course"
MOST_LINES = 15_200  # each step that makes a room smaller lowers it
TOP = {
    "__init__", "__main__", "attention", "bert", "blocks", "checks", "course", "embedding",
    "feedforward", "gpt", "grouped_query", "initialisation", "inspect", "llama", "masks", "norm",
    "positional", "relative", "residual", "service", "transformer",
}  # fmt: skip


def named(path):
    """The modules that a file imports, or asks for by a name that is written out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
            yield from (str(a.value) for a in node.args if isinstance(a, ast.Constant))


def test_tinytf_never_imports_the_course():
    over = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(name.split(".")[0] == "tinytf_course" for name in named(path))
    }
    assert over == {"tinytf/course.py"}  # which says where the course went


def test_the_course_imports_tinytf():
    """Else the test above could not fail: imports are found."""
    found = {name.split(".")[0] for path in COURSE.rglob("*.py") for name in named(path)}
    assert {"tinytf", "tinytf_course"} <= found


def test_tinytf_is_small():
    lines = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in PACKAGE.rglob("*.py"))
    assert lines <= MOST_LINES


def test_the_top_level_is_the_transformer():
    assert {path.stem for path in PACKAGE.glob("*.py")} == TOP


def test_tinytf_works_where_the_course_is_not():
    ask = """
import sys
sys.modules["tinytf_course"] = None
from tinytf import Translator
print(Translator.load(device="cpu")("the cat sat on the mat").in_grammar)
"""
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.returncode) == ("None\n", 0), done.stderr


def test_the_old_name_of_a_command_works_and_says_the_new_one():
    command = [sys.executable, "-m", "tinytf.course", "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert "usage: python -m tinytf_course" in done.stdout
    assert done.stderr == "`python -m tinytf.course` is `python -m tinytf_course` now\n"


@pytest.mark.parametrize("line", ["from tinytf.course import claim", "from tinytf import studies"])
def test_an_old_copy_stops_with_what_to_do(line):
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("tinytf.course.Moved: ")
    assert '`pip install -e ".[course]"` and `python -m tinytf_course start --update`' in last
