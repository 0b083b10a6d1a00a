"""Grade an answer: what holds, what fails on which small input, and which mistake it is."""

import functools
import inspect
import linecache
from dataclasses import dataclass

import torch

from tinytf.course.display import BAD, GOOD, QUIET, block, inline, show, sign, tag
from tinytf.course.grading import Exercise, Mismatch, WrongAnswer, copied, exercises
from tinytf.support.randomness import seeded


@dataclass(frozen=True)
class Result:
    """The outcome of `check`: one of passed, failed and not_yet is true."""

    exercise: Exercise
    status: str  # passed, failed or not yet
    held: tuple[str, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()  # (what should hold, what was found)
    mistake: WrongAnswer | None = None
    reason: str = ""

    @property
    def passed(self):
        """Whether every test holds."""
        return self.status == "passed"

    @property
    def failed(self):
        """Whether some test does not hold."""
        return self.status == "failed"

    @property
    def not_yet(self):
        """Whether there is nothing to grade so far."""
        return self.status == "not yet"

    @property
    def text(self):
        """The outcome in words, a line each."""
        return "\n".join(f"{symbol} {words}" for symbol, words in self._lines())

    def _lines(self):
        exercise = self.exercise
        title = f"{exercise.id}  {exercise.title}"
        if self.passed:
            count = len(self.held)
            return [("✓", f"{title}: all {count} tests hold")]
        if self.not_yet:
            return [("…", f"{title}: not yet ({self.reason})")]
        total = len(self.held) + len(self.problems)
        lines = [("✗", f"{title}: {len(self.held)} of {total} tests hold")]
        lines += [("✓", words) for words in self.held]
        told = set()
        for words, found in self.problems:
            if found not in told and len(told) < 2:
                told.add(found)
                lines.append(("✗", f"{words}: {found}"))
        if len(self.problems) > len(told):
            lines.append(("✗", f"and {len(self.problems) - len(told)} more"))
        if self.mistake:
            lines.append(("→", f"This is the mistake “{self.mistake.name}”. {self.mistake.why}"))
        else:
            lines.append(("→", f"Hint: {exercise.hint}"))
        return lines

    def _markup(self):
        (symbol, title), *rest = self._lines()
        colour = {"passed": GOOD, "failed": BAD}.get(self.status, QUIET)
        title = inline(title.removeprefix(self.exercise.id))
        markup = f"{sign(colour, symbol)} {tag(self.exercise.id)} {title}"
        colours = {"✓": GOOD, "✗": BAD, "→": QUIET}
        for symbol, words in rest:
            mark = sign(colours[symbol], symbol)
            markup += f'<div style="padding-left: 1.4em">{mark} {inline(words)}</div>'
        return block(colour, markup)

    def __repr__(self):
        return self.text

    def _ipython_display_(self):
        """`check` has shown it already: the last line of a cell does not show it twice."""


def check(id, answer):
    """Grade `answer`, a function, for exercise `id`; show the outcome and return it.

    Never raises for what the answer does. An answer that is not written yet is "not yet".
    """
    result = grade(find(id), answer)
    show(result.text, result._markup(), {"check": {"id": id, "status": result.status}})
    return result


def find(id):
    """The exercise of this id; KeyError names those that exist."""
    if id not in exercises():
        raise KeyError(f"no exercise {id!r}; there are {', '.join(exercises())}")
    return exercises()[id]


@seeded(0)
def grade(exercise, answer):
    """Run every test of the exercise on the answer, each on fresh copies of its input.

    The answer may draw random numbers: the caller's stream of them goes on as if it had not.
    """
    if answer is None or answer is Ellipsis:
        return Result(exercise, "not yet", reason="there is no answer")
    if not callable(answer):
        reason = f"the answer is a {type(answer).__name__}; pass the function itself"
        return Result(exercise, "not yet", reason=reason)
    answer = _on_copies(answer)
    try:
        first = exercise.probes[0](answer)
    except NotImplementedError:
        return Result(exercise, "not yet", reason="still to be written")
    except Exception:
        first = "crash"
    if first is None or first is Ellipsis:
        return Result(exercise, "not yet", reason="it returns nothing so far")
    held, problems = [], []
    for test in exercise.tests:
        says = inspect.getdoc(test).splitlines()[0]
        try:
            test(answer)
            held.append(says)
        except Mismatch as found:
            problems.append((says, str(found)))
        except Exception as error:
            problems.append((says, _crash(error)))
    if not problems:
        return Result(exercise, "passed", tuple(held))
    mistake = diagnose(exercise, answer)
    return Result(exercise, "failed", tuple(held), tuple(problems), mistake)


def diagnose(exercise, answer):
    """The named wrong answer that does the same as `answer` on every probe, or None."""
    seen = _behaviour(exercise, answer)
    for wrong in exercise.wrong:
        if _alike(seen, _behaviour(exercise, _on_copies(wrong.answer))):
            return wrong
    return None


@seeded(0)
def _behaviour(exercise, answer):
    results = []
    for probe in exercise.probes:
        try:
            results.append(probe(answer))
        except Exception as error:
            results.append(type(error))
    return results


def _alike(one, other):
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, type) or isinstance(other, type):
        return one is other
    try:
        one, other = torch.as_tensor(one), torch.as_tensor(other)
        return one.shape == other.shape and torch.allclose(
            one.double(), other.double(), 1e-5, 1e-6, equal_nan=True
        )
    except (TypeError, ValueError, RuntimeError):
        return False


def _on_copies(answer):
    @functools.wraps(answer)
    def on_copies(*arguments, **named):
        return answer(*copied(arguments), **{key: copied(value) for key, value in named.items()})

    return on_copies


def _crash(error):
    """The error and the line it came from, the deepest one that the learner wrote."""
    line, frame = "", error.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        name = file.replace("\\", "/")  # on Windows too
        if "site-packages" not in name and "tinytf/course" not in name:
            line = linecache.getline(file, frame.tb_lineno).strip() or line
        frame = frame.tb_next
    where = f"`{line}` raises " if line else "it raises "
    words = str(error).splitlines()[0] if str(error) else ""
    return f"{where}{type(error).__name__}: {words}"
