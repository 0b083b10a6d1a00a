"""Write a program anew so that it does the same: other names, another order, nothing said.

The same seed gives the same names for two sources that share them, so that a healthy program and a
sick one, both disguised, differ in the lines of the bug only.
"""

import ast
import builtins
import random
import re

__all__ = ["ENTRANCES", "disguised", "names_of", "shared_names"]

# What a check calls by name, with the names of arguments.
ENTRANCES = frozenset(
    name
    for line in (
        "make_model batch outputs loss_of make_optimizer train score report write next_token",
        "entropy read beam top_p likeliest corpus split encode learning_rate accumulate save",
        "resume words bleu hide lines model generator size seed steps prefix prompt count ids",
        "width p pairs step parts checkpoint digits pieces written references longest logits first",
        "lengths src self forward VOCAB PAD MASK MEASURE BETTER LENGTH BLOCK",
        "LONGEST EOS BOS SEP",
    )
    for name in line.split(" ")
)
_HEADS = tuple(a + b for a in "bdfgklmnprstvz" for b in "aeiou")
_TAILS = tuple(a + b + c for a in "bdglmrst" for b in "aeiou" for c in "lnrx")
_KEPT_ATTRIBUTES = {"weight", "bias", "training", "data", "grad"}


def names_of(text: str) -> list[str]:
    """Give the names that a program makes up for itself and that nobody outside calls."""
    tree, found = ast.parse(text), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    found |= _attributes(tree)
    return sorted(n for n in found - ENTRANCES if not n.startswith("__") and n != "_")


def shared_names(one: str, other: str) -> list[str]:
    """Give the names of two sources that can be replaced in both alike."""
    unlike = _attributes(ast.parse(one)) ^ _attributes(ast.parse(other))
    return sorted({*names_of(one), *names_of(other)} - unlike)


def _attributes(tree: ast.AST) -> set[str]:
    """What is stored in self; not what a string names too, as a checkpoint's key does."""
    stored = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    methods = {
        part.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for part in node.body
        if isinstance(part, ast.FunctionDef) and not part.name.startswith("__")
    }
    strings = {
        word
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if "\n" not in node.value and len(node.value) < 20
        for word in re.findall(r"\w+", node.value)
    }
    return (stored | methods) - strings - _KEPT_ATTRIBUTES - ENTRANCES


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: dict[str, str], attributes: set[str], own: set[str]):
        self.names, self.attributes, self.own = names, attributes, own

    def visit_Name(self, node):
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node):
        node.arg = self.names.get(node.arg, node.arg)
        return node

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if node.attr in self.attributes:
            node.attr = self.names.get(node.attr, node.attr)
        return node

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in self.own:
            for keyword in node.keywords:
                keyword.arg = self.names.get(keyword.arg, keyword.arg)
        self.generic_visit(node)
        return node

    def _definition(self, node):
        node.name = self.names.get(node.name, node.name)
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            node.body = node.body[1:] or [ast.Pass()]
        self.generic_visit(node)
        return node

    visit_FunctionDef = visit_ClassDef = _definition


def disguised(text: str, seed: int, names: list[str] | None = None, share: float = 1.0) -> str:
    """Give a program with other names in another order, without comments and docstrings.

    `names` are those to replace, all its own if None; `share` of them are. What stays the same is
    what the program computes, to the last bit.
    """
    draws = random.Random(seed)
    tree = ast.parse(text)
    names = names_of(text) if names is None else names
    spoken = sorted({a + b for a in _HEADS for b in _TAILS} - set(dir(builtins)) - set(names))
    draws.shuffle(spoken)
    chosen = {old: new for old, new in zip(names, spoken) if draws.random() < share}
    for old in chosen:
        if old.isupper() and len(old) > 1:
            chosen[old] = chosen[old].upper()
        elif old[0].isupper() and len(old) > 1:
            chosen[old] = chosen[old].capitalize()
    own = {n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    tree = _Renamer(chosen, _attributes(tree), own).visit(tree)
    definitions = [n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    others = [n for n in tree.body if not isinstance(n, ast.ClassDef | ast.FunctionDef)]
    if isinstance(others[0], ast.Expr):  # what the program is for
        others = others[1:]
    draws.shuffle(definitions)
    tree.body = others + definitions
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
