"""What an answer did in a test: each call's result, and what it changed of what it was given."""

import functools
import inspect
import itertools
import math
import re
from contextlib import contextmanager

import torch

from tinytf_course.settings import Settings

_evidence = [[]]  # of the test that runs now


def start_evidence():
    """A new list, to which everything goes that is recorded from now on."""
    _evidence[0] = []
    return _evidence[0]


@contextmanager
def unrecorded():
    """A block of which nothing is recorded: on meta, results are no numbers."""
    kept, _evidence[0] = _evidence[0], []
    try:
        yield
    finally:
        _evidence[0] = kept


def record(value):
    """Add a finding to the evidence by which a mistake is recognised, such as a gradient."""
    _evidence[0].append(value)


class Watched:
    """An answer on copies of its arguments: its results are evidence, its side effects are told.

    `changes` names the arguments that the exercise asks to change; they are passed as they are.
    """

    def __init__(self, answer, function, changes=()):
        functools.update_wrapper(self, answer)
        self.answer, self.changes, self.side_effects = answer, changes, []
        self.calls = set()  # (its arguments, what it returned), as `printed`
        self.parameters = list(inspect.signature(function).parameters)

    def __call__(self, *arguments, **named):
        """What the answer returns for copies of these arguments."""
        names = self.parameters + [f"argument {i + 1}" for i in range(len(arguments))]
        whole = dict(zip(names, arguments, strict=False)) | named
        memo = {}
        given = {k: v if k in self.changes else copied(v, memo) for k, v in whole.items()}
        before = {k: _state(v) for k, v in given.items() if k not in self.changes}
        settings, call = Settings(), printed(whole)
        try:
            positional = [given[name] for name in names[: len(arguments)]]
            result = self.answer(*positional, **{name: given[name] for name in named})
        except BaseException as error:
            record(type(error).__name__)
            self.calls.add((call, next(_unlike)))
            raise
        finally:
            self.side_effects += [f"your code {words}" for words in settings.put_back()]
            for name, state in before.items():
                found = _difference(name, whole[name], given[name], state)
                if found:
                    self.side_effects.append(f"your code changes the caller's {found}")
        record(_kept(result))
        self.calls.add((call, printed(result, other=lambda _: next(_unlike))))
        return result


_unlike = itertools.count()


def printed(value, other=id):
    """A fingerprint: equal for equal tensors, numbers and text, and lists and so on of them.

    That of None is None. Anything else has what `other` gives it: its own by default.
    """
    if isinstance(value, torch.Tensor):
        return hash((tuple(value.shape), str(value.dtype), _bytes(value)))
    if isinstance(value, dict):
        return hash(tuple((printed(k, other), printed(v, other)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return hash(tuple(printed(part, other) for part in value))
    if value is None:
        return None
    return hash(value) if isinstance(value, int | float | str) else other(value)


def _bytes(x):
    if x.is_meta:
        return b""
    try:
        return x.detach().cpu().numpy().tobytes()
    except (TypeError, RuntimeError):  # bfloat16, say, which NumPy has not
        return str(x.tolist())


def copied(value, memo=None):
    """The same value in new memory, so that an answer cannot change a test's input.

    A copy stays in the graph: gradients reach the original. What occurs twice is one copy. A
    parameter stays itself, since a copy of it would be none, and no module would take it.
    """
    memo = {} if memo is None else memo
    if isinstance(value, torch.nn.Parameter):
        return value
    if isinstance(value, torch.Tensor):
        if id(value) not in memo:
            memo[id(value)] = value.clone()
        return memo[id(value)]
    if isinstance(value, list | tuple):
        parts = [copied(part, memo) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if type(value) is dict:
        return {key: copied(part, memo) for key, part in value.items()}
    if isinstance(value, set):
        return set(value)
    return value


def _state(value):
    """What can be read of an object before a call: of its tensors and modules, all the way down."""
    if isinstance(value, torch.Tensor):
        return _version(value), value.requires_grad
    if isinstance(value, list | tuple):
        return [_state(part) for part in value]
    if type(value) is dict:
        return {key: _state(part) for key, part in value.items()}
    if isinstance(value, torch.nn.Module):
        tensors = [*value.named_parameters(), *value.named_buffers()]
        kept = {name: (x.detach().clone(), x.requires_grad, x.grad) for name, x in tensors}
        return kept, {name: part.training for name, part in value.named_modules()}
    return None


def _difference(name, before, now, state):
    """How `now`, a copy of `before`, is no longer what it was, in words; None if it is."""
    if isinstance(before, torch.Tensor):
        return _tensor_difference(name, before, now, state)
    if isinstance(before, list | tuple | dict):
        if len(before) != len(now) or (isinstance(before, dict) and before.keys() != now.keys()):
            return f"`{name}`: it had {len(before)} parts, and has {len(now)}"
        if isinstance(before, dict):
            parts = [(k, before[k], now[k], state[k]) for k in before] if state else []
        else:
            parts = [(i, before[i], now[i], state[i]) for i in range(len(before))]
        found = (_difference(f"{name}[{k!r}]", *part) for k, *part in parts)
        return next(filter(None, found), None)
    if isinstance(before, torch.nn.Module):
        return _module_difference(name, now, *state)
    if isinstance(before, int | float | str | bool | set) and before != now:
        return f"`{name}`: it was {before}, and is {now}"
    return None


def _tensor_difference(name, before, now, state):
    version, requires_grad = state
    if not isinstance(now, torch.Tensor):
        return f"`{name}`: it was a tensor, and is a {type(now).__name__}"
    if now.shape != before.shape:
        return f"`{name}`: its shape was {tuple(before.shape)}, and is {tuple(now.shape)}"
    if now.requires_grad and not requires_grad:
        return f"`{name}`: it now requires a gradient"
    changed = _version(now) != version
    if not now.is_meta and not changed:
        changed = not torch.equal(_bits(now), _bits(before))
    if changed and now.numel() <= 8 and not now.is_meta:
        was, is_now = str(before.tolist()), str(now.tolist())
        if was != is_now:  # else the same numbers were written
            return f"`{name}`: it was {was}, and is {is_now}"
    return f"`{name}` in place (a tensor of shape {tuple(now.shape)})" if changed else None


def _module_difference(name, module, tensors, modes):
    """As `_difference`, and put it back: tests share their modules."""
    found = None
    for part, (value, requires_grad, grad) in tensors.items():
        now = {**dict(module.named_parameters()), **dict(module.named_buffers())}.get(part)
        if now is None or now.shape != value.shape:
            return f"`{name}`: its `{part}` is another"
        if now.grad is not grad:
            found, now.grad = f"`{name}`: it leaves a gradient in `{part}`", grad
        if now.requires_grad != requires_grad:
            found = f"`{name}`: whether `{part}` requires a gradient"
            now.requires_grad_(requires_grad)
        if not torch.equal(_bits(now), _bits(value)):
            found = f"`{name}`: its `{part}`"
            now.data.copy_(value)
    for path, part in module.named_modules():
        if modes.get(path, part.training) != part.training:
            found = f"`{name}`: its mode, train() or eval()"
            part.training = modes[path]
    return found


def _bits(x):
    """The numbers so that NaN equals NaN."""
    x = x.detach()
    return x.nan_to_num(nan=1.5e-42) if x.is_floating_point() else x


def _version(x):
    return x._version if not x.is_inference() else 0


def _kept(result):
    """A result as evidence: its tensors' numbers, whatever becomes of them later."""
    if isinstance(result, torch.Tensor):
        return result.detach().clone()
    if isinstance(result, list | tuple):
        return [_kept(part) for part in result]
    if type(result) is dict:
        return {key: _kept(part) for key, part in result.items()}
    if result is None or isinstance(result, int | float | str | bool):
        return result
    return type(result).__name__


def alike(one, other, tolerance=1e-4):
    """Whether two pieces of evidence are the same, numbers up to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, str) and isinstance(other, str):
        return _words_alike(one, other)
    if one is None or other is None or isinstance(one, str) or isinstance(other, str):
        return one is other
    try:
        one, other = torch.as_tensor(one), torch.as_tensor(other)
        if one.is_meta or other.is_meta:  # which have no numbers to compare
            return one.device == other.device and one.shape == other.shape
        one, other = one.cpu(), other.cpu()
        return one.shape == other.shape and torch.allclose(
            _wide(one), _wide(other), tolerance, tolerance * 0.1, equal_nan=True
        )
    except (TypeError, ValueError, RuntimeError):
        return type(one) is type(other) and not isinstance(one, torch.Tensor)


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def _words_alike(one, other):
    """The same words, and numbers that agree in three digits."""
    if one == other or _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return one == other
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=2e-3) for a, b in pairs)


def _wide(x):
    return x.to(torch.complex128 if x.is_complex() else torch.float64)
