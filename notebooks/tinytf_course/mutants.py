"""Every way to break a function or a class in one step: its syntax tree with one thing changed."""

import ast
import copy
import difflib
import inspect
import itertools
import textwrap
from dataclasses import dataclass

import torch

from tinytf_course.building import Unchecked
from tinytf_course.mutations import VIEWS, expressions, statements


@dataclass(frozen=True)
class Mutant:
    """A broken copy: its function or class, and the lines that differ, `old => new`."""

    function: object
    change: str


def mutants(function, helpers=True, checks=True, draw=None, use=None):
    """Every one-step mutant of a function (or class), and of its module's functions it calls.

    Without `helpers`, of itself alone; without `checks`, what only refuses arguments is left out.
    `use` uses a function as its tests do: what carries no gradient there is not cut off from the
    graph, nor put into another dtype.
    With `draw`, a random.Random, they come in an order that it draws: each is made when it is asked
    for, so that a few cost no more than a few.
    """
    module, steps, seen, trees = inspect.getmodule(function), [], set(), {}
    for name in [function.__name__, *(_helpers(function, module) if helpers else ())]:
        tree = _tree(vars(module)[name])
        trees[name] = tree if checks else ast.fix_missing_locations(_Unasked().visit(tree))
    learns = (lambda node: True) if use is None else _learning(trees, function, use)
    for name, tree in trees.items():
        seen.add(ast.dump(tree))
        before = ast.unparse(tree)
        steps += [(name, tree, before, *change) for change in _changes(tree, learns)]
    if draw is not None:
        draw.shuffle(steps)
    for name, tree, before, number, new in steps:
        try:
            text = ast.unparse(ast.fix_missing_locations(_changed(tree, number, new)))
            same = ast.dump(ast.parse(text).body[0])
            code = compile(text, "<mutant>", "exec")
        except (SyntaxError, ValueError):
            continue
        if same in seen:
            continue
        seen.add(same)
        scope = dict(vars(module))
        if name != function.__name__:
            exec(compile(_tree_module(function), "<mutant>", "exec"), scope)
        try:
            exec(code, scope)
        except Exception:  # a class whose body fails: nobody could test it
            continue
        yield Mutant(scope[function.__name__], _difference(before, text))


def unchecked(function):
    """The function or class without what only refuses arguments."""
    tree = ast.fix_missing_locations(_Unasked().visit(_tree(function)))
    scope = dict(vars(inspect.getmodule(function)))
    exec(compile(ast.unparse(tree), "<unchecked>", "exec"), scope)
    return scope[function.__name__]


class _Unasked(Unchecked):
    """Takes out checks as a page does, and `if …: raise …`."""

    def visit_If(self, node):
        """Drop what only raises."""
        if not node.orelse and all(isinstance(part, ast.Raise) for part in node.body):
            return None
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node


def _tree(function):
    """The syntax tree of a function, or of a class, without docstrings."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    for node in [tree, *_methods(tree)]:
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return tree


def _methods(tree):
    """The functions that a class defines; none for a function."""
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    return [node for node in body if isinstance(node, ast.FunctionDef)]


def _parameters(tree):
    """The parameters of a function, or of a class's methods, in their order."""
    owners = _methods(tree) if isinstance(tree, ast.ClassDef) else [tree]
    return [a.arg for node in owners for a in ast.walk(node.args) if isinstance(a, ast.arg)]


def _tree_module(function):
    return ast.unparse(_tree(function))


def _helpers(function, module):
    """The names of the module's functions that `function` calls, directly or not."""
    found, todo = [], [function.__name__]
    while todo:
        for node in ast.walk(_tree(vars(module)[todo.pop()])):
            name = getattr(node, "id", None)
            value = vars(module).get(name) if name else None
            own = inspect.isfunction(value) and value.__module__ == module.__name__
            if own and name not in found and name != function.__name__:
                found.append(name)
                todo.append(name)
    return found


def _difference(before, after):
    """The lines that differ: `old => new`."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    old = [line[2:].strip() for line in lines if line.startswith("- ")]
    new = [line[2:].strip() for line in lines if line.startswith("+ ")]
    return f"{' / '.join(old) or '(nothing)'} => {' / '.join(new) or '(nothing)'}"


def _learning(trees, function, use):
    """Tells of each expression whether a gradient goes through its value when `use` runs."""
    found, scope = set(), dict(vars(inspect.getmodule(function)))

    def watched(key, value):
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.requires_grad:
            found.add(key)
        return value

    scope["_watched"] = watched
    for tree in reversed(trees.values()):  # the function itself last: a class is made of helpers
        twin = copy.deepcopy(tree)
        pairs = zip(list(_places(tree)), list(_places(twin)), strict=True)
        for (*_, node), (parent, field, i, other) in reversed(list(pairs)):  # what is inside first
            whole = isinstance(parent, ast.Assign | ast.Return) and field == "value"
            read = isinstance(other, ast.Name) and isinstance(other.ctx, ast.Load)
            if not whole and (not read or field == "func"):
                continue
            call = ast.Call(ast.Name("_watched", ast.Load()), [ast.Constant(id(node)), other], [])
            if i is None:
                setattr(parent, field, call)
            else:
                getattr(parent, field)[i] = call
        exec(compile(ast.unparse(ast.fix_missing_locations(twin)), "<watched>", "exec"), scope)
    use(scope[function.__name__])
    return lambda node: id(node) in found


def _changes(tree, learns):
    """What can be changed in one step: the number of a node's place, and what stands there then."""
    names, shared = _names(tree), _shared(tree)
    for number, (parent, _, _, node) in enumerate(_places(tree)):
        for new in [*expressions(node, parent, names, shared, learns), *statements(node, learns)]:
            yield number, new


def _changed(tree, number, new):
    """A copy of the tree with this node in that place; None takes a statement out."""
    twin = copy.deepcopy(tree)
    where, field, i, _ = next(itertools.islice(_places(twin), number, None))
    if i is None:
        setattr(where, field, new)
    elif new is None and len(getattr(where, field)) > 1:
        del getattr(where, field)[i]
    else:
        getattr(where, field)[i] = ast.Pass() if new is None else new
    return twin


def _places(tree):
    """Where each node stands: its parent, the field, the index in a list or None, itself.

    What an error says is left out.
    """
    todo = [tree]
    while todo:
        parent = todo.pop(0)
        if isinstance(parent, ast.Raise | ast.JoinedStr):
            continue
        for field, value in ast.iter_fields(parent):
            if field in ("ctx", "annotation", "returns", "decorator_list"):
                continue
            if isinstance(value, list):
                yield from ((parent, field, i, x) for i, x in enumerate(value) if _is_node(x))
                todo += [x for x in value if isinstance(x, ast.AST)]
            elif isinstance(value, ast.AST):
                if _is_node(value):
                    yield parent, field, None, value
                todo.append(value)


def _is_node(value):
    return isinstance(value, ast.expr | ast.stmt | ast.comprehension | ast.Slice)


def _names(tree):
    """Parameters and local variables, in the order in which they appear."""
    arguments = _parameters(tree)
    stored = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and type(n.ctx) is ast.Store]
    return list(dict.fromkeys(arguments + [node.id for node in stored]))


def _shared(tree):
    """Names of what may be the caller's own: parameters, loop variables, views of them."""
    names = set(_parameters(tree))
    for node in ast.walk(tree):
        target, value = getattr(node, "target", None), None
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            method = getattr(getattr(value, "func", None), "attr", None)
            if not isinstance(value, ast.Name | ast.Subscript) and method not in VIEWS:
                continue
        if target is not None and not isinstance(node, ast.AugAssign):
            names |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
    return names
