"""A chapter's build copy: what graduates becomes a stub, and what the reader wrote is used."""

import __future__

import ast
import copy
import inspect
import re
import textwrap

from tinytf_course.graduate import resolve
from tinytf_course.notebooks import tree
from tinytf_course.parts import parts
from tinytf_course.service import names_served

__all__ = [
    "TYPES_UNREAD", "build_copy", "graduations", "imported_parts", "part_of", "read_copy",
    "target_of",
]  # fmt: skip

HOW_TO_BUILD = """
**This copy is for building.** What you are to write, in this order: {waiting}. Each stands as its
first line with a description of what it does; the last line of its cell, `name = built(name, …)`,
tests what you wrote. Once all its tests hold, everything below runs on yours, and `graduate` says
so. Until then the package's version stands in, and the chapter runs on. What you built in copies
of earlier chapters, if they lie in this folder, is used here as well. Where the text says "ours",
or shows a definition as finished, it speaks of the package's version. Checks of the arguments, and
the errors that they raise, are not asked of you.
"""


# A sentence on errors, from its first word to its full stop.
RAISES = re.compile(
    r"(^|(?<=\.)\s+|(?<=\)\s))Raises\s+(?:\w*Error\b|as\b).*?(?:\.(?=\s|$)|$)", re.DOTALL
)
SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z`(])")  # where one ends and the next begins
WIDTH = 92  # of a description's lines, inside a method

TYPES_UNREAD = __future__.annotations.compiler_flag


def build_copy(notebook, solved=False):
    """A chapter as a reader meets it in build mode: a new notebook, without outputs.

    `notebook` is what `json.load` gives of the file. With `solved`, the definitions stay and are
    tested: the copy of a reader who has written everything.
    """
    fresh = read_copy(notebook)
    written_here = _definition_cells(fresh["cells"])
    targets_here = {part_of(*pair) for targets in written_here.values() for pair in targets.items()}
    for number, cell in enumerate(fresh["cells"]):
        text = "".join(cell["source"])
        if number in written_here:
            text = _with_parts(text, written_here[number], solved)
        if cell["cell_type"] == "code":
            text = _with_yours(text, _tree({**cell, "source": text}), targets_here)
        cell["source"] = text.splitlines(keepends=True)
    if names := [name for stubs in _stubs(fresh["cells"]) for name in stubs]:
        first = fresh["cells"][0]["cell_type"] == "markdown"  # the title
        fresh["cells"].insert(int(first), _how_to_build(names))
    return fresh


def _how_to_build(names):
    """The cell that says what a build copy is, and which definitions wait in it."""
    waiting = ", ".join(f"`{name}`" for name in names)
    source = HOW_TO_BUILD.format(waiting=waiting).strip().splitlines(keepends=True)
    return {"cell_type": "markdown", "id": "how-to-build", "metadata": {}, "source": source}


def _stubs(cells):
    """The names that each cell of a build copy tests by `built`."""
    for cell in cells:
        calls = [node for node in ast.walk(_tree(cell)) if isinstance(node, ast.Call)]
        yield [call.args[0].id for call in calls if getattr(call.func, "id", "") == "built"]


def read_copy(notebook):
    """A chapter as a reader meets it: a new notebook without outputs, which give nothing away."""
    fresh = copy.deepcopy(notebook)
    fresh.get("metadata", {}).pop("widgets", None)
    for cell in fresh["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return fresh


def _definition_cells(cells):
    """{cell number: {name: target}}: the last definition of each name before it graduates."""
    last, chosen = {}, {}
    for number, cell in enumerate(cells):
        cell_tree = _tree(cell)
        for node in cell_tree.body:
            if _to_write(node):
                last[node.name] = number
        for name, target in graduations(cell_tree):
            if name in last and part_of(name, target) in parts():
                chosen.setdefault(last[name], {})[name] = target
    return chosen


def _to_write(node):
    """Whether a statement defines something with code in it, not only names and their types."""
    if isinstance(node, ast.ClassDef):
        return any(isinstance(part, ast.FunctionDef) for part in node.body)
    return isinstance(node, ast.FunctionDef)


def graduations(cell_tree):
    """The (name, target) of each call of `graduate` in a cell's syntax tree."""
    calls = [node for node in ast.walk(cell_tree) if isinstance(node, ast.Call)]
    calls = [call for call in calls if getattr(call.func, "id", "") == "graduate"]
    return [(call.args[0].id, call.args[1].value) for call in calls if len(call.args) == 2]


def imported_parts(statement):
    """The names by which an import statement makes parts of the package known, {name: target}."""
    here = isinstance(statement, ast.ImportFrom) and not statement.level
    if not here or not (statement.module or "").startswith("tinytf"):
        return {}
    known = {a.asname or a.name: target_of(statement.module, a.name) for a in statement.names}
    return {name: target for name, target in known.items() if target in parts()}


def target_of(module, name):
    """Where the package defines what `module` calls `name`; None if it is no definition."""
    try:
        return part_of(name, module)
    except (ImportError, AttributeError):
        return None


def part_of(name, target):
    """Where the package has the definition that `graduate(name, target)` means.

    A constant is where its full name says.
    """
    package = resolve(target, name)
    if not hasattr(package, "__qualname__"):
        return target
    return f"{package.__module__}.{package.__qualname__}"


def _tree(cell):
    if cell["cell_type"] != "code":
        return ast.Module([], [])
    try:
        return tree("".join(cell["source"]))
    except SyntaxError:  # a cell that shows an error
        return ast.Module([], [])


def _with_parts(source, targets, solved):
    """The cell's source with its parts as stubs (unless solved), each tested after it stands."""
    lines = source.splitlines()
    nodes = [n for n in ast.parse(source).body if getattr(n, "name", None) in targets]
    for node in reversed(nodes):
        target = targets[node.name]
        first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
        written = lines[first - 1 : node.end_lineno]
        text = written if solved else stub(node, lines, resolve(target, node.name)).splitlines()
        text = [*text, "", "", f'{node.name} = built({node.name}, "{target}")']
        lines[first - 1 : node.end_lineno] = text
    opening = "from tinytf_course import built"
    return "\n".join([opening, "", "", *lines] if opening not in lines else lines)


def _with_yours(source, cell_tree, targets_here):
    """The cell's source in which parts of earlier chapters are asked of the reader: `yours`."""
    imports = [node for node in cell_tree.body if isinstance(node, ast.ImportFrom)]
    asked = {
        name: node
        for node in imports
        for name, target in imported_parts(node).items()
        if target not in targets_here
    }
    if not asked:
        return source
    lines, names = source.splitlines(), ", ".join(asked)
    last = max(node.end_lineno for node in asked.values())
    while any(node.lineno == last + 1 for node in imports):
        last += 1
    lines[last:last] = ["from tinytf_course import yours", "", f"{names} = yours({names})"]
    return "\n".join(lines)


def stub(node, lines, package):
    """A definition's signature, the package's description of it, and nothing more.

    What the description says of errors goes: the page's version has no checks. So does what it says
    of parameters that only the package's has, for its service.
    """
    takes = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    serve = names_served(package) - takes
    if isinstance(node, ast.FunctionDef):
        return _function_stub(node, lines, package, "", serve)
    head = lines[_first(node) - 1 : node.lineno]
    body = [textwrap.indent(_quoted(_asked(inspect.getdoc(package), serve)), "    ")]
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            public = not part.name.startswith("_") or part.name.startswith("__")
            if public:
                theirs = inspect.getattr_static(package, part.name, None)
                body.append(_function_stub(part, lines, theirs, "    ", serve))
        elif not isinstance(part, ast.Expr):
            body.append("\n".join(lines[part.lineno - 1 : part.end_lineno]))
    return "\n".join(head) + "\n" + "\n\n".join(body)


def _function_stub(node, lines, package, indent, serve):
    end = node.body[0].lineno - 1
    head = lines[_first(node) - 1 : max(end, node.lineno)]
    while head and head[-1].strip().startswith(("#", '"""')):
        head.pop()
    description = getattr(package, "fget", package)
    text = inspect.getdoc(description) if getattr(description, "__doc__", None) else None
    body = [textwrap.indent(_quoted(_asked(text, serve)), indent + "    ")] if text else []
    return "\n".join([*head, *body, f"{indent}    raise NotImplementedError"])


def _asked(text, serve=()):
    """A description without its sentences on errors and on parameters that serve.

    A paragraph is wrapped anew where a sentence went.
    """
    kept = []
    for paragraph in re.split(r"\n\s*\n", text):
        sentences = SENTENCE.split(RAISES.sub("", paragraph).strip())
        asked = " ".join(s for s in sentences if not any(f"`{name}`" in s for name in serve))
        if asked.split() != paragraph.split():
            asked = textwrap.fill(" ".join(asked.split()), WIDTH, break_on_hyphens=False)
        else:
            asked = paragraph.strip()
        kept += [asked] if asked else []
    return "\n\n".join(kept)


def _first(node):
    return min([node.lineno, *(part.lineno for part in node.decorator_list)])


def _quoted(text):
    end = "\n" if "\n" in text else ""
    return f'"""{text}{end}"""'
