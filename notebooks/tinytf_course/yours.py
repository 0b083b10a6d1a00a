"""What the reader built in earlier chapters goes on living in later ones.

A build copy imports the parts of earlier chapters from the package and hands them to `yours`.
Where the reader's copy of the chapter that builds a part lies beside this notebook, and what is
written there passes the part's tests, the reader's version takes the package's place: chapter 14's
Transformer is then made of the reader's layers, which are made of the reader's attention.

Of the other notebook only imports, definitions and plain names are run, never its experiments. It
is read once, as it was saved; who changes it restarts this notebook's kernel.
"""

import ast
import linecache
import re
from functools import cache
from pathlib import Path

from tinytf_course.building import graded, let_look_inside, stand_in
from tinytf_course.display import GOOD, QUIET, block, inline, show, sign
from tinytf_course.graduate import runs_on
from tinytf_course.notebooks import Notebook, NotebookError, notebooks, source, tree
from tinytf_course.parts import parts
from tinytf_course.service import served
from tinytf_course.stubs import imported_parts, target_of

__all__ = ["yours"]

_BUILT = re.compile(r'= built\((\w+), "(tinytf[\w.]*)"\)')
_reading = []  # the notebooks being read now, the innermost last
_STATEMENTS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def yours(*definitions):
    """The reader's versions of these definitions of the package, as far as they are written.

    Each comes from the notebook in the working directory that builds it, if what stands there
    passes the part's tests; otherwise it is the package's. Shows which are the reader's, and which
    are waiting in a copy that is there. Returns one definition, or a tuple for several.
    """
    found = [_version(definition) for definition in definitions]
    for definition, _, mine in found:
        if mine:
            runs_on(definition.__name__)
    for symbol, colour, words, standing in (
        ("✓", GOOD, "yours, as you wrote it before", True),
        ("…", QUIET, "not yours yet, the package's stands in", False),
    ):
        named = [
            f"`{d.__name__}` ({place})" for d, place, mine in found if place and mine == standing
        ]
        if named:
            sentence = f"{words}: {', '.join(named)}"
            show(
                f"{symbol} {sentence}", block(colour, f"{sign(colour, symbol)} {inline(sentence)}")
            )
    versions = [version for version, *_ in found]
    return versions[0] if len(versions) == 1 else tuple(versions)


def _version(definition):
    """What stands, the chapter of the copy that builds it (or None), whether it is the reader's."""
    place = _places(Path.cwd()).get(f"{definition.__module__}.{definition.__qualname__}")
    if place is None or place in _reading:
        return definition, None, False
    chapter, mine = place.name.split("_")[0], _written(place).get(definition.__name__)
    return (definition, chapter, False) if mine is None else (mine, chapter, True)


@cache
def _places(folder):
    """Where the reader builds each part: {its target: path of the notebook}."""
    places = {}
    for notebook in notebooks(folder):
        try:
            text = "\n".join(map(source, notebook.code))
        except NotebookError:
            continue
        for name, module in _BUILT.findall(text):  # also in a cell that is no Python yet
            places.setdefault(target_of(module, name), notebook.path)
    return places


def passing(path):
    """The names of the parts of a notebook that pass."""
    return sorted(_written(Path(path)))


@cache
def _written(path):
    """The definitions of a reader's notebook that pass their tests, by name."""
    names, passed = {"__name__": "__main__"}, {}
    _reading.append(path)
    try:
        for number, statement in enumerate(_statements(path)):
            if call := _built(statement):
                _judge(call.args[0].id, call.args[1].value, names, passed)
            elif isinstance(statement, _STATEMENTS) or _plain(statement):
                _run(statement, names, f"<{path.stem}, statement {number}>")
    finally:
        _reading.pop()
    return passed


def _judge(name, module, names, passed):
    """Add what stands among `names` to what passed, or let the package's stand in for it."""
    part = parts().get(target_of(module, name))
    if part is None or name not in names:
        return
    names[name] = served(names[name], part.package)
    if graded(part, names[name]).passed:
        passed[name] = names[name]
        let_look_inside(part.package, names[name])
    else:
        passed.pop(name, None)
        names[name] = stand_in(part.package, names)


def _statements(path):
    """The statements of a notebook's cells, cells that are not Python left out."""
    for cell in Notebook(path).code:
        try:
            yield from tree(source(cell)).body
        except SyntaxError:
            continue


def _built(statement):
    """The call in a statement `name = built(name, target)`, or None."""
    value = getattr(statement, "value", None)
    if isinstance(statement, ast.Assign) and isinstance(value, ast.Call):
        return value if getattr(value.func, "id", "") == "built" and _of_the_course(value) else None
    return None


def _of_the_course(call):
    """Whether it is `built(name, "tinytf.module")`, and not some other function of that name."""
    if len(call.args) != 2 or not isinstance(call.args[0], ast.Name):
        return False
    return str(getattr(call.args[1], "value", "")).startswith("tinytf")


def _plain(statement):
    """Whether a statement gives a name to constants, names, or containers of them."""
    kinds = (
        ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Dict, ast.Load, ast.Set,
        ast.UnaryOp, ast.USub, ast.BinOp, ast.operator,
    )  # fmt: skip
    if not isinstance(statement, ast.Assign):
        return False
    return all(isinstance(node, kinds) for node in ast.walk(statement.value))


def _run(statement, names, file):
    """Run one statement among `names`; what it imports of the package becomes the reader's."""
    try:
        text = ast.unparse(statement)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), names)
    except Exception:  # what stands in another notebook is for that notebook to tell
        return
    for name in imported_parts(statement):
        names[name] = _version(names[name])[0]
