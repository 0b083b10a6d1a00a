"""Read notebooks as data: what they claim, ask and define."""

import ast
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Notebook:
    """A saved notebook. `chapter` is the number its file name starts with."""

    path: Path

    @property
    def chapter(self):
        """The chapter's number, such as 03."""
        return self.path.name.split("_")[0]

    @cached_property
    def cells(self):
        """All cells, as saved."""
        return json.loads(self.path.read_text(encoding="utf-8"))["cells"]

    @cached_property
    def code(self):
        """The code cells that are not empty."""
        return [cell for cell in self.cells if cell["cell_type"] == "code" and source(cell).strip()]

    @cached_property
    def trees(self):
        """The syntax tree of each code cell, lines of IPython magic taken out."""
        return [_tree(source(cell)) for cell in self.code]

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


def calls_in(tree, name):
    """The calls in a syntax tree of `name`, such as claim or predict.answer, with arguments."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return [call for call in calls if _name(call.func) == name]


def source(cell):
    """The text of a cell."""
    return "".join(cell["source"])


def text(output):
    """The plain text of one output, or an empty string."""
    found = output.get("text") or output.get("data", {}).get("text/plain", "")
    return "".join(found)


def _tree(code):
    if code.startswith("%%"):
        code = code.partition("\n")[2]
    lines = code.splitlines()
    code = "\n".join("pass" if line.startswith(("%", "!")) else line for line in lines)
    return ast.parse(code)


def _name(function):
    if isinstance(function, ast.Attribute):
        return f"{_name(function.value)}.{function.attr}"
    return getattr(function, "id", "")


def _text(node):
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)
