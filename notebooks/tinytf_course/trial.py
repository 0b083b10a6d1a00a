"""Run an exercise's tests on an answer: what holds, what was found, and what the answer changed.

It runs beside the answer, in the process of `tinytf_course.worker`, which keeps the time.
"""

import functools
import inspect
import linecache
import random
import sys
from contextlib import nullcontext
from dataclasses import dataclass

import numpy
import torch

from tinytf_course.carried import cut
from tinytf_course.evidence import Watched, start_evidence
from tinytf_course.guard import Untouched
from tinytf_course.noting import Mismatch, noting
from tinytf_course.places import COURSE
from tinytf_course.settings import Settings

NOTHING = "it returns nothing so far"
# The last test of every exercise.
UNTOUCHED = "what it is given, and torch's settings, are left as they were"
CHANGED = 86  # the exit code where what checks an answer can't go on


@dataclass(frozen=True)
class Verdict:
    """What one test found: None in `found` if it holds; what the answer did is `evidence`."""

    says: str
    found: str | None
    evidence: tuple
    hint: str = ""
    stopped: bool = False
    crashed: bool = False
    calls: frozenset = frozenset()  # (arguments, result) of each call, as fingerprints
    code: int | None = None  # the exit code of the process that the answer ended


@functools.cache
def load():
    """Have torch load what its meta device needs: seconds, once, that no answer is to pay for."""
    square = torch.zeros(2, 2, device="meta")
    (square @ square.mT).softmax(-1).exp()  # `exp` loads what most functions need


def trial(exercise, answer, until_wrong=False, outlet=None, before=None):
    """Yield a Verdict for each test and for side effects; last, why there is nothing to grade.

    With until_wrong the first test that fails is the last. `before` is `as_it_is()` of before the
    answer was defined.
    """
    load()
    settings, untouched = before or as_it_is()
    if answer is None or answer is Ellipsis:
        yield "there is no answer"
        return
    if not callable(answer):
        yield f"the answer is a {type(answer).__name__}; pass the function itself"
        return
    watched = Watched(answer, exercise.function, exercise.changes)
    for number, test in enumerate(exercise.tests):
        verdict, error = _verdict(test, watched, not until_wrong)
        watched.side_effects += map("your code {}".format, settings.put_back())
        if number == 0 and (reason := _not_yet(exercise, answer, verdict, error)):
            if reason == NOTHING and outlet and outlet.heard:
                reason = "it prints, and returns nothing: `return` what you print"
            yield reason
            return
        yield verdict
        if until_wrong and verdict.found is not None:
            break
    told = [*watched.side_effects, *map("your code {}".format, untouched.changed())]
    if told and not (until_wrong and verdict.found is not None):
        found = cut("; ".join(list(dict.fromkeys(told))[:2]))
        yield Verdict(UNTOUCHED, found, (found,))
    yield ""


def as_it_is():
    """What torch, Python and the course are set to, and made of."""
    return Settings(), Untouched()


def ended(exercise, number, code, seconds, in_all=False, prints=False):
    """The verdict of the test in which a process ended; `code` is None if its time was up.

    `in_all`: that of all tests, and not of one. `prints`: whether it printed much.
    """
    if code is None:
        each = "it was stopped after {:.3g} s in all" if in_all else "it was stopped after {:.3g} s"
        found = f"{each.format(seconds)}: does a loop never end?"
        found += " It prints too much, which takes time." * prints
    elif code == CHANGED:
        found = "it changes or ends what checks it: leave the course's functions and files alone"
    elif code == -9:
        found = "its process was killed from outside, as when memory is short"
    else:
        found = (
            f"it ends the process in which it is checked (exit code {code}): `return` what you have"
        )
    tests = exercise.tests if exercise else ()
    says = says_of(tests[number]) if number < len(tests) else UNTOUCHED
    return Verdict(says, found, (), stopped=code is None, crashed=code is not None, code=code)


def says_of(test):
    """What a test says of an answer: the first line of its docstring."""
    return inspect.getdoc(test).splitlines()[0]


def _verdict(test, watched, to_the_end=True):
    """The verdict of one test, and the error that it ended with.

    What is told is the first mismatch; `to_the_end` the answer is asked every case for all that, so
    that the evidence is whole. What fails then fails because of it, and counts for nothing.
    """
    trail, watched.calls = start_evidence(), set()
    random.seed(0), numpy.random.seed(0), torch.default_generator.manual_seed(0)
    error = found = None
    with noting() if to_the_end else nullcontext() as noted:
        try:
            test(watched)
        except BaseException as raised:  # what an answer raises is a finding, whatever it is
            error = raised
    error = noted[0] if noted else error
    if error is not None:
        found = cut(str(error) if isinstance(error, Mismatch) else _crash(error))
    crashed = error is not None and not isinstance(error, Mismatch)
    hint, calls = getattr(test, "hint", ""), frozenset(watched.calls)
    return Verdict(says_of(test), found, tuple(trail), hint, False, crashed, calls), error


def _not_yet(exercise, answer, first, error):
    """Why there is nothing to grade, by the first test; an empty string if there is."""
    if isinstance(error, NotImplementedError) and not str(error):  # torch's own says something
        return "still to be written"
    returned = first.evidence[:1] in ((None,), ("ellipsis",))
    may_return_none = exercise.changes or exercise.none_is_a_result
    if returned and first.found is not None and (not may_return_none or _empty(answer)):
        return NOTHING
    return ""


def _empty(answer):
    """Whether the body of a function is a constant, such as `...`."""
    code = getattr(answer, "__code__", None)
    return code is not None and not code.co_names and code.co_stacksize <= 1


def _crash(error):
    """The error and the line it came from, the deepest one that the learner wrote."""
    line, frame, codes = "", error.__traceback__, []
    while frame is not None:
        codes.append(frame.tb_frame.f_code)
        file = codes[-1].co_filename
        name = file.replace("\\", "/")  # on Windows too
        if "site-packages" not in name and not name.startswith(COURSE.as_posix()):
            line = linecache.getline(file, frame.tb_lineno).strip() or line
        frame = frame.tb_next
    call = Watched.__call__.__code__
    inside = codes[codes.index(call) + 1 :] if call in codes else codes
    theirs = call in codes and (not inside or inside[0].co_filename != call.co_filename)
    where = "it raises " if theirs else "what it returns can't be checked: "
    where = f"`{line}` raises " if line else where
    return f"{where}{type(error).__name__}{_words(error)}"


def _words(error):
    """What the error says in a line, and what that means where a learner may not know."""
    if isinstance(error, RecursionError):
        return ": it calls itself without an end"
    if isinstance(error, SystemExit):
        return ": it ends the program; `return` what you have"
    try:
        text = str(error)
    except BaseException:  # an error whose own text fails
        text = ""
    if isinstance(error, MemoryError) or "allocate memory" in text:
        return ": it asks for more memory than a check may have"
    return f": {cut(text.splitlines()[0], 300)}" if text.strip() else ""


class Outlet:
    """Gives the first lines that are printed to `show`, and counts the rest; says so at its end.

    With lines=0 nothing is shown, and nothing said.
    """

    encoding = "utf-8"

    def __init__(self, show, lines=40, characters=8000):
        self.show, self.lines, self.characters, self.left_out = show, lines, characters, 0
        self.silent, self.heard = lines == 0, False  # heard: whether anything was written

    def __enter__(self):
        self.kept = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = self
        return self

    def __exit__(self, *_):
        sys.stdout, sys.stderr = self.kept
        if self.left_out and not self.silent:
            self.show(f"\n… and {self.left_out:,} more lines of output, left out\n")

    def write(self, text):
        """Show a text, or count its lines."""
        text, self.heard = str(text), True
        if self.lines <= 0 or self.characters <= 0:
            self.left_out += text.count("\n")
        else:
            self.lines -= text.count("\n")
            self.show(text[: self.characters])
            self.characters -= len(text)
        return len(text)

    def writelines(self, lines):
        """Write each."""
        for line in lines:
            self.write(line)

    def flush(self):
        """Nothing waits."""

    def isatty(self):
        """No."""
        return False


def define(statements, name):
    """What the statements of a notebook's cells define as `name`; one may fail without the next.

    Raises the last error if there is no such thing.
    """
    names, error = {"__name__": "__main__"}, None
    for number, text in enumerate(statements):
        file = f"<answer, statement {number}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        try:
            exec(compile(text, file, "exec"), names)
        except (Exception, SystemExit) as raised:
            error = raised
    if name not in names:
        raise error or NameError(f"there is no `{name}`")
    return names[name]
