"""The parts a reader builds: for every definition that graduates, tests of the reader's version.

A part is named by where it stands in the package, `tinytf.attention.MultiHeadAttention`. Its tests
are scripts: functions of the definition that return values. A script is run on the reader's version
and on the package's, and the values must agree, shape first. So a test says nothing about *how* a
part is written, only what it does. `twin` gives both the same weights, in float64.

A chapter's parts stand in `parts/chNN.py`, in a tuple `PARTS`.
"""

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from tinytf.support.randomness import seeded
from tinytf_course.expect import expect, numbers, same
from tinytf_course.words import described

__all__ = [
    "Part",
    "arrived",
    "chapters_of_parts",
    "frozen",
    "parts",
    "says",
    "shapes",
    "thinned",
    "twin",
    "without_parts",
]

# Graduates that are an experiment's own model or a helper of a page, nothing to write from a stub.
WITHOUT = (
    "tinytf_course.studies.", "tinytf.training.next_sentence.swapped", "tinytf.inspect.Record",
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A definition to write: where the package has it, and what the reader's version must do.

    `scripts` maps a case, in words, to a function of the definition whose values tell what it does
    then. The smallest case comes first. `equivalent` says of a mutant's line, as `attack --parts`
    prints it, why it is right all the same; `…` in the line stands for any text.
    """

    target: str
    scripts: dict[str, Callable]
    tolerance: float = 1e-6
    changes: tuple[str, ...] = ()  # arguments that the definition is asked to change
    equivalent: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def name(self):
        """The name of the definition."""
        return self.target.rpartition(".")[2]

    @property
    def package(self):
        """The package's own definition."""
        module, _, name = self.target.rpartition(".")
        return getattr(importlib.import_module(module), name)

    @property
    def tests(self):
        """The scripts as tests of an exercise: functions of the answer with a docstring."""
        return tuple(self._test(words, script) for words, script in self.scripts.items())

    def _test(self, words, script):
        expected = _expected(self.target, words)

        def test(answer):
            with _given_back(script):
                got = script(answer)
            listed = isinstance(expected, torch.Tensor) and isinstance(got, list | tuple)
            expect(not listed, f"when {words}, you return {described(got)}, expected a tensor")
            same(got, expected, f"when {words}", self.tolerance, dtype=True)

        test.__doc__ = words
        return test


@contextmanager
def _given_back(script):
    """Undo what the reader's version writes into the tensors that a chapter's scripts share."""
    shared = [v for v in getattr(script, "__globals__", {}).values() if torch.is_tensor(v)]
    held = [tensor.detach().clone() for tensor in shared]
    try:
        yield
    finally:
        for tensor, was in zip(shared, held, strict=True):
            tensor.data = was


@functools.cache
def _expected(target, words):
    """What a script gives of the package's own definition."""
    part = parts()[target]
    with seeded(0):
        return part.scripts[words](part.package)


@functools.cache
def parts():
    """Every part by its target, in the order of the chapters."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return {part.target: part for module in modules for part in module.PARTS}


def without_parts(target):
    """Whether this graduate is no stub: a study's own model, a helper of a page, a constant."""
    module, _, name = target.rpartition(".")
    constant = not callable(getattr(importlib.import_module(module), name))
    return constant or target.startswith(WITHOUT)


def twin(definition, *arguments, mode="eval", **named):
    """Make a module in float64 whose parameters are random numbers drawn by their names.

    Two definitions with the same names and shapes get the same weights.
    """
    module = definition(*arguments, **named).double()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            seed = sum(ord(letter) * (i + 1) for i, letter in enumerate(name))
            parameter.copy_(numbers(*parameter.shape, seed=seed, scale=0.5, dtype=torch.float64))
    return module.train(mode == "train")


def shapes(module):
    """The names and shapes of its parameters, which `load_state_dict` goes by."""
    return {name: str(tuple(p.shape)) for name, p in sorted(module.named_parameters())}


def says(config, *given, **choices):
    """What a config made of these arguments says: {field: value}."""
    return dataclasses.asdict(config(*given, **choices))


def frozen(config, *given):
    """Whether a config made of these arguments refuses to be changed, in words."""
    made = config(*given)
    try:
        made.d_model = 3
    except dataclasses.FrozenInstanceError:
        return "it refuses to be changed"
    return "it can be changed"


def arrived(out, *inputs, module=None):
    """The gradients of a weighted sum of `out` to the inputs and, with `module`, its parameters.

    None becomes the words "no gradient".
    """
    weights = numbers(*(out.shape or (1,)), seed=7, dtype=torch.float64)
    named = [] if module is None else sorted(module.named_parameters())
    leaves = [*inputs, *(parameter for _, parameter in named)]
    names = [*(f"input {i + 1}" for i in range(len(inputs))), *(name for name, _ in named)]
    found = [None] * len(leaves)
    if out.requires_grad:
        found = torch.autograd.grad((out * weights).sum(), leaves, allow_unused=True)
    pairs = zip(names, found, strict=True)
    return {name: "no gradient" if part is None else part for name, part in pairs}


def thinned(out, leaf, share, whole):
    """In words, what dropout did on the way from `leaf` to `out`, whatever way it is drawn.

    A number of the leaf whose gradient is 0 was dropped. `whole` makes what `out` should be from
    the factor of each number, 0 or 1 / (1 - share).
    """
    weights = numbers(*out.shape, seed=7, dtype=torch.float64)
    (back,) = torch.autograd.grad((out * weights).sum(), leaf)
    gone, few = back == 0, {tuple(row) for row in (back == 0).flatten(0, 1).tolist()}
    return {
        f"{share:.0%} are dropped": bool((gone.double().mean() - share).abs() < 0.05),
        f"the others are divided by {1 - share:g}": torch.allclose(
            out, whole((~gone).double() / (1 - share))
        ),
        "each token drops its own": len(few) > 9,
        "each sentence drops its own": not torch.equal(gone[0], gone[1]),
    }
