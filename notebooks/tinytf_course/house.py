"""Where each part is built: the map chapter → name → file, read from the sources alone.

A notebook's `graduate(name, "tinytf.module")` says that the chapter builds `name`; the file is the
one that defines it. Nothing is imported or run.
"""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tinytf_course.notebooks import readable
from tinytf_course.places import PACKAGE, file_of, place_of
from tinytf_course.tables import table


class Part(NamedTuple):
    """A name that a chapter builds, and the file, relative to the repository, that defines it."""

    chapter: str
    name: str
    file: str


def parts(chapters):
    """Every graduation in the notebooks (an iterable of Notebook), in order.

    Raises ValueError for a target that is not written out, or that no file defines.
    """
    return [
        Part(notebook.chapter, *target(call, notebook.path.name))
        for notebook in chapters
        for call in notebook.calls("graduate")
    ]


def target(call, where="a notebook"):
    """The name and the file that a call `graduate(name, "tinytf.module")` compares with."""
    written = [ast.unparse(argument) for argument in call.args]
    if len(call.args) != 2 or not isinstance(getattr(call.args[1], "value", None), str):
        raise ValueError(f"{where}: graduate({', '.join(written)}) needs its target written out")
    name, dotted = written[0], call.args[1].value
    if file_of(dotted) is None:
        dotted, _, name = dotted.rpartition(".")
    file = defining_file(name, dotted)
    if file is None:
        raise ValueError(f"{where}: graduate({', '.join(written)}): {dotted} has no {name}")
    return name, place_of(file)


def defining_file(name, dotted):
    """The file that defines what the module calls `name`, through its imports, or None."""
    file = file_of(dotted)
    said = file and file.with_suffix(".pyi")  # what a face that loads lazily offers, and from where
    for node in _tree(said if said and said.is_file() else file).body if file else ():
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return file
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in map(ast.unparse, targets):
            return file
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tinytf"):
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return defining_file(alias.name, node.module)
    return None


def public_names(folder=PACKAGE):
    """What `__all__` of each file at the folder's top offers: {"attention.py": [names]}.

    `__init__.py` and `__main__.py`, which offer what others define, are left out.
    """
    files = sorted(path for path in Path(folder).glob("*.py") if not path.stem.startswith("__"))
    return {path.name: _offered(path) for path in files}


def chapters_of_names(chapters):
    """The chapters that build each public name of the top level, in order; [] if none does.

    {("attention.py", "MultiHeadAttention"): ["04"], ...}, by the file that defines the name.
    """
    built = {}
    for part in parts(chapters):
        built.setdefault((part.file, part.name), []).append(part.chapter)
    names = [(name, Path(file).stem) for file, names in public_names().items() for name in names]
    homes = [(defining_file(name, f"tinytf.{stem}").name, name) for name, stem in names]
    return {(file, name): built.get((f"tinytf/{file}", name), []) for file, name in homes}


def map_table(folder):
    """The map as a table: a row a chapter and file. `folder` holds the notebooks."""
    return table(("chapter", "builds", "which is in"), _rows(readable(folder)))


def map_markdown(folder):
    """The map for the README: a row a chapter and file, in Markdown."""
    lines = ["| chapter | builds | which is in |", "|---|---|---|"]
    for chapter, names, file in _rows(readable(folder)):
        quoted = ", ".join(f"`{name}`" for name in names.split(", "))
        lines.append(f"| {chapter} | {quoted} | [{file}]({file}) |")
    return "\n".join(lines)


def _rows(chapters):
    rows = {}
    for part in parts(chapters):
        names = rows.setdefault((part.chapter, part.file), [])
        if part.name not in names:
            names.append(part.name)
    return [(chapter, ", ".join(names), file) for (chapter, file), names in rows.items()]


def _offered(path):
    for node in _tree(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    raise ValueError(f"{path.name} has no __all__")


@cache
def _tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))
