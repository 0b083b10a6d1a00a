"""IPython's lines become calls, everything else stays, in time in proportion to the length."""

import ast
import time

import pytest

from tinytf_course.ipython import as_python
from tinytf_course.notebooks import calls_in, tree

KINDS = {  # a cell: the statements that it has
    "!ls": "Expr",
    "x = !ls -l | grep '": "Assign",
    "d['a'], b = %pwd": "Assign",
    "torch.softmax??": "Expr",
    "?torch.softmax": "Expr",
    "!ls \\\n  -l\ny = 1": "Expr Assign",
    "for f in files:\n    !echo {f}\n    %time g()": "For",
    "y = (1,\n     2)\n!ls (": "Assign Expr",
    "z = a \\\n  % b\n!ls": "Assign Expr",
    "s = '''\n%d of\n!ls\n'''\n%cd ..": "Assign Expr",
    "print('a = %d' % 3)  # why?\n!ls": "Expr Expr",
    "  x = 1\n  !ls": "Assign Expr",
    ">>> x = 1\n>>> !ls": "Assign Expr",
    "/f x\n;g y": "Expr Expr",
    "\n%%bash\nfor f in *; do": "",
}


@pytest.mark.parametrize("code", KINDS)
def test_ipython_s_lines_are_calls(code):
    assert [type(node).__name__ for node in tree(code).body] == KINDS[code].split()


def test_strings_and_the_lines_numbers_stay():
    code = as_python("s = '''\n%d of\n'''\n!a \\\n b\nclaim('1')")
    found = ast.parse(code)
    assert ast.literal_eval(found.body[0].value) == "\n%d of\n"
    assert calls_in(found, "claim")[0].lineno == 6


@pytest.mark.parametrize("code", ["x = = 2", "f(?)", "1 +", "q = '''never ends\n!ls", "x = '\0'"])
def test_what_is_neither_is_a_syntax_error(code):
    with pytest.raises(SyntaxError):
        tree(code)


@pytest.mark.parametrize("code", ["(" * 5000, "-" * 50_000 + "1", "not " * 20_000 + "x"])
def test_what_is_nested_too_deeply_is_a_syntax_error(code):
    with pytest.raises(SyntaxError):
        tree(code)


@pytest.mark.parametrize("lines", [400, 501])
def test_many_lines_of_the_shell_are_read_at_once(lines):
    """IPython's own transformer takes time with the cube of their number."""
    before = time.process_time()
    assert len(tree("\n".join(["!ls"] * lines + ["x = 1"] * 8000)).body) == lines + 8000
    assert time.process_time() - before < 20
