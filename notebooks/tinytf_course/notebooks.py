"""Read notebooks as data: what they claim, ask and define."""

import ast
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tinytf_course.ipython import as_python
from tinytf_course.saved import NotebookError, printable, read, source

# Cell magics whose cell is Python all the same; the cell of any other is another language.
_PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")

_MOST_CODE = 2**20  # characters: a syntax tree of as many takes some 300 MB


@dataclass(frozen=True)
class Notebook:
    """A saved notebook. `chapter` is the number its file name starts with.

    What it holds is read when it is asked for; NotebookError says what can't be read.
    """

    path: Path

    @property
    def chapter(self):
        """The chapter's number, such as 03."""
        return printable(self.path.name.split("_")[0])

    @cached_property
    def cells(self):
        """All cells, as saved."""
        return read(self.path)["cells"]

    @cached_property
    def code(self):
        """The code cells that are not empty."""
        code = [cell for cell in self.cells if cell["cell_type"] == "code" and source(cell).strip()]
        if (size := sum(len(source(cell)) for cell in code)) > _MOST_CODE:
            name = printable(self.path.name)
            raise NotebookError(f"{name} has {size:,} characters of code: no chapter has")
        return code

    @cached_property
    def trees(self):
        """The syntax tree of each code cell, IPython's own syntax as calls of get_ipython()."""
        return [self._tree(number) for number in range(len(self.code))]

    def _tree(self, number):
        try:
            return tree(source(self.code[number]))
        except SyntaxError as error:
            first = source(self.code[number]).strip().splitlines()[0]
            raise NotebookError(
                f"{printable(self.path.name)}, the cell that begins {first[:60]!r}: {error.msg}"
            ) from error

    @property
    def outputs(self):
        """The saved outputs of all cells."""
        return [output for cell in self.code for output in cell.get("outputs", [])]

    def calls(self, name):
        """Every call of the function `name` (or `predict.answer`), in order."""
        return [call for tree in self.trees for call in calls_in(tree, name)]

    def ids(self, name):
        """The first argument of each call of `name` where it is written out."""
        arguments = [call.args[0] for call in self.calls(name)]
        return [node.value for node in arguments if isinstance(node, ast.Constant)]

    def definition(self, name):
        """The last definition of a class or function at the top of a cell, or None."""
        nodes = [node for tree in self.trees for node in tree.body]
        nodes = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        return next((node for node in reversed(nodes) if node.name == name), None)

    def records(self, kind, *names):
        """What outputs keep as `kind` in their metadata, where all the `names` are texts."""
        found = [output.get("metadata", {}).get(kind) for output in self.outputs]
        found = [record for record in found if isinstance(record, dict)]
        return [r for r in found if all(isinstance(r.get(name), str) for name in names)]

    def claims(self):
        """What was measured when the notebook ran, then what is written and was not run."""
        found = self.records("claim", "id", "sentence")
        seen = {claim["id"] for claim in found}
        for tree in self.trees:
            for call in calls_in(tree, "claim"):
                id = getattr(call.args[0], "value", None)
                if isinstance(id, str) and id not in seen and len(call.args) > 1:
                    sentence = re.sub(r"\{[^}]*\}", "…", _text(_said(call.args[1], tree)))
                    found.append({"id": id, "sentence": sentence, "measured": "not run"})
        return found


def notebooks(folder):
    """Every notebook in a folder, in order."""
    paths = sorted(Path(folder).glob("*.ipynb"))
    return [Notebook(path) for path in paths]


def readable(folder, chapters=None, parsed=True):
    """The notebooks of a folder that can be read; the others are named on stderr.

    `chapters`, a collection of numbers such as 03, keeps the others out. All code must be Python
    or IPython, unless `parsed` is false.
    """
    for notebook in notebooks(folder):
        if chapters and notebook.chapter not in chapters:
            continue
        try:
            notebook.trees if parsed else notebook.code  # noqa: B018
        except NotebookError as error:
            print(f"left out: {error}", file=sys.stderr)
        else:
            yield notebook


def calls_in(tree, name):
    """The calls in a syntax tree of `name`, such as claim or predict.answer, with arguments."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return [call for call in calls if _name(call.func) == name]


def tree(code):
    """The syntax tree of a cell. Raises SyntaxError if it is neither Python nor IPython."""
    if code.lstrip().startswith("%%"):
        first, _, code = code.lstrip().partition("\n")
        code = code if first.split()[0] in _PYTHON_MAGICS else ""
    try:
        try:
            return ast.parse(code)
        except SyntaxError:
            return ast.parse(as_python(code))
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes, too many brackets
        raise SyntaxError(str(error) or "it is nested too deeply") from error


def text(output):
    """The plain text of one output, or an empty string."""
    found = output.get("text") or output.get("data", {}).get("text/plain", "")
    return "".join(found)


def _name(function):
    if isinstance(function, ast.Attribute):
        return f"{_name(function.value)}.{function.attr}"
    return getattr(function, "id", "")


def _said(node, tree):
    """What a name stands for at its place: the last value assigned to it above, or the name."""
    above = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.Assign)
        and one.lineno < node.lineno
        and ast.unparse(one.targets[0]) == ast.unparse(node)
    ]
    return max(above, key=lambda one: one.lineno).value if above else node


def _text(node):
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)
