"""Prove that what a chapter built and what the package holds are the same code."""

import ast
import difflib
import html
import importlib
import inspect
import linecache
import os
import types

from tinytf_course.display import GOOD, QUIET, _shell, block, inline, show, sign
from tinytf_course.service import Idea, first_line

_standing = {}  # {id of a definition: (the definition, the result of its tests)}
_readers = {}  # {name: None} of what the reader wrote and this notebook runs on, in order


class GraduationError(AssertionError):
    """The notebook's definition and the package's differ."""

    def _render_traceback_(self):
        """All that a notebook shows of it: the difference."""
        return [f"GraduationError: {self}"]


def graduate(local_object, target):
    """Show that `local_object` is the definition in `target`; raise GraduationError otherwise.

    `target` is a module (the name is then that of the object) or a full dotted name. Syntax trees
    are compared without docstrings, annotations and validation, and with or without the lines that
    serve the package's users alone. A constant, which does not know its name, needs the full one,
    and its value is compared.
    """
    name = getattr(local_object, "__name__", None)
    counterpart = resolve(target, name)
    if name is None:
        _same_value(local_object, counterpart, target)
        return
    if result := outcome(local_object):
        count = len(result.held)
        tests = "its test" if count == 1 else f"all {count} tests"
        yours = f"`{name}` graduates: yours passes {tests}"
        sentence = (
            yours
            if result.passed
            else f"`{name}`: yours does not pass yet, the package's stands in"
        )
        colour, symbol = (GOOD, "✓") if result.passed else (QUIET, "…")
        show(f"{symbol} {sentence}", block(colour, f"{sign(colour, symbol)} {inline(sentence)}"))
        return
    path = f"{counterpart.__module__}.{counterpart.__qualname__}"
    here, (idea, whole, lines) = definition(local_object), forms(counterpart)
    if here == whole:
        _graduated(f"`{name}` graduates: the same code as `{path}`")
    elif here == idea:
        plus = "1 service line" if len(lines) == 1 else f"{len(lines)} service lines"
        _graduated(f"`{name}` graduates: `{path}` is yours, plus {plus}", lines)
    else:
        differ = min(_difference(here, idea, path), _difference(here, whole, path), key=len)
        raise GraduationError(f"{name} here and {path} differ:\n" + "\n".join(differ))


def _difference(here, there, path):
    here, there = here.splitlines(), there.splitlines()
    return list(difflib.unified_diff(here, there, "this notebook", path, lineterm="", n=2))


def _same_value(here, there, target):
    if here != there:
        raise GraduationError(f"{target} is {there!r}, and here it is {here!r}")
    _graduated(f"`{target.rpartition('.')[2]}` graduates: the same value as `{target}`")


def _graduated(sentence, lines=()):
    """Say so; lines that were set aside are shown on a click."""
    markup = f"{sign(GOOD, '✓')} {inline(sentence)}"
    if lines:
        shown = html.escape("\n".join(lines), quote=False)
        markup = f"<details><summary>{markup}</summary><pre>{shown}</pre></details>"
    show(f"✓ {sentence}", block(GOOD, markup))


def stand(definition, result):
    """Remember by which result of build mode this definition stands; `graduate` goes by it."""
    _standing[id(definition)] = (definition, result)
    if result.passed:
        runs_on(definition.__name__)


def runs_on(name):
    """Remember that this notebook runs on the reader's version of a part."""
    _readers[name] = None


def readers_parts():
    """The names of the parts of which this notebook runs on the reader's version."""
    return list(_readers)


def outcome(definition):
    """The result by which build mode lets this definition stand, or None."""
    stands, result = _standing.get(id(definition), (None, None))
    return result if stands is definition else None


def resolve(target, name):
    """The object that `graduate(object_called_name, target)` compares with."""
    try:
        return getattr(importlib.import_module(target), name)
    except ModuleNotFoundError:
        module, _, attribute = target.rpartition(".")
        return getattr(importlib.import_module(module), attribute)


def definition(thing):
    """The normalised source of a function or class, whether it lives in a file or in a cell."""
    return normalised(_found(thing)[0])


def forms(thing):
    """A definition of the package in its two forms, and the lines that are in the second alone.

    They are normalised: without the lines that serve its users alone, and with them.
    """
    node, source = _found(thing)
    idea = Idea(node, source)
    return normalised(idea.node), normalised(node), idea.lines


def _found(thing):
    """The syntax tree of a function or class, and the source that has it."""
    name, line = thing.__name__, None
    code = _code(thing)
    if code is None:
        source = _source_without_code(thing)
    else:
        source, line = "".join(linecache.getlines(code.co_filename)), code.co_firstlineno
    nodes = [node for node in ast.walk(ast.parse(source)) if _defines(node, name)]
    if line is not None:
        nodes = [node for node in nodes if first_line(node) <= line <= node.end_lineno] or nodes
    if not nodes:
        raise ValueError(f"no source for {name}: define it with def or class in a cell")
    return nodes[-1], source


def normalised(node):
    """The text of a definition without docstrings, annotations and validation."""
    return ast.unparse(_Strip().visit(ast.parse(ast.unparse(node)).body[0]))


class _Strip(ast.NodeTransformer):
    def visit_FunctionDef(self, node):
        node.returns = None
        self.generic_visit(node)
        validates = node.name.startswith(("check_", "_check"))
        node.body = _without_docstring(node.body)
        if validates or (node.name == "__post_init__" and not node.body):
            return None
        node.body = node.body or [ast.Pass()]
        return node

    def visit_ClassDef(self, node):
        self.generic_visit(node)
        node.body = _without_docstring(node.body) or [ast.Pass()]
        return node

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        if node.value is None:
            return ast.Expr(node.target)
        return ast.Assign([node.target], node.value, lineno=node.lineno)

    def visit_If(self, node):
        if not node.orelse and all(isinstance(part, ast.Raise) for part in node.body):
            return None
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_Assert(self, node):
        return None

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Call):
            called = node.value.func
            name = getattr(called, "id", None) or getattr(called, "attr", "")
            if name.startswith(("check_", "_check")):
                return None
        return node


def _without_docstring(body):
    first = body[0] if body else None
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    body = body[1:] if is_text and isinstance(first.value.value, str) else body
    return [part for part in body if not isinstance(part, ast.Pass)]


def _defines(node, name):
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name


def _code(thing):
    """A code object written inside the definition; None for a class without methods."""
    thing = inspect.unwrap(thing)
    if isinstance(thing, types.FunctionType):
        return thing.__code__
    for part in vars(thing).values():
        part = getattr(part, "fget", getattr(part, "__func__", part))
        part = inspect.unwrap(part) if callable(part) else part
        written = isinstance(part, types.FunctionType) and part.__module__ == thing.__module__
        if written and linecache.getlines(part.__code__.co_filename):
            return part.__code__
    return None


def _source_without_code(thing):
    """The module of a class in a file; for one in a notebook, the latest cell that defines it."""
    if thing.__module__ != "__main__" or _shell() is None:
        return inspect.getsource(inspect.getmodule(thing))
    cells = [entry for name, entry in linecache.cache.items() if not os.path.exists(name)]
    for entry in sorted((e for e in cells if len(e) == 4), key=lambda e: e[1] or 0, reverse=True):
        source = "".join(entry[2])
        try:
            if any(_defines(node, thing.__name__) for node in ast.parse(source).body):
                return source
        except SyntaxError:
            continue
    return ""
