"""Take what is right out of an exercise's file, and store the results with which its tests compare.

The reference becomes its stub, and the mistakes go. Each function of the tests' own, and each
oracle of `gradients`, is heard while the tests run on the reference and on the mistakes. One that
gives values, and the same ones whatever the answer is, is taken out: `tinytf_course.stored` has its
results. What is given to an answer to be called, or works on what the answer returned, stays.
"""

import ast
import functools
import io
import types
import warnings
from collections import defaultdict
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace

import torch

from tinytf_course.carried import as_values
from tinytf_course.exercise_source import emptied, stub
from tinytf_course.grading import exercise_of
from tinytf_course.stored import Told, close, equal, look
from tinytf_course.tensors import each_tensor, gradients_of
from tinytf_course.trial import says_of, trial
from tinytf_course.worker import trials

__all__ = ["recorded"]

_VALUES = (bool, int, float, str, torch.dtype, torch.device)
_HEAD = """from tinytf_course.stored import Told, stored

_told = Told(stored(__name__, "results"))
"""


def recorded(exercise, path):
    """An exercise's file for students: (its text, what is stored, how many tests are left out)."""
    found = trials(exercise, [wrong.answer for wrong in exercise.wrong], lines=0)
    verdicts = {wrong: its for wrong, (its, _) in zip(exercise.wrong, found, strict=True)}
    # one that never ends, or ends its process, is not run in this one
    calm = [wrong for wrong, its in verdicts.items()
            if not any(each.stopped or each.code is not None for each in its)]  # fmt: skip
    tree, results = _cut(exercise, path, [replace(wrong).answer for wrong in calm])
    student = _exercise(path, tree, Told(results))
    left_out = {each.says for each in _run(student, exercise.reference)}
    mistakes = []
    for wrong, its in verdicts.items():
        if wrong in calm:  # made anew: it may remember what it was given
            its = _run(student, replace(wrong).answer)
        its = [replace(each, evidence=as_values(each.evidence), calls=frozenset()) for each in its
               if each.found is not None and each.says not in left_out]  # fmt: skip
        mistakes.append({"name": wrong.name, "why": wrong.why, "verdicts": tuple(its)})
    tests = [test.__name__ for test in exercise.tests if says_of(test) in left_out]
    tree.body = [node for node in tree.body if getattr(node, "name", "") not in tests]
    held = {"results": results, "mistakes": mistakes}
    return _text(exercise, path, tree, len(tests)), held, len(tests)


def _text(exercise, path, tree, left_out):
    """The file's docstring, the stub for the reference, and what is left of the tests."""
    lines = path.read_text(encoding="utf-8").splitlines()
    head, *nodes = tree.body
    parts = ["\n".join(lines[: head.end_lineno]), _HEAD]
    for node in nodes:
        own = getattr(node, "name", "") == exercise.name
        parts.append(stub(exercise.solution) if own else ast.unparse(node))
    return "\n\n".join([*parts, f"ELSEWHERE = {left_out}"]) + "\n"


def _cut(exercise, path, wrong):
    """The tree of the file without what can be taken out, and results for it by place."""
    heard = _Hearing()
    for answer in (exercise.reference, _shifted(exercise.reference), *wrong):
        heard.first = answer is exercise.reference
        marked = _Places(exercise.name).visit(_tree(path))
        _run(_exercise(path, marked, heard), heard.asked(answer))
    out = set(heard.called)
    while kept := {p for p, around in heard.bad if p in out and out.isdisjoint(around)}:
        out -= kept
    results = {place: [(given, result) for given, result, around in heard.results[place]
               if any(map(out.isdisjoint, around))] for place in sorted(out)}  # fmt: skip
    return _Places(exercise.name, out).visit(_tree(path)), results


def _tree(path):
    return emptied(ast.parse(path.read_text(encoding="utf-8")))


def _exercise(path, tree, told):
    """The exercise of such a tree, in which `_told` is `told`."""
    module = types.ModuleType(f"tinytf_course.exercises.{path.parent.name}.{path.stem}")
    vars(module).update(_told=told, _gradients=_gradients)
    exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), vars(module))
    return exercise_of(module, path)


def _gradients(oracle, arguments):
    """What the word `gradients` expects."""
    return oracle if isinstance(oracle, dict) else gradients_of(oracle, arguments)[0]


def _run(exercise, answer):
    """The verdicts of the tests that fail."""
    silent = redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO())
    with silent[0], silent[1], warnings.catch_warnings():
        warnings.simplefilter("ignore")
        *verdicts, _ = trial(exercise, answer)
    return [verdict for verdict in verdicts if verdict.found is not None]


def _shifted(answer):
    """The answer, with results that differ wherever a test may look."""

    @functools.wraps(answer)
    def shifted(*arguments, **named):
        return _another(answer(*arguments, **named))

    return shifted


def _another(value):
    if type(value) in (list, tuple):
        return type(value)(map(_another, value))
    if type(value) is dict:
        return {key: _another(part) for key, part in value.items()}
    if isinstance(value, bool) or (isinstance(value, torch.Tensor) and value.dtype == torch.bool):
        return value ^ True
    if isinstance(value, str):
        return value + "'"
    return value + 1 if isinstance(value, int | float | torch.Tensor) else value


class _Places(ast.NodeTransformer):
    """Marks each place that may be taken out; or takes out those of `out`."""

    def __init__(self, reference, out=None):
        self.reference, self.out = reference, out

    def visit_Module(self, node):
        """Mark each function that is no test, or take out its body."""
        for each in node.body:
            its = isinstance(each, ast.FunctionDef) and each.name != self.reference
            yields = any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(each))
            if its and not yields and not each.name.startswith("test_"):
                if mark := self._mark(each):
                    each.body = ast.parse("...").body
                if mark or self.out is None:
                    each.decorator_list.append(mark or _mark(each))
        return self.generic_visit(node)

    def visit_Call(self, node):
        """Of `gradients(answer, oracle, …)` the oracle may become what is expected of it."""
        if getattr(node.func, "id", "") != "gradients":
            return self.generic_visit(node)
        oracle, inputs = node.args[1], ast.Tuple(node.args[2:], ast.Load())
        mark = self._mark(node)
        node = self.generic_visit(node)
        if mark:
            node.args[1] = ast.Call(ast.Call(mark, [ast.Constant(...)], []), [oracle, inputs], [])
        elif self.out is None:
            function = ast.Call(_mark(node), [ast.Name("_gradients", ast.Load())], [])
            node.args[1] = ast.Call(function, [node.args[1], inputs], [])
        return node

    def _mark(self, node):
        """The decorator of a place that is to be taken out; None for another."""
        return _mark(node) if self.out is not None and _place(node) in self.out else None


def _place(node):
    return f"line {node.lineno}, column {node.col_offset}"


def _mark(node):
    return ast.Call(ast.Name("_told", ast.Load()), [ast.Constant(_place(node))], [])


class _Hearing(Told):
    """Keeps what each place gives, and which have to stay.

    What is heard has with it the places that it is heard inside of: what happens inside one that is
    taken out does not count.
    """

    def __init__(self):
        super().__init__(defaultdict(list))
        self.first = True  # whether the answer is the reference
        self.called, self.bad = set(), set()
        self.around, self.asks, self.inside = frozenset(), 0, 0

    def asked(self, answer):
        """The answer, such that this notices its calls."""

        @functools.wraps(answer)
        def asked(*arguments, **named):
            self.asks += 1
            self.inside += 1
            try:
                return answer(*arguments, **named)
            finally:
                self.inside -= 1

        return asked

    def __call__(self, place):
        """A decorator for the function at this place."""

        def put(function):
            @functools.wraps(function)
            def heard(*arguments, **named):
                return self._heard(place, functools.partial(function, *arguments, **named),
                                   look((arguments, named)))  # fmt: skip

            return heard

        return put

    def _heard(self, place, call, given):
        around, asks = self.around, self.asks
        self.called.add(place)
        self.around = around | {place}
        result = None
        try:
            result = call()
        finally:
            self.around = around
            fits = self.asks == asks and not self.inside and _is_value(result)
            if not (fits and self._agrees(place, given, result, around)):
                self.bad.add((place, around))
        return result

    def _agrees(self, place, given, result, around):
        """Whether the place gave the same for these arguments before; the first time it does."""
        for had, gave, inside in self.results[place]:
            if equal(had, given):
                inside.add(around)
                return close(look(gave), look(result))
        if self.first:
            self.results[place].append((given, _kept(result), {around}))
        return self.first


def _is_value(value):
    """Whether a file can hold it, and it is more than None."""
    if isinstance(value, list | tuple | set):
        return type(value) in (list, tuple, set, torch.Size) and all(map(_is_part, value))
    if type(value) is dict:
        return all(_is_part(part) for pair in value.items() for part in pair)
    return type(value) is torch.Tensor or type(value) in _VALUES


def _is_part(value):
    return value is None or _is_value(value)


def _kept(value):
    return each_tensor(value, lambda x: x.detach().clone())
