"""The source of an exercise's file: cut into a stub, edited into a mistake, read as a list."""

import ast
import re
import textwrap


def stub(source):
    """What a reader starts from: signature, docstring and `raise NotImplementedError`."""
    lines, node = source.splitlines(), ast.parse(source).body[0]
    functions = [n for n in node.body if isinstance(n, ast.FunctionDef)]
    if not isinstance(node, ast.ClassDef):
        return "\n".join(_stubbed(node, lines)) + "\n"
    head = lines[: node.body[0].end_lineno]  # with the docstring
    return "\n".join(head + [x for each in functions for x in ["", *_stubbed(each, lines)]]) + "\n"


def _stubbed(node, lines):
    """The first lines of a function, and what a stub does."""
    documented = ast.get_docstring(node) is not None
    end = node.body[0].end_lineno if documented else node.body[0].lineno - 1
    return [*lines[node.lineno - 1 : end], " " * node.col_offset + "    raise NotImplementedError"]


def edits(lines):
    """The edits that lines describe: (old, new)."""
    found = []
    for line in lines:
        if line.startswith("    ") and found and found[-1][1] in ("", None):
            found[-1][2].append(line[4:])
            continue
        old, new = re.split(r" =>(?: |$)", line, maxsplit=1)
        found.append((old, new, []))
    return [(old, "\n".join(more) if more else new) for old, new, more in found]


def entries(text, whole=True):
    """(heading, the indented lines below it); with `whole` these as one text."""
    found = []
    for line in text.strip("\n").splitlines():
        if line.startswith("    "):
            found[-1][1].append(line[4:])
        elif line.strip():
            found.append((line.strip(), []))
    return [(head, " ".join(" ".join(x).split())) for head, x in found] if whole else found


def edited(source, edits):
    """The source with these edits, (old, new), made one after the other.

    Several new lines are indented like the line in which `old` begins. `…` is the whole body of a
    function. Raises ValueError where the source does not hold `old` exactly once.
    """
    for old, new in edits:
        if old.strip() == "…":
            source = _with_body(source, new)
            continue
        if source.count(old) != 1:
            raise ValueError(f"{old!r} is {source.count(old)} times, not once, in\n{source}")
        before, after = source.split(old)
        line = before.rpartition("\n")[2]
        indent = line[: len(line) - len(line.lstrip())]
        source = before + new.replace("\n", f"\n{indent}") + after
    return source


def _with_body(source, body):
    """The source of a function, with another body."""
    node = ast.parse(source).body[0]
    start = int(ast.get_docstring(node) is not None and len(node.body) > 1)
    head = source.splitlines()[: node.body[start].lineno - 1]
    return "\n".join([*head, textwrap.indent(textwrap.dedent(body), "    ")]) + "\n"


def _is_of(node, *names):
    """Whether a statement gives a value to one of these names."""
    return isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in names


def _empty(node):
    """Leave of a function, or of the functions of a class, what a stub has."""
    start = int(ast.get_docstring(node) is not None)
    if isinstance(node, ast.ClassDef):
        node.body = [x for x in node.body[start:] if isinstance(x, ast.FunctionDef)]
        for each in node.body:
            _empty(each)
    else:
        node.body[start:] = ast.parse("raise NotImplementedError").body


def emptied(tree):
    """The syntax tree of an exercise's file with its reference as a stub, and without mistakes."""
    tree.body = [node for node in tree.body if not _is_of(node, "MISTAKES", "HARMLESS")]
    kinds = (ast.FunctionDef, ast.ClassDef)
    named = [node for node in tree.body if isinstance(node, kinds)]
    _empty(next(node for node in named if not node.name.startswith("_")))
    return ast.fix_missing_locations(tree)
