"""The words of a grader's tests: call the answer, compare, and say in a line what was found."""

import re

import torch
from torch.overrides import TorchFunctionMode

from tinytf_course.evidence import copied, record, unrecorded
from tinytf_course.noting import Mismatch as Mismatch  # what tests raise
from tinytf_course.noting import word
from tinytf_course.tensors import (
    cast,
    each_tensor,
    even,
    gradients_of,
    plain,
    tensors,
    wide,
)
from tinytf_course.tensors import numbers as numbers  # what graders import from here
from tinytf_course.tensors import saved as saved
from tinytf_course.words import (
    apart,
    described,
    dtype_name,
    given,
    parameter_names,
    quoted,
    short,
    which,
)

_TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.float64: 1e-9}


@word
def expect(holds, message):
    """Raise Mismatch with this message unless it holds."""
    if not holds:
        raise Mismatch(message)


def agrees(answer, oracle, *arguments, tolerance=None, dtype=True, note="", where=None):
    """Call answer and oracle on these arguments and expect the same; return what answer gave.

    oracle is a function of the same arguments, or the value itself. Give the smallest case first:
    the first that fails is shown, with its arguments. Shape first, then the dtype (where dtype is
    true and a tensor is expected), then values.
    """
    where = where or given(answer, arguments)
    expected = oracle(*copied(arguments)) if callable(oracle) else oracle
    got = answer(*arguments)
    same(got, expected, where, tolerance, note, dtype=dtype and callable(oracle))
    return got


def gradients(answer, oracle, *arguments, tolerance=1e-6, note="", where=None):
    """Expect the gradient to every floating-point tensor among the arguments to be the oracle's.

    Both run in float64, and each number of the output counts with a weight of its own. oracle is a
    function of the same arguments, or the gradients by their places. A gradient that does
    not arrive is named with its argument.
    """
    where = where or given(answer, arguments)
    names = parameter_names(answer, len(arguments))
    expected = oracle if isinstance(oracle, dict) else gradients_of(oracle, arguments)[0]
    got, out = gradients_of(answer, arguments)
    record(got)
    for i in expected:
        if expected[i] is None:
            continue
        name = which(names, i)
        attached = out is not None and got[i] is not None
        message = f"{where}, no gradient reaches {name}: is something detached, or a number made "
        expect(attached, message + f"of a tensor on the way (`.item()`, `no_grad`)? {note}".strip())
        same(got[i], expected[i], f"{where}, for the gradient to {name}", tolerance, note)


def precise(answer, oracle, *arguments, dtype, tolerance=None, note="", where=None):
    """Expect the right values in this dtype, float16 say, and a result of it.

    The floating-point tensors are rounded to it first; oracle computes in float64 on the rounded
    numbers.
    """
    arguments = cast(arguments, dtype)
    where = where or given(answer, arguments)
    expected = cast(oracle(*cast(arguments, torch.float64)), dtype)
    same(answer(*arguments), expected, where, tolerance or _TOLERANCE[dtype], note, dtype=True)


@word
def refuses(answer, *arguments, error=ValueError, note="", where=None):
    """Expect this error for these arguments."""
    where = where or given(answer, arguments)
    try:
        got = answer(*arguments)
    except error:
        return
    raise Mismatch(f"{where}, you return {described(got)}, expected a {error.__name__}. {note}")


# What torch says when tensors of two devices meet, or one is to leave for NumPy.
MEETS = "expected device|same device"
STAYED = re.compile(f"{MEETS}|to numpy|out of meta")


class _Looked(Exception):
    """A list was made of a tensor's values, which are not there on meta."""


class _Copies(TorchFunctionMode):
    """Ones for a copy on the CPU, whose error on meta is that of a table that was left there.

    Raises _Looked at `.tolist()` and `.numpy(force=True)`. `made` says whether there was a copy.
    """

    made = False

    def __torch_function__(self, function, types, arguments=(), named=None):
        named = named or {}
        if function is torch.Tensor.tolist or (function is torch.Tensor.numpy and named):
            raise _Looked
        goals = [torch.device("cpu")] if function is torch.Tensor.cpu else []
        if function is torch.Tensor.to:
            goals = [*arguments[1:2], named.get("device")]
        to_cpu = any(str(getattr(goal, "device", goal)) == "cpu" for goal in goals)
        if to_cpu and arguments[0].is_meta:
            self.made = True
            return torch.ones_like(arguments[0], device="cpu")
        return function(*arguments, **named)


@word
def travels(answer, *arguments, note="", where=None):
    """Expect the answer to follow its arguments to another device (torch's meta stands for it).

    An answer that looks at values (`.item()`, an `if` on a tensor, boolean indexing) can't be
    followed there, nor one that fails after a copy to the CPU: it may well be right, and nothing is
    said of it.
    """
    where = where or given(answer, arguments)
    moved = each_tensor(arguments, lambda x: x.to("meta"))
    copies = _Copies()
    try:
        with copies, unrecorded():
            parts = tensors(answer(*moved))
    except _Looked:
        return
    except Exception as error:
        meets = re.search(MEETS, str(error))
        known = isinstance(error, RuntimeError | NotImplementedError | TypeError)
        if not known and not copies.made:
            raise
        if not meets and (copies.made or not STAYED.search(str(error))):
            return
        why = "what you are given is turned into NumPy's numbers, or copied to the CPU"
        if meets:
            why = "what you make is on the CPU, and meets what you are given: give it its `device`"
        words = f"{where}, on another device than the CPU it fails: {why}."
        raise Mismatch(f"{words} {note}".strip()) from None
    message = f"{where}, the result stays on the CPU when the arguments are on another device"
    expect(all(part.is_meta for part in parts), f"{message}. {note}")


class Counted:
    """A function that counts its calls, and keeps the arguments of each."""

    def __init__(self, function):
        self.function, self.calls = function, []
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    @property
    def count(self):
        """How often it was called."""
        return len(self.calls)

    def __call__(self, *arguments, **named):
        """Call the function."""
        self.calls.append(arguments)
        return self.function(*arguments, **named)


@word
def has_parameters(module, shapes, where):
    """Expect a module to have parameters of these names and shapes, and no others."""
    expect(isinstance(module, torch.nn.Module), f"{where}, you return {described(module)}, "
           "expected an `nn.Module`")  # fmt: skip
    got = {name: tuple(value.shape) for name, value in module.named_parameters()}
    record(got)
    for name, shape in shapes.items():
        there = ", ".join(got) or "none"
        expect(name in got, f"{where}, there is no parameter `{name}`; there are {there}")
        message = f"{where}, `{name}` has shape {got[name]}, expected {tuple(shape)}"
        expect(got[name] == tuple(shape), message)
    extra = [name for name in got if name not in shapes]
    expect(not extra, f"{where}, there is a parameter too many: {', '.join(extra)}")


@word
def same(got, expected, where, tolerance=None, note="", dtype=False):
    """Expect two values to agree: tensors, numbers, text, or lists, tuples and dicts of them.

    Says where they first do not. tolerance is relative and absolute; by default it is that of the
    less precise of the two dtypes. dtype says whether the dtypes must agree, too.
    """
    note = f" {note}" if note else ""
    parts = expected if isinstance(expected, dict | list | tuple) else None
    if isinstance(expected, dict):
        wanted = f"expected the keys {', '.join(map(str, expected))}.{note}"
        expect(isinstance(got, dict), f"{where}, you return {described(got)}; {wanted}")
        expect(got.keys() == expected.keys(), f"{where}, the keys are "
               f"{', '.join(map(str, got))}; {wanted}")  # fmt: skip
        for key in expected:
            same(got[key], expected[key], f"{where}, for {key!r}", tolerance, note.strip(), dtype)
    elif parts and any(isinstance(part, torch.Tensor) for part in parts):
        kind = f"{where}, you return {described(got)}, expected {len(parts)} tensors.{note}"
        expect(isinstance(got, list | tuple) and len(got) == len(parts), kind)
        for i, (one, other) in enumerate(zip(got, parts, strict=True)):
            same(one, other, f"{where}, for result {i}", tolerance, note.strip(), dtype)
    elif (parts is not None and not even(expected)) or isinstance(expected, str | None):
        found = plain(got)
        equal = type(found) is type(plain(expected)) and found == plain(expected)
        message = f"{where}, you get {quoted(got)}, expected {quoted(expected)}.{note}"
        expect(equal, message)
    else:
        _same_tensors(got, expected, where, tolerance, note, dtype)


def _same_tensors(got, expected, where, tolerance, note, dtype):
    dtype = dtype and isinstance(got, torch.Tensor) and isinstance(expected, torch.Tensor)
    wanted = _wanted(expected)
    got = number(got, where, wanted, note) if isinstance(expected, int | float) else got
    expected = torch.as_tensor(expected)
    got = tensor(got, where, wanted, note)
    shapes = f"the shape is {tuple(got.shape)}, expected {tuple(expected.shape)}"
    expect(got.shape == expected.shape, f"{where}, {shapes}.{note}")
    dtypes = f"the dtype is {dtype_name(got)}, expected {dtype_name(expected)}"
    strict = dtype or expected.dtype == torch.bool
    expect(not strict or got.dtype == expected.dtype, f"{where}, {dtypes}.{note}")
    if expected.dtype == torch.bool:
        wrong = got != expected
    else:
        each = [_TOLERANCE[x.dtype] for x in (got, expected) if x.dtype in _TOLERANCE]
        tolerance = tolerance or max([*each, 1e-9])
        wrong = ~torch.isclose(wide(got), wide(expected.detach().cpu()), tolerance, tolerance)
    if not wrong.any():
        return
    if got.numel() <= 12:
        raise Mismatch(f"{where}, you get {apart(got, expected)}.{note}")
    first = tuple(wrong.nonzero()[0].tolist())
    pair = apart(got[first], expected[first])
    raise Mismatch(f"{where}, position {list(first)} is {pair}.{note}")


NUMBER, YES_OR_NO = "a number", "True or False"


def _wanted(expected):
    """In words, what kind of thing an answer is to return."""
    if isinstance(expected, list | tuple):  # a tensor will do as well, or is what was asked for
        return short(expected)
    if isinstance(expected, bool):
        return YES_OR_NO
    return NUMBER if isinstance(expected, int | float) else "a tensor"


def number(got, where, wanted=NUMBER, note=""):
    """What the answer returned as a number of Python's, or a Mismatch that says what it is.

    A number of NumPy's, or a tensor without axes, is one as well. `wanted` may be YES_OR_NO, for
    which a tensor of one will do.
    """
    one = wanted == YES_OR_NO and isinstance(got, torch.Tensor) and got.numel() == 1
    found = plain(got.reshape(()) if one else got)
    if not isinstance(found, bool if wanted == YES_OR_NO else int | float):
        raise Mismatch(f"{where}, {_returned(got, wanted)}{note}")
    return found


def tensor(got, where, wanted="a tensor", note=""):
    """What the answer returned as a tensor on the CPU, or a Mismatch that says what it is.

    `wanted` says what is asked for, where that is no tensor.
    """
    if isinstance(got, torch.Tensor):
        return got.detach().cpu()
    expect(got is not None, f"{where}, {_returned(got, wanted)}{note}")
    try:
        return torch.as_tensor(plain(got) if isinstance(got, list | tuple) else got)
    except (TypeError, ValueError, RuntimeError):
        raise Mismatch(f"{where}, {_returned(got, wanted)}{note}") from None


def _returned(got, wanted):
    """What was returned and what was wanted; a list may have been refused on purpose."""
    if got is None and wanted in (NUMBER, YES_OR_NO, "a tensor"):
        return "you return None: is a `return` missing?"
    return f"you return {described(got)}, expected {wanted}."
