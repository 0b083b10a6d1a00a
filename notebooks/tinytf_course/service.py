"""The package's service lines: what a definition does for its users, and its idea does not need.

They end in the mark `# service`, which stands on a statement (or on the first line of a block), on
a parameter or on a base class with a line of its own. A name that such a line makes serves too: an
argument that is made of it goes with it. What is left is what a chapter builds, and `graduate`
compares that. In build mode `served` adds the service to what the reader wrote.
"""

import ast
import copy
import functools
import inspect
import io
import re
import sys
import textwrap
import tokenize
import types

__all__ = ["Idea", "first_line", "marked", "names_served", "served"]

_MARK = re.compile(r"#\s*service\b")
_BLOCKS = (ast.FunctionDef, ast.ClassDef)


def marked(source):
    """The numbers of the lines that end in the mark."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {t.start[0] for t in tokens if t.type == tokenize.COMMENT and _MARK.match(t.string)}


class Idea(ast.NodeTransformer):
    """A definition's syntax tree without its service lines.

    `node` is that tree, `lines` are the lines set aside, `places` the numbers of those with a mark,
    and `parts` says what they take from each block: {"Stack.forward": {"cache"}}, None where all of
    it goes. Raises ValueError where a name that serves is used in a line that is not marked.
    """

    def __init__(self, node, source):
        self.marks, self.source = marked(source), source.splitlines()
        self.lines, self.places, self.parts = [], [], {}
        self.where, self.names, self.own = [], set(), set()
        self.node = self.visit(copy.deepcopy(node))

    def visit(self, node):
        """Leave out a marked statement, and remember what it was and what it names."""
        if not isinstance(node, ast.stmt) or first_line(node) not in self.marks:
            return super().visit(node)
        self._aside(first_line(node), node.end_lineno)
        if isinstance(node, _BLOCKS):
            self.parts[".".join([*self.where, node.name])] = None
        self.names |= {n.id for n in ast.walk(node) if _stores(n)} - self.own
        return None

    def visit_ClassDef(self, node):
        """Leave out marked bases."""
        node.bases = self._kept(node, node.bases)
        return self._block(node)

    def visit_FunctionDef(self, node):
        """Leave out marked parameters; what they name serves as far as the function goes."""
        outside, a = (self.names, self.own), node.args
        self.names, self.own = set(self.names), set(self._named(node))
        defaults = [None] * (len(a.args) - len(a.defaults)) + a.defaults
        default_of = dict(zip(a.args + a.kwonlyargs, defaults + a.kw_defaults, strict=True))
        for kind in ("args", "kwonlyargs"):
            before = getattr(a, kind)
            setattr(a, kind, kept := self._kept(node, before))
            self.names |= {each.arg for each in before if each not in kept}
        a.defaults = [default_of[each] for each in a.args if default_of[each] is not None]
        a.kw_defaults = [default_of[each] for each in a.kwonlyargs]
        self._block(node)
        left = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & self.names
        if left:
            raise ValueError(f"{', '.join(sorted(left))} serves in {node.name}, in no marked line")
        self.names, self.own = outside
        return node

    def visit_Call(self, node):
        """Leave out arguments that serve; a call that has no others serves itself."""
        self.generic_visit(node)
        args = [each for each in node.args if not self._serves(each)]
        keywords = [each for each in node.keywords if not self._serves(each.value)]
        if args != node.args[: len(args)]:
            raise ValueError(f"an argument that serves stands before others: {ast.unparse(node)}")
        fewer = len(args) + len(keywords) < len(node.args) + len(node.keywords)
        node.serves = fewer and not args and not keywords
        node.args, node.keywords = args, keywords
        return node

    def _named(self, node):
        """The parameters and variables of unmarked lines."""
        if isinstance(node, ast.stmt | ast.arg) and first_line(node) in self.marks:
            return
        if isinstance(node, ast.arg) or _stores(node):
            yield getattr(node, "arg", None) or node.id
        for child in ast.iter_child_nodes(node):
            yield from self._named(child)

    def _serves(self, node):
        nodes = ast.walk(node)
        return any(getattr(n, "serves", False) or getattr(n, "id", "") in self.names for n in nodes)

    def _block(self, node):
        self.where.append(node.name)
        self.generic_visit(node)
        self.where.pop()
        node.body = node.body or [ast.Pass()]
        return node

    def _kept(self, owner, nodes):
        """What is not marked of a definition's parameters or bases."""
        aside = [n for n in nodes if n.lineno in self.marks and n.lineno != first_line(owner)]
        for each in aside:
            self._aside(each.lineno, each.end_lineno)
            taken = self.parts.setdefault(".".join([*self.where, owner.name]), set())
            taken.add(getattr(each, "arg", None) or ast.unparse(each))
        return [n for n in nodes if n not in aside]

    def _aside(self, first, last):
        self.places.append(first)
        text = "\n".join(self.source[first - 1 : last])
        self.lines += [re.sub(r"\s*" + _MARK.pattern + ".*", "", line) for line in
                       textwrap.dedent(text).splitlines()]  # fmt: skip


def first_line(node):
    """The first line of a statement, its decorators included."""
    return min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", ()))])


def _stores(node):
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


@functools.cache
def _idea(package):
    source = textwrap.dedent(inspect.getsource(package))
    return Idea(ast.parse(source).body[0], source)


def names_served(package):
    """The parameters of a definition that serve, of all its functions together."""
    return {name for taken in _idea(package).parts.values() for name in taken or ()}


def served(version, package):
    """The reader's version with the package's service.

    A call that asks for the service is the package's to answer, on the reader's parts. Any other is
    the reader's. Where nothing is missing, the version itself is returned.
    """
    parts, name = _idea(package).parts, package.__name__
    if not parts or isinstance(version, type) != isinstance(package, type):
        return version
    if not isinstance(package, type):
        return _answering(version, package, parts[name])
    added, bases = {}, []
    for path, taken in parts.items():
        if path == name:
            bases = [vars(sys.modules[package.__module__])[base] for base in taken]
            continue
        method = path.rpartition(".")[2]
        theirs = _rebound(vars(package)[method], version)
        if taken is None:
            added |= {} if method in vars(version) else {method: theirs}
        elif mine := getattr(version, method, None):
            answering = _answering(mine, theirs, taken)
            added |= {} if answering is mine else {method: answering}
    bases = [base for base in bases if not issubclass(version, base)]
    if not added and not bases:
        return version
    same = {key: getattr(version, key) for key in ("__module__", "__qualname__", "__doc__")}
    return type(version)(version.__name__, (version, *bases), same | added)


def _rebound(method, owner):
    """A method of the package whose `super()` begins behind another class."""
    if not isinstance(method, types.FunctionType) or not method.__closure__:
        return method
    cells = [
        types.CellType(owner) if name == "__class__" else cell
        for name, cell in zip(method.__code__.co_freevars, method.__closure__, strict=True)
    ]
    code, names = method.__code__, method.__globals__
    return types.FunctionType(code, names, method.__name__, method.__defaults__, tuple(cells))


def _answering(mine, theirs, taken):
    """The reader's function, which lets the package's answer where a service is asked for."""
    if not callable(mine) or taken <= inspect.signature(mine).parameters.keys():
        return mine
    signature = inspect.signature(theirs)

    @functools.wraps(mine)
    def function(*arguments, **named):
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError:
            return mine(*arguments, **named)  # which says what is wrong with them
        given = {name: bound.arguments.pop(name) for name in taken & bound.arguments.keys()}
        if all(value is signature.parameters[name].default for name, value in given.items()):
            return mine(*bound.args, **bound.kwargs)
        return theirs(*arguments, **named)

    function.__signature__ = signature
    return function
