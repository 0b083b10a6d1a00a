"""What graders do with tensors, wherever they lie in an answer."""

import numbers as kinds
from contextlib import contextmanager

import numpy
import torch

__all__ = ["cast", "each_tensor", "even", "gradients_of", "numbers", "plain", "saved", "tensors",
           "wide"]  # fmt: skip


def numbers(*shape, seed, scale=1.0, shift=0.0, dtype=torch.float32):
    """Normal random numbers, the same in every run: no two rows, columns or axes are alike."""
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (drawn * scale + shift).to(dtype)


def gradients_of(function, arguments):
    """The gradient to each floating-point tensor, by its place, and the output's tensors."""
    places = {}

    def leaf(x, at):
        if not x.is_floating_point():
            return x
        places[at] = x.detach().double().clone().requires_grad_()
        return places[at]

    with torch.enable_grad():
        out = tensors(function(*each_tensor(arguments, leaf, ())))
        out = [part for part in out if part.requires_grad]
        if not out:
            return dict.fromkeys(places), None
        total = sum(
            (part.double() * numbers(*part.shape, seed=i, dtype=torch.float64)).sum()
            for i, part in enumerate(out)
        )
        found = torch.autograd.grad(total, list(places.values()), allow_unused=True)
    return dict(zip(places, found, strict=True)), out


def each_tensor(value, change, at=None):
    """Lists, tuples and dicts with every tensor changed; `at` gives `change` its place, too."""
    if isinstance(value, torch.Tensor):
        return change(value) if at is None else change(value, at)
    inside = (lambda i: None) if at is None else (lambda i: (*at, i))
    if isinstance(value, list | tuple):
        return type(value)(each_tensor(part, change, inside(i)) for i, part in enumerate(value))
    if type(value) is dict:
        return {key: each_tensor(part, change, inside(key)) for key, part in value.items()}
    return value


def cast(value, dtype):
    """The floating-point tensors of a value in another dtype."""
    return each_tensor(value, lambda x: x.to(dtype) if x.is_floating_point() else x)


def tensors(value):
    """The floating-point tensors of a result."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [x for part in value for x in tensors(part)] if isinstance(value, list | tuple) else []


def wide(x):
    """A tensor in double precision."""
    return x.to(torch.complex128 if x.is_complex() else torch.float64)


def even(value):
    """Whether a list can be a tensor: numbers in even rows."""
    try:
        torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        return False
    return len(value) > 0


def plain(value):
    """Lists for tuples, tensors and arrays, and Python's own numbers, all the way down."""
    if isinstance(value, torch.Tensor | numpy.ndarray | numpy.generic):
        return value.tolist()
    if isinstance(value, kinds.Real) and not isinstance(value, int | float):  # a fraction
        return float(value)
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


class Saved:
    """What autograd keeps for the way back, in numbers: `now`, and the most at one time, `peak`."""

    def __init__(self):
        self.now = self.peak = 0


@contextmanager
def saved():
    """A block whose `Saved` counts the numbers that autograd holds for `backward`.

    A loop that calls `backward` batch by batch peaks at one batch; one `backward` at the end holds
    them all.
    """
    count = Saved()

    class Kept:
        def __init__(self, tensor):
            self.tensor = tensor.detach()  # a node's own output would keep the node alive
            self.size = tensor.numel()
            count.now += self.size
            count.peak = max(count.peak, count.now)

        def __del__(self):
            count.now -= self.size

    with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
        yield count
