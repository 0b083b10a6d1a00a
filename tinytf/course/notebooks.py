"""Read notebooks as data: what they claim, ask and define."""

import ast
import json
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# Cell magics whose cell is Python all the same; the cell of any other is another language.
_PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")


class NotebookError(ValueError):
    """A file that is not a notebook, or a cell that is neither Python nor IPython."""


@dataclass(frozen=True)
class Notebook:
    """A saved notebook. `chapter` is the number its file name starts with.

    What it holds is read when it is asked for; NotebookError says what can't be read.
    """

    path: Path

    @property
    def chapter(self):
        """The chapter's number, such as 03."""
        return self.path.name.split("_")[0]

    @cached_property
    def cells(self):
        """All cells, as saved."""
        try:
            cells = json.loads(self.path.read_text(encoding="utf-8"))["cells"]
        except OSError as error:
            raise NotebookError(f"{self.path.name}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise NotebookError(f"{self.path.name} is not a notebook: {error!r}") from error
        if not isinstance(cells, list) or not all(map(_is_cell, cells)):
            raise NotebookError(f"{self.path.name} is not a notebook: its cells are not cells")
        return cells

    @cached_property
    def code(self):
        """The code cells that are not empty."""
        return [cell for cell in self.cells if cell["cell_type"] == "code" and source(cell).strip()]

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
                f"{self.path.name}, the cell that begins {first!r}: {error.msg}"
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

    def claims(self):
        """What was measured when the notebook ran, then what is written and was not run."""
        found = [output.get("metadata", {}).get("claim") for output in self.outputs]
        found = [claim for claim in found if claim]
        seen = {claim["id"] for claim in found}
        for call in self.calls("claim"):
            id = getattr(call.args[0], "value", None)
            if isinstance(id, str) and id not in seen and len(call.args) > 1:
                found.append({"id": id, "sentence": _text(call.args[1]), "measured": "not run"})
        return found


def notebooks(folder):
    """Every notebook in a folder, in order."""
    paths = sorted(Path(folder).glob("*.ipynb"))
    return [Notebook(path) for path in paths]


def readable(folder, chapters=None):
    """The notebooks of a folder that can be read; the others are named on stderr.

    `chapters`, a collection of numbers such as 03, keeps the others out.
    """
    for notebook in notebooks(folder):
        if chapters and notebook.chapter not in chapters:
            continue
        try:
            notebook.trees  # noqa: B018
        except NotebookError as error:
            print(f"left out: {error}", file=sys.stderr)
        else:
            yield notebook


def calls_in(tree, name):
    """The calls in a syntax tree of `name`, such as claim or predict.answer, with arguments."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return [call for call in calls if _name(call.func) == name]


def source(cell):
    """The text of a cell."""
    return "".join(cell["source"])


def tree(code):
    """The syntax tree of a cell. Raises SyntaxError if it is neither Python nor IPython."""
    if code.startswith("%%"):
        first, _, code = code.partition("\n")
        code = code if first.split()[0] in _PYTHON_MAGICS else ""
    try:
        return ast.parse(code)
    except SyntaxError:
        from IPython.core.inputtransformer2 import TransformerManager

        return ast.parse(TransformerManager().transform_cell(code))
    except ValueError as error:  # a null byte
        raise SyntaxError(str(error)) from error


def text(output):
    """The plain text of one output, or an empty string."""
    found = output.get("text") or output.get("data", {}).get("text/plain", "")
    return "".join(found)


def _is_cell(cell):
    parts = cell.get("source") if isinstance(cell, dict) else None
    parts = [parts] if isinstance(parts, str) else parts
    return (
        isinstance(parts, list)
        and all(isinstance(part, str) for part in parts)
        and isinstance(cell.get("cell_type"), str)
        and isinstance(cell.get("metadata", {}), dict)
        and isinstance(cell.get("outputs", []), list)
        and all(isinstance(output, dict) for output in cell.get("outputs", []))
    )


def _name(function):
    if isinstance(function, ast.Attribute):
        return f"{_name(function.value)}.{function.attr}"
    return getattr(function, "id", "")


def _text(node):
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)
