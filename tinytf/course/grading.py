"""What an exercise is made of, and the words its tests use."""

import functools
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import torch


class Mismatch(AssertionError):
    """What a test found, in words for the learner."""


@dataclass(frozen=True)
class WrongAnswer:
    """A mistake people make: an answer that has it, and what the grader must say about it."""

    name: str
    answer: Callable
    message: str  # a fragment of what the failing test says
    why: str


@dataclass(frozen=True)
class Exercise:
    """A function to write.

    `tests` are functions of the answer, each with a docstring that says what holds; they raise
    Mismatch. `probes` are functions of the answer whose results tell one mistake from another; the
    first one returns None for an answer that has not been written.
    """

    id: str
    title: str
    difficulty: int  # 1 to 3
    minutes: int
    statement: str
    hint: str
    reference: Callable
    wrong: tuple[WrongAnswer, ...]
    tests: tuple[Callable, ...]
    probes: tuple[Callable, ...]

    @property
    def stub(self):
        """The reference's first line and docstring, and nothing more."""
        signature = f"def {self.reference.__name__}{inspect.signature(self.reference)}:"
        text = inspect.getdoc(self.reference)
        end = "\n" if "\n" in text else ""
        doc = textwrap.indent(f'"""{text}{end}"""', "    ")
        return f"{signature}\n{doc}\n    raise NotImplementedError\n"

    @property
    def solution(self):
        """The source of the reference."""
        return inspect.getsource(self.reference)

    @property
    def stars(self):
        """The difficulty: ★★☆."""
        return "★" * self.difficulty + "☆" * (3 - self.difficulty)

    def markdown(self):
        """Statement, hint and folded solution, as the chapter prints them."""
        return (
            f"### Exercise {self.id} · {self.title}\n\n"
            f"{self.stars} · about {self.minutes} minutes\n\n{self.statement}\n\n"
            f"<details><summary>Hint</summary>\n\n{self.hint}\n\n</details>\n"
            f"<details><summary>Solution</summary>\n\n```python\n{self.solution}```\n\n</details>\n"
        )


@functools.cache
def exercises():
    """Every exercise by id, in order."""
    package = importlib.import_module("tinytf.course.exercises")
    modules = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    chapters = [importlib.import_module(f"{package.__name__}.{name}") for name in modules]
    listed = [exercise for chapter in chapters for exercise in chapter.EXERCISES]
    return {exercise.id: exercise for exercise in listed}


def calls(*arguments, **named):
    """A probe: the answer's result for these arguments."""
    return lambda answer: answer(*arguments, **named)


def copied(value):
    """The same value in new memory, so that an answer cannot change a test's input.

    A copy stays in the graph: gradients reach the original.
    """
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, list | tuple):
        return type(value)(copied(part) for part in value)
    return value


def expect(holds, message):
    """Raise Mismatch with this message unless it holds."""
    if not holds:
        raise Mismatch(message)


def same(got, expected, where, tolerance=1e-5, note=""):
    """Expect two tensors (or numbers) to agree; say where they first do not."""
    note = f" {note}" if note else ""
    expected = torch.as_tensor(expected)
    got = tensor(got, where)
    expect(
        got.shape == expected.shape,
        f"{where}, the shape is {tuple(got.shape)}, expected {tuple(expected.shape)}.{note}",
    )
    if expected.dtype == torch.bool:
        expect(got.dtype == torch.bool, f"{where}, the dtype is {got.dtype}, expected bool.{note}")
        wrong = got != expected
    else:
        wrong = ~torch.isclose(got.double(), expected.double(), tolerance, tolerance)
    if not wrong.any():
        return
    if got.dim() == 0:
        raise Mismatch(f"{where}, you get {short(got)}, expected {short(expected)}.{note}")
    if got.numel() <= 12:
        raise Mismatch(f"{where}, you get {short(got)}, expected {short(expected)}.{note}")
    first = tuple(wrong.nonzero()[0].tolist())
    raise Mismatch(
        f"{where}, position {list(first)} is {short(got[first])}, "
        f"expected {short(expected[first])}.{note}"
    )


def tensor(got, where):
    """What the answer returned as a tensor on the CPU, or a Mismatch that says what it is."""
    if isinstance(got, torch.Tensor):
        return got.detach().cpu()
    expect(got is not None, f"{where}, you return None: is a `return` missing?")
    try:
        return torch.as_tensor(got)
    except (TypeError, ValueError, RuntimeError):
        kind = f"tuple of {len(got)}" if isinstance(got, tuple) else type(got).__name__
        raise Mismatch(f"{where}, you return a {kind}, expected a tensor") from None


def short(value):
    """A small tensor as text: [[1, 0.33], [0, 1]]."""
    value = value.tolist() if isinstance(value, torch.Tensor) else value
    if isinstance(value, list):
        return "[" + ", ".join(short(part) for part in value) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
