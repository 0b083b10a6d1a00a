"""What of a cell a class sees, and which of its outputs answers a prediction."""

import ast
import re

from tinytf_course.notebooks import source, tree
from tinytf_course.notebooks import text as output_text
from tinytf_course.site.folds import calls_of

_DEFINES = ast.FunctionDef | ast.ClassDef
_TESTS = ("claim", "graduate", "predict.answer")


def answers(notebook):
    """The HTML that answers each prediction of a chapter."""
    found = {}
    for cell in notebook.code:
        ids = [id for name, id in calls_of(cell) if name == "predict.answer"]
        for output in cell.get("outputs", []):
            shown = "".join(output.get("data", {}).get("text/html", ""))
            found |= {id: shown for id in ids if is_answer(shown) and named(shown) == id}
    return found


def named(shown):
    """The id that an output as HTML begins with, or None."""
    found = re.search(r"<code>([^<]*)</code>", shown)
    return found and found[1]


def is_answer(shown):
    """Whether an output as HTML answers a prediction."""
    return bool(re.search(r"</b> <code>[^<]*</code> (?:you said: .*; )?measured: <b>", shown))


def is_check(output):
    """Whether an output is an exercise's grade."""
    return "check" in output.get("metadata", {})


def is_claim(output):
    """Whether an output is a sentence that was measured."""
    return "claim" in output.get("metadata", {})


def is_graduate(output):
    """Whether an output says that a definition equals the package's."""
    return bool(re.match(r"✓ \S+ graduates: ", output_text(output).strip()))


def without_tests(text):
    """Python without the statements that measure, compare or answer a prediction."""
    lines = text.splitlines()
    for node in reversed(tree(text).body):
        call = node.value if isinstance(node, ast.Expr) else None
        tests = isinstance(call, ast.Call) and ast.unparse(call.func) in _TESTS
        said = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "stated"
        if tests or said:
            del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines).strip("\n")


def left_out(cell):
    """Whether a class need not see a cell's code: imports, tests, exercises, drawing."""
    outputs = cell.get("outputs", [])
    if "drawing" in cell.get("metadata", {}).get("tags", []):
        return True
    if (cell.get("id") or "").startswith("claim-"):
        return True
    if any(map(is_check, outputs)):
        return True
    statements = tree(source(cell)).body
    names = {name for name, _ in calls_of(cell)}
    drawn = any(form.startswith("image/") for output in outputs for form in output.get("data", {}))
    return (
        all(_is_import(node) or _is_setup(node) for node in statements)
        or (names == {"predict.answer"} and len(statements) <= 3)
        or (drawn and not any(isinstance(node, _DEFINES) for node in statements))
    )  # fmt: skip


def _is_setup(node):
    return isinstance(node, ast.Assign) and ast.unparse(node.value) == "setup()"


def only_imports(text):
    """Whether Python does nothing but import."""
    try:
        return all(map(_is_import, ast.parse(text).body))
    except SyntaxError:  # a piece of a longer statement
        return False


def _is_import(node):
    return isinstance(node, ast.Import | ast.ImportFrom)


def is_graduation(cell):
    """Whether a cell only compares what was built with the package's."""
    return all(ast.unparse(node).startswith("graduate(") for node in tree(source(cell)).body)
