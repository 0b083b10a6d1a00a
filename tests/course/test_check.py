"""Checks show what a grader found, and an answer changes nothing outside."""

import linecache
import os
import sys
import time

import cloudpickle
import pytest
import torch
from test_exercises import EXERCISES, by_id

from tinytf_course import check
from tinytf_course.check import UNTOUCHED, Verdict, diagnose, grade
from tinytf_course.expect import agrees, gradients, numbers
from tinytf_course.grading import Exercise, hint, mistakes, without_answers
from tinytf_course.places import COURSE
from tinytf_course.trial import _crash, trial

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as what a notebook defines

SPLIT = next(exercise for exercise in EXERCISES if exercise.id == "06.1")

# checks


def test_check_shows_and_returns(capsys):
    exercise = EXERCISES[0]
    result = check(exercise.id, exercise.reference)
    assert result.passed
    assert not result.failed
    assert not result.not_yet
    assert capsys.readouterr().out == f"{result}\n"
    result = check(exercise.id, exercise.wrong[0].answer)
    assert result.failed
    assert exercise.wrong[0].name in capsys.readouterr().out
    with pytest.raises(KeyError, match="there are"):
        check("99.9", print)


def test_a_crash_is_reported_with_its_line():
    result = check("15.1", lambda step, lr, warmup, steps, fall: [][step])
    assert result.failed
    assert "`result = check(" in result.text
    assert "IndexError: list index out of range" in result.text


def test_other_right_answers_pass():
    """The graders accept what is right, not what is spelt like the reference."""

    def as_the_kernel_does(weights_of):
        q = (torch.rand(2, 3, 4, 8) + 0.5).requires_grad_()
        k = torch.cat([torch.full((2, 3, 1, 8), 40.0), torch.rand(2, 3, 5, 8) - 30], dim=2)
        mask = torch.tensor([False] + [True] * 5).repeat(4, 1)
        mask[2] = False
        eye = torch.eye(6).expand(2, 3, 6, 6)
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, eye, attn_mask=mask)
        weights = weights_of(q, k, mask)
        weights.square().sum().backward()
        close = torch.allclose(weights, expected.nan_to_num(0.0), atol=1e-4)
        return close and bool(q.grad.isfinite().all())

    def framework_loss(logits, targets, epsilon, pad_id):
        return torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), targets, ignore_index=pad_id, label_smoothing=epsilon
        )

    def counted_first(optimizer, batches, loss_and_tokens):
        with torch.no_grad():
            total = sum(loss_and_tokens(batch)[1] for batch in batches)
        optimizer.zero_grad()
        for batch in batches:
            (loss_and_tokens(batch)[0] / total).backward()
        optimizer.step()

    assert check("05.3", as_the_kernel_does).passed
    assert check("14.2", framework_loss).passed
    assert check("15.2", counted_first).passed


def test_the_line_that_crashed_is_the_learners_on_windows_too():
    """The grader's own frames are left out, however the machine writes its paths."""
    grader = str(COURSE / "grading.py").replace("/", "\\")
    text = "def call(answer):\n    return answer()\n"
    linecache.cache[grader] = (len(text), None, text.splitlines(keepends=True), grader)
    scope = {}
    exec(compile(text, grader, "exec"), scope)

    def run():
        return scope["call"](lambda: None + 1)

    def deeper():
        return scope["call"](lambda: scope["call"](None))

    for answer, line in ((run, "None + 1"), (deeper, 'scope["call"](None)')):
        with pytest.raises(TypeError) as error:
            answer()
        assert line in _crash(error.value).split("` raises")[0]
    del linecache.cache[grader]


# what an answer does to the notebook: FAULTS of the first edition's graders

SETTINGS = {
    "dtype": lambda: torch.set_default_dtype(torch.float64),
    "device": lambda: torch.set_default_device("meta"),
    "grad mode": lambda: torch.set_grad_enabled(False),
    "threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "cwd": lambda: os.chdir("/"),
    "function": lambda: setattr(torch.nn.functional, "softmax", torch.sigmoid),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_right_answer_that_changes_a_setting_is_told_and_leaves_none(setting):
    def answer(x, num_heads):
        result = SPLIT.reference(x, num_heads)
        SETTINGS[setting]()
        return result

    result = grade(SPLIT, answer)
    assert [says for says, _ in result.problems] == [UNTOUCHED]
    assert result.problems[0][1].startswith("your code ")
    assert grade(SPLIT, SPLIT.reference).passed


def test_a_right_answer_that_draws_or_prints_is_right(capsys):
    def answer(x, num_heads):
        torch.manual_seed(3)
        torch.rand(3)
        print("here")
        return SPLIT.reference(x, num_heads)

    before = torch.get_rng_state()
    assert grade(SPLIT, answer).passed
    assert torch.equal(torch.get_rng_state(), before)
    assert capsys.readouterr().out.startswith("here\n")


class Mute(Exception):
    """An error whose text fails."""

    def __str__(self):
        raise RuntimeError


def raising(error):
    def answer(*_):
        raise error

    return answer


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SystemExit(), "SystemExit: it ends the program"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (Mute(), "raises Mute"),
        (MemoryError(), "it asks for more memory"),
        (RecursionError(), "it calls itself without an end"),
        (AssertionError("mine"), "AssertionError: mine"),
    ],
    ids=repr,
)
def test_every_error_is_told_in_words(error, words):
    result = grade(SPLIT, raising(error))
    assert result.failed
    assert words in result.text
    assert result.crashed


def test_an_endless_loop_is_told_in_time():
    def answer(x, num_heads):
        while True:
            try:
                print("here")
            except BaseException:
                continue

    result = grade(SPLIT, answer, seconds=2.0)
    assert "stopped after 1 s: does a loop never end? It prints too much" in result.text
    assert len(result.problems) == 1  # the other tests are not tried
    assert result.mistake is None


def test_a_million_lines_are_left_out(capsys):
    def answer(x, num_heads):
        for number in range(10**5):
            print(number)

    check("06.1", answer)
    assert capsys.readouterr().out.count("\n") < 60


def test_an_input_destroyed_is_told():
    def destructive(x, num_heads):
        result = SPLIT.reference(x, num_heads).clone()
        x.zero_()
        return result

    result = grade(SPLIT, destructive)
    assert [says for says, _ in result.problems] == [UNTOUCHED]
    assert "your code changes the caller's `x`" in result.problems[0][1]
    assert grade(SPLIT, SPLIT.reference).passed


# names and hints


def double(x):
    """Twice x."""
    return 2 * x


def _small(answer):
    """one number is doubled"""
    agrees(answer, lambda x: x + x, torch.tensor([3.0]))


@hint("Do it for every row.")
def _large(answer):
    """every number is doubled"""
    agrees(answer, lambda x: x + x, numbers(2, 3, seed=1))


def _graph(answer):
    """gradients pass"""
    gradients(answer, lambda x: x + x, torch.tensor([3.0]))


MISTAKES = tuple(mistakes(
    """
squared
    2 * x => x**2
    says: you get [9]
    Squares are not doubles.
detached
    2 * x => 2 * x.detach()
    says: no gradient
    Nothing learns.
first row
    2 * x => 2 * x[:1]
    says: the shape is
    There are more.
""", double))  # fmt: skip


@pytest.fixture
def doubled():
    """An exercise of its own, with three mistakes."""
    tests = (_small, _large, _graph)
    return Exercise("99.9", "doubling", 1, 5, "Double it.", ("Add.",), double, "", tests,
                    reference=double, wrong=MISTAKES)  # fmt: skip


def test_a_mistake_is_named_by_the_tests_that_fail(doubled):
    for mistake in MISTAKES:
        assert grade(doubled, mistake.answer).mistake is mistake


def test_a_mistake_among_others_is_named(doubled):
    """Not the same on every input, yet the same where it fails."""

    def detached_for_some(x):
        return 2 * x.detach() if x.numel() == 1 else 2 * x

    def first_row_and_detached(x):
        return 2 * x[:1].detach()

    assert grade(doubled, detached_for_some).mistake is MISTAKES[1]
    result = grade(doubled, first_row_and_detached)
    assert result.mistake is None  # each explains one of two: neither explains most


def test_what_no_mistake_explains_has_no_name(doubled):
    result = grade(doubled, lambda x: 2 * x + 1)
    assert result.failed
    assert result.mistake is None
    assert "for x=[3], you get [7], expected [6]." in result.text
    assert "Hint" not in result.text  # that of another test would answer another question


def test_a_hint_is_that_of_the_first_test_that_fails(doubled):
    wrong = grade(doubled, lambda x: 2 * x * (1 + (x.numel() > 1)))
    assert "→ Hint: Do it for every row." in wrong.text
    crash = grade(doubled, lambda x: 2 * x if x.numel() == 1 else x.nothing)
    assert "Hint" not in crash.text


def test_words_are_evidence_where_results_are_not(doubled, monkeypatch):
    """Calls counted, say: what comes back is the same."""

    def failing(words):
        return [Verdict("it asks once", words, ())]

    of = [failing("it asks 3 times"), failing("it asks never"), failing("it asks for more")]
    monkeypatch.setattr(sys.modules["tinytf_course.check"], "_mistakes", lambda id: of)
    assert diagnose(doubled, failing("it asks never")) is MISTAKES[1]
    assert diagnose(doubled, failing("it asks 3 times")) is MISTAKES[0]
    assert diagnose(doubled, failing("it asks 4 times")) is None


def test_not_yet_is_not_wrong(doubled):
    def unwritten(x):
        raise NotImplementedError

    assert grade(doubled, unwritten).reason == "still to be written"
    assert grade(doubled, lambda x: None).reason == "it returns nothing so far"
    assert grade(doubled, lambda x: ...).not_yet
    assert grade(doubled, 3).reason == "the answer is a int; pass the function itself"


def test_until_wrong_stops_early(doubled):
    result = grade(doubled, lambda x: x**2, until_wrong=True)
    assert len(result.problems) == 1
    assert result.mistake is None


# time


@pytest.mark.parametrize("exercise", EXERCISES, ids=by_id)
def test_a_check_is_quick(exercise):
    bare = without_answers(exercise.id)

    def seconds():
        start = time.process_time()
        assert list(trial(bare, exercise.reference))[-1] == ""
        return time.process_time() - start

    assert seconds() < 2 or seconds() < 2  # the first may load what it needs
