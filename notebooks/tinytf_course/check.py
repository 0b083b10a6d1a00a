"""Grade an answer: what holds, what fails on which small input, and which mistake it is."""

import functools
from dataclasses import dataclass

from tinytf_course.display import BAD, GOOD, QUIET, block, inline, show, sign, tag
from tinytf_course.evidence import alike
from tinytf_course.grading import Exercise, WrongAnswer, find
from tinytf_course.trial import UNTOUCHED as UNTOUCHED
from tinytf_course.trial import Verdict as Verdict
from tinytf_course.worker import NotStarted, trials


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

    It runs in a process of its own: see `tinytf_course.worker`. With until_wrong the first test
    that fails is the last one run, the mistake gets no name, and what is printed is not shown.
    """
    return grades(exercise, [answer], seconds, until_wrong)[0]


def grades(exercise, answers, seconds=8.0, until_wrong=False):
    """`grade` of each answer; one process runs them all, until one of them ends it."""
    if exercise.elsewhere and not exercise.tests:
        reason = f"its {exercise.elsewhere} tests run where it is handed in"
        return [Result(exercise, "not yet", reason=reason) for _ in answers]
    lines = 0 if until_wrong else 40
    try:
        found = trials(exercise, answers, seconds, until_wrong, lines)
    except NotStarted as error:
        reason = f"the process that runs your code can't be started: {error}"
        return [Result(exercise, "not yet", reason=reason) for _ in answers]
    return [result_of(exercise, *each, until_wrong) for each in found]


def result_of(exercise, verdicts, reason="", until_wrong=False):
    """The outcome of these verdicts; `reason` says why there is nothing to grade."""
    if reason:
        return Result(exercise, "not yet", reason=reason)
    held = tuple(verdict.says for verdict in verdicts if verdict.found is None)
    failed = [verdict for verdict in verdicts if verdict.found is not None]
    failed.sort(key=lambda verdict: "the course's own" not in verdict.found)  # told first
    if not failed:
        return Result(exercise, "passed", held)
    problems = tuple((verdict.says, verdict.found) for verdict in failed)
    mistake = None if until_wrong else diagnose(exercise, verdicts)
    crashed = failed[0].crashed
    hint = "" if crashed else failed[0].hint
    return Result(exercise, "failed", held, problems, mistake, hint=hint, crashed=crashed,
                  endless=failed[-1].stopped)  # fmt: skip


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
    if exercise.reference is None:
        return [wrong.verdicts for wrong in exercise.wrong]
    answers = [wrong.answer for wrong in exercise.wrong]
    return [verdicts for verdicts, _ in trials(exercise, answers, lines=0)]
