"""Grade an answer: what holds, what fails on which small input, and which mistake it is."""

import functools
import inspect
import linecache
import time
from contextlib import nullcontext
from dataclasses import dataclass

import torch

from tinytf_course.contain import Outlet, TooLong, contained
from tinytf_course.display import BAD, GOOD, QUIET, block, inline, show, sign, tag
from tinytf_course.evidence import Watched, alike, start_evidence
from tinytf_course.expect import Mismatch, noting
from tinytf_course.grading import Exercise, WrongAnswer, find
from tinytf_course.places import COURSE
from tinytf_course.settings import Settings

NOTHING = "it returns nothing so far"

# The last test of every exercise.
UNTOUCHED = "what it is given, and torch's settings, are left as they were"


@dataclass(frozen=True)
class Result:
    """The outcome of `check`: one of passed, failed and not_yet is true."""

    exercise: Exercise
    status: str  # passed, failed or not yet
    held: tuple[str, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()  # (what should hold, what was found)
    mistake: WrongAnswer | None = None
    reason: str = ""
    hint: str = ""  # that of the first test that fails
    crashed: bool = False  # whether the first test that failed ended with an error of the answer's
    endless: bool = False  # whether a test was stopped when its time was up

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
            more = f"; {exercise.elsewhere} run in full where it is handed in" * bool(
                exercise.elsewhere
            )
            return [("✓", f"{title}: all {len(self.held)} tests hold{more}")]
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
        elif self.hint:
            lines.append(("→", f"Hint: {self.hint}"))
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


def grade(exercise, answer, seconds=8.0, until_wrong=False):
    """Run every test of the exercise on the answer, for at most so many seconds in all.

    The answer gets fresh copies and works contained: see `tinytf_course.contain`. With until_wrong
    the first test that fails is the last one run, and the mistake gets no name.
    """
    if answer is None or answer is Ellipsis:
        return Result(exercise, "not yet", reason="there is no answer")
    if not callable(answer):
        reason = f"the answer is a {type(answer).__name__}; pass the function itself"
        return Result(exercise, "not yet", reason=reason)
    if exercise.elsewhere and not exercise.tests:
        reason = f"its {exercise.elsewhere} tests run where it is handed in"
        return Result(exercise, "not yet", reason=reason)
    _load_meta_device()
    with Outlet() as outlet:
        verdicts, reason = _verdicts(exercise, answer, seconds, until_wrong)
    if reason == NOTHING and outlet.heard:
        reason = "it prints, and returns nothing: `return` what you print"
    if reason:
        return Result(exercise, "not yet", reason=reason)
    held = tuple(verdict.says for verdict in verdicts if verdict.found is None)
    failed = [verdict for verdict in verdicts if verdict.found is not None]
    if not failed:
        return Result(exercise, "passed", held)
    problems = tuple((verdict.says, verdict.found) for verdict in failed)
    mistake = None if until_wrong else diagnose(exercise, verdicts)
    crashed = failed[0].crashed
    hint = "" if crashed else failed[0].hint
    return Result(exercise, "failed", held, problems, mistake, hint=hint, crashed=crashed,
                  endless=failed[-1].stopped)  # fmt: skip


@functools.cache
def _load_meta_device():
    """Have torch load what its meta device needs: seconds, once, that no answer is to pay for."""
    square = torch.zeros(2, 2, device="meta")
    (square @ square.mT).softmax(-1).exp()  # `exp` loads what most functions need


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


def _verdicts(exercise, answer, seconds, until_wrong=False):
    """A verdict for each test that was run and for the side effects; or why it is not yet."""
    watched = Watched(answer, exercise.function, exercise.changes)
    end, verdicts, settings = time.monotonic() + seconds, [], Settings()
    for test in exercise.tests:
        left = max(min(end - time.monotonic(), seconds / 2), 0.05)
        verdict, error, changed = _verdict(test, watched, left, settings, not until_wrong)
        if not verdicts:
            reason = _not_yet(exercise, answer, verdict, error)
            if reason:
                return [], reason
        watched.side_effects += [f"your code {words}" for words in changed]
        verdicts.append(verdict)
        if verdict.stopped or (until_wrong and verdict.found is not None):
            return verdicts, ""
    if watched.side_effects:
        found = "; ".join(list(dict.fromkeys(watched.side_effects))[:2])
        verdicts.append(Verdict(UNTOUCHED, found, (found,)))
    return verdicts, ""


def _verdict(test, watched, seconds, settings, to_the_end=True):
    """The verdict of one test, the error that it ended with, and the settings that it changed.

    What is told is the first mismatch; `to_the_end` the answer is asked every case for all that, so
    that the evidence is whole. What fails then fails because of it, and counts for nothing.
    """
    says = inspect.getdoc(test).splitlines()[0]
    trail, watched.calls = start_evidence(), set()
    with noting() if to_the_end else nullcontext() as noted:
        done = contained(lambda: test(watched), seconds, settings)
    error, found = noted[0] if noted else done.error, None
    if isinstance(error, TooLong):
        found = f"it ran for more than {seconds:.1g} s and was stopped: does a loop never end?"
    elif error is not None:
        found = str(error) if isinstance(error, Mismatch) else _crash(error)
    crashed = error is not None and not isinstance(error, Mismatch | TooLong)
    hint, stopped = getattr(test, "hint", ""), isinstance(done.error, TooLong)
    calls = frozenset(watched.calls)
    verdict = Verdict(says, found, tuple(trail), hint, stopped, crashed, calls)
    return verdict, error, done.changed


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


def diagnose(exercise, verdicts):
    """The named mistake that explains most of the tests that failed; None if none, or several do.

    It explains a test that both fail with the same results and the same words. It can't be one that
    fails a test which the answer passes. It has to explain more tests than speak against it: those
    that the two fail otherwise, and those that the answer alone fails. Where all results are True
    or False, which two answers soon share by chance, none may. And one of the tests that it
    explains has to fail in this way for it alone, of the mistakes that it can be. Half alike is
    another mistake, and no name is better than a wrong one. A constant answer makes none.
    """
    if not exercise.wrong or is_constant(verdicts, exercise):
        return None
    seen = {verdict.says: verdict for verdict in verdicts}
    held = {verdict.says for verdict in verdicts if verdict.found is None}
    held |= {UNTOUCHED} if len(verdicts) == len(exercise.tests) else set()
    failures = [[v for v in its if v.found is not None] for its in _mistakes(exercise)]
    pairs = zip(exercise.wrong, failures, strict=True)
    possible = [(wrong, its) for wrong, its in pairs if held.isdisjoint(v.says for v in its)]
    results = [result for verdict in verdicts for result in verdict.evidence]
    two_valued = all(isinstance(result, bool) for result in results)
    scores = []
    for wrong, its in possible:
        explained = [v for v in its if v.says in seen and _alike(seen[v.says], v)]
        beyond = seen.keys() - held - {verdict.says for verdict in its}
        against = len(its) - len(explained) + len(beyond)
        others = [each for other, each in possible if other is not wrong]
        alone = any(not any(_has(v, each) for each in others) for v in explained)
        if alone and len(explained) > against and not (two_valued and against):
            scores.append((len(explained) - against, len(explained), wrong))
    scores.sort(key=lambda score: score[:2], reverse=True)
    if not scores or (len(scores) > 1 and scores[0][:2] == scores[1][:2]):
        return None
    return scores[0][2]


def _alike(one, other):
    """Whether two verdicts of a test tell the same, in results and in words."""
    return alike(one.found, other.found) and alike(one.evidence, other.evidence)


def _has(verdict, verdicts):
    """Whether a verdict is among these."""
    return any(each.says == verdict.says and _alike(each, verdict) for each in verdicts)


def is_constant(verdicts, exercise):
    """Whether an answer gave the same result for whatever arguments."""
    calls = {call for verdict in verdicts for call in verdict.calls}
    results = {result for _, result in calls}
    works_on_them = exercise.changes or not exercise.none_is_a_result
    if results == {None} and works_on_them:  # what it does is its result
        return False
    return len(results) == 1 and len({given for given, _ in calls}) > 1


@functools.cache
def _mistakes(exercise):
    """The verdicts of each named mistake of an exercise."""
    with Outlet(lines=0):
        return [_verdicts(exercise, wrong.answer, 8.0)[0] for wrong in exercise.wrong]


def _crash(error):
    """The error and the line it came from, the deepest one that the learner wrote."""
    line, frame = "", error.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        name = file.replace("\\", "/")  # on Windows too
        if "site-packages" not in name and not name.startswith(COURSE.as_posix()):
            line = linecache.getline(file, frame.tb_lineno).strip() or line
        frame = frame.tb_next
    where = f"`{line}` raises " if line else "it raises "
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
    return f": {text.splitlines()[0]}" if text else ""
