"""Read the answers that stand in a notebook, as little of it as they need, and run nothing."""

import ast
import re
from typing import NamedTuple

from tinytf_course.grading import exercises
from tinytf_course.notebooks import tree
from tinytf_course.places import is_machinery

__all__ = ["Answer", "answers_in", "borrowed"]


class Answer(NamedTuple):
    """What a notebook has for an exercise: the statements that make `name`, in order."""

    id: str
    name: str
    statements: list
    problem: str = ""  # why there is none, in words
    borrows: tuple = ()  # what of the package its cell names, such as tinytf.attention.attention


def answers_in(cells, chapter):
    """The answers to a chapter's exercises among cells of code (their texts)."""
    parsed = [_parsed(text) for text in cells]
    chosen = [each for id, each in exercises().items() if id.split(".")[0] == chapter]
    return [_answer(exercise, cells, parsed) for exercise in chosen]


def _parsed(text):
    try:
        return tree(text).body
    except (SyntaxError, RecursionError, MemoryError):
        return None


def _answer(exercise, cells, parsed):
    """The last cell that defines the function, and what its names need of the cells before."""
    name = exercise.name
    places = [i for i, body in enumerate(parsed) if body and any(name in _binds(s) for s in body)]
    broken = [
        i for i, body in enumerate(parsed)
        if body is None and re.search(rf"(def|class) {name}\b", cells[i])
    ]  # fmt: skip
    if broken and (not places or broken[-1] > places[-1]):
        return Answer(exercise.id, name, [], "its cell does not compile")
    if not places:
        return Answer(exercise.id, name, [], f"there is no `{name}`")
    at = places[-1]
    mine = [statement for statement in parsed[at] if not _checks(statement)]
    wanted = set().union(*map(_names, mine))
    before = []
    for body in reversed(parsed[:at]):
        for statement in reversed(body or []):
            if _harmless(statement) and (_binds(statement) & wanted or "*" in _binds(statement)):
                before.append(statement)
                wanted |= _names(statement)
    statements = [ast.unparse(statement) for statement in [*reversed(before), *mine]]
    return Answer(exercise.id, name, statements, borrows=borrowed([*before, *mine], mine))


def borrowed(statements, mine):
    """The package's definitions, by full name, that the statements `mine` name after an import."""
    known = {}
    for statement in statements:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("tinytf"):
            for alias in statement.names:
                known[alias.asname or alias.name] = f"{statement.module}.{alias.name}"
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.name.startswith("tinytf"):
                    known[(alias.asname or alias.name).split(".")[0]] = alias.name
    inside = [node for node in mine for node in ast.walk(node)]
    for node in inside:  # an import within the function
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tinytf"):
            known |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            known |= {a.name.split(".")[0]: a.name for a in node.names if "tinytf" in a.name}
    used = set().union(*map(_names, mine)) | {
        name for name in known for node in inside
        if isinstance(node, ast.Import | ast.ImportFrom)
        and name in {(a.asname or a.name).split(".")[0] for a in node.names}
    }  # fmt: skip
    found = {known[name] for name in used & known.keys()}
    return tuple(sorted(name for name in found if not is_machinery(name)))


def _binds(statement):
    """The names that a statement at the top of a cell defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return {node.id for node in ast.walk(statement)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}  # fmt: skip
    return set()


def _names(statement):
    """The names that a statement reads, deferred ones too."""
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _harmless(statement):
    """Whether it is worth running for another cell's sake: it defines, and calls nothing."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
        return True
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    return not any(isinstance(node, ast.Call | ast.Await) for node in ast.walk(statement.value))


def _checks(statement):
    """Whether a statement is `check(...)`, or asserts something of one."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    named = any(getattr(call.func, "id", "") == "check" for call in calls)
    return named and isinstance(statement, ast.Expr | ast.Assert | ast.Assign)
