"""Build mode: definitions that graduate are met as stubs, and the reader writes them.

`stubs` makes a chapter's build copy: every definition that graduates becomes a stub, its signature,
its description and `raise NotImplementedError`, followed by `name = built(name, target)`. That call
runs the part's tests (`tinytf_course.parts`) on what stands in the cell. What passes is used from
there on, training included; until it does, the package's stands in, and the line says so. Either
way the chapter runs from top to bottom.
"""

import ast
import inspect
import linecache
import os
import sys
import textwrap
from dataclasses import replace

from tinytf.attention import attention_weights, explicit_attention, fused_attention
from tinytf_course.check import UNTOUCHED, grade
from tinytf_course.display import BAD, GOOD, QUIET, block, inline, show, sign
from tinytf_course.grading import Exercise
from tinytf_course.graduate import stand
from tinytf_course.parts import parts
from tinytf_course.service import Idea, served
from tinytf_course.stubs import TYPES_UNREAD, part_of

__all__ = ["MODES", "Unchecked", "built", "graded", "let_look_inside", "mode", "stand_in"]

MODES = ("read", "build")


def mode():
    """Read TINYTF_MODE: "read" (also where it is not set) or "build". ValueError otherwise."""
    wanted = os.environ.get("TINYTF_MODE") or "read"
    if wanted not in MODES:
        raise ValueError(f"TINYTF_MODE={wanted!r} is not one of {', '.join(MODES)}")
    return wanted


def built(definition, target):
    """Test the reader's version of a part; return it if all holds, else the package's.

    `target` is the module that has the part, as `graduate` takes it. Shows one line with what
    stands from here on, and below it what does not hold yet. Raises KeyError if it is no part.
    """
    part = parts()[part_of(definition.__name__, target)]
    definition = served(definition, part.package)
    result = graded(part, definition)
    if result.passed:
        let_look_inside(part.package, definition)
    stands = definition if result.passed else stand_in(part.package, sys._getframe(1).f_globals)
    stand(stands, result)
    _show(part, result)
    return stands


def graded(part, definition, seconds=30.0, until_wrong=False):
    """Run a part's tests on the reader's version, contained as an exercise's are."""
    exercise = Exercise(
        id=part.name,
        title="",
        difficulty=1,
        minutes=0,
        statement="",
        hints=(),
        function=part.package,
        stub="",
        tests=part.tests,
        changes=part.changes,
    )
    result = grade(exercise, definition, seconds, until_wrong)
    # torch raises it too, for what it can't do with a dtype: not the stub's own line
    stub = "`raise NotImplementedError"
    if result.problems and all(stub in found for _, found in result.problems):
        result = replace(result, status="not yet", reason="still to be written")
    return result


def stand_in(package, names):
    """The package's code, made among the notebook's names, as the chapter's own cell would be.

    So it works with what the reader has written before. What it checks of its input by `check_…`
    is left out, as it is on the page, and so are its service lines, which are then added again.
    """
    source = textwrap.dedent(inspect.getsource(package))
    code = ast.unparse(Unchecked().visit(Idea(ast.parse(source).body[0], source).node))
    file = f"<{package.__module__}.{package.__qualname__}, standing in>"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    names = {**vars(sys.modules[package.__module__]), **names}
    exec(compile(code, file, "exec", flags=TYPES_UNREAD, dont_inherit=True), names)
    version = served(names[package.__name__], package)
    let_look_inside(package, version)
    return version


def let_look_inside(package, version):
    """Say which weights a version of an attention function mixes by, for `tinytf.record`.

    That knows the package's own functions, and would refuse a reader's.
    """
    if package in (fused_attention, explicit_attention):
        version.weights = attention_weights


class Unchecked(ast.NodeTransformer):
    """Takes out functions called check_… or _check…, and calls of them."""

    def visit_FunctionDef(self, node):
        """Drop a check; elsewhere drop calls of checks."""
        if _checks(node.name):
            return None
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]  # it only checked
        return node

    def visit_Expr(self, node):
        """Drop a statement that only calls a check."""
        called = getattr(node.value, "func", None)
        name = getattr(called, "id", None) or getattr(called, "attr", "")
        return None if _checks(name) else node


def _checks(name):
    return name.startswith(("check_", "_check"))


def _show(part, result):
    name = f"`{part.name}`"
    if result.passed:
        count = len(result.held)
        tests = "its test holds" if count == 1 else f"all {count} tests hold"
        words = f"{name} is yours: {tests}, and what follows runs on it"
        symbol, colour, lines = "✓", GOOD, []
    elif result.not_yet:
        words = f"{name}: {result.reason}; until then the package's stands in"
        symbol, colour = "…", QUIET
        lines = [f"It will be tested when {'; when '.join(map(_sentence, part.tests))}."]
    else:
        total = len(result.held) + len(result.problems)
        words = f"{name}: {len(result.held)} of {total} tests hold; the package's stands in"
        symbol, colour, lines = "✗", BAD, [_told(*problem) for problem in result.problems[:2]]
    text = "\n".join([f"{symbol} {words}", *(f"  {line}" for line in lines)])
    markup = f"{sign(colour, symbol)} {inline(words)}"
    markup += "".join(f'<div style="padding-left: 1.4em">{inline(line)}</div>' for line in lines)
    show(text, block(colour, markup), {"built": {"name": part.name, "status": result.status}})


def _told(says, found):
    """What was found, and in which case: an error does not say it."""
    return found if found.startswith("when ") or says == UNTOUCHED else f"when {says}, {found}"


def _sentence(test):
    return " ".join(test.__doc__.split())
