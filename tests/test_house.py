"""The house: the top level is what the notebooks build, and imports point upwards."""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

from tinytf_course.house import chapters_of_names, parts, public_names
from tinytf_course.notebooks import notebooks
from tinytf_course.places import PACKAGE, TREES

NOTEBOOKS = notebooks(PACKAGE.parent / "notebooks")
TOP = {
    "masks", "attention", "positional", "relative", "norm", "residual", "initialisation",
    "embedding", "feedforward", "grouped_query", "blocks", "transformer", "gpt", "llama", "bert",
    "inspect",
    # two files that no notebook builds: `graduate` compares without validation and service
    "checks", "service",
}  # fmt: skip

# Names of the top level that no notebook builds: chapter 23 shows published sizes as a table.
NOT_YET_BUILT = {"llama": ["LlamaConfig", "PRESETS"]}

# Names that graduate in a second chapter too, there with the lines that serve: the cache.
BUILT_TWICE = {"EncoderDecoder": ["14", "17"]}

# A room may import the top level and the rooms before it.
ROOMS = (
    "support", "text", "decoding", "training", "related", "pretrained", "metrics", "interpret",
    "data", "apps", "cli", "viz", "course",
)  # fmt: skip

FRONT = ("tinytf", "tinytf.__main__", "tinytf.course")  # for those outside

# Packages that take a second to import: only the function that needs one does, when it is called.
SLOW = {"seaborn", "pandas", "scipy", "ipywidgets", "transformers"}

TYPES = "TYPE_CHECKING"  # the scope of imports for type checkers, which never run

# The only imports that point the other way, each inside the function that needs it.
LAZY = {
    ("gpt", "GPT.from_pretrained", "tinytf.pretrained"),
    ("llama", "Llama.from_pretrained", "tinytf.pretrained"),
}


def test_the_top_level_is_the_transformer():
    assert {Path(file).stem for file in public_names()} == {*TOP, "course"}
    rooms = {path.name for path in PACKAGE.iterdir() if any(path.glob("*.py"))}
    assert rooms == set(ROOMS) - {"course"}  # which is the course's own tree


def test_every_public_name_of_the_top_level_is_built_in_a_notebook():
    unbuilt = {}
    for (file, name), chapters in chapters_of_names(NOTEBOOKS).items():
        # the exceptions: what validates, what serves, and what says where the course went
        beside = ("checks.py", "service.py", "course.py")
        if not chapters and file not in beside and not name.startswith("check_"):
            unbuilt.setdefault(Path(file).stem, []).append(name)
    assert {stem: sorted(names) for stem, names in unbuilt.items()} == NOT_YET_BUILT


def test_what_a_notebook_builds_of_the_top_level_is_public():
    public = chapters_of_names(NOTEBOOKS)
    files = [(part.file.partition("/")[2], part.name) for part in parts(NOTEBOOKS)]
    built = {(file, name) for file, name in files if "/" not in file}
    assert built
    assert not built - public.keys()


def test_each_name_is_built_once():
    built = {name: found for (_, name), found in chapters_of_names(NOTEBOOKS).items()}
    assert {name: found for name, found in built.items() if len(found) > 1} == BUILT_TWICE


@cache
def imports():
    """(importing module, function or None, imported module) for each import in the package."""
    found = []
    for path in sorted(path for tree in TREES.values() for path in tree.rglob("*.py")):
        here = module_of(path)
        package = here if path.name == "__init__.py" else here.rpartition(".")[0]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [
            (here, scope, name) for scope, node in scoped(tree) for name in imported(node, package)
        ]
    return found


def module_of(path):
    tree = next(tree for tree in TREES.values() if path.is_relative_to(tree))
    parts = path.relative_to(tree.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def scoped(node, scope=None):
    """Every node under `node` with the dotted name of the function that holds it, or None."""
    for child in ast.iter_child_nodes(node):
        yield scope, child
        inner = scope
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            inner = TYPES
        elif isinstance(child, ast.FunctionDef | ast.ClassDef):
            inner = f"{scope}.{child.name}" if scope else child.name
        yield from scoped(child, inner)


def imported(node, package):
    """The modules that an import statement names; of the package's own, as far down as they go."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*above, base] if base else above)
    below = [f"{base}.{alias.name}" for alias in node.names]
    return sorted({name if name in modules() else base for name in below})


@cache
def modules():
    return {module_of(path) for tree in TREES.values() for path in tree.rglob("*.py")}


def room(module):
    """The room of a module; "" for one of the top level's files."""
    parts = module.split(".")
    if parts[0] == "tinytf_course":
        return "course"
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS else ""


def own():
    """Imports of the package's modules by each other, but for its front and its shell."""
    for here, scope, name in imports():
        if name.partition(".")[0] in TREES and here not in FRONT:
            yield here, scope, name


def is_lazy(here, scope, name):
    return (here.removeprefix("tinytf."), scope) in {
        (file, function) for file, function, target in LAZY if name.startswith(target)
    }


def test_the_imports_are_read():
    found = imports()
    assert ("tinytf.blocks", None, "tinytf.residual") in found
    assert ("tinytf.viz.explorer", None, "tinytf.viz.style") in found  # written `from .style`
    assert len(found) > 500


def test_top_level_files_import_torch_and_each_other_only():
    allowed = {"torch", "tinytf", *sys.stdlib_module_names}
    wrong = [
        (here, name)
        for here, scope, name in imports()
        if here.startswith("tinytf.") and here.removeprefix("tinytf.") in TOP
        if name.partition(".")[0] not in allowed
        or (name.startswith("tinytf") and name.removeprefix("tinytf.") not in TOP)
        if not is_lazy(here, scope, name)
    ]
    assert not wrong


def test_no_chapter_waits_for_a_package_that_it_may_not_need():
    found = [(here, scope, name) for here, scope, name in imports() if name.split(".")[0] in SLOW]
    assert ("tinytf.viz.statistics", "violins", "seaborn") in found
    assert not [(here, name) for here, scope, name in found if scope is None]


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_imports_the_top_level_and_rooms_above_it(name):
    above = {"", *ROOMS[: ROOMS.index(name) + 1]}
    wrong = [(here, to) for here, _, to in own() if room(here) == name and room(to) not in above]
    assert not wrong


def test_nothing_imports_the_package_s_front():
    """`from tinytf import …` is for its users; inside, it would be a circle."""
    front = {here for here, _, name in own() if name == "tinytf"}
    assert not front


def test_no_import_circles():
    graph = {}
    for here, scope, name in own():
        if name != here and scope != TYPES and not is_lazy(here, scope, name):
            graph.setdefault(here, set()).add(name)
    assert not circle(graph)


def circle(graph):
    """The modules of one circle, or []."""
    done = set()

    def walk(module, path):
        if module in path:
            return [*path[path.index(module) :], module]
        for other in sorted(graph.get(module, ())) if module not in done else ():
            found = walk(other, [*path, module])
            if found:
                return found
        done.add(module)
        return []

    return next((found for module in sorted(graph) if (found := walk(module, []))), [])


def test_circles_are_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert not circle({"a": {"b", "c"}, "b": {"c"}})


def test_the_lazy_exceptions_are_there():
    found = {(here, scope, name) for here, scope, name in imports() if is_lazy(here, scope, name)}
    assert {(h.removeprefix("tinytf."), s) for h, s, _ in found} == {(f, s) for f, s, _ in LAZY}
