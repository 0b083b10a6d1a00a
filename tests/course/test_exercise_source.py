"""The source of an exercise's file: stub, edits, entries, and what is left without answers."""

import ast

import pytest

from tinytf_course.exercise_source import edited, edits, emptied, entries, stub

SOURCE = """def split(x, num_heads):
    \"\"\"One line.

    And more.
    \"\"\"
    width = x.size(-1) // num_heads
    return x.unflatten(-1, (num_heads, width))
"""
STUB = """def split(x, num_heads):
    \"\"\"One line.

    And more.
    \"\"\"
    raise NotImplementedError
"""


def test_a_stub_is_cut_from_the_reference():
    assert stub(SOURCE) == STUB
    text = 'class A(nn.Module):\n    """What."""\n\n    def f(self):\n        return 1\n'
    assert stub(text).endswith("\n\n    def f(self):\n        raise NotImplementedError\n")


def test_an_edit_fits_once():
    assert edited("def f(x):\n    return x + 1\n", [("x + 1", "x")]) == "def f(x):\n    return x\n"
    with pytest.raises(ValueError, match="'x' is 2 times, not once, in"):
        edited("def f(x):\n    return x\n", [("x", "y")])
    lines = edited("def f(x):\n    return x + 1\n", [("return x + 1", "x = 2\nreturn x")])
    assert lines == "def f(x):\n    x = 2\n    return x\n"
    body = edited('def f(x):\n    """Go."""\n    return x\n', [("…", "y = 2"), ("2", "3")])
    assert body == 'def f(x):\n    """Go."""\n    y = 3\n'


def test_lines_are_read_as_edits_and_entries():
    lines = ["a => b", "c =>", "    d", "        e", "f =>"]
    assert edits(lines) == [("a", "b"), ("c", "d\n    e"), ("f", "")]
    text = "\none\n    first\n    second\ntwo\n    third\n"
    assert entries(text) == [("one", "first second"), ("two", "third")]
    assert entries(text, whole=False)[0] == ("one", ["first", "second"])


def test_without_answers_a_stub_and_the_tests_are_left():
    text = f'"""Doc."""\n\n{SOURCE}\n\ndef test_a(answer):\n    pass\n\n\nMISTAKES = ""\n'
    left = ast.unparse(emptied(ast.parse(text)))
    assert "raise NotImplementedError" in left
    assert "def test_a(answer)" in left
    assert "unflatten" not in left
    assert "MISTAKES" not in left
