"""Exercises of a student edition: their tests are stored comparisons, and no answer is needed.

An edition for students has neither `answers` nor `exercises`, whose tests hold
oracles: right answers in another form. It has this file's `cases.json` and `cases.safetensors`:
what each test asks the answer, with which arguments, and what was expected. A test that can't be
written down so (it looks at time, at memory, at a property of what came out) runs only where the
exercise is handed in; `Exercise.elsewhere` counts those.
"""

import ast
import importlib
import json
import math
from functools import cache
from pathlib import Path

import torch

from tinytf_course.expect import (
    agrees,
    gradients,
    has_parameters,
    refuses,
    same,
    travels,
)
from tinytf_course.places import TREES, is_machinery

__all__ = ["NotStorable", "pack", "stored_exercises", "test_of", "unpack"]

STORED = Path(__file__).with_name("cases.json")
_ERRORS = {error.__name__: error for error in (ValueError, TypeError, KeyError, IndexError,
           RuntimeError, NotImplementedError, AssertionError)}  # fmt: skip


class NotStorable(ValueError):
    """A value that no file can hold, such as a function of a test's own."""


def pack(value, tensors):
    """A value as JSON has it; its tensors go to the list `tensors`. Raises NotStorable."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float:
        return {"float": repr(value)}
    if type(value) in (torch.Tensor, torch.nn.Parameter) and value.device.type == "cpu":
        tensors.append(value.detach().clone().contiguous())
        kind = "parameter" if isinstance(value, torch.nn.Parameter) else "tensor"
        return {kind: len(tensors) - 1, "gradient": value.requires_grad}
    if type(value) in (list, tuple, set):
        return {type(value).__name__: [pack(part, tensors) for part in value]}
    if type(value) is dict:
        return {"dict": [[pack(k, tensors), pack(v, tensors)] for k, v in value.items()]}
    if isinstance(value, torch.dtype | torch.device):
        return {"torch": str(value).removeprefix("torch."), "kind": type(value).__name__}
    name = getattr(value, "__name__", "")
    if name and getattr(torch, name, None) is value:
        return {"name": f"torch:{name}"}
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if module and name and module.split(".")[0] in ("torch", "math", "builtins", *TREES):
        ours = is_machinery(module)
        if not ours and getattr(importlib.import_module(module), name, None) is value:
            return {"name": f"{module}:{name}"}
    raise NotStorable(f"a {type(value).__name__} can't be stored")


def unpack(value, tensors):
    """What `pack` has packed; `tensors` by their number."""
    if not isinstance(value, dict):
        return value
    kind, held = next(iter(value.items()))
    if kind == "float":
        return float(held)
    if kind == "parameter":
        return torch.nn.Parameter(tensors[held], requires_grad=value["gradient"])
    if kind == "tensor":
        return tensors[held].clone().requires_grad_(value["gradient"])
    if kind in ("list", "tuple", "set"):
        made = [unpack(part, tensors) for part in held]
        return {"list": list, "tuple": tuple, "set": set}[kind](made)
    if kind == "dict":
        return {unpack(k, tensors): unpack(v, tensors) for k, v in held}
    if kind == "torch":
        return torch.device(held) if value["kind"] == "device" else getattr(torch, held)
    module, _, name = held.partition(":")
    return getattr(importlib.import_module(module), name)


def test_of(stored, tensors):
    """A test as an exercise has it, from what was stored of it."""

    def test(answer):
        for case in stored["cases"]:
            _ask(answer, {key: unpack(part, tensors) for key, part in case.items()})

    test.__doc__ = stored["says"]
    if stored.get("hint"):
        test.hint = stored["hint"]
    return test


def _ask(answer, case):
    """Make one stored comparison. Raises Mismatch, or what the answer raises."""
    kind, arguments, where = case["kind"], case["arguments"], case["where"]
    named, note = case.get("named", {}), case.get("note", "")
    if kind == "refuses":
        refuses(answer, *arguments, error=_ERRORS[case["error"]], note=note, where=where)
    elif kind == "travels":
        travels(answer, *arguments, note=note, where=where)
    elif kind == "gradients":
        tolerance = case["tolerance"]
        gradients(answer, case["expected"], *arguments, tolerance=tolerance, note=note, where=where)
    elif kind == "parameters":
        has_parameters(answer(*arguments, **named), case["expected"], where)
    elif not case["path"] and not named:
        same_as = {"tolerance": case["tolerance"], "note": note, "where": where}
        got = agrees(answer, case["expected"], *arguments, **same_as)
        if case["dtype"]:
            same(got, case["expected"], where, case["tolerance"], note, dtype=True)
    else:
        got = answer(*arguments, **named)
        for step in case["path"]:
            got = got[step]
        same(got, case["expected"], where, case["tolerance"], note, dtype=case["dtype"])


@cache
def stored_exercises(make):
    """The exercises of a student edition by id, each by `make`; empty where nothing is stored."""
    if not STORED.exists():
        return {}
    from safetensors.torch import load_file

    held = load_file(STORED.with_suffix(".safetensors"))
    tensors = {int(name): value for name, value in held.items()}
    found = {}
    for entry in json.loads(STORED.read_text(encoding="utf-8")):
        tests = tuple(test_of(test, tensors) for test in entry.pop("tests"))
        function = _stub(entry.pop("id_of_file"), entry["stub"])
        changes, entry["hints"] = tuple(entry.pop("changes")), tuple(entry["hints"])
        found[entry["id"]] = make(**entry, function=function, tests=tests, changes=changes)
    return found


def _stub(file, source):
    """The function or class to write."""
    names = {"torch": torch, "nn": torch.nn, "math": math, "__name__": file}
    exec(compile(source, file, "exec"), names)
    return names[ast.parse(source).body[-1].name]
