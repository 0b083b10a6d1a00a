"""The single changes that make a mutant: of operators, constants, axes, calls, statements."""

import ast

import torch

__all__ = ["VIEWS", "expressions", "statements"]

_SWAPS = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div, ast.Add], ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Div, ast.Mult], ast.Mod: [ast.FloorDiv], ast.Pow: [ast.Mult],
    ast.MatMult: [ast.Mult], ast.BitAnd: [ast.BitOr], ast.BitOr: [ast.BitAnd],
    ast.Lt: [ast.LtE, ast.GtE], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt], ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.In: [ast.NotIn],
    ast.NotIn: [ast.In], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is],
    ast.And: [ast.Or], ast.Or: [ast.And],
}  # fmt: skip


_TWINS = (
    "max min", "amax amin", "argmax argmin", "sum mean", "any all", "softmax log_softmax",
    "tril triu", "ones zeros", "ones_like zeros_like", "sin cos", "floor ceil", "square abs",
    "log log2", "log exp", "relu gelu", "silu gelu", "cat stack", "mul add", "var std",
    "cumsum cumprod", "size dim", "maximum minimum", "append extend", "view reshape", "rsqrt sqrt",
)  # fmt: skip


_IN_PLACE = {ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv"}


_SYMMETRIC = ("transpose", "swapaxes", "max", "min", "maximum", "minimum", "isclose", "equal")


_FACTS = ("size", "shape", "dim", "ndim", "dtype", "device", "numel", "new_zeros", "new_full")


VIEWS = ("view", "reshape", "transpose", "unflatten", "flatten", "expand", "squeeze", "permute")


def statements(node, learns):
    """What may stand for a statement; None for nothing. `learns` as in `expressions`."""
    if isinstance(node, ast.stmt) and not isinstance(node, ast.Pass | ast.FunctionDef):
        yield None
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        value, target = node.value, node.targets[0]
        if isinstance(value, ast.BinOp) and ast.unparse(value.left) == ast.unparse(target):
            yield ast.AugAssign(target, value.op, value.right)
    if isinstance(node, ast.AugAssign):
        for op in _SWAPS.get(type(node.op), []):
            yield _with(node, op=op())
        yield ast.Assign([node.target], node.value, lineno=0)
    if isinstance(node, ast.If | ast.While):
        yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.Return) and isinstance(node.value, ast.expr):
        yield from (ast.Return(ending) for ending in _endings(node.value, learns))
    if isinstance(node, ast.Assign):
        yield from (_with(node, value=ending) for ending in _endings(node.value, learns))


def expressions(node, parent, names, shared, learns):
    """What may stand for an expression.

    `learns(node)` says whether its value is a tensor through which a gradient goes: elsewhere
    nobody could tell that it is cut off, or has passed through another dtype.
    """
    if isinstance(node, ast.BinOp):
        yield from (_with(node, op=op()) for op in _SWAPS.get(type(node.op), []))
        yield from (node.left, node.right)
        even = isinstance(parent, ast.Attribute) and parent.attr in ("square", "abs")
        if not even and not isinstance(node.op, ast.Add | ast.Mult | ast.BitAnd | ast.BitOr):
            yield _with(node, left=node.right, right=node.left)
        if type(node.op) in _IN_PLACE and getattr(node.left, "id", None) in shared:
            method = ast.Attribute(node.left, f"__{_IN_PLACE[type(node.op)]}__", ast.Load())
            yield ast.Call(method, [node.right], [])
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            for new in _SWAPS.get(type(op), []):
                yield _with(node, ops=[*node.ops[:i], new(), *node.ops[i + 1 :]])
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=_SWAPS[type(node.op)][0]())
        yield from node.values
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse, _with(node, body=node.orelse, orelse=node.body))
    elif isinstance(node, ast.Constant):
        yield from map(ast.Constant, _constants(node.value))
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        i = names.index(node.id)
        near = [*names[max(i - 2, 0) : i], *names[i + 1 : i + 3]]
        yield from (ast.Name(name, ast.Load()) for name in near)
        if not (isinstance(parent, ast.Attribute) and parent.attr in _FACTS):
            yield from _endings(node, learns, ("detach", "float"))
    elif isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load):
        for i in range(len(node.elts) - 1):
            yield _with(node, elts=_swapped(node.elts, i))
    elif isinstance(node, ast.Call):
        yield from _calls(node, shared)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.value
        yield from (_with(node, slice=new) for new in _shifted(node.slice))
    elif isinstance(node, ast.Slice):
        for bound in ("lower", "upper"):
            if getattr(node, bound) is not None:
                yield _with(node, **{bound: None})
                yield from (_with(node, **{bound: new}) for new in _shifted(getattr(node, bound)))
    elif isinstance(node, ast.comprehension):
        for i, test in enumerate(node.ifs):
            yield _with(node, ifs=node.ifs[:i] + node.ifs[i + 1 :])
            yield _with(node, ifs=[*node.ifs[:i], ast.UnaryOp(ast.Not(), test)])


def _calls(node, shared):
    """A call without itself, with arguments dropped, swapped or shifted, or of another name."""
    method = isinstance(node.func, ast.Attribute)
    if method and getattr(node.func.value, "id", None) not in ("torch", "math", "F", "nn"):
        yield node.func.value
        own = node.func.attr
        whose = getattr(node.func.value, "id", None)
        if whose in shared and hasattr(torch.Tensor, own + "_"):
            yield _with(node, func=_with(node.func, attr=own + "_"))
    name = node.func.attr if method else getattr(node.func, "id", "")
    if node.args:
        yield node.args[0]
    for i in range(len(node.args)):
        yield _with(node, args=node.args[:i] + node.args[i + 1 :])
        if i + 1 < len(node.args) and name not in _SYMMETRIC:
            yield _with(node, args=_swapped(node.args, i))
    for i in range(len(node.keywords)):
        yield _with(node, keywords=node.keywords[:i] + node.keywords[i + 1 :])
    for twins in map(str.split, _TWINS):
        if name in twins:
            other = twins[1 - twins.index(name)]
            renamed = {"attr": other} if method else {"id": other}
            yield _with(node, func=_with(node.func, **renamed))
    if name == "range":
        for i, argument in enumerate(node.args):
            for new in _shifted(argument):
                yield _with(node, args=[*node.args[:i], new, *node.args[i + 1 :]])
        if len(node.args) == 1:
            yield _with(node, args=[ast.Constant(1), *node.args])


def _constants(value):
    """Other values for a constant."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if value == 0 and isinstance(value, float):
        return [1.0]
    if isinstance(value, float):
        return [value * 2, 0.0, -value, *([value + 1, value - 1] if abs(value) >= 1 else [])]
    return [None] if value is ... else []


def _shifted(node):
    """An index one further and one less far."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.BinOp):
        yield ast.BinOp(node, ast.Add(), ast.Constant(1))
        yield ast.BinOp(node, ast.Sub(), ast.Constant(1))


_ENDINGS = ("detach", "float", "double", "half", "item")


def _endings(node, learns, endings=_ENDINGS):
    """The expression cut off from the graph, in another dtype, or as a number."""
    if isinstance(node, ast.Constant | ast.Tuple | ast.List | ast.JoinedStr | ast.Lambda):
        return
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    if getattr(node, "id", None) == "self" or called.startswith("nn."):  # a module has no dtype
        return
    for ending in endings:
        if ending == "item" or learns(node):
            yield ast.Call(ast.Attribute(node, ending, ast.Load()), [], [])


def _swapped(parts, i):
    return [*parts[:i], parts[i + 1], parts[i], *parts[i + 2 :]]


def _with(node, **fields):
    """A copy of a node with other fields."""
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})
